// Searches in simulated time that look back: trusted candidates are forecast anew, and measured
// when the policy would not trust them any more.
#include "client/forecast/forecast_request.h"
#include "client/run/run.h"
#include "tests/replay/sim_fixture.h"
#include <string.h>

// Forecasts that begin by dismissing the best quarter of the space, C = 3, and know better later.
struct learner {
    struct forecast_service service;
    struct sim *sim;
    uint64_t answered, again; // requests for forecasts, and for those that were made before
    uint64_t alone;           // outcomes that were told one by one
    struct forecast_reply reply;
    forecast_service_callback *callback;
    forecast_service_told *told;
    void *owner;
};

static struct learner *learner_of(struct forecast_service *service)
{
    return (struct learner *)((uintptr_t)service - offsetof(struct learner, service));
}

static void on_asked(void *owner, uint64_t tag)
{
    struct learner *l = owner;
    struct forecast_reply reply = l->reply;
    (void)tag;
    l->service.busy = false;
    l->callback(l->owner, &reply, NULL);
    message_clear(&forecast_reply_message, &reply);
}

static void on_told(void *owner, uint64_t tag)
{
    struct learner *l = owner;
    (void)tag;
    l->service.busy = false;
    l->told(l->owner, true, 0);
}

static void add_forecast(struct learner *l, const struct run_state *run_state, uint64_t id,
                         bool knows)
{
    const struct fact *param = run_state->candidate[id - 1].proposed.params;
    double fast = toy_log2((int)log2(param[0].value), (int)param[1].value, (int)param[2].value);
    bool improves = knows ? fast > run_state_incumbent_log2(run_state) : param[2].value != 3;
    struct forecast *forecast = &l->reply.forecasts[l->reply.forecasts_count++];
    message_init(&forecast_message, forecast);
    forecast->id = id;
    forecast->p_correct = 1;
    forecast->p_improves = improves ? 0.9 : 0.02;
    forecast->confidence = improves ? 0.9 : 0.98;
    forecast->expected_improvement = improves ? fast : 0;
    forecast->trained_rows = knows ? 100 : 4;
    forecast->engine = xstrdup("learner");
}

static void begin_answer(struct learner *l, size_t most, forecast_service_callback *callback,
                         void *owner)
{
    message_init(&forecast_reply_message, &l->reply);
    l->reply.forecasts = xcalloc(most + 1, sizeof(*l->reply.forecasts));
    l->service.busy = true;
    l->callback = callback;
    l->owner = owner;
}

static void ask(struct forecast_service *service, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_service_callback *callback, void *owner)
{
    struct learner *l = learner_of(service);
    (void)visible;
    l->answered++;
    begin_answer(l, (size_t)(last - first + 1), callback, owner);
    for (uint64_t id = first; id <= last; id++) {
        if (forecast_wants(run_state, id)) {
            add_forecast(l, run_state, id, false);
        }
    }
    sim_after(l->sim, 0.01, on_asked, l, 0);
}

static void ask_again(struct forecast_service *service, const struct run_state *run_state,
                      const uint64_t *candidate, size_t count, uint64_t visible,
                      forecast_service_callback *callback, void *owner)
{
    struct learner *l = learner_of(service);
    assert_int_equal(visible, run_state->candidate_count); // all that is known
    l->again++;
    begin_answer(l, count, callback, owner);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(run_state->candidate[candidate[i] - 1].decided.decision, DECISION_TRUST);
        add_forecast(l, run_state, candidate[i], true);
    }
    sim_after(l->sim, 0.01, on_asked, l, 0);
}

static void on_screened(void *owner, uint64_t tag)
{
    struct learner *l = owner;
    (void)tag;
    l->service.busy = false;
    l->callback(l->owner, NULL, "it does not survey");
}

static void screen(struct forecast_service *service, const struct run_state *run_state,
                   struct candidate_facts *facts, size_t count, uint64_t visible,
                   const double *beyond_log2, size_t margins, forecast_service_callback *callback,
                   void *owner)
{
    struct learner *l = learner_of(service);
    (void)run_state, (void)facts, (void)count, (void)visible, (void)beyond_log2, (void)margins;
    l->service.busy = true;
    l->callback = callback;
    l->owner = owner;
    sim_after(l->sim, 0.01, on_screened, l, 0);
}

static void tell(struct forecast_service *service, const struct run_state *run_state,
                 uint64_t after, uint64_t last, forecast_service_told *callback, void *owner)
{
    struct learner *l = learner_of(service);
    bool reconsidered = last > 0 && run_state->candidate[last - 1].decided.look > 0;
    l->alone += last == after + 1 && reconsidered;
    l->service.busy = true;
    l->told = callback;
    l->owner = owner;
    sim_after(l->sim, 0.01, on_told, l, 0);
}

static struct fixture *begin(double confidence, uint64_t seed)
{
    struct fixture *f = set_up();
    f->config.policy = "threshold";
    f->config.strategy = "best-of-n";
    f->config.forecaster = SIM_FORECASTER_STATIC;
    f->config.batch = 4;
    f->config.confidence = confidence;
    f->config.audit = 0;
    f->config.seed = seed;
    return f;
}

static void teach(struct fixture *f, struct learner *learner)
{
    *learner = (struct learner){
        .service = {.ask = ask, .ask_again = ask_again, .screen = screen, .tell = tell},
        .sim = f->sim};
    f->config.forecasts = &learner->service;
}

// What was dismissed and would improve is measured after all, by the first look back that knows it.
static void what_was_trusted_is_forecast_anew_and_measured(void **state)
{
    struct fixture *f = begin(0.9, 1);
    struct learner learner;

    (void)state;
    teach(f, &learner);
    start(f);
    struct search_outcome outcome = outcome_of(f);
    const struct run_state *run_state = sim_search_run_state(f->search);
    uint64_t again = 0, trusted = 0, measured = 0;
    for (uint64_t id = 1; id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        trusted += candidate->decided.decision == DECISION_TRUST;
        measured += candidate->result ? 1 : 0;
        if (candidate->decided.look > 0) {
            again++;
            assert_int_equal(candidate->decided.decision, DECISION_MEASURE);
            assert_non_null(candidate->result);
            assert_true(candidate->decided.look <= run_state->looks);
            assert_int_equal(strncmp(candidate->decided.reason, "forecast anew: ", 15), 0);
            assert_int_equal(candidate->forecast->trained_rows, 100);
            assert_true(candidate->forecast->p_improves > 0.5);
        }
    }
    assert_true(again > 0 && trusted > 0);
    assert_int_equal(again, run_state->reconsidered);
    assert_int_equal(trusted, run_state->trusted);
    assert_int_equal(measured, run_state->measured);
    assert_int_equal(learner.again, run_state->looks);
    assert_true(learner.alone > 0); // of those whose batches were told before
    assert_true(run_state->forecasts <= run_state->candidate_count);
    assert_true(outcome.best_log2 == recorded_space_best_log2(f->recorded)); // it has C = 3
    // It has ended with a look back that found nothing, since nothing limits it.
    assert_int_equal(run_state->looked.measure, 0);
    assert_int_equal(run_state->looked.outcomes, run_state->measured);
    tear_down(f);
}

// The same forecaster without looks back never measures what it dismissed.
static void without_looks_back_it_would_be_lost(void **state)
{
    struct fixture *f = begin(0.9, 1);
    struct learner learner;

    (void)state;
    teach(f, &learner);
    learner.service.ask_again = NULL;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    assert_int_equal(sim_search_run_state(f->search)->looks, 0);
    assert_true(outcome.best_log2 < recorded_space_best_log2(f->recorded) - 0.1);
    tear_down(f);
}

static void a_look_back_keeps_to_the_limits(void **state)
{
    struct fixture *f = begin(0.9, 1);
    struct learner learner;

    (void)state;
    teach(f, &learner);
    f->config.measurements = 70;
    start(f);
    (void)run(f, SIZE_MAX);
    const struct run_state *run_state = sim_search_run_state(f->search);
    assert_true(run_state->reconsidered > 0);
    assert_int_equal(run_state->measured, 70);
    tear_down(f);
}

// Sums over searches of what confidence costs and misses, until nothing is left to measure.
static void more_confidence_measures_more_and_misses_less(void **state)
{
    static const double confidences[] = {0.6, 0.9, 0.99};
    uint64_t before = 0;
    double least = INFINITY;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(confidences); i++) {
        uint64_t measured = 0;
        double regret = 0;
        for (uint64_t seed = 1; seed <= 4; seed++) {
            struct fixture *f = begin(confidences[i], seed);
            start(f);
            struct search_outcome outcome = outcome_of(f);
            measured += outcome.measured;
            regret += recorded_space_best_log2(f->recorded) - outcome.best_log2;
            tear_down(f);
        }
        print_message("confidence %g: %d measured, regret %.4f\n", confidences[i], (int)measured,
                      regret / 4);
        assert_true(measured > before && regret <= least + 1e-9);
        before = measured;
        least = regret;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_trusted_is_forecast_anew_and_measured),
        cmocka_unit_test(without_looks_back_it_would_be_lost),
        cmocka_unit_test(a_look_back_keeps_to_the_limits),
        cmocka_unit_test(more_confidence_measures_more_and_misses_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
