// Measuring candidates of a recorded space one after another, within a budget of device time.
#include "replay/budget.h"
#include "tests/replay/toy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>

// The candidate with these indices of its parameters; it takes 0.1 + 0.01 a seconds.
static size_t candidate_at(size_t a, size_t b, size_t c)
{
    return a + TOY_A * (b + TOY_B * c);
}

static void a_budget_of_nothing_is_used_up_and_one_without_a_limit_never_is(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct budget none, endless;

    (void)state;
    budget_init(&none, recorded, 0);
    budget_init(&endless, recorded, NAN);
    assert_true(budget_empty(&none));
    assert_false(budget_empty(&endless));
    for (size_t i = 0; i + 1 < TOY_POINTS; i++) {
        (void)budget_measure(&endless, i);
        assert_false(budget_empty(&endless));
    }
    (void)budget_measure(&endless, TOY_POINTS - 1);
    assert_true(budget_empty(&endless)); // everything was measured
    assert_true(fabs(endless.outcome.device_seconds - recorded_space_seconds(recorded)) < 1e-9);
    assert_true(endless.outcome.best_log2 == recorded_space_best_log2(recorded));
    assert_int_equal(endless.outcome.measured, TOY_POINTS - TOY_C);
    budget_release(&none);
    budget_release(&endless);
    recorded_space_free(recorded);
}

static void only_a_candidate_that_beats_the_baseline_becomes_the_incumbent(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct budget budget;
    const struct search_outcome *o = &budget.outcome;

    (void)state;
    budget_init(&budget, recorded, NAN);
    assert_true(budget_measure(&budget, candidate_at(0, 5, 0)) < 0); // slower
    assert_true(o->best_log2 == 0 && o->steps == 0 && o->records == 0);
    double good = budget_measure(&budget, candidate_at(5, 1, 0)); // 1.88
    assert_true(o->best_log2 == good && o->steps == 1);
    assert_true(budget_measure(&budget, candidate_at(4, 1, 0)) < good); // not as good
    assert_true(o->best_log2 == good && o->steps == 1 && o->considered == 3);
    double better = budget_measure(&budget, candidate_at(5, 2, 0));
    assert_true(o->best_log2 == better && o->records == 2 && o->improvers == 2);
    assert_true(o->step[1].measured == 4 && o->step[1].device_seconds == o->device_seconds);
    assert_true(o->missed == 0 && o->seconds == o->device_seconds);
    budget_release(&budget);
    recorded_space_free(recorded);
}

static void compilations_are_counted_beside_the_budget(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct budget budget;

    (void)state;
    budget_init(&budget, recorded, 1e-9);
    for (int i = 0; i < 3; i++) { // the first two times it does not compile, then it is known
        assert_true(isnan(budget_measure(&budget, candidate_at(7, 5, (size_t)i % 2))));
    }
    assert_true(fabs(budget.outcome.compile_seconds - 0.6) < 1e-12);
    assert_true(budget.outcome.device_seconds == 0 && budget.outcome.considered == 2);
    assert_false(budget_empty(&budget));
    budget_release(&budget);
    budget_release(&budget);
    recorded_space_free(recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_of_nothing_is_used_up_and_one_without_a_limit_never_is),
        cmocka_unit_test(only_a_candidate_that_beats_the_baseline_becomes_the_incumbent),
        cmocka_unit_test(compilations_are_counted_beside_the_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
