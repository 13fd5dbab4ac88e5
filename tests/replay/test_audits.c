// What audits of searches of the toy space say, beside what is true of the candidates that they
// were drawn from.
#include "replay/audits.h"
#include "tests/replay/sim_fixture.h"

#define MARGIN 0.0072
#define SEEDS 20

static struct fixture *searched(const char *policy, uint64_t seed)
{
    struct fixture *f = set_up();

    f->config.policy = policy;
    f->config.strategy = "greedy";
    f->config.forecaster = strcmp(policy, "all") != 0 ? SIM_FORECASTER_STATIC : SIM_FORECASTER_NONE;
    f->config.trust_by_skill = true;
    f->config.rules = RUN_RULES_NOW;
    f->config.batch = f->config.wide = 4;
    f->config.measurements = strcmp(policy, "threshold") == 0 ? 100 : 20; // it has to trust some
    f->config.audit = 0.25;
    f->config.seed = seed;
    start(f);
    (void)run(f, SIZE_MAX);
    return f;
}

// The candidate of the run that is this one of the space and was not drawn at the end; NULL: there
// is none.
static const struct run_state_candidate *proposed(const struct recorded_space *recorded,
                                                  const struct run_state *run_state,
                                                  const struct space_candidate *candidate)
{
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *other = &run_state->candidate[i];
        if (other->proposed.draw == 0 &&
            recorded_space_find(recorded, &other->proposed.source) == candidate) {
            return other;
        }
    }
    return NULL;
}

static void without_forecasts_nothing_is_said(void **state)
{
    struct fixture *f = searched("all", 1);
    struct search_outcome outcome;

    (void)state;
    sim_search_outcome(f->search, &outcome);
    assert_int_equal(outcome.audits.audited, 0);
    assert_int_equal(outcome.audits.found, 0);
    tear_down(f);
}

// Policy rank draws its audits at the end, from the points that were never proposed.
static void the_truth_about_points_is_that_of_the_space(void **state)
{
    uint64_t improvers = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fixture *f = searched("rank", seed);
        const struct run_state *run_state = sim_search_run_state(f->search);
        const struct space *space = recorded_space_data(f->recorded);
        struct search_outcome outcome;
        double incumbent = NAN;
        uint64_t population = 0, true_improvers = 0, found = 0;

        sim_search_outcome(f->search, &outcome);
        for (size_t i = 0; i < run_state->candidate_count; i++) {
            const struct run_state_candidate *candidate = &run_state->candidate[i];
            incumbent =
                candidate->proposed.draw == 1 ? candidate->decided.incumbent_log2 : incumbent;
        }
        assert_false(isnan(incumbent));
        for (size_t i = 0; i < TOY_POINTS; i++) {
            bool never = !proposed(f->recorded, run_state, &space->candidate[i]);
            population += never;
            true_improvers += never && space_log2(&space->candidate[i]) > incumbent + MARGIN;
        }
        for (size_t i = 0; i < run_state->candidate_count; i++) {
            const struct run_state_candidate *candidate = &run_state->candidate[i];
            found += candidate->proposed.draw > 0 && candidate->result &&
                     candidate->result->speedup &&
                     candidate->result->speedup->log2 > incumbent + MARGIN;
        }
        assert_true(outcome.audits.audited > 0);
        assert_int_equal(outcome.audits.population, population);
        assert_int_equal(outcome.audits.among, population); // a small space is surveyed whole
        assert_int_equal(outcome.audits.improvers, true_improvers);
        assert_int_equal(outcome.audits.found, found);
        improvers += true_improvers;
        tear_down(f);
    }
    assert_true(improvers > 0); // there was something to count
}

// Its bound is to hold in nine of ten searches.
static void bounds_hold_of_what_was_left(void **state)
{
    static const char *const policies[] = {"rank", "threshold"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        size_t bounded = 0, held = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct fixture *f = searched(policies[i], seed);
            struct search_outcome outcome;
            sim_search_outcome(f->search, &outcome);
            const struct search_audits *audits = &outcome.audits;
            assert_true(audits->found <= audits->audited && audits->audited <= audits->population);
            assert_true(audits->found <= audits->improvers);
            assert_true(audits->improvers <= audits->population);
            bounded += audits->audited > 0;
            held += audits->audited > 0 &&
                    (double)audits->improvers <= audits->upper * (double)audits->population;
            tear_down(f);
        }
        print_message("%s: %zu of %zu bounds hold\n", policies[i], held, bounded);
        assert_true(3 * bounded > SEEDS); // there was something to count
        assert_true(10 * held >= 9 * bounded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_forecasts_nothing_is_said),
        cmocka_unit_test(the_truth_about_points_is_that_of_the_space),
        cmocka_unit_test(bounds_hold_of_what_was_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
