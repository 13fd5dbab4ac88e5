// How much of a source is compiled: what its features need, or all its variants, or those that are
// not known yet; with or without the features of machine code. Skipped without a CUDA compiler.
#include "common/strbuf.h"
#include "executor/gpu/compile/compile.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/executor/gpu/compile/compile_fixture.h"

#define SPECIALISED                                                                                \
    "//@ specialize n\n//@ launch scale grid=(1) block=(256) args=(x, y)\n"                        \
    "extern \"C\" __global__ void scale(const float *x, float *y)\n"                               \
    "{ for (int i = threadIdx.x; i < KCAST_n; i += 256) y[i] = x[i]; }\n"

static void assert_same_features(const struct compile_outcome *one,
                                 const struct compile_outcome *other)
{
    const struct compiled *a = one->compiled, *b = other->compiled;

    assert_true(a->features_count > 20);
    assert_int_equal(a->features_count, b->features_count);
    for (size_t i = 0; i < a->features_count; i++) {
        assert_true(message_equal(&fact_message, &a->features[i], &b->features[i]));
    }
}

static void for_features_one_variant_is_compiled_and_for_all_only_the_others(void **state)
{
    struct compile_outcome all, features, rest, again;
    struct cuda_object object;

    compile(state, SPECIALISED, 30, &all);
    assert_false(all.compiled->incomplete);
    compile_with(state, SPECIALISED, 30, 4096, &(struct part){.features_only = true}, &features);
    assert_true(features.compiled->incomplete);
    assert_same_features(&all, &features);
    read_object(&features, &object);
    assert_int_equal(object.variants_count, 1);
    assert_int_equal(object.variants[0].values[0], 1000); // of the benchmark case

    // A mark in what is known shows that it is not compiled again.
    char *mark = object.variants[0].kernels[0].symbol;
    mark[0] = 'S';
    struct strbuf packed;
    strbuf_init(&packed, (size_t)32 << 20);
    assert_int_equal(message_pack(&cuda_object_message, &object, &packed, NULL), 0);
    struct compile_outcome marked = {.compiled = features.compiled,
                                     .object = strbuf_detach_bytes(&packed)};
    compile_with(state, SPECIALISED, 30, 4096, &(struct part){.known = &marked}, &rest);
    message_clear(&cuda_object_message, &object);
    assert_false(rest.compiled->incomplete);
    assert_same_features(&all, &rest);
    read_object(&rest, &object);
    assert_int_equal(object.variants_count, 2);
    assert_string_equal(object.variants[0].kernels[0].symbol, "Scale");
    assert_string_equal(object.variants[1].kernels[0].symbol, "scale");
    assert_int_equal(object.variants[1].values[0], 100);

    compile_with(state, SPECIALISED, 30, 4096, &(struct part){.known = &features}, &again);
    assert_int_equal(again.object.len, all.object.len);
    assert_memory_equal(again.object.data, all.object.data, all.object.len);
    assert_true(digest_equal(&again.compiled->object, &all.compiled->object));
    bytes_clear(&marked.object);
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &all);
    message_clear(&compile_outcome_message, &features);
    message_clear(&compile_outcome_message, &rest);
    message_clear(&compile_outcome_message, &again);
}

static bool has_machine_code(const struct compile_outcome *outcome)
{
    for (size_t i = 0; i < outcome->compiled->features_count; i++) {
        if (strncmp(outcome->compiled->features[i].name, "sass_", 5) == 0) {
            return true;
        }
    }
    return false;
}

static void machine_code_is_read_only_where_it_is_needed(void **state)
{
    struct fixture *fixture = *state;
    const struct part without = {.features_only = true, .no_machine_code = true};
    struct compile_outcome all, none, rest, later;

    compile(state, SPECIALISED, 30, &all);
    compile_with(state, SPECIALISED, 30, 4096, &without, &none);
    assert_true(none.compiled->no_machine_code);
    assert_false(has_machine_code(&none));
    // A source that is compiled for a measurement gets none either, unless they are known.
    compile_with(state, SPECIALISED, 30, 4096,
                 &(struct part){.no_machine_code = true, .known = &none}, &rest);
    assert_false(has_machine_code(&rest));
    assert_true(rest.compiled->no_machine_code);
    // Without features of its own the first variant is compiled again for them.
    compile_with(state, SPECIALISED, 30, 4096,
                 &(struct part){.known = &rest, .no_known_features = true}, &later);
    assert_false(later.compiled->no_machine_code);
    assert_int_equal(!has_machine_code(&later), !fixture->jail.toolkit.nvdisasm);
    assert_same_features(&all, &later);
    assert_true(digest_equal(&later.compiled->object, &all.compiled->object));
    message_clear(&compile_outcome_message, &all);
    message_clear(&compile_outcome_message, &none);
    message_clear(&compile_outcome_message, &rest);
    message_clear(&compile_outcome_message, &later);
}

static void a_later_variant_that_is_refused_is_named_by_its_case(void **state)
{
    static const char source[] = SPECIALISED "#if KCAST_n == 100\n#error too small\n#endif\n";
    struct compile_outcome features;

    refused(state, source, VERDICT_COMPILE_ERROR, "for the case n=100 a=2: candidate.cu(6): ");
    compile_with(state, source, 30, 4096, &(struct part){.features_only = true}, &features);
    assert_int_equal(features.compiled->verdict, VERDICT_NONE);
    message_clear(&compile_outcome_message, &features);
}

#define MANY_CASES                                                                                 \
    "{\"name\": \"scale\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"cuda\","        \
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}],"                                          \
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": "       \
    "[\"n\"],"                                                                                     \
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"                     \
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"            \
    "\"tolerance\": 4}],"                                                                          \
    "\"cases\": {\"check\": [{\"n\": 1}, {\"n\": 2}, {\"n\": 3}, {\"n\": 4}, {\"n\": 5}, {\"n\": " \
    "6},"                                                                                          \
    "{\"n\": 7}, {\"n\": 8}], \"bench\": [{\"params\": {\"n\": 1000}, \"weight\": 1}]},"           \
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}"

static void compile_wide(void **state, const char *source, size_t width,
                         const struct compile_outcome *known, struct compile_outcome *ret)
{
    const struct part part = {.width = width, .problem = MANY_CASES, .known = known};

    compile_with(state, source, 30, 4096, &part, ret);
}

static void as_many_as_are_compiled_at_once_the_object_is_the_same(void **state)
{
    const struct fixture *fixture = *state;
    struct compile_outcome one, more, features;
    struct cuda_object object;

    compile_wide(state, SPECIALISED, 1, NULL, &one);
    assert_int_equal(fixture->jail.server[1].pid, 0);
    read_object(&one, &object);
    assert_int_equal(object.variants_count, 9);
    message_clear(&cuda_object_message, &object);
    compile_with(state, SPECIALISED, 30, 4096,
                 &(struct part){.features_only = true, .problem = MANY_CASES, .width = 4},
                 &features);
    assert_int_equal(fixture->jail.server[1].pid, 0);
    for (size_t width = 2; width < 20; width *= 3) {
        compile_wide(state, SPECIALISED, width, width == 6 ? &features : NULL, &more);
        assert_same_features(&one, &more);
        assert_true(digest_equal(&one.compiled->object, &more.compiled->object));
        assert_true(fixture->jail.server[1].pid > 0);
        assert_false(fixture->jail.server[1].busy);
        message_clear(&compile_outcome_message, &more);
    }
    assert_true(fixture->jail.server[CUDA_JAIL_SERVERS - 1].pid > 0);
    message_clear(&compile_outcome_message, &one);
    message_clear(&compile_outcome_message, &features);
}

// What is compiled beside it is given up, and the next source finds servers.
static void the_first_case_that_is_refused_is_named_whatever_ends_first(void **state)
{
    static const char slow[] =
        SPECIALISED "#if KCAST_n == 4\n#include <cuda_fp16.h>\n#error the fourth\n#endif\n"
                    "#if KCAST_n > 4 && KCAST_n < 100\n#error a later one\n#endif\n";
    const struct fixture *fixture = *state;
    struct compile_outcome outcome;

    for (size_t width = 1; width <= CUDA_JAIL_SERVERS; width++) {
        compile_wide(state, slow, width, NULL, &outcome);
        assert_int_equal(outcome.compiled->verdict, VERDICT_COMPILE_ERROR);
        assert_non_null(strstr(outcome.compiled->reason, "for the case n=4: "));
        assert_non_null(strstr(outcome.compiled->reason, "the fourth"));
        message_clear(&compile_outcome_message, &outcome);
        for (size_t i = 0; i < CUDA_JAIL_SERVERS; i++) {
            assert_false(fixture->jail.server[i].busy);
        }
        compile_wide(state, SPECIALISED, width, NULL, &outcome);
        assert_int_equal(outcome.compiled->verdict, VERDICT_NONE);
        message_clear(&compile_outcome_message, &outcome);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(for_features_one_variant_is_compiled_and_for_all_only_the_others),
        TEST(machine_code_is_read_only_where_it_is_needed),
        TEST(a_later_variant_that_is_refused_is_named_by_its_case),
        TEST(as_many_as_are_compiled_at_once_the_object_is_the_same),
        TEST(the_first_case_that_is_refused_is_named_whatever_ends_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
