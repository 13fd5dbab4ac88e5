// What searches of the toy space have looked at, and what of it was never measured.
#include "replay/looks.h"
#include "tests/replay/sim_fixture.h"

// Asks about the first so many candidates, against this incumbent.
static void look_at(struct looks *looks, const struct recorded_space *recorded, size_t count,
                    double incumbent_log2, bool survey)
{
    const struct space *space = recorded_space_data(recorded);
    struct candidate_facts facts[TOY_POINTS] = {{.id = 0}};
    double margin = 0;
    struct forecast_request request = {.incumbent_log2 = incumbent_log2,
                                       .candidates = facts,
                                       .candidates_count = count,
                                       .beyond_log2 = &margin,
                                       .beyond_log2_count = survey ? 1 : 0};

    for (size_t i = 0; i < count; i++) {
        facts[i] = (struct candidate_facts){.id = i + 1,
                                            .params = space->candidate[i].params,
                                            .params_count = space->candidate[i].params_count};
    }
    looks_add(looks, &request);
}

// Correct candidates from number first on whose log2 speedup is above this.
static size_t above(const struct recorded_space *recorded, size_t first, size_t count, double log2)
{
    size_t ret = 0;
    for (size_t i = first; i < count; i++) {
        ret += space_log2(&recorded_space_data(recorded)->candidate[i]) > log2 + 0.0072;
    }
    return ret;
}

static void improvers_are_counted_against_the_incumbent_of_the_first_look(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct looks *looks = looks_create(recorded);
    struct run_state nothing;
    struct search_outcome outcome = {.best_log2 = 1.8};

    (void)state;
    run_state_init(&nothing);
    look_at(looks, recorded, 60, 1, false);
    look_at(looks, recorded, 100, 1.5, false);     // the first 60 have been looked at against less
    look_at(looks, recorded, TOY_POINTS, 0, true); // a survey chooses nothing
    looks_count(looks, &nothing, &outcome);
    assert_int_equal(outcome.looked_at, 100);
    assert_int_equal(outcome.improvers_looked_at,
                     above(recorded, 0, 60, 1) + above(recorded, 60, 100, 1.5));
    assert_int_equal(outcome.passed_over, outcome.improvers_looked_at); // nothing was measured
    assert_int_equal(outcome.passed_over_better, above(recorded, 0, 100, 1.8));
    assert_int_equal(outcome.left_better, above(recorded, 0, TOY_POINTS, 1.8));
    assert_true(outcome.passed_over_better > 0 &&
                outcome.passed_over_better < outcome.improvers_looked_at);
    assert_true(outcome.left_log2 == recorded_space_best_log2(recorded) - 1.8);
    run_state_release(&nothing);
    looks_free(looks);
    recorded_space_free(recorded);
}

static void a_search_that_measures_everything_has_passed_over_nothing(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    assert_true(outcome.looked_at > 100 && outcome.improvers_looked_at > 0);
    assert_int_equal(outcome.passed_over, 0);
    assert_int_equal(outcome.passed_over_better, 0);
    assert_int_equal(outcome.left, 0);
    assert_true(isinf(outcome.left_log2));
    tear_down(f);
}

// Screenings compare all of this small space, and measure some of it.
static void what_screenings_compare_is_looked_at(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    f->config.policy = "rank";
    f->config.strategy = "greedy";
    f->config.forecaster = SIM_FORECASTER_STATIC;
    f->config.batch = f->config.wide = 4;
    f->config.candidates = 32;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    assert_int_equal(outcome.looked_at, TOY_POINTS);
    assert_true(outcome.considered <= 32 + 2);
    assert_true(outcome.passed_over > 0 && outcome.passed_over < outcome.improvers_looked_at);
    assert_int_equal(outcome.passed_over_better, outcome.left_better);
    tear_down(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(improvers_are_counted_against_the_incumbent_of_the_first_look),
        cmocka_unit_test(a_search_that_measures_everything_has_passed_over_nothing),
        cmocka_unit_test(what_screenings_compare_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
