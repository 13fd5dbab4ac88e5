// A forecaster that knows the toy space, and searches that go by it.
#include "proto/bins.h"
#include "replay/perfect_forecaster.h"
#include "tests/replay/sim_fixture.h"

#define INCUMBENT 1.0
#define MARGIN 0.0072

static const double beyond_log2[] = {0, 0.25, 4};

// Forecasts of all candidates by their parameters. The caller clears *ret.
static void forecast_all(const struct recorded_space *recorded, struct forecast_reply *ret)
{
    const struct space *space = recorded_space_data(recorded);
    struct candidate_facts facts[TOY_POINTS] = {{.id = 0}};
    double margins[ARRAY_LEN(beyond_log2)];

    memcpy(margins, beyond_log2, sizeof(margins));
    for (size_t i = 0; i < TOY_POINTS; i++) {
        facts[i] = (struct candidate_facts){.id = i + 7,
                                            .params = space->candidate[i].params,
                                            .params_count = space->candidate[i].params_count};
    }
    struct forecast_request request = {.incumbent_log2 = INCUMBENT,
                                       .margin_log2 = MARGIN,
                                       .candidates = facts,
                                       .candidates_count = TOY_POINTS,
                                       .beyond_log2 = margins,
                                       .beyond_log2_count = ARRAY_LEN(margins)};
    perfect_forecast(recorded, &request, ret);
}

static void forecasts_are_what_was_recorded(void **state)
{
    struct recorded_space *recorded = make_recorded();
    const struct space *space = recorded_space_data(recorded);
    struct forecast_reply reply;
    size_t improve = 0, wrong = 0, fail = 0;

    (void)state;
    forecast_all(recorded, &reply);
    assert_int_equal(reply.forecasts_count, TOY_POINTS);
    for (size_t i = 0; i < TOY_POINTS; i++) {
        const struct forecast *forecast = &reply.forecasts[i];
        const struct space_candidate *truth = &space->candidate[i];
        double log2 = space_log2(truth), beyond = log2 - INCUMBENT - MARGIN;
        bool fails = truth->compiled->verdict != VERDICT_NONE, correct = !isnan(log2);

        assert_int_equal(forecast->id, i + 7);
        assert_true(forecast->confidence == 1 && forecast->trained_rows == TOY_POINTS);
        assert_true(forecast->p_compiles == (fails ? 0 : 1));
        assert_true(forecast->p_correct == (correct ? 1 : 0));
        assert_true(forecast->p_improves == (correct && beyond > 0 ? 1 : 0));
        assert_true(forecast->expected_improvement == (correct && beyond > 0 ? beyond : 0));
        for (size_t b = 0; b < BIN_COUNT && correct; b++) {
            assert_true(forecast->bins[b] == (b == bin_of(log2) ? 1 : 0));
        }
        assert_int_equal(forecast->p_beyond_count, ARRAY_LEN(beyond_log2));
        for (size_t m = 0; m < ARRAY_LEN(beyond_log2); m++) {
            bool lies_beyond = correct && log2 > INCUMBENT + beyond_log2[m];
            assert_true(forecast->p_beyond[m] == (lies_beyond ? 1 : 0));
        }
        improve += forecast->p_improves == 1;
        wrong += !fails && !correct;
        fail += fails;
    }
    assert_true(improve > 0 && wrong > 0 && fail > 0);
    message_clear(&forecast_reply_message, &reply);
    recorded_space_free(recorded);
}

static void what_the_space_does_not_have_gets_no_number_to_decide_by(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct candidate_facts facts = {.id = 3, .digest = digest_of("A=3", 3)};
    struct forecast_request request = {.candidates = &facts, .candidates_count = 1};
    struct forecast_reply reply;

    (void)state;
    perfect_forecast(recorded, &request, &reply);
    assert_int_equal(reply.forecasts[0].id, 3);
    assert_true(isnan(reply.forecasts[0].p_improves));
    assert_string_equal(reply.forecasts[0].reason,
                        "the recorded space does not have this candidate");
    message_clear(&forecast_reply_message, &reply);
    recorded_space_free(recorded);
}

// The first screening compares all points that are left. After it the best of the space is the next
// candidate, and nothing that was passed over beats it.
static void a_search_by_it_measures_the_best_as_soon_as_it_screens(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct fixture *f = set_up();
        f->config.policy = "rank";
        f->config.strategy = "greedy";
        f->config.forecaster = SIM_FORECASTER_PERFECT;
        f->config.trust_by_skill = true; // the first ones are measured whatever it says of them
        f->config.batch = f->config.wide = 4;
        f->config.candidates = 48;
        f->config.seed = seed;
        start(f);
        struct search_outcome outcome = outcome_of(f);
        const struct run_state *run_state = sim_search_run_state(f->search);
        uint64_t first = 1, best = 0;
        while (run_state->candidate[first - 1].proposed.screened == 0) {
            first++;
            assert_true(first + 4 <= run_state->candidate_count);
        }
        for (uint64_t id = first; id < first + 4; id++) {
            const struct space_candidate *truth =
                recorded_space_find(f->recorded, &run_state->candidate[id - 1].proposed.source);
            best += space_log2(truth) == recorded_space_best_log2(f->recorded);
        }
        assert_true(best >= 1 || run_state_incumbent_before(run_state, first - 1) ==
                                     recorded_space_best_log2(f->recorded));
        assert_true(outcome.best_log2 == recorded_space_best_log2(f->recorded));
        assert_int_equal(outcome.left_better, 0);
        assert_int_equal(outcome.passed_over_better, 0);
        assert_int_equal(outcome.missed, 0);
        tear_down(f);
    }
}

// Policy `threshold` trusts nobody before skill is shown, and then nothing that improves is lost.
static void a_threshold_by_it_misses_nothing(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    f->config.policy = "threshold";
    f->config.forecaster = SIM_FORECASTER_PERFECT;
    f->config.trust_by_skill = true;
    f->config.wide = 16;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    assert_true(outcome.trusted > 0);
    assert_int_equal(outcome.missed, 0);
    assert_true(outcome.best_log2 == recorded_space_best_log2(f->recorded));
    tear_down(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forecasts_are_what_was_recorded),
        cmocka_unit_test(what_the_space_does_not_have_gets_no_number_to_decide_by),
        cmocka_unit_test(a_search_by_it_measures_the_best_as_soon_as_it_screens),
        cmocka_unit_test(a_threshold_by_it_misses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
