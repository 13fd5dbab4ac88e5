// What counts as an improvement, and by how much a candidate raised the incumbent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/run/improvement.h"
#include <math.h>

static bool is_improvement(uint64_t verdict, double log2, double incumbent_log2)
{
    struct estimate speedup = {.log2 = log2};
    struct result result = {.verdict = verdict, .speedup = &speedup};
    struct run_state_candidate candidate = {.result = &result,
                                            .decided.incumbent_log2 = incumbent_log2};
    return improvement_measured(&candidate);
}

static void faster_than_the_incumbent_by_the_margin_is_an_improvement(void **state)
{
    (void)state;
    assert_true(is_improvement(VERDICT_FASTER, 1 + 2 * IMPROVEMENT_MARGIN_LOG2, 1));
    assert_false(is_improvement(VERDICT_FASTER, 1 + IMPROVEMENT_MARGIN_LOG2 / 2, 1));
    assert_false(is_improvement(VERDICT_FASTER, NAN, 1));
    assert_false(is_improvement(VERDICT_WRONG, 2, 1));
    const struct run_state_candidate unmeasured = {.decided.incumbent_log2 = 0};
    assert_false(improvement_measured(&unmeasured));
}

static void without_an_incumbent_the_baseline_counts(void **state)
{
    (void)state;
    assert_true(is_improvement(VERDICT_FASTER, 2 * IMPROVEMENT_MARGIN_LOG2, NAN));
    assert_false(is_improvement(VERDICT_FASTER, -1, NAN));
}

static void gain_is_the_distance_to_the_incumbent_before(void **state)
{
    (void)state;
    struct estimate first = {.log2 = 0.5}, second = {.log2 = 0.75};
    struct run_state_incumbent incumbent[] = {
        {.event = {.candidate = 2, .speedup = &first}},
        {.event = {.candidate = 7, .speedup = &second}},
    };
    const struct run_state run_state = {.incumbent = incumbent, .incumbent_count = 2};
    assert_true(improvement_gain(&run_state, 2) == 0.5);
    assert_true(improvement_gain(&run_state, 7) == 0.25);
    assert_true(isnan(improvement_gain(&run_state, 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faster_than_the_incumbent_by_the_margin_is_an_improvement),
        cmocka_unit_test(without_an_incumbent_the_baseline_counts),
        cmocka_unit_test(gain_is_the_distance_to_the_incumbent_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
