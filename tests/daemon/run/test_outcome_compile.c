// What kcast-exec reports of a compilation or of this machine is believed only where it can be
// true.
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

static struct bytes pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
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
    compiled.reason = TEXT("it is empty");
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
    assert_compile_lie(&outcome, NULL, "compile-error without a reason");
    compiled.reason = TEXT(" \n\t");
    assert_compile_lie(&outcome, NULL, "compile-error without a reason");
    compiled.reason = TEXT("it is empty");
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

// says NULL: it is believed.
static void check_unsealed(bool asked, bool told, const struct object *o, const char *says)
{
    const struct compile_expectation wanted = {.target = "sm_90", .unsealed = asked};
    struct compile_outcome outcome, read = {0};
    struct compiled compiled;
    struct err err = ERR_INIT;

    begin_compile(&outcome, &compiled);
    compiled.unsealed = told;
    struct bytes object = pack(&cuda_object_message, &o->object);
    outcome.object = object;
    struct bytes packed = pack(&compile_outcome_message, &outcome);
    int rc = outcome_read_compile(&read, &packed, &wanted, &err);
    if ((rc == 0) != !says || (says && !strstr(err.text, says))) {
        fail_msg("%s; expected: %s", err.text, says ? says : "belief");
    }
    if (rc == 0) {
        assert_true(read.compiled->unsealed == told);
        message_clear(&compile_outcome_message, &read);
    }
    bytes_clear(&object);
    bytes_clear(&packed);
}

static void an_object_runs_unsealed_only_where_that_was_asked_for(void **state)
{
    struct object o;

    (void)state;
    fill_object(&o);
    check_unsealed(true, false, &o, NULL); // it could be sealed all the same
    check_unsealed(true, true, &o, "unsealed, or not");
    o.object.unsealed = true;
    check_unsealed(true, true, &o, "an object with code that is to run unsealed");
    o.object.variants_count = 0;
    check_unsealed(true, true, &o, NULL);
    check_unsealed(true, false, &o, "unsealed, or not");
    check_unsealed(false, true, &o, "an unsealed candidate that nobody asked for");
    check_unsealed(false, false, &o, "unsealed, or not");
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
    g.gpu[2].uuid = TEXT("GPU-\x1b[2J");
    check_gpus(&g, "control character");
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
        cmocka_unit_test(the_digest_of_an_object_is_computed_here),
        cmocka_unit_test(a_failed_compilation_has_no_object_whatever_it_says),
        cmocka_unit_test(a_compilation_that_cannot_be_is_refused),
        cmocka_unit_test(a_cuda_object_needs_code_for_its_target_in_each_variant),
        cmocka_unit_test(an_object_runs_unsealed_only_where_that_was_asked_for),
        cmocka_unit_test(what_is_no_cuda_object_is_refused_only_where_one_is_expected),
        cmocka_unit_test(a_probe_says_what_the_device_and_the_toolchain_are),
        cmocka_unit_test(gpus_are_told_apart_and_described),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
