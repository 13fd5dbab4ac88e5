// The policy `risk` on simulated streams: when a threshold holds, that nothing is trusted before
// one holds, that everything is measured again after an alarm, and that all of it follows from the
// run's events.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/policy.h"
#include "client/policy/risk.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MANY 3000
#define LAG 16 // candidates between a decision and the outcomes that it sees

// A search with the policy, in the order of the pipeline.
struct stream {
    struct run_state run_state;
    struct forecast forecast[MANY];
    struct result result[MANY];
    struct estimate speedup[MANY];
    char text[CERTIFY_TEXT];
    struct risk *risk;
    struct stats_rng rng;
    char *engine;
    double base;  // share of improvers
    bool blind;   // forecasts of improvers are like those of others
    size_t below; // decisions to trust or audit
    size_t improvers_below;
};

static struct stream *begin(char *guarantee, char *generator)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    s->run_state.started = (struct run_started){.policy = xstrdup("risk"),
                                                .guarantee = xstrdup(guarantee),
                                                .generator = xstrdup(generator),
                                                .seed = 7,
                                                .alpha = 0.1,
                                                .delta = 0.1,
                                                .audit = 0.2};
    s->run_state.candidate = xcalloc(MANY, sizeof(*s->run_state.candidate));
    s->risk = risk_create(&s->run_state.started);
    s->engine = xstrdup("static");
    s->base = 0.05;
    stats_rng_init(&s->rng, 99, 1);
    return s;
}

static void end(struct stream *s)
{
    message_clear(&run_started_message, &s->run_state.started);
    free(s->run_state.certified.engine);
    free(s->run_state.candidate);
    free(s->engine);
    risk_free(s->risk);
    free(s);
}

// Records what record_threshold of client/search/pipeline_decide.c records.
static void certify(struct stream *s, uint64_t visible)
{
    risk_update(s->risk, &s->run_state, visible);
    struct certificate now = risk_now(s->risk);
    struct run_certified *to = &s->run_state.certified;
    double threshold = now.certified ? now.tau : NAN;
    bool same = s->run_state.certifications == 0
                    ? isnan(threshold)
                    : threshold == to->threshold || (isnan(threshold) && isnan(to->threshold));
    if (same) {
        return;
    }
    memcpy(s->text, now.text, sizeof(s->text));
    free(to->engine);
    *to = (struct run_certified){.after = visible,
                                 .threshold = threshold,
                                 .alarms = risk_counts(s->risk).alarms,
                                 .restarts = risk_counts(s->risk).restarts,
                                 .engine = xstrdup(risk_engine(s->risk)),
                                 .text = s->text};
    s->run_state.certifications++;
}

static void add_result(struct stream *s, size_t i, bool improves)
{
    s->speedup[i] = (struct estimate){.log2 = improves ? 1 : -1};
    s->result[i] = (struct result){.verdict = improves ? VERDICT_FASTER : VERDICT_SLOWER,
                                   .speedup = &s->speedup[i]};
    s->run_state.candidate[i].result = &s->result[i];
}

// Adds the next candidate with its forecast, decides from what is visible, and measures it if the
// decision says so.
static struct policy_decision step(struct stream *s)
{
    size_t i = s->run_state.candidate_count++;
    struct run_state_candidate *candidate = &s->run_state.candidate[i];
    bool improves = stats_rng_unit(&s->rng) < s->base;
    double place = stats_rng_unit(&s->rng);
    struct policy_view view = {
        .run_state = &s->run_state, .candidate = i + 1, .first = i + 1, .last = i + 1};
    view.visible = i > LAG ? i - LAG : 0;
    s->forecast[i] = (struct forecast){.p_improves = !improves || s->blind ? 0.05 + 0.3 * place
                                                                           : 0.2 + 0.25 * place,
                                       .confidence = 0.9,
                                       .trained_rows = 20,
                                       .engine = s->engine};
    *candidate =
        (struct run_state_candidate){.proposed = {.candidate = i + 1}, .forecast = &s->forecast[i]};
    certify(s, view.visible);
    struct policy_decision decision = {.threshold = NAN};
    policy_find("risk")->decide(&view, &decision);
    candidate->decided = (struct run_decided){.candidate = i + 1,
                                              .decision = decision.decision,
                                              .propensity = decision.propensity,
                                              .threshold = decision.threshold};
    if (decision.decision != DECISION_TRUST) {
        add_result(s, i, improves);
    }
    if (decision.decision != DECISION_MEASURE) {
        s->below++;
        s->improvers_below += improves;
    }
    return decision;
}

static void steps(struct stream *s, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)step(s);
    }
}

// Adds candidates until one is trusted or audited, up to MANY. Returns how many were measured
// before that.
static size_t steps_before_trust(struct stream *s)
{
    while (s->run_state.candidate_count < MANY) {
        struct policy_decision decision = step(s);
        if (decision.decision != DECISION_MEASURE) {
            assert_true(decision.threshold >
                        s->forecast[s->run_state.candidate_count - 1].p_improves);
            return s->run_state.candidate_count - 1;
        }
        assert_true(decision.propensity == 1);
        assert_true(s->run_state.certifications > 0 || isnan(decision.threshold));
    }
    return MANY;
}

static size_t improvers(const struct stream *s, size_t last)
{
    size_t count = 0;
    for (size_t i = 0; i < last; i++) {
        count += s->speedup[i].log2 > 0;
    }
    return count;
}

static void recall_waits_for_nine_improvers(void **state)
{
    struct stream *s = begin("recall", "tunable");
    (void)state;
    size_t before = steps_before_trust(s);
    assert_true(before < MANY);
    assert_true(improvers(s, before - LAG) >= 9);
    assert_true(improvers(s, (size_t)s->run_state.certified.after - 1) <= 9);
    assert_true(s->run_state.certified.threshold >= 0.2); // no improver scores below it
    steps(s, 500);
    assert_int_equal(s->run_state.certifications, 1);        // it stays certified
    assert_true(s->below > 100 && s->improvers_below <= 10); // of some 25
    end(s);
}

static void selective_waits_for_its_first_look(void **state)
{
    struct stream *s = begin("selective", "tunable");
    (void)state;
    size_t before = steps_before_trust(s);
    assert_in_range(before, 43 + LAG, 43 + 2 * LAG);
    // Half of delta is left for later tests.
    assert_non_null(strstr(s->text, "with 95 % confidence"));
    steps(s, 500);
    assert_int_equal(s->run_state.certifications, 1);
    assert_true((double)s->improvers_below < 0.1 * (double)s->below);
    end(s);
}

static void online_certifies_good_forecasts_and_audits_what_is_below(void **state)
{
    struct stream *s = begin("online", "tunable");
    size_t before, audits = 0;
    (void)state;
    before = steps_before_trust(s);
    assert_in_range(before, RISK_SCORES + 22 + LAG, 500);
    double first = s->run_state.certified.threshold;
    for (size_t i = 0; i < 1000; i++) {
        struct policy_decision decision = step(s);
        assert_true(decision.propensity == (decision.decision == DECISION_MEASURE ? 1 : 0.2));
        audits += decision.decision == DECISION_AUDIT;
    }
    // Certified thresholds stay until an alarm.
    assert_true(s->run_state.certified.threshold >= first);
    assert_int_equal(s->run_state.certified.alarms, 0);
    assert_true(s->below > 400 && (double)s->improvers_below < 0.1 * (double)s->below);
    assert_true(fabs((double)audits / (double)s->below - 0.2) < 0.06);
    end(s);
}

static void forecasts_that_know_nothing_certify_nothing(void **state)
{
    static char *const kinds[] = {"selective", "online"};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct stream *s = begin(kinds[k], "tunable");
        s->blind = true;
        s->base = 0.3;
        assert_int_equal(steps_before_trust(s), MANY);
        char *sentence = risk_sentence(&s->run_state);
        assert_non_null(strstr(sentence, "nothing is discarded"));
        free(sentence);
        end(s);
    }
}

static void an_alarm_has_everything_measured_again(void **state)
{
    struct stream *s = begin("online", "tunable");
    size_t worse, noticed;
    (void)state;
    steps(s, 800);
    assert_true(s->below > 100 && s->run_state.certified.alarms == 0);
    s->blind = true;
    s->base = 0.5;
    worse = s->run_state.candidate_count;
    while (s->run_state.certified.alarms == 0 && s->run_state.candidate_count < MANY) {
        (void)step(s);
    }
    noticed = s->run_state.candidate_count;
    assert_in_range(noticed - worse, 1, 600);
    assert_true(isnan(s->run_state.certified.threshold));
    assert_non_null(strstr(s->text, "after an alarm"));
    for (size_t i = 0; i < 60; i++) {
        assert_int_equal(step(s).decision, DECISION_MEASURE);
    }
    s->blind = false; // with good forecasts again a threshold is certified again
    s->base = 0.02;
    s->below = 0;
    while (s->below == 0 && s->run_state.candidate_count < MANY) {
        (void)step(s);
    }
    assert_true(s->below > 0 && s->run_state.certified.alarms == 1);
    end(s);
}

static void thresholds_follow_from_the_log_however_it_is_read(void **state)
{
    static char *const kinds[] = {"recall", "selective", "online"};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct stream *s = begin(kinds[k], "tunable");
        steps(s, 700);
        s->blind = true;
        s->base = 0.5;
        steps(s, 300);
        for (size_t last = 50; last <= 1000; last += 95) {
            struct risk *again = risk_create(&s->run_state.started),
                        *slow = risk_create(&s->run_state.started);
            risk_update(again, &s->run_state, last);
            for (size_t i = 1; i <= last; i++) {
                risk_update(slow, &s->run_state, i);
            }
            struct certificate a = risk_now(again), b = risk_now(slow);
            assert_true(a.tau == b.tau && a.rows == b.rows);
            assert_string_equal(a.text, b.text);
            assert_int_equal(risk_counts(again).alarms, risk_counts(slow).alarms);
            risk_free(again);
            risk_free(slow);
        }
        end(s);
    }
}

static void another_engine_is_measured_at_once_and_begins_afresh(void **state)
{
    static char *const kinds[] = {"recall", "selective", "online"};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        struct stream *s = begin(kinds[k], "tunable");
        steps(s, 600);
        assert_true(s->below > 0);
        char *old = s->engine;
        s->engine = xstrdup("both");
        for (size_t i = 0; i < 2 * LAG; i++) {
            struct policy_decision decision = step(s);
            assert_true(decision.decision == DECISION_MEASURE && isnan(decision.threshold));
        }
        assert_int_equal(s->run_state.certified.restarts, 1);
        s->below = 0;
        while (s->below == 0 && s->run_state.candidate_count < MANY) {
            (void)step(s);
        }
        assert_true(s->below > 0);
        assert_string_equal(s->run_state.certified.engine, "both");
        end(s);
        free(old);
    }
}

static void who_is_forecast_to_improve_or_not_forecast_is_measured(void **state)
{
    struct stream *s = begin("recall", "tunable");
    struct policy_view view = {.run_state = &s->run_state, .candidate = 1, .first = 1, .last = 1};
    (void)state;
    steps(s, 1);
    s->run_state.certified.engine = xstrdup("static");
    s->run_state.certified.threshold = 0.5;
    s->run_state.certifications = 1;
    s->run_state.started.audit = 0;
    static const struct {
        double p_improves;
        uint64_t trained;
        enum decision decision;
    } cases[] = {{0.49, 1, DECISION_TRUST},
                 {0.5, 1, DECISION_MEASURE},
                 {0.9, 1, DECISION_MEASURE},
                 {0.1, 0, DECISION_MEASURE},
                 {NAN, 1, DECISION_MEASURE}};
    struct policy_decision decision;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        s->forecast[0].p_improves = cases[i].p_improves;
        s->forecast[0].trained_rows = cases[i].trained;
        policy_find("risk")->decide(&view, &decision);
        assert_int_equal(decision.decision, cases[i].decision);
        assert_true(strlen(decision.reason) > 10);
    }
    s->run_state.candidate[0].forecast = NULL;
    policy_find("risk")->decide(&view, &decision);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    assert_true(isnan(decision.threshold));
    end(s);
}

static void no_threshold_is_above_a_half(void **state)
{
    struct stream *s = begin("recall", "tunable");
    (void)state;
    s->base = 1;
    steps(s, 30);
    for (size_t i = 0; i < 30; i++) {
        s->forecast[i].p_improves = 0.9;
    }
    struct risk *risk = risk_create(&s->run_state.started);
    risk_update(risk, &s->run_state, 30);
    assert_true(risk_now(risk).certified && risk_now(risk).tau == 0.5);
    risk_free(risk);
    end(s);
}

static void equal_forecasts_are_certified_together(void **state)
{
    struct stream *s = begin("online", "tunable");
    (void)state;
    s->base = 0;
    size_t i;
    for (i = 0; i < 200 && s->below == 0; i++) {
        (void)step(s);
        s->forecast[i].p_improves = i % 8 == 0 ? 0.6 : 0.1;
        // the next one's is what the others were
        s->run_state.candidate[i].forecast = &s->forecast[i];
    }
    assert_true(risk_now(s->risk).certified);
    assert_true(risk_now(s->risk).tau > 0.1 && risk_now(s->risk).tau <= 0.5);
    end(s);
}

static void an_outcome_to_come_is_waited_for_and_a_lost_one_improves(void **state)
{
    struct stream *s = begin("recall", "tunable");
    (void)state;
    s->base = 0;
    steps(s, 60);
    for (size_t i = 0; i < 9; i++) {
        s->run_state.candidate[10 + i].result = NULL;
        s->run_state.candidate[10 + i].given_up = true;
    }
    struct risk *risk = risk_create(&s->run_state.started);
    s->run_state.candidate[18].given_up = false;
    risk_update(risk, &s->run_state, 60);
    assert_int_equal(risk_now(risk).rows, 8);
    assert_false(risk_now(risk).certified);
    s->run_state.candidate[18].given_up = true;
    risk_update(risk, &s->run_state, 60);
    assert_int_equal(risk_now(risk).rows, 9);
    assert_true(risk_now(risk).certified);
    risk_free(risk);
    end(s);
}

static void children_of_one_parent_count_once(void **state)
{
    struct stream *s = begin("recall", "llm");
    (void)state;
    s->base = 1;
    for (size_t i = 0; i < 100; i++) {
        (void)step(s);
        s->run_state.candidate[i].proposed.parent = i < 20 ? 0 : 1 + i % 5;
    }
    struct risk *risk = risk_create(&s->run_state.started);
    risk_update(risk, &s->run_state, 8); // candidates without a parent are independent
    assert_int_equal(risk_now(risk).rows, 8);
    risk_free(risk);
    for (size_t i = 0; i < 100; i++) {
        s->run_state.candidate[i].proposed.parent = 1 + i % 5;
    }
    risk = risk_create(&s->run_state.started);
    risk_update(risk, &s->run_state, 100);
    assert_int_equal(risk_now(risk).rows, 5);
    assert_false(risk_now(risk).certified);
    risk_free(risk);
    end(s);
}

static void online_without_audits_is_refused(void **state)
{
    (void)state;
    assert_int_equal(risk_check("online", 0.01, NULL), 0);
    assert_int_equal(risk_check("recall", 0, NULL), 0);
    struct err err = ERR_INIT;
    assert_int_equal(risk_check("online", 0, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "--audit"));
}

static void other_policies_promise_nothing(void **state)
{
    struct stream *s = begin("online", "tunable");
    (void)state;
    free(s->run_state.started.policy);
    s->run_state.started.policy = xstrdup("threshold");
    assert_null(risk_sentence(&s->run_state));
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_waits_for_nine_improvers),
        cmocka_unit_test(selective_waits_for_its_first_look),
        cmocka_unit_test(online_certifies_good_forecasts_and_audits_what_is_below),
        cmocka_unit_test(forecasts_that_know_nothing_certify_nothing),
        cmocka_unit_test(an_alarm_has_everything_measured_again),
        cmocka_unit_test(thresholds_follow_from_the_log_however_it_is_read),
        cmocka_unit_test(another_engine_is_measured_at_once_and_begins_afresh),
        cmocka_unit_test(who_is_forecast_to_improve_or_not_forecast_is_measured),
        cmocka_unit_test(no_threshold_is_above_a_half),
        cmocka_unit_test(equal_forecasts_are_certified_together),
        cmocka_unit_test(an_outcome_to_come_is_waited_for_and_a_lost_one_improves),
        cmocka_unit_test(children_of_one_parent_count_once),
        cmocka_unit_test(online_without_audits_is_refused),
        cmocka_unit_test(other_policies_promise_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
