// The run state counts what happened, and refuses every event that does not follow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/run/run_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct run_state run_state;

static int set_up(void **state)
{
    (void)state;
    run_state_init(&run_state);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    run_state_release(&run_state);
    return 0;
}

static double now = 1000;

// Applies an event and returns the result.
static int apply(enum run_event_kind kind, void *body)
{
    struct err err = ERR_INIT;
    struct run_event event = {
        .sequence = run_state.last_sequence + 1, .at = now++, .kind = kind, .body = body};
    int rc = run_state_apply(&run_state, &event, &err);
    message_clear(run_event_message(kind), body);
    if (rc != 0) {
        assert_non_null(strstr(err.text, "event "));
    }
    return rc;
}

static int started(void)
{
    struct run_started event = {.problem = xstrdup("p"), .search = xstrdup("s")};
    return apply(RUN_STARTED, &event);
}

static int proposed(uint64_t id, uint64_t duplicate_of)
{
    struct run_proposed event = {.candidate = id, .duplicate_of = duplicate_of};
    return apply(RUN_PROPOSED, &event);
}

static int compiled(uint64_t id, uint64_t verdict, uint64_t duplicate_of)
{
    struct run_compiled event = {.candidate = id,
                                 .compiled = xcalloc(1, sizeof(*event.compiled)),
                                 .duplicate_of = duplicate_of};
    event.compiled->verdict = verdict;
    event.compiled->seconds = 0.5;
    return apply(RUN_COMPILED, &event);
}

static int forecast(uint64_t id, bool have)
{
    struct run_forecast event = {.candidate = id,
                                 .forecast = have ? xcalloc(1, sizeof(*event.forecast)) : NULL,
                                 .reason = have ? NULL : xstrdup("nobody there")};
    return apply(RUN_FORECAST, &event);
}

static int decided(uint64_t id, uint64_t decision)
{
    struct run_decided event = {.candidate = id, .decision = decision, .reason = xstrdup("so")};
    return apply(RUN_DECIDED, &event);
}

static struct estimate *estimate(double y)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));
    *ret = (struct estimate){.log2 = y, .lo = y - 0.1, .hi = y + 0.1};
    return ret;
}

static int measured(uint64_t id, uint64_t purpose, bool cached)
{
    struct run_measured event = {
        .candidate = id, .purpose = purpose, .result = xcalloc(1, sizeof(*event.result))};
    event.result->verdict = VERDICT_FASTER;
    event.result->speedup = estimate(1);
    event.result->cached = cached;
    event.result->seconds = xcalloc(1, sizeof(*event.result->seconds));
    event.result->seconds->held = 2;
    return apply(RUN_MEASURED, &event);
}

static int given_up(uint64_t id, uint64_t purpose)
{
    struct run_measured event = {.candidate = id, .purpose = purpose, .reason = xstrdup("buried")};
    return apply(RUN_MEASURED, &event);
}

static int incumbent(uint64_t id, double y)
{
    struct run_incumbent event = {.candidate = id, .speedup = estimate(y)};
    return apply(RUN_INCUMBENT, &event);
}

static int finished(void)
{
    struct run_finished event = {.reason = xstrdup("enough")};
    return apply(RUN_FINISHED, &event);
}

// Makes a run in which candidate 1 is to be measured.
static void begin(void)
{
    assert_int_equal(started(), 0);
    assert_int_equal(proposed(1, 0), 0);
    assert_int_equal(compiled(1, VERDICT_NONE, 0), 0);
    assert_int_equal(forecast(1, true), 0);
    assert_int_equal(decided(1, DECISION_MEASURE), 0);
}

static void counts_what_happened(void **state)
{
    (void)state;
    begin();
    assert_int_equal(measured(1, PURPOSE_SEARCH, false), 0);
    assert_int_equal(measured(1, PURPOSE_RECORD, false), 0);
    assert_int_equal(incumbent(1, 1.5), 0);
    assert_int_equal(proposed(2, 0), 0);
    assert_int_equal(proposed(3, 1), 0); // a duplicate of its source
    assert_int_equal(proposed(4, 0), 0);
    assert_int_equal(proposed(5, 0), 0);
    assert_int_equal(proposed(6, 0), 0);
    assert_int_equal(compiled(2, VERDICT_NONE, 1), 0); // a duplicate of its object
    assert_int_equal(compiled(4, VERDICT_COMPILE_ERROR, 0), 0);
    assert_int_equal(compiled(5, VERDICT_NONE, 0), 0);
    assert_int_equal(compiled(6, VERDICT_NONE, 0), 0);
    assert_int_equal(forecast(5, false), 0);
    assert_int_equal(forecast(6, true), 0);
    assert_int_equal(decided(2, DECISION_REUSE), 0);
    assert_int_equal(decided(5, DECISION_AUDIT), 0);
    assert_int_equal(decided(6, DECISION_TRUST), 0);
    assert_int_equal(measured(5, PURPOSE_AUDIT, true), 0);
    assert_int_equal(finished(), 0);
    assert_int_equal(run_state.considered, 6); // the duplicate of a source, too
    assert_int_equal(run_state.compiled_ok, 4);
    assert_int_equal(run_state.compile_failed, 1);
    assert_int_equal(run_state.forecasts, 2);
    assert_int_equal(run_state.measured, 2);
    assert_int_equal(run_state.audited, 1);
    assert_int_equal(run_state.trusted, 1);
    assert_int_equal(run_state.reused, 1);
    assert_int_equal(run_state.records, 1);
    assert_true(run_state.device_seconds == 4); // the answer from the cache is not charged
    assert_int_equal(run_state.candidate[4].measured_order, 2);
    assert_true(run_state.candidate[4].seconds_before == 4);
    assert_string_equal(run_state.candidate[4].forecast_reason, "nobody there");
    assert_true(run_state_incumbent_log2(&run_state) == 1.5);
    assert_true(run_state_incumbent_before(&run_state, 0) == 0);
    assert_true(run_state_incumbent_before(&run_state, 1) == 1.5);
    assert_ptr_equal(run_state_best(&run_state), &run_state.candidate[0]);
    assert_true(run_state.finished);
}

static void pauses_between_sessions_are_no_work(void **state)
{
    struct run_session a = {.host = xstrdup("h")}, b = {.host = xstrdup("i")};
    (void)state;
    now = 100;
    assert_int_equal(started(), 0);              // at 100 s
    assert_int_equal(apply(RUN_SESSION, &a), 0); // at 101 s
    assert_int_equal(proposed(1, 0), 0);         // at 102 s
    now = 5000;
    assert_int_equal(apply(RUN_SESSION, &b), 0); // at 5000 s
    assert_int_equal(proposed(2, 0), 0);         // at 5001 s
    assert_true(run_state.wall_seconds == 2);
    assert_int_equal(run_state.sessions, 2);
    assert_string_equal(run_state.session.host, "i");
    now = 1000;
}

static void events_out_of_order_are_corrupt(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct run_finished body = {0};
    struct run_event skipped = {.sequence = 7, .kind = RUN_FINISHED, .body = &body};
    assert_int_equal(run_state_apply(&run_state, &skipped, &err), ERR_CORRUPT);
    assert_int_equal(proposed(1, 0), ERR_CORRUPT); // before the start
    assert_int_equal(started(), 0);
    assert_int_equal(started(), ERR_CORRUPT);
    assert_int_equal(proposed(2, 0), ERR_CORRUPT);
    assert_int_equal(proposed(1, 1), ERR_CORRUPT); // a duplicate of itself
    assert_int_equal(compiled(1, VERDICT_NONE, 0), ERR_CORRUPT);
    assert_int_equal(proposed(1, 0), 0);
    assert_int_equal(forecast(1, true), ERR_CORRUPT);
    assert_int_equal(decided(1, DECISION_MEASURE), ERR_CORRUPT);
    assert_int_equal(compiled(1, VERDICT_NONE, 1), ERR_CORRUPT);
    assert_int_equal(compiled(1, VERDICT_NONE, 0), 0);
    assert_int_equal(compiled(1, VERDICT_NONE, 0), ERR_CORRUPT);
    assert_int_equal(measured(1, PURPOSE_SEARCH, false), ERR_CORRUPT);
    assert_int_equal(decided(1, 77), ERR_CORRUPT);
    assert_int_equal(decided(1, DECISION_MEASURE), 0);
    assert_int_equal(decided(1, DECISION_MEASURE), ERR_CORRUPT);
    assert_int_equal(forecast(1, true), ERR_CORRUPT); // too late
    assert_int_equal(measured(1, PURPOSE_AUDIT, false), ERR_CORRUPT);
    assert_int_equal(measured(1, PURPOSE_RECORD, false), ERR_CORRUPT);
    assert_int_equal(measured(1, PURPOSE_SEARCH, false), 0);
    assert_int_equal(measured(1, PURPOSE_SEARCH, false), ERR_CORRUPT);
    assert_int_equal(incumbent(1, 1), ERR_CORRUPT);
    assert_int_equal(measured(1, PURPOSE_RECORD, false), 0);
    assert_int_equal(incumbent(2, 1), ERR_CORRUPT);
    assert_int_equal(incumbent(1, 1), 0);
    assert_int_equal(finished(), 0);
    assert_int_equal(proposed(2, 0), ERR_CORRUPT);
    assert_int_equal(run_state.candidate_count, 1);
    assert_int_equal(run_state.measured, 1);
}

static int looked_back(uint64_t after)
{
    struct run_looked_back event = {.after = after, .forecast = 1, .measure = 1, .asked_at = NAN};
    return apply(RUN_LOOKED_BACK, &event);
}

static int decided_again(uint64_t id, uint64_t decision, uint64_t look)
{
    struct run_decided event = {
        .candidate = id, .decision = decision, .look = look, .reason = xstrdup("again")};
    return apply(RUN_DECIDED, &event);
}

static int forecast_again(uint64_t id, uint64_t look)
{
    struct run_forecast event = {.candidate = id,
                                 .forecast = xcalloc(1, sizeof(*event.forecast)),
                                 .asked_at = NAN,
                                 .look = look};
    event.forecast->p_improves = 0.75;
    return apply(RUN_FORECAST, &event);
}

// ---- screenings and what waits ----

static int screened(uint64_t generator, uint64_t point, uint64_t parent, bool parents)
{
    struct run_screened event = {
        .generator = generator, .worth = NAN, .promised = NAN, .kept = NAN};
    event.points = xcalloc(1, sizeof(*event.points));
    event.points[0] = point;
    event.points_count = 1;
    event.parents = xcalloc(1, sizeof(*event.parents));
    event.parents[0] = parent;
    event.parents_count = parents;
    return apply(RUN_SCREENED, &event);
}

static void the_latest_screening_of_each_generator_counts(void **state)
{
    (void)state;
    assert_int_equal(started(), 0);
    assert_int_equal(proposed(1, 0), 0);
    assert_int_equal(screened(0, 7, 1, true), 0);
    assert_int_equal(screened(3, 8, 0, true), 0);
    assert_int_equal(screened(0, 9, 0, true), 0);
    assert_int_equal(run_state.screened[0].points[0], 9);
    assert_int_equal(run_state.screened[3].points[0], 8);
    assert_int_equal(screened(RUN_GENERATORS_MAX, 7, 0, true), ERR_CORRUPT);
    assert_int_equal(screened(0, 7, 2, true), ERR_CORRUPT); // there is one candidate
    assert_int_equal(screened(0, 7, 0, false), ERR_CORRUPT);
    assert_int_equal(run_state.screened[0].points[0], 9);
}

// Answers of a round: sources "a" and "b".
static int answered(uint64_t generator)
{
    struct run_asked event = {.batch = 1,
                              .generator = generator,
                              .round = 1,
                              .cost = NAN,
                              .first_cost = NAN,
                              .seconds = NAN,
                              .kept = true,
                              .answers = xcalloc(2, sizeof(*event.answers)),
                              .answers_count = 2};
    event.answers[0].source = digest_of("a", 1);
    event.answers[1].source = digest_of("b", 1);
    return apply(RUN_ASKED, &event);
}

static int proposed_of(uint64_t id, uint64_t generator, const char *source)
{
    struct run_proposed event = {
        .candidate = id, .generator = generator, .source = digest_of(source, strlen(source))};
    event.draw_probability = NAN;
    return apply(RUN_PROPOSED, &event);
}

static void answers_wait_until_they_are_candidates(void **state)
{
    (void)state;
    assert_int_equal(started(), 0);
    assert_int_equal(answered(1), 0);
    assert_int_equal(run_state.waiting_count, 0); // the run began before there was the rule
    run_state.started.rules = RUN_RULE_WAITING;
    assert_int_equal(answered(1), 0);
    assert_int_equal(run_state.waiting_count, 2);
    assert_int_equal(proposed_of(1, 0, "b"), 0); // of another generator
    assert_int_equal(run_state.waiting_count, 2);
    assert_int_equal(proposed_of(2, 1, "b"), 0);
    assert_int_equal(run_state.waiting_count, 1);
    struct digest a = digest_of("a", 1);
    assert_true(digest_equal(&run_state.waiting[0].answer.source, &a));
    assert_int_equal(proposed_of(3, 1, "c"), 0);
    assert_int_equal(run_state.waiting_count, 1);
    assert_int_equal(proposed_of(4, 1, "a"), 0);
    assert_int_equal(run_state.waiting_count, 0);
}

// Only what was trusted is reconsidered, by the latest look back, and only to be measured.
static void a_look_back_replaces_forecast_and_decision_of_what_was_trusted(void **state)
{
    (void)state;
    assert_int_equal(started(), 0);
    for (uint64_t id = 1; id <= 2; id++) {
        assert_int_equal(proposed(id, 0), 0);
        assert_int_equal(compiled(id, VERDICT_NONE, 0), 0);
        assert_int_equal(forecast(id, true), 0);
    }
    assert_int_equal(decided(1, DECISION_TRUST), 0);
    assert_int_equal(decided(2, DECISION_MEASURE), 0);
    assert_int_equal(decided_again(1, DECISION_MEASURE, 1), ERR_CORRUPT);
    assert_int_equal(looked_back(1), ERR_CORRUPT); // there are 2 candidates
    assert_int_equal(looked_back(2), 0);
    assert_int_equal(forecast_again(2, 1), ERR_CORRUPT); // it was not trusted
    assert_int_equal(forecast_again(1, 2), ERR_CORRUPT); // there was one look back
    assert_int_equal(forecast_again(1, 1), 0);
    assert_int_equal(decided_again(2, DECISION_MEASURE, 1), ERR_CORRUPT);
    assert_int_equal(decided_again(1, DECISION_AUDIT, 1), ERR_CORRUPT);
    assert_int_equal(decided_again(1, DECISION_MEASURE, 1), 0);
    assert_int_equal(decided_again(1, DECISION_MEASURE, 1), ERR_CORRUPT);
    assert_true(run_state.candidate[0].forecast->p_improves == 0.75);
    assert_int_equal(run_state.forecasts, 2);
    assert_int_equal(run_state.trusted, 0);
    assert_int_equal(run_state.reconsidered, 1);
    assert_int_equal(measured(1, PURPOSE_SEARCH, false), 0);
}

static void candidate_that_did_not_compile_goes_no_further(void **state)
{
    (void)state;
    assert_int_equal(started(), 0);
    assert_int_equal(proposed(1, 0), 0);
    assert_int_equal(compiled(1, VERDICT_COMPILE_ERROR, 0), 0);
    assert_int_equal(forecast(1, true), ERR_CORRUPT);
    assert_int_equal(decided(1, DECISION_MEASURE), ERR_CORRUPT);
}

static void given_up_job_is_final(void **state)
{
    (void)state;
    begin();
    assert_int_equal(given_up(1, PURPOSE_SEARCH), 0);
    assert_true(run_state.candidate[0].given_up);
    assert_int_equal(run_state.measured, 0);
    assert_int_equal(measured(1, PURPOSE_SEARCH, false), ERR_CORRUPT);
    assert_null(run_state_best(&run_state));
}

static void told_outcomes_must_be_known(void **state)
{
    struct run_observed good = {.up_to_event = 5, .up_to_candidate = 1},
                        bad = {.up_to_event = 5, .up_to_candidate = 2};
    (void)state;
    begin();
    assert_int_equal(apply(RUN_OBSERVED, &bad), ERR_CORRUPT);
    assert_int_equal(apply(RUN_OBSERVED, &good), 0);
    assert_int_equal(run_state.observed_candidates, 1);
}

static void thresholds_are_probabilities_that_rest_on_known_candidates(void **state)
{
    struct run_certified good = {.after = 1, .threshold = 0.2, .text = xstrdup("a")},
                         later = {.after = 1, .threshold = NAN, .text = xstrdup("b")},
                         unknown = {.after = 2, .threshold = 0.2},
                         wrong = {.after = 1, .threshold = 1.5};
    (void)state;
    begin();
    assert_int_equal(apply(RUN_CERTIFIED, &unknown), ERR_CORRUPT);
    assert_int_equal(apply(RUN_CERTIFIED, &wrong), ERR_CORRUPT);
    assert_int_equal(run_state.certifications, 0);
    assert_int_equal(apply(RUN_CERTIFIED, &good), 0);
    assert_true(run_state.certified.threshold == 0.2);
    assert_int_equal(apply(RUN_CERTIFIED, &later), 0);
    assert_true(isnan(run_state.certified.threshold));
    assert_string_equal(run_state.certified.text, "b");
    assert_int_equal(run_state.certifications, 2);
}

static struct run_trusted trusted(const char *forecaster, uint64_t after, double cut,
                                  uint64_t alarms)
{
    return (struct run_trusted){.after = after,
                                .forecaster = xstrdup(forecaster),
                                .cut = cut,
                                .alarms = alarms,
                                .text = xstrdup("so")};
}

// What each forecaster has shown last is kept, and the alarms of all of them are counted once.
static void trust_is_a_probability_that_rests_on_known_candidates(void **state)
{
    struct run_trusted refused[] = {trusted("a", 2, 0.2, 0), trusted("a", 1, 1.5, 0),
                                    trusted("a", 1, -0.1, 0), trusted("a", 1, INFINITY, 0)};
    (void)state;
    begin();
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        assert_int_equal(apply(RUN_TRUSTED, &refused[i]), ERR_CORRUPT);
    }
    assert_int_equal(run_state.trust_events, 0);
    assert_null(run_state_trust(&run_state, "a"));
    struct run_trusted taken[] = {trusted("a", 1, 0.2, 1), trusted("b", 1, 0.3, 1),
                                  trusted("a", 1, NAN, 3)};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        assert_int_equal(apply(RUN_TRUSTED, &taken[i]), 0);
    }
    assert_int_equal(run_state.trust_events, 3);
    assert_int_equal(run_state.trust_count, 2);
    assert_int_equal(run_state.trust_alarms, 4);
    assert_true(isnan(run_state_trust(&run_state, "a")->cut));
    assert_true(run_state_trust(&run_state, "b")->cut == 0.3);
    assert_string_equal(run_state.trust[1].forecaster, "a"); // the latest event is the last
    assert_null(run_state_trust(&run_state, "c"));
    // A damaged event changes nothing of what stands.
    struct run_trusted damaged = trusted("b", 9, 0.1, 7);
    assert_int_equal(apply(RUN_TRUSTED, &damaged), ERR_CORRUPT);
    assert_true(run_state_trust(&run_state, "b")->cut == 0.3);
    assert_int_equal(run_state.trust_alarms, 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(counts_what_happened),
        TEST(thresholds_are_probabilities_that_rest_on_known_candidates),
        TEST(trust_is_a_probability_that_rests_on_known_candidates),
        TEST(pauses_between_sessions_are_no_work),
        TEST(events_out_of_order_are_corrupt),
        TEST(the_latest_screening_of_each_generator_counts),
        TEST(answers_wait_until_they_are_candidates),
        TEST(a_look_back_replaces_forecast_and_decision_of_what_was_trusted),
        TEST(candidate_that_did_not_compile_goes_no_further),
        TEST(given_up_job_is_final),
        TEST(told_outcomes_must_be_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
