// Trust for skill: it is earned by telling improvers from others, and by nothing else; it ends when
// forecasts stop to fit, and each forecaster has its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/policy.h"
#include "client/policy/trust.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 8

// A search in batches of BATCH, each against an incumbent of its own.
struct made {
    struct run_state run_state;
    uint64_t batch;
    struct stats_rng rng;
};

static int set_up(void **state)
{
    struct made *m = xcalloc(1, sizeof(*m));
    m->run_state.started.confidence = 0.9;
    m->run_state.started.trust_rule = RUN_TRUST_SKILL;
    stats_rng_init(&m->rng, 7, 1);
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    struct made *m = *state;
    run_state_release(&m->run_state);
    free(m);
    return 0;
}

// Adds a measured candidate of the present batch.
static struct run_state_candidate *add(struct made *m, const char *engine, double p, bool improves)
{
    struct run_state *run_state = &m->run_state;
    run_state->candidate = xrealloc(run_state->candidate, run_state->candidate_count + 1,
                                    sizeof(*run_state->candidate));
    struct run_state_candidate *c = &run_state->candidate[run_state->candidate_count++];
    double incumbent = 0.1 * (double)m->batch;
    *c = (struct run_state_candidate){
        .decided = {.decision = DECISION_MEASURE, .propensity = 1, .incumbent_log2 = incumbent}};
    c->forecast = xmalloc(sizeof(*c->forecast));
    message_init(&forecast_message, c->forecast);
    c->forecast->engine = xstrdup(engine);
    c->forecast->p_correct = 1;
    c->forecast->p_improves = p;
    c->forecast->confidence = 0.99;
    c->result = xmalloc(sizeof(*c->result));
    message_init(&result_message, c->result);
    c->result->verdict = VERDICT_FASTER;
    c->result->speedup = xmalloc(sizeof(*c->result->speedup));
    message_init(&estimate_message, c->result->speedup);
    c->result->speedup->log2 = improves ? incumbent + 0.1 : incumbent - 1;
    return c;
}

// Adds batches whose candidates improve with this probability. what_said gives P(improves).
static void add_batches(struct made *m, const char *engine, size_t batches, double rate,
                        double (*what_said)(struct made *m, bool improves))
{
    for (size_t i = 0; i < batches; i++, m->batch++) {
        for (size_t k = 0; k < BATCH; k++) {
            bool improves = stats_rng_unit(&m->rng) < rate;
            (void)add(m, engine, what_said(m, improves), improves);
        }
    }
}

static struct trust judge(const struct made *m, const char *engine)
{
    return trust_judge(&m->run_state, m->run_state.candidate_count, engine);
}

static double skilled(struct made *m, bool improves)
{
    return improves ? 0.4 + 0.4 * stats_rng_unit(&m->rng) : 0.1 * stats_rng_unit(&m->rng);
}

static double constant(struct made *m, bool improves)
{
    (void)m;
    (void)improves;
    return 0.01;
}

// What follows the base rate, which falls from batch to batch, and nothing else.
static double falling(struct made *m, bool improves)
{
    (void)improves;
    return 0.5 / (1 + (double)m->batch);
}

static double noise(struct made *m, bool improves)
{
    (void)improves;
    return 0.5 * stats_rng_unit(&m->rng);
}

static double adversary(struct made *m, bool improves)
{
    return skilled(m, !improves);
}

static void who_tells_improvers_from_others_is_trusted_below_a_cut(void **state)
{
    struct made *m = *state;
    for (int i = 0; i < BATCH; i++) {
        (void)add(m, "good", i < 2 ? 0.7 : 0.05, i < 2);
    }
    assert_true(isnan(judge(m, "good").cut)); // two improvers are too few
    m->batch++;
    add_batches(m, "good", 7, 0.25, skilled);
    struct trust trust = judge(m, "good");
    assert_true(trust.cut > 0.1 && trust.cut <= 0.5);
    assert_true(trust.skill >= 0.9);
    assert_int_equal(trust.calls, 8 * BATCH);
    assert_true(trust.improvers > 5 && trust.expected > 2);
    assert_int_equal(trust.below, 0);
}

static void without_improvers_nothing_is_shown(void **state)
{
    struct made *m = *state;
    add_batches(m, "good", 100, 0, skilled);
    assert_true(isnan(judge(m, "good").cut));
    assert_true(fabs(judge(m, "good").skill) < 1e-9);
}

static void being_right_by_the_base_rate_is_no_skill(void **state)
{
    struct made *m = *state;
    add_batches(m, "constant", 100, 0.05, constant);
    assert_true(isnan(judge(m, "constant").cut));
    assert_true(judge(m, "constant").skill < 0.01);
    // Within a batch everything is said to be equal, although early batches improve most.
    for (size_t i = 0; i < 40; i++) {
        add_batches(m, "falling", 1, 0.5 / (1 + (double)i), falling);
    }
    assert_true(isnan(judge(m, "falling").cut));
    add_batches(m, "adversary", 40, 0.2, adversary);
    assert_true(isnan(judge(m, "adversary").cut));
}

// Adds a candidate of a phase of its own: this incumbent, and this version of what was learnt.
static void add_in_phase(struct made *m, const char *engine, double incumbent, uint64_t version,
                         double p, bool improves)
{
    struct run_state_candidate *c = add(m, engine, p, improves);
    c->decided.incumbent_log2 = incumbent;
    c->forecast->model_version = version;
    c->result->speedup->log2 = improves ? incumbent + 0.1 : incumbent - 1;
}

// Improvers all come in phases in which everything is promising, and never in the others. Together
// that looks like perfect knowledge of them; against one incumbent, or one version of what the
// forecaster had learnt, nothing was told apart.
static void skill_is_shown_within_a_phase_and_not_between_phases(void **state)
{
    static const struct {
        const char *name;
        double incumbent;
        uint64_t version;
        bool shown;
    } row[] = {{"incumbents", 1, 0, false}, {"versions", 0, 1, false}, {"one phase", 0, 0, true}};
    struct made *m = *state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        for (int k = 0; k < 20 * BATCH; k++) {
            bool late = k / BATCH % 2 == 1;
            add_in_phase(m, row[i].name, late ? row[i].incumbent : 0, late ? row[i].version : 0,
                         late ? 0.45 : 0.01, late && k % 2 == 0);
        }
        struct trust trust = judge(m, row[i].name);
        assert_int_equal(trust.calls, 20 * BATCH);
        assert_int_equal(trust.improvers, 5 * BATCH);
        assert_int_equal(!isnan(trust.cut), row[i].shown);
        assert_true(row[i].shown ? trust.skill > 0.9 : fabs(trust.skill) < 0.05);
    }
}

// What would have improved on the baseline counts for nothing when the incumbent is better.
static void an_improver_is_one_of_its_own_incumbent(void **state)
{
    struct made *m = *state;
    add_batches(m, "good", 10, 0.25, skilled);
    uint64_t improvers = judge(m, "good").improvers;
    for (uint64_t i = 0; i < m->run_state.candidate_count; i++) {
        m->run_state.candidate[i].decided.incumbent_log2 += 5;
    }
    assert_true(improvers > 5);
    assert_int_equal(judge(m, "good").improvers, 0);
    assert_true(isnan(judge(m, "good").cut));
}

// Of searches of noise about one in TRUST_ODDS may be trusted at some time, by the bets alone.
static void noise_is_hardly_ever_trusted(void **state)
{
    struct made *m = *state;
    size_t trusted = 0;
    for (int i = 0; i < 100; i++) {
        char engine[16];
        (void)snprintf(engine, sizeof(engine), "noise %d", i);
        bool ever = false;
        for (int k = 0; k < 10; k++) {
            add_batches(m, engine, 2, 0.1, noise);
            ever = ever || !isnan(judge(m, engine).cut);
        }
        trusted += ever;
    }
    assert_true(trusted <= 10);
}

static void another_forecaster_begins_at_nothing(void **state)
{
    struct made *m = *state;
    char name[TRUST_FORECASTER_MAX];
    add_batches(m, "llm", 10, 0.25, skilled);
    assert_false(isnan(judge(m, "llm").cut));
    assert_true(isnan(judge(m, "static").cut));
    struct raw_forecast raw = {.model = (char *)(uintptr_t) "llm m #1"};
    struct forecast forecast = {.engine = (char *)(uintptr_t) "llm", .raw = &raw};
    trust_forecaster(&forecast, name);
    assert_string_equal(name, "llm m #1");
    forecast.engine = (char *)(uintptr_t) "both";
    trust_forecaster(&forecast, name);
    assert_string_equal(name, "both, llm m #1");
    forecast.raw = NULL;
    trust_forecaster(&forecast, name);
    assert_string_equal(name, "both");
}

static void drift_ends_trust_within_twenty_measured_calls(void **state)
{
    double (*const after[])(struct made *, bool) = {adversary, noise};
    for (size_t i = 0; i < ARRAY_LEN(after); i++) {
        void *fresh;
        assert_int_equal(set_up(&fresh), 0);
        struct made *m = fresh;
        add_batches(m, "drifting", 10, 0.25, skilled);
        assert_false(isnan(judge(m, "drifting").cut));
        size_t changed = m->run_state.candidate_count, calls = 0;
        while (!isnan(judge(m, "drifting").cut) && calls < 200) {
            // What would be trusted is not measured any more.
            bool improves = stats_rng_unit(&m->rng) < 0.1;
            double p = 1.6 * after[i](m, improves);
            struct trust trust = judge(m, "drifting");
            if (p >= trust.cut) {
                (void)add(m, "drifting", fmin(p, 0.9), improves);
                calls++;
            }
        }
        assert_true(calls <= 20);
        assert_true(m->run_state.candidate_count > changed);
        assert_int_equal(tear_down(&fresh), 0);
    }
    (void)state;
}

static void after_an_alarm_more_is_asked_for(void **state)
{
    struct made *m = *state;
    add_batches(m, "drifting", 10, 0.25, skilled);
    add_batches(m, "drifting", 3, 0.1, adversary);
    struct trust trust = judge(m, "drifting");
    assert_true(isnan(trust.cut));
    assert_int_equal(trust.alarms, 1);
    assert_true(trust.alarm_at > 10 * BATCH && trust.calls < 3 * BATCH);
    add_batches(m, "drifting", 20, 0.25, skilled);
    assert_false(isnan(judge(m, "drifting").cut)); // it can be earned again
    assert_int_equal(judge(m, "drifting").alarms, 1);
}

static void only_visible_outcomes_count_and_the_same_run_gives_the_same(void **state)
{
    struct made *m = *state;
    add_batches(m, "good", 20, 0.25, skilled);
    struct trust some = trust_judge(&m->run_state, 3 * BATCH, "good");
    assert_int_equal(some.calls, 3 * BATCH);
    struct trust a = judge(m, "good"), b = judge(m, "good");
    assert_true(a.cut == b.cut && a.skill == b.skill && a.expected == b.expected);
}

// ---- what policies make of it ----

// The decision about a candidate with this P(improves), in a batch with another of `other`.
static enum decision decide(const char *policy, double cut, double p, double other)
{
    struct forecast forecast[] = {
        {.engine = (char *)(uintptr_t) "e", .p_improves = p, .confidence = 0.99, .trained_rows = 9},
        {.engine = (char *)(uintptr_t) "e",
         .p_improves = other,
         .confidence = 0.99,
         .trained_rows = 9}};
    struct run_state_candidate all[] = {{.forecast = &forecast[0]}, {.forecast = &forecast[1]}};
    struct run_trusted trust = {.forecaster = (char *)(uintptr_t) "e", .cut = cut};
    struct run_state run_state = {
        .started = {.confidence = 0.9, .trust_rule = RUN_TRUST_SKILL, .share = 0.01},
        .candidate = all,
        .candidate_count = 2,
        .trust = &trust,
        .trust_count = 1,
        .certifications = 1,
        .certified = {.threshold = 0.5, .engine = (char *)(uintptr_t) "e"}};
    struct policy_view view = {.run_state = &run_state, .candidate = 1, .first = 1, .last = 2};
    struct policy_decision decision;
    policy_find(policy)->decide(&view, &decision);
    assert_true(decision.propensity == (decision.decision == DECISION_MEASURE ? 1 : 0));
    return decision.decision;
}

static void no_policy_trusts_who_has_shown_nothing(void **state)
{
    static const char *const policies[] = {"threshold", "rank", "budget", "risk"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        assert_int_equal(decide(policies[i], NAN, 0.01, 0.3), DECISION_MEASURE);
        assert_int_equal(decide(policies[i], 0.2, 0.01, 0.3), DECISION_TRUST);
        assert_int_equal(decide(policies[i], 0.2, 0.25, 0.3), DECISION_MEASURE); // above the cut
        assert_int_equal(decide(policies[i], 0.2, 0.01, 0.001),
                         DECISION_MEASURE); // its batch's best
        assert_int_equal(decide(policies[i], 0.2, 0.01, 0.01), DECISION_MEASURE); // all are alike
        assert_int_equal(decide(policies[i], 0.2, 0.1, 0.12), DECISION_MEASURE);  // or nearly so
        assert_int_equal(decide(policies[i], 0.2, 0.1, 0.13), DECISION_TRUST);
    }
}

// The decision about the second of a batch whose first promises the same, after a candidate that
// promised six times as much against an incumbent of this speedup. The batch's is 2.
static enum decision decide_after(double incumbent_log2)
{
    struct forecast forecast[3];
    struct run_state_candidate all[3] = {{.decided = {.decision = DECISION_MEASURE,
                                                      .propensity = 1,
                                                      .incumbent_log2 = incumbent_log2}}};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        forecast[i] = (struct forecast){.engine = (char *)(uintptr_t) "e",
                                        .p_improves = i == 0 ? 0.3 : 0.05,
                                        .confidence = 0.99};
        all[i].forecast = &forecast[i];
    }
    struct run_trusted trust = {.forecaster = (char *)(uintptr_t) "e", .cut = 0.4};
    struct run_state run_state = {
        .started = {.confidence = 0.9, .trust_rule = RUN_TRUST_SKILL, .audit = 0},
        .candidate = all,
        .candidate_count = 3,
        .trust = &trust,
        .trust_count = 1};
    struct policy_view view = {
        .run_state = &run_state, .candidate = 3, .first = 2, .last = 3, .incumbent_log2 = 2};
    struct policy_decision decision;
    policy_find("threshold")->decide(&view, &decision);
    return decision.decision;
}

// A forecaster that puts many candidates where the incumbent is says the same of all of them, and
// they are among the best that it knows: what it said against a slower incumbent is no reason to
// leave them out, for that was another question.
static void what_is_not_told_from_the_best_is_measured(void **state)
{
    (void)state;
    assert_int_equal(decide_after(2), DECISION_TRUST);
    assert_int_equal(decide_after(1.9), DECISION_MEASURE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_tells_improvers_from_others_is_trusted_below_a_cut,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_improvers_nothing_is_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(being_right_by_the_base_rate_is_no_skill, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(skill_is_shown_within_a_phase_and_not_between_phases,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_improver_is_one_of_its_own_incumbent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(noise_is_hardly_ever_trusted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_forecaster_begins_at_nothing, set_up, tear_down),
        cmocka_unit_test(drift_ends_trust_within_twenty_measured_calls),
        cmocka_unit_test_setup_teardown(after_an_alarm_more_is_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_visible_outcomes_count_and_the_same_run_gives_the_same,
                                        set_up, tear_down),
        cmocka_unit_test(no_policy_trusts_who_has_shown_nothing),
        cmocka_unit_test(what_is_not_told_from_the_best_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
