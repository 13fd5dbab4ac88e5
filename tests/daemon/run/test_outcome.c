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
                                        .candidate = digest_of("candidate", 9),
                                        .precision_log2 = 0.01};
}

static void fill_report(struct report *r)
{
    const struct estimate estimate = {.log2 = 0.5, .lo = 0.4, .hi = 0.6, .blocks = 32};
    const struct quantiles times = {.p10 = 90, .p50 = 100, .p90 = 120};

    r->speedup = r->control = r->case_speedup = estimate;
    r->speedup.blocks = 64; // of both cases
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
    r->result.launches = 64;
    r->result.checks = 70;
    r->result.max_error = 0.5;
    r->result.overhead_ns = 20;
    r->result.problem = expected().problem;
    r->result.candidate = expected().candidate;
    r->result.sandbox = TEXT("on");
}

// Moves the speedup of everything to another one with an interval as wide.
static void move_report(struct report *r, double log2)
{
    r->speedup.log2 = r->case_speedup.log2 = log2;
    r->speedup.lo = r->case_speedup.lo = log2 - 0.1;
    r->speedup.hi = r->case_speedup.hi = log2 + 0.1;
}

static struct bytes pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
}

// Reads it as an outcome. Returns the code; the verdict that was read is compared.
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
        {AT(speedup.hi), 80, NULL},          {AT(case_speedup.lo), -80, NULL},
        {AT(speedup.lo), 0.5, NULL},         {AT(speedup.hi), 0.5, NULL},
        {AT(case_baseline.p10), NAN, NULL},  {AT(case_baseline.p50), NAN, NULL},
        {AT(baseline.p50), NAN, NULL},       {AT(candidate.p10), NAN, NULL},
        {AT(candidate.p50), NAN, NULL},      {AT(case_candidate.p10), NAN, NULL},
        {AT(one[0].weight), NAN, NULL},      {AT(result.error_bound), 0.5, NULL},
        {AT(one[0].floor_ns), NAN, NULL},    {AT(result.max_error), 0, NULL},
        {AT(result.max_error), NAN, NULL},   {AT(result.measured_at), 1e9, NULL},
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

static void quantiles_are_in_order_also_around_an_absent_median(void **state)
{
    struct report r;

    (void)state;
    fill_report(&r);
    r.baseline = (struct quantiles){.p10 = 100, .p50 = NAN, .p90 = 99};
    assert_lie(&r, "baseline: quantiles out of order");
    r.baseline.p90 = 100;
    r.case_baseline = r.baseline; // that of the first case is the result's
    assert_believed(&r);
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
    r.case_speedup.blocks = 500000; // of each of the two cases
    assert_believed(&r);
    r.case_speedup.blocks = 0;
    assert_lie(&r, "N=8: an estimate from 0 blocks");
}

static void a_ratio_without_an_estimate_or_cases_is_refused(void **state)
{
    static const uint64_t ratios[] = {VERDICT_FASTER, VERDICT_SLOWER, VERDICT_EQUIVALENT,
                                      VERDICT_INCONCLUSIVE};
    static const double middle[] = {0.5, -0.5, 0, 0.05}; // of the interval, in log2
    struct report r;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ratios); i++) {
        fill_report(&r);
        move_report(&r, middle[i]);
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

static void what_nobody_let_run_unsealed_did_not(void **state)
{
    struct report r;

    (void)state;
    fill_report(&r);
    assert_believed(&r);
    r.result.unsealed = true;
    assert_lie(&r, "it ran unsealed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_let_run_unsealed_did_not),
        cmocka_unit_test(a_number_that_no_measurement_gives_is_refused),
        cmocka_unit_test(a_number_at_its_bound_or_absent_is_believed),
        cmocka_unit_test(quantiles_are_in_order_also_around_an_absent_median),
        cmocka_unit_test(an_estimate_needs_blocks_but_not_more_than_the_method_takes),
        cmocka_unit_test(a_ratio_without_an_estimate_or_cases_is_refused),
        cmocka_unit_test(a_failure_needs_no_estimate_but_may_not_invent_one),
        cmocka_unit_test(a_verdict_that_nobody_knows_is_refused),
        cmocka_unit_test(a_report_about_something_else_is_refused),
        cmocka_unit_test(a_report_of_another_sandbox_is_refused),
        cmocka_unit_test(an_outcome_cut_at_any_byte_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
