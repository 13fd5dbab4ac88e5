// What is told of a candidate that a language model starts from.
#include "client/forecast/search_tried.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int read_source(void *owner, const struct digest *digest, struct bytes *ret, struct err *err)
{
    (void)owner;
    (void)digest;
    (void)err;
    *ret = bytes_copy("source", 6);
    return 0;
}

// A request is a function of what is visible, though more may be known by the time it is made.
static void an_outcome_is_told_only_where_it_is_visible(void **state)
{
    struct estimate speedup = {.log2 = 1};
    struct result result = {.verdict = VERDICT_FASTER, .speedup = &speedup};
    struct fact feature = {.name = (char *)(uintptr_t) "registers", .value = 32};
    struct compiled compiled = {
        .features = &feature, .features_count = 1, .log = (char *)(uintptr_t) "a warning"};
    struct run_state_candidate candidate[2] = {
        [1] = {.result = &result,
               .compiled = &compiled,
               .proposed = {.candidate = 2, .name = (char *)(uintptr_t) "b"}}};
    struct run_state run_state = {.candidate = candidate, .candidate_count = 2};
    struct search_context context;
    struct known_source known;

    (void)state;
    message_init(&search_context_message, &context);
    for (uint64_t visible = 0; visible <= 3; visible++) {
        assert_int_equal(
            search_known_source(&known, &run_state, 2, visible, &context, read_source, NULL, NULL),
            0);
        assert_int_equal(known.candidate, 2);
        assert_string_equal(known.name, "b");
        assert_int_equal(known.source.len, 6);
        if (visible < 2) {
            assert_int_equal(known.verdict, VERDICT_NONE);
            assert_true(isnan(known.log2));
            assert_int_equal(known.features_count, 0);
            assert_null(known.log);
        } else {
            assert_int_equal(known.verdict, VERDICT_FASTER);
            assert_float_equal(known.log2, 1, 0);
            assert_int_equal(known.features_count, 1);
            assert_string_equal(known.log, "a warning");
        }
        message_clear(&known_source_message, &known);
    }
    message_clear(&search_context_message, &context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outcome_is_told_only_where_it_is_visible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
