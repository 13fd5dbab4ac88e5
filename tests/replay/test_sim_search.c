// One search of a recorded space in simulated time, step by step.
#include "client/report/run_counts.h"
#include "client/search/pipeline_width.h"
#include "replay/sim_search.h"
#include "tests/replay/sim_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

static void a_search_begins_when_it_is_made_and_ends_once(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    f->config.candidates = 20;
    start(f);
    assert_false(sim_search_done(f->search));
    assert_true(run(f, SIZE_MAX) > 20);
    double ended = sim_now(f->sim);
    struct search_outcome before, after;
    sim_search_outcome(f->search, &before);
    assert_true(before.seconds == ended);
    assert_int_equal(before.considered, 20);
    // What still happens in the simulation is none of its business.
    while (sim_step(f->sim)) {
        assert_int_equal(sim_search_advance(f->search, NULL), 0);
    }
    assert_int_equal(sim_search_advance(f->search, NULL), 0);
    sim_search_outcome(f->search, &after);
    assert_memory_equal(&before, &after, sizeof(before));
    tear_down(f);
}

static void the_limits_of_a_search_are_kept(void **state)
{
    struct fixture *measuring = set_up(), *spending = set_up();

    (void)state;
    measuring->config.measurements = 10;
    start(measuring);
    struct search_outcome outcome = outcome_of(measuring);
    assert_true(outcome.measured >= 10 && outcome.measured <= 10 + measuring->config.batch);
    spending->config.budget_seconds = 2.0;
    start(spending);
    outcome = outcome_of(spending);
    // A batch that has begun is measured, at 0.17 s each at most.
    assert_true(outcome.device_seconds >= 2.0);
    assert_true(outcome.device_seconds < 2.0 + 2 * 8 * 0.17);
    tear_down(measuring);
    tear_down(spending);
}

// Has every measurement of the space take so long.
static void let_measurements_take(struct fixture *f, double seconds)
{
    struct space space = toy_space();
    struct err err = ERR_INIT;

    for (size_t i = 0; i < TOY_POINTS; i++) {
        if (space.candidate[i].result) {
            space.candidate[i].result->seconds->held = seconds;
        }
    }
    recorded_space_free(f->recorded);
    assert_int_equal(recorded_space_create(&f->recorded, &space, "toy", &err), 0);
    f->config.recorded = f->recorded;
}

// A budget is of device seconds, however many measurements these are: what is under way is guessed
// from what is known, and as long as nothing is known nothing ends the search.
static void a_small_budget_is_used_however_short_measurements_are(void **state)
{
    static const struct {
        double seconds, budget;
        uint64_t lag;
        unsigned devices;
    } cases[] = {{0.001, 0.05, 2, 1}, {0.001, 0.05, 10, 8}, {1e-6, 5e-5, 2, 1}, {0.02, 1, 3, 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct fixture *f = set_up_with(cases[i].devices, 2);
        double under_way;
        let_measurements_take(f, cases[i].seconds);
        f->config.budget_seconds = cases[i].budget;
        f->config.batch = f->config.wide = 4;
        f->config.lag = cases[i].lag;
        start(f);
        struct search_outcome outcome = outcome_of(f);
        under_way = (double)(4 * cases[i].lag) * cases[i].seconds;
        assert_in_range(outcome.measured + outcome.records, 46, 54);
        assert_true(outcome.device_seconds > 0.9 * cases[i].budget);
        assert_true(outcome.device_seconds < cases[i].budget + under_way);
        tear_down(f);
    }
}

static void a_budget_of_less_than_a_measurement_ends_after_what_was_under_way(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    let_measurements_take(f, 1);
    f->config.budget_seconds = 0.05;
    f->config.batch = f->config.wide = 4;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    assert_in_range(outcome.measured, 1, 2 * 4); // two batches see no outcome
    tear_down(f);
}

// How a search whose counts are looked at is made.
struct counted {
    const char *policy;
    enum sim_forecaster forecaster;
    double budget; // NaN: until every candidate is considered
    uint64_t measurements;
};

// Counts a search of the space, and checks that the rows sum to what was considered.
static struct run_counts counts_of(const struct counted *counted)
{
    struct fixture *f = set_up();
    uint64_t sum = 0;

    f->config.policy = counted->policy;
    f->config.forecaster = counted->forecaster;
    f->config.budget_seconds = counted->budget;
    f->config.measurements = counted->measurements;
    f->config.guarantee = "online";
    f->config.alpha = f->config.delta = 0.3;
    f->config.share = 0.3;
    f->config.audit = 0.2;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    struct run_counts counts = run_counts_of(sim_search_run_state(f->search));
    for (size_t i = 0; i < RUN_COUNT_ROW_COUNT; i++) {
        sum += counts.row[i];
    }
    assert_int_equal(sum, counts.considered);
    assert_int_equal(counts.considered, outcome.considered);
    assert_int_equal(counts.measured, outcome.measured);
    assert_int_equal(counts.row[RUN_COUNT_TRUSTED], outcome.trusted);
    tear_down(f);
    return counts;
}

static void the_counts_of_a_search_sum_to_what_it_considered(void **state)
{
    enum sim_forecaster model = SIM_FORECASTER_STATIC, none = SIM_FORECASTER_NONE;
    const struct counted searches[] = {
        {"all", none, NAN, 0},        {"all", model, 2, 0},
        {"threshold", model, NAN, 0}, {"threshold", model, 4, 0},
        {"threshold", none, 2, 0},    {"budget", model, NAN, 0},
        {"budget", model, 3, 0},      {"risk", model, NAN, 0},
        {"risk", model, NAN, 30},     {"published", model, 8, 0},
        {"published", model, NAN, 0}, {"published-correct", model, 8, 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(searches); i++) {
        bool trusts =
            searches[i].forecaster != SIM_FORECASTER_NONE && strcmp(searches[i].policy, "all") != 0;
        bool limited = !isnan(searches[i].budget) || searches[i].measurements > 0;
        struct run_counts counts = counts_of(&searches[i]);
        if (!limited) {
            assert_true(counts.row[RUN_COUNT_NOT_COMPILED] > 0);
            assert_true(counts.row[RUN_COUNT_DUPLICATE] > 0);
            assert_true(!trusts || counts.row[RUN_COUNT_TRUSTED] > 0);
            assert_int_equal(counts.row[RUN_COUNT_NOT_REACHED], 0);
        } else {
            assert_true(counts.row[RUN_COUNT_NOT_REACHED] > 0);
        }
        // Without a trusted forecast nothing is saved, whatever was not measured.
        assert_true(counts.considered > counts.measured);
        assert_int_equal(isnan(counts.saving), counts.row[RUN_COUNT_TRUSTED] == 0);
        assert_true(trusts || isnan(counts.saving));
    }
}

static void the_same_seed_is_the_same_search_and_another_is_not(void **state)
{
    struct search_outcome outcome[3];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture *f = set_up();
        f->config.candidates = 40;
        f->config.seed = i < 2 ? 7 : 8;
        start(f);
        outcome[i] = outcome_of(f);
        tear_down(f);
    }
    assert_memory_equal(&outcome[0], &outcome[1], sizeof(outcome[0]));
    assert_memory_not_equal(&outcome[0], &outcome[2], sizeof(outcome[0]));
}

static void the_steps_of_an_outcome_rise_to_its_best(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    assert_true(outcome.steps > 1);
    for (size_t i = 1; i < outcome.steps; i++) {
        const struct search_step *before = &outcome.step[i - 1], *step = &outcome.step[i];
        assert_true(step->log2 > before->log2);
        assert_true(step->device_seconds > before->device_seconds);
        assert_true(step->considered >= before->considered && step->measured > before->measured);
    }
    assert_true(outcome.best_log2 == outcome.step[outcome.steps - 1].log2);
    assert_true(outcome.best_log2 == recorded_space_best_log2(f->recorded));
    assert_true(outcome.missed == 0 && outcome.improvers > 0);
    tear_down(f);
}

static void a_search_may_be_given_up_at_any_time(void **state)
{
    (void)state;
    for (size_t steps = 0; steps < 60; steps += 7) {
        struct fixture *f = set_up();
        f->config.forecaster = steps % 2 == 0
                                   ? SIM_FORECASTER_STATIC
                                   : SIM_FORECASTER_NONE; // with questions under way, too
        f->config.policy = steps % 2 != 0 ? "all" : steps % 4 == 0 ? "rank" : "threshold";
        start(f);
        assert_int_equal(run(f, steps), steps);
        sim_search_free(f->search);
        f->search = NULL;
        tear_down(f);
    }
    sim_search_free(NULL);
}

static void what_no_pipeline_knows_is_refused_when_the_search_is_made(void **state)
{
    static const char *const names[][2] = {{"hope", "all"}, {"best-of-n", "hope"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct fixture *f = set_up();
        struct err err = ERR_INIT;
        f->config.strategy = names[i][0];
        f->config.policy = names[i][1];
        assert_int_not_equal(sim_search_create(&f->search, f->sim, f->sim_daemon, &f->config, &err),
                             0);
        assert_non_null(strstr(err.text, "hope"));
        assert_null(f->search);
        tear_down(f);
    }
}

// Searches the toy space with batches of this width.
static struct search_outcome search_wide(struct pipeline_width width, uint64_t candidates,
                                         const char *policy, unsigned devices)
{
    struct fixture *f = set_up_with(devices, 8 * devices);

    f->config.strategy = "greedy";
    f->config.policy = policy;
    f->config.forecaster = strcmp(policy, "all") != 0 ? SIM_FORECASTER_STATIC : SIM_FORECASTER_NONE;
    f->config.batch = width.batch;
    f->config.wide = width.wide;
    f->config.widest = width.widest;
    f->config.lag = width.lag;
    f->config.candidates = candidates;
    start(f);
    struct search_outcome outcome = outcome_of(f);
    tear_down(f);
    return outcome;
}

static struct search_outcome search_with(uint64_t lag, const char *policy, unsigned devices)
{
    return search_wide((struct pipeline_width){.batch = 4, .wide = 4, .lag = lag}, 160, policy,
                       devices);
}

static void assert_same(const struct search_outcome *a, const struct search_outcome *b)
{
    assert_int_equal(a->considered, b->considered);
    assert_int_equal(a->measured, b->measured);
    assert_int_equal(a->audited, b->audited);
    assert_int_equal(a->trusted, b->trusted);
    assert_int_equal(a->records, b->records);
    assert_int_equal(a->missed, b->missed);
    assert_int_equal(a->steps, b->steps);
    for (size_t i = 0; i < a->steps; i++) {
        assert_true(a->step[i].log2 == b->step[i].log2);
    }
}

static void decisions_follow_from_the_lag_and_not_from_what_is_fast(void **state)
{
    static const char *const policies[] = {"all", "threshold", "budget", "rank"};
    static const uint64_t lags[] = {1, 2, 3, 8, RUN_LAG_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(policies) * ARRAY_LEN(lags); i++) {
        const char *policy = policies[i / ARRAY_LEN(lags)];
        uint64_t lag = lags[i % ARRAY_LEN(lags)];
        struct search_outcome a = search_with(lag, policy, 1), b = search_with(lag, policy, 9);

        assert_true(a.seconds > b.seconds);
        assert_same(&a, &b);
    }
}

// The same beyond RUN_BATCHES_NARROW batches, where they become larger.
static void decisions_of_the_widest_batches_follow_from_the_log(void **state)
{
    static const struct pipeline_width width = {.batch = 1, .wide = 1, .widest = 16, .lag = 8};
    (void)state;
    struct search_outcome a = search_wide(width, 180, "rank", 1),
                          b = search_wide(width, 180, "rank", 9);
    assert_int_equal(a.considered, 180);
    assert_same(&a, &b);
}

static void a_larger_lag_keeps_more_devices_busy(void **state)
{
    struct search_outcome two = search_with(2, "all", 8), three = search_with(3, "all", 8),
                          many = search_with(RUN_LAG_MAX, "all", 8);

    (void)state;
    assert_true(three.seconds < 0.9 * two.seconds);
    assert_true(many.seconds < 0.6 * two.seconds);
    assert_true(many.device_seconds / (8 * many.seconds) >
                1.5 * two.device_seconds / (8 * two.seconds));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_begins_when_it_is_made_and_ends_once),
        cmocka_unit_test(the_limits_of_a_search_are_kept),
        cmocka_unit_test(a_small_budget_is_used_however_short_measurements_are),
        cmocka_unit_test(a_budget_of_less_than_a_measurement_ends_after_what_was_under_way),
        cmocka_unit_test(the_counts_of_a_search_sum_to_what_it_considered),
        cmocka_unit_test(the_same_seed_is_the_same_search_and_another_is_not),
        cmocka_unit_test(the_steps_of_an_outcome_rise_to_its_best),
        cmocka_unit_test(a_search_may_be_given_up_at_any_time),
        cmocka_unit_test(decisions_follow_from_the_lag_and_not_from_what_is_fast),
        cmocka_unit_test(decisions_of_the_widest_batches_follow_from_the_log),
        cmocka_unit_test(a_larger_lag_keeps_more_devices_busy),
        cmocka_unit_test(what_no_pipeline_knows_is_refused_when_the_search_is_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
