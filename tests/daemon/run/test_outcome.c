// What kcast-exec reports is believed only where it can be true. Each test takes an honest outcome
// and changes one thing in it.
#include "common/mem.h"
#include "daemon/run/outcome.h"
#include "proto/verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT(text) ((char *)(uintptr_t)(text))

// A report with everything in it that a measurement may have.
struct report {
    struct result result;
    struct estimate speedup;
    struct estimate control;
    struct quantiles baseline;
    struct quantiles candidate;
    struct accounts seconds;
    struct case_result one[2];
    struct estimate case_speedup;
    struct quantiles case_baseline;
    struct quantiles case_candidate;
};

static struct measure_expectation expected(void)
{
    return (struct measure_expectation){.problem = digest_of("problem", 7),
                                        .candidate = digest_of("candidate", 9)};
}

static void fill_report(struct report *r)
{
    const struct estimate estimate = {.log2 = 0.5, .lo = 0.4, .hi = 0.6, .blocks = 32};
    const struct quantiles times = {.p10 = 90, .p50 = 100, .p90 = 120};

    r->speedup = r->control = r->case_speedup = estimate;
    r->baseline = r->candidate = r->case_baseline = r->case_candidate = times;
    message_init(&accounts_message, &r->seconds);
    r->seconds.held = 1.5;
    for (size_t i = 0; i < ARRAY_LEN(r->one); i++) {
        message_init(&case_result_message, &r->one[i]);
        r->one[i].params = TEXT("N=8");
        r->one[i].weight = 0.5;
        r->one[i].floor_ns = 10;
        r->one[i].speedup = &r->case_speedup;
        r->one[i].baseline_ns = &r->case_baseline;
        r->one[i].candidate_ns = &r->case_candidate;
    }
    message_init(&result_message, &r->result);
    r->result.verdict = VERDICT_FASTER;
    r->result.speedup = &r->speedup;
    r->result.control = &r->control;
    r->result.baseline_ns = &r->baseline;
    r->result.candidate_ns = &r->candidate;
    r->result.seconds = &r->seconds;
    r->result.cases = r->one;
    r->result.cases_count = ARRAY_LEN(r->one);
    r->result.max_error = 0.5;
    r->result.overhead_ns = 20;
    r->result.problem = expected().problem;
    r->result.candidate = expected().candidate;
    r->result.sandbox = TEXT("on");
}

static struct bytes pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
}

// Reads the report as an outcome. Returns the code; the verdict that was read is compared.
static int read_report(struct report *r, struct err *err)
{
    struct measure_outcome outcome;

    *err = (struct err)ERR_INIT;
    message_init(&measure_outcome_message, &outcome);
    outcome.result = &r->result;
    struct bytes packed = pack(&measure_outcome_message, &outcome);
    const struct measure_expectation wanted = expected();
    struct measure_outcome read = {0};
    int rc = outcome_read_measure(&read, &packed, &wanted, err);
    if (rc == 0) {
        assert_int_equal(read.result->verdict, r->result.verdict);
        message_clear(&measure_outcome_message, &read);
    } else {
        assert_null(read.result); // written on success alone
    }
    bytes_clear(&packed);
    return rc;
}

static void assert_believed(struct report *r)
{
    struct err err;

    if (read_report(r, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void assert_lie(struct report *r, const char *says)
{
    struct err err;

    assert_int_equal(read_report(r, &err), ERR_PROTOCOL);
    if (!strstr(err.text, says) || !strstr(err.text, "kcast-exec measure")) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
}

struct number {
    size_t at; // in struct report
    double value;
    const char *says; // NULL: it is believed
};

static void set_number(struct report *r, const struct number *number)
{
    fill_report(r);
    *(double *)((char *)r + number->at) = number->value;
}

#define AT(field) offsetof(struct report, field)

static void a_number_that_no_measurement_gives_is_refused(void **state)
{
    static const struct number lies[] = {
        {AT(speedup.log2), 41, "speedup: an estimate out of range"},
        {AT(speedup.log2), -41, "speedup: an estimate out of range"},
        {AT(speedup.log2), INFINITY, "speedup: an estimate out of range"},
        {AT(speedup.log2), NAN, "speedup: an estimate out of range"},
        {AT(speedup.lo), NAN, "speedup: an estimate out of range"},
        {AT(speedup.hi), NAN, "speedup: an estimate out of range"},
        {AT(speedup.hi), 80.5, "speedup: an estimate out of range"},
        {AT(speedup.lo), -80.5, "speedup: an estimate out of range"},
        {AT(speedup.lo), 0.51, "speedup: an estimate outside its interval"},
        {AT(speedup.hi), 0.49, "speedup: an estimate outside its interval"},
        {AT(control.log2), NAN, "control: an estimate out of range"},
        {AT(control.hi), 0.1, "control: an estimate outside its interval"},
        {AT(case_speedup.hi), INFINITY, "N=8: an estimate out of range"},
        {AT(baseline.p50), -1, "baseline: a time out of range"},
        {AT(baseline.p90), INFINITY, "baseline: a time out of range"},
        {AT(baseline.p10), 101, "baseline: quantiles out of order"},
        {AT(candidate.p90), 2e15, "candidate: a time out of range"},
        {AT(candidate.p90), 99, "candidate: quantiles out of order"},
        {AT(case_baseline.p10), -0.5, "N=8: a time out of range"},
        {AT(case_candidate.p50), 121, "N=8: quantiles out of order"},
        {AT(one[1].weight), 1.01, "N=8: weight or floor"},
        {AT(one[1].weight), -0.01, "N=8: weight or floor"},
        {AT(one[0].floor_ns), -1, "N=8: weight or floor"},
        {AT(one[0].floor_ns), INFINITY, "N=8: weight or floor"},
        {AT(result.max_error), -0.001, "an error below 0"},
        {AT(result.max_error), -INFINITY, "an error below 0"},
        {AT(result.overhead_ns), -1, "an overhead"},
        {AT(result.overhead_ns), INFINITY, "an overhead"},
        {AT(seconds.queue), -1, "seconds out of range"},
        {AT(seconds.compile), INFINITY, "seconds out of range"},
        {AT(seconds.start), 1e7, "seconds out of range"},
        {AT(seconds.inputs), -1, "seconds out of range"},
        {AT(seconds.verify), -1, "seconds out of range"},
        {AT(seconds.time), -1, "seconds out of range"},
        {AT(seconds.held), -1e-9, "seconds out of range"},
    };
    struct report r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        set_number(&r, &lies[i]);
        assert_lie(&r, lies[i].says);
    }
}

static void a_number_at_its_bound_or_absent_is_believed(void **state)
{
    static const struct number truths[] = {
        {AT(speedup.hi), 80, NULL},          {AT(speedup.lo), -80, NULL},
        {AT(speedup.lo), 0.5, NULL},         {AT(speedup.hi), 0.5, NULL},
        {AT(baseline.p10), 0, NULL},         {AT(baseline.p90), 1e15, NULL},
        {AT(baseline.p50), NAN, NULL},       {AT(candidate.p10), NAN, NULL},
        {AT(candidate.p10), 100, NULL},      {AT(one[0].weight), 0, NULL},
        {AT(one[0].weight), 1, NULL},        {AT(one[0].weight), NAN, NULL},
        {AT(one[0].floor_ns), NAN, NULL},    {AT(result.max_error), 0, NULL},
        {AT(result.max_error), NAN, NULL},   {AT(result.max_error), INFINITY, NULL},
        {AT(result.overhead_ns), NAN, NULL}, {AT(seconds.held), 1e6, NULL},
        {AT(seconds.held), 0, NULL},
    };
    struct report r;

    (void)state;
    fill_report(&r);
    assert_believed(&r);
    for (size_t i = 0; i < ARRAY_LEN(truths); i++) {
        set_number(&r, &truths[i]);
        assert_believed(&r);
    }
}

static void an_estimate_needs_blocks_but_not_more_than_the_method_takes(void **state)
{
    struct report r;

    (void)state;
    fill_report(&r);
    r.speedup.blocks = 0;
    assert_lie(&r, "from 0 blocks");
    r.speedup.blocks = 1000001;
    assert_lie(&r, "from 1000001 blocks");
    r.speedup.blocks = UINT64_MAX;
    assert_lie(&r, "from 18446744073709551615 blocks");
    r.speedup.blocks = 1000000;
    assert_believed(&r);
    r.case_speedup.blocks = 0;
    assert_lie(&r, "N=8: an estimate from 0 blocks");
}

static void a_ratio_without_an_estimate_or_cases_is_refused(void **state)
{
    static const uint64_t ratios[] = {VERDICT_FASTER, VERDICT_SLOWER, VERDICT_EQUIVALENT,
                                      VERDICT_INCONCLUSIVE};
    struct report r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ratios); i++) {
        fill_report(&r);
        r.result.verdict = ratios[i];
        assert_believed(&r);
        r.result.speedup = NULL;
        assert_lie(&r, verdict_name(ratios[i]));
        fill_report(&r);
        r.result.verdict = ratios[i];
        r.result.cases_count = 0;
        assert_lie(&r, "without an estimate");
    }
}

static void a_failure_needs_no_estimate_but_may_not_invent_one(void **state)
{
    static const uint64_t failures[] = {VERDICT_WRONG,    VERDICT_COMPILE_ERROR,
                                        VERDICT_CRASH,    VERDICT_TIMEOUT,
                                        VERDICT_REJECTED, VERDICT_QUARANTINED};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        struct report r = {0};

        message_init(&result_message, &r.result);
        r.result.verdict = failures[i];
        assert_believed(&r);
        r.result.speedup = &r.speedup; // of no blocks
        assert_lie(&r, "from 0 blocks");
    }
}

static void a_verdict_that_nobody_knows_is_refused(void **state)
{
    struct report r;

    (void)state;
    fill_report(&r);
    r.result.verdict = VERDICT_NONE;
    assert_lie(&r, "verdict 0");
    r.result.verdict = VERDICT_QUARANTINED + 1;
    assert_lie(&r, "verdict 11");
    r.result.verdict = UINT64_MAX;
    assert_lie(&r, "verdict 18446744073709551615");
}

static void a_report_about_something_else_is_refused(void **state)
{
    struct report r;

    (void)state;
    fill_report(&r);
    r.result.problem = digest_of("another", 7);
    assert_lie(&r, "another problem");
    fill_report(&r);
    r.result.candidate = r.result.problem;
    assert_lie(&r, "another candidate");
    fill_report(&r);
    r.result.problem = r.result.candidate = (struct digest){0};
    assert_believed(&r); // it names none
}

static void a_report_of_another_sandbox_is_refused(void **state)
{
    static const char *const words[] = {"off", "", "ON", "on "};
    struct report r;

    (void)state;
    fill_report(&r);
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        r.result.sandbox = TEXT(words[i]);
        assert_lie(&r, "the sandbox was");
    }
    r.result.sandbox = NULL;
    assert_believed(&r);
}

static void an_outcome_cut_at_any_byte_is_refused(void **state)
{
    struct measure_outcome outcome;
    const struct measure_expectation wanted = expected();
    struct report r;

    (void)state;
    fill_report(&r);
    message_init(&measure_outcome_message, &outcome);
    outcome.result = &r.result;
    struct bytes packed = pack(&measure_outcome_message, &outcome);
    for (size_t len = 0; len < packed.len; len++) {
        struct bytes cut = bytes_copy(packed.data, len); // so that a reader beyond it is seen
        struct measure_outcome read = {0};
        struct err err = ERR_INIT;

        assert_int_equal(outcome_read_measure(&read, &cut, &wanted, &err), ERR_PROTOCOL);
        assert_null(read.result);
        bytes_clear(&cut);
    }
    bytes_clear(&packed);
}

// ---- compilations ----

static int read_compile(const struct compile_outcome *outcome, const char *target,
                        struct compiled *ret, struct err *err)
{
    const struct compile_expectation wanted = {.target = target};
    struct bytes packed = pack(&compile_outcome_message, outcome);
    struct compile_outcome read = {0};

    *err = (struct err)ERR_INIT;
    int rc = outcome_read_compile(&read, &packed, &wanted, err);
    if (rc == 0 && ret) {
        ret->verdict = read.compiled->verdict;
        ret->object = read.compiled->object;
    }
    if (rc == 0) {
        message_clear(&compile_outcome_message, &read);
    }
    bytes_clear(&packed);
    return rc;
}

static void assert_compile_lie(const struct compile_outcome *outcome, const char *target,
                               const char *says)
{
    struct err err;

    assert_int_equal(read_compile(outcome, target, NULL, &err), ERR_PROTOCOL);
    if (!strstr(err.text, says) || !strstr(err.text, "kcast-exec compile")) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
}

static void begin_compile(struct compile_outcome *outcome, struct compiled *compiled)
{
    message_init(&compile_outcome_message, outcome);
    message_init(&compiled_message, compiled);
    outcome->compiled = compiled;
    outcome->object = (struct bytes){.data = (unsigned char *)TEXT("object"), .len = 6};
}

static void the_digest_of_an_object_is_computed_here(void **state)
{
    const struct digest digest = digest_of("object", 6);
    struct compile_outcome outcome;
    struct compiled compiled, read = {0};
    struct err err;

    (void)state;
    begin_compile(&outcome, &compiled);
    assert_int_equal(read_compile(&outcome, NULL, &read, &err), 0);
    assert_true(digest_equal(&read.object, &digest));
    compiled.object = digest;
    assert_int_equal(read_compile(&outcome, NULL, &read, &err), 0);
    compiled.object = digest_of("better", 6);
    assert_compile_lie(&outcome, NULL, "another object");
}

static void a_failed_compilation_has_no_object_whatever_it_says(void **state)
{
    struct compile_outcome outcome;
    struct compiled compiled, read = {0};
    struct err err;

    (void)state;
    begin_compile(&outcome, &compiled);
    compiled.verdict = VERDICT_COMPILE_ERROR;
    compiled.object = digest_of("somebody else's", 15);
    assert_int_equal(read_compile(&outcome, NULL, &read, &err), 0);
    assert_int_equal(read.verdict, VERDICT_COMPILE_ERROR);
    assert_true(digest_is_zero(&read.object));
}

static void a_compilation_that_cannot_be_is_refused(void **state)
{
    struct compile_outcome outcome;
    struct compiled compiled;

    (void)state;
    begin_compile(&outcome, &compiled);
    outcome.object.len = 0;
    assert_compile_lie(&outcome, NULL, "no object");
    begin_compile(&outcome, &compiled);
    compiled.verdict = VERDICT_FASTER; // nothing was measured
    assert_compile_lie(&outcome, NULL, "verdict 1");
    compiled.verdict = 99;
    assert_compile_lie(&outcome, NULL, "verdict 99");
    compiled.verdict = VERDICT_COMPILE_ERROR;
    compiled.seconds = -1;
    assert_compile_lie(&outcome, NULL, "seconds out of range");
    compiled.seconds = INFINITY;
    assert_compile_lie(&outcome, NULL, "seconds out of range");
    compiled.seconds = 1;
    compiled.sandbox = TEXT("off");
    assert_compile_lie(&outcome, NULL, "the sandbox was off");
}

// A cuda object with two variants, as small as one may be.
struct object {
    struct cuda_object object;
    struct cuda_variant variant[2];
    struct cuda_kernel kernel[2];
    uint64_t value[2];
    uint64_t size[2];
};

static void fill_object(struct object *o)
{
    memset(o, 0, sizeof(*o));
    message_init(&cuda_object_message, &o->object);
    o->object.source = (struct bytes){.data = (unsigned char *)TEXT("src"), .len = 3};
    o->object.target = TEXT("sm_90");
    o->object.variants = o->variant;
    o->object.variants_count = 2;
    for (size_t i = 0; i < 2; i++) {
        message_init(&cuda_variant_message, &o->variant[i]);
        message_init(&cuda_kernel_message, &o->kernel[i]);
        o->variant[i].cubin = (struct bytes){.data = (unsigned char *)TEXT("cubin"), .len = 5};
        o->variant[i].kernels = &o->kernel[i];
        o->variant[i].kernels_count = 1;
        o->variant[i].values = &o->value[i];
        o->variant[i].values_count = 1;
        o->kernel[i].name = TEXT("k");
        o->kernel[i].symbol = TEXT("_Z1kv");
        o->kernel[i].sizes = o->kernel[i].offsets = o->size;
        o->kernel[i].sizes_count = o->kernel[i].offsets_count = 2;
    }
}

// says NULL: it is believed.
static void check_object(const struct object *o, const char *target, const char *says)
{
    struct compile_outcome outcome;
    struct compiled compiled;
    struct err err;

    begin_compile(&outcome, &compiled);
    struct bytes packed = pack(&cuda_object_message, &o->object);
    outcome.object = packed;
    if (says) {
        assert_compile_lie(&outcome, target, says);
    } else if (read_compile(&outcome, target, NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    bytes_clear(&packed);
}

static void a_cuda_object_needs_code_for_its_target_in_each_variant(void **state)
{
    struct object o;

    (void)state;
    fill_object(&o);
    check_object(&o, "sm_90", NULL);
    check_object(&o, "sm_80", "an object for sm_90 instead of sm_80");
    o.variant[1].cubin.len = 0;
    check_object(&o, "sm_90", "a variant without code");
    fill_object(&o);
    o.variant[1].kernels_count = 0;
    check_object(&o, "sm_90", "a variant without code");
    fill_object(&o);
    o.kernel[1].symbol = TEXT("");
    check_object(&o, "sm_90", "a kernel without symbol");
    fill_object(&o);
    o.kernel[0].offsets_count = 1;
    check_object(&o, "sm_90", "a kernel without symbol or parameters");
    fill_object(&o);
    o.variant[1].values_count = 0;
    check_object(&o, "sm_90", "specialised differently");
    fill_object(&o);
    o.object.variants_count = 0;
    check_object(&o, "sm_90", "without a variant");
}

static void what_is_no_cuda_object_is_refused_only_where_one_is_expected(void **state)
{
    struct compile_outcome outcome;
    struct compiled compiled;
    struct err err;

    (void)state;
    begin_compile(&outcome, &compiled);
    assert_int_equal(read_compile(&outcome, NULL, NULL, &err), 0);
    assert_compile_lie(&outcome, "sm_90", "what cannot be");
}

// ---- probes ----

static void a_probe_says_what_the_device_and_the_toolchain_are(void **state)
{
    struct probe_outcome outcome, read;

    (void)state;
    message_init(&probe_outcome_message, &outcome);
    outcome.device_class = TEXT("cpu");
    for (int round = 0; round < 2; round++) { // first without a toolchain, then with one
        struct bytes packed = pack(&probe_outcome_message, &outcome);
        struct err err = ERR_INIT;
        int rc = outcome_read_probe(&read, &packed, &err);

        assert_int_equal(rc, round == 0 ? ERR_PROTOCOL : 0);
        if (rc != 0) {
            assert_non_null(strstr(err.text, "toolchain"));
        } else {
            assert_string_equal(read.toolchain, "cc");
            message_clear(&probe_outcome_message, &read);
        }
        bytes_clear(&packed);
        outcome.toolchain = TEXT("cc");
    }
    struct bytes junk = bytes_copy("\xc1", 1);
    struct err err = ERR_INIT;
    assert_int_equal(outcome_read_probe(&read, &junk, &err), ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "kcast-exec probe"));
    bytes_clear(&junk);
}

struct gpus {
    struct cuda_probe_outcome outcome;
    struct gpu_info gpu[3];
};

static void fill_gpus(struct gpus *g)
{
    static const char *const uuid[] = {"GPU-a", "GPU-b", "GPU-c"};

    message_init(&cuda_probe_outcome_message, &g->outcome);
    g->outcome.gpus = g->gpu;
    g->outcome.gpus_count = 3;
    g->outcome.toolchain = TEXT("nvrtc 13.0");
    for (size_t i = 0; i < 3; i++) {
        message_init(&gpu_info_message, &g->gpu[i]);
        g->gpu[i].uuid = TEXT(uuid[i]);
        g->gpu[i].ordinal = i;
        g->gpu[i].device_class = TEXT("gpu");
        g->gpu[i].target = TEXT("sm_90");
    }
}

static void check_gpus(const struct gpus *g, const char *says)
{
    struct bytes packed = pack(&cuda_probe_outcome_message, &g->outcome);
    struct cuda_probe_outcome read;
    struct err err = ERR_INIT;
    int rc = outcome_read_cuda_probe(&read, &packed, &err);

    bytes_clear(&packed);
    assert_int_equal(rc, says ? ERR_PROTOCOL : 0);
    if (says) {
        assert_non_null(strstr(err.text, says));
        assert_non_null(strstr(err.text, "kcast-exec cuda-probe"));
    } else {
        assert_int_equal(read.gpus_count, g->outcome.gpus_count);
        message_clear(&cuda_probe_outcome_message, &read);
    }
}

static void gpus_are_told_apart_and_described(void **state)
{
    struct gpus g;

    (void)state;
    fill_gpus(&g);
    check_gpus(&g, NULL);
    g.gpu[2].uuid = TEXT("");
    check_gpus(&g, "without uuid");
    g.gpu[2].uuid = TEXT("GPU-a");
    check_gpus(&g, "the same uuid or number");
    fill_gpus(&g);
    g.gpu[2].ordinal = 1;
    check_gpus(&g, "the same uuid or number");
    fill_gpus(&g);
    g.gpu[1].target = NULL;
    check_gpus(&g, "without class, target or toolchain");
    g.gpu[1].reason = TEXT("it is too old"); // then nothing runs on it
    check_gpus(&g, NULL);
    g.outcome.toolchain = NULL;
    check_gpus(&g, "without class, target or toolchain"); // the others have none now
    g.outcome.gpus_count = 0;
    check_gpus(&g, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_that_no_measurement_gives_is_refused),
        cmocka_unit_test(a_number_at_its_bound_or_absent_is_believed),
        cmocka_unit_test(an_estimate_needs_blocks_but_not_more_than_the_method_takes),
        cmocka_unit_test(a_ratio_without_an_estimate_or_cases_is_refused),
        cmocka_unit_test(a_failure_needs_no_estimate_but_may_not_invent_one),
        cmocka_unit_test(a_verdict_that_nobody_knows_is_refused),
        cmocka_unit_test(a_report_about_something_else_is_refused),
        cmocka_unit_test(a_report_of_another_sandbox_is_refused),
        cmocka_unit_test(an_outcome_cut_at_any_byte_is_refused),
        cmocka_unit_test(the_digest_of_an_object_is_computed_here),
        cmocka_unit_test(a_failed_compilation_has_no_object_whatever_it_says),
        cmocka_unit_test(a_compilation_that_cannot_be_is_refused),
        cmocka_unit_test(a_cuda_object_needs_code_for_its_target_in_each_variant),
        cmocka_unit_test(what_is_no_cuda_object_is_refused_only_where_one_is_expected),
        cmocka_unit_test(a_probe_says_what_the_device_and_the_toolchain_are),
        cmocka_unit_test(gpus_are_told_apart_and_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
