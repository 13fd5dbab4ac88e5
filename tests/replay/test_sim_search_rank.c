// Searches in simulated time that rank points before any is compiled: what does not compile, what
// confidence costs, and beginning with what was measured elsewhere.
#include "common/strbuf.h"
#include "tests/replay/sim_fixture.h"

// Half of this space does not compile. After 48 candidates the forecasts know which half.
static void a_search_learns_what_does_not_compile(void **state)
{
    struct fixture *f = set_up();
    struct space space = toy_space();
    struct err err = ERR_INIT;

    (void)state;
    recorded_space_free(f->recorded);
    for (size_t i = 0; i < TOY_POINTS; i++) {
        struct space_candidate *candidate = &space.candidate[i];
        if (i / TOY_A % TOY_B >= 3 && candidate->result) {
            candidate->compiled->verdict = VERDICT_COMPILE_ERROR;
            candidate->compiled->reason = xstrdup("too much shared memory");
            message_clear(&result_message, candidate->result);
            free(candidate->result);
            candidate->result = NULL;
        }
    }
    assert_int_equal(recorded_space_create(&f->recorded, &space, "half", &err), 0);
    f->config.recorded = f->recorded;
    f->config.policy = "rank";
    f->config.strategy = "greedy";
    f->config.forecaster = SIM_FORECASTER_STATIC;
    f->config.batch = f->config.wide = 4;
    f->config.candidates = 96;
    start(f);
    (void)run(f, SIZE_MAX);
    const struct run_state *run_state = sim_search_run_state(f->search);
    size_t failed = 0, compiled = 0;
    for (uint64_t id = 49; id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        bool fails = candidate->compiled->verdict == VERDICT_COMPILE_ERROR;
        assert_true(candidate->proposed.screened > 0);
        assert_true(fails ? candidate->forecast->p_compiles < 0.2
                          : candidate->forecast->p_compiles > 0.8);
        failed += fails;
        compiled += !fails;
    }
    assert_true(failed > 0 && compiled > 0);
    tear_down(f);
}

// Measures 24 candidates, beginning with the toy space's own speedups, or with these turned round.
static double best_after_24(double sign, bool cold, uint64_t seed)
{
    struct fixture *f = set_up();
    const struct space *space = recorded_space_data(f->recorded);
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < TOY_POINTS; i++) {
        const struct space_candidate *candidate = &space->candidate[i];
        double log2 = space_log2(candidate);
        strbuf_addf(
            &text, "{\"params\":{\"A\":%g,\"B\":%g,\"C\":%g},\"log2\":", candidate->params[0].value,
            candidate->params[1].value, candidate->params[2].value);
        strbuf_addf(&text, isnan(log2) ? "null}\n" : "%g}\n", sign * log2);
    }
    struct bytes warm = strbuf_detach_bytes(&text);
    f->config.policy = "rank";
    f->config.strategy = "greedy";
    f->config.forecaster = SIM_FORECASTER_STATIC;
    f->config.batch = f->config.wide = 4;
    f->config.candidates = 24;
    f->config.seed = seed;
    f->config.warm = cold ? NULL : &warm;
    start(f);
    double best = outcome_of(f).best_log2 - recorded_space_best_log2(f->recorded);
    tear_down(f);
    bytes_clear(&warm);
    return best;
}

static void a_warm_search_begins_with_the_best_and_gives_up_what_does_not_hold(void **state)
{
    double cold = 0, turned = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        assert_true(best_after_24(1, false, seed) == 0);
        cold += best_after_24(1, true, seed) / 6;
        turned += best_after_24(-1, false, seed) / 6;
    }
    print_message("of the best: cold %.3f, misled %.3f\n", cold, turned);
    assert_true(turned > cold - 0.25); // what was measured in vain costs a little
}

// Sums over ten searches that end by this confidence that no point is worth its cost.
static void search_until_confident(double confidence, uint64_t *measured, double *regret)
{
    *measured = 0;
    *regret = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fixture *f = set_up();
        f->config.policy = "rank";
        f->config.strategy = "greedy";
        f->config.forecaster = SIM_FORECASTER_STATIC;
        f->config.batch = f->config.wide = 4;
        f->config.seed = seed;
        f->config.end_confidence = confidence;
        start(f);
        struct search_outcome outcome = outcome_of(f);
        *measured += outcome.measured;
        *regret += recorded_space_best_log2(f->recorded) - outcome.best_log2;
        tear_down(f);
    }
}

static void more_confidence_costs_more_and_misses_less(void **state)
{
    static const double confidences[] = {0.5, 0.9, 0.99, NAN};
    uint64_t measured, before = 0;
    double regret, more = INFINITY;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(confidences); i++) {
        search_until_confident(confidences[i], &measured, &regret);
        print_message("confidence %g: %d measured, regret %.4f\n", confidences[i], (int)measured,
                      regret / 10);
        assert_true(measured > before && regret <= more);
        before = measured;
        more = regret;
    }
    assert_true(measured > 1700 && regret == 0); // without an end all are measured
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_learns_what_does_not_compile),
        cmocka_unit_test(a_warm_search_begins_with_the_best_and_gives_up_what_does_not_hold),
        cmocka_unit_test(more_confidence_costs_more_and_misses_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
