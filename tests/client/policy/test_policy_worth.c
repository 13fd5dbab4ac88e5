// Policy `threshold` asks whether a candidate is worth its cost now.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/policy.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <string.h>

enum { COSTLY = 20 };

// Twenty measured candidates, of log2 speedups from -2 to 2, whose measurements took as long as
// their launches, and one more whose forecast lies at this log2.
static struct policy_decision decide_with(double log2, double confidence, uint64_t rules,
                                          size_t bins_count)
{
    struct run_state_candidate candidate[COSTLY + 1] = {{.forecast = NULL}};
    struct estimate speedup[COSTLY];
    struct accounts accounts[COSTLY];
    struct result result[COSTLY];
    double bins[BIN_COUNT] = {0};
    for (size_t i = 0; i < COSTLY; i++) {
        speedup[i] = (struct estimate){.log2 = -2 + 4.0 * (double)i / (COSTLY - 1)};
        accounts[i] = (struct accounts){.held = 0.1 + exp2(-speedup[i].log2)};
        result[i] = (struct result){
            .verdict = VERDICT_FASTER, .speedup = &speedup[i], .seconds = &accounts[i]};
        candidate[i].result = &result[i];
        candidate[i].decided.decision = DECISION_MEASURE;
    }
    bins[bin_of(log2)] = 1;
    struct forecast forecast = {.p_improves = 0.1,
                                .confidence = confidence,
                                .p_correct = 1,
                                .bins = bins,
                                .bins_count = bins_count};
    candidate[COSTLY].forecast = &forecast;
    struct run_state run_state = {.started = {.confidence = 0.9, .rules = rules},
                                  .candidate = candidate,
                                  .candidate_count = COSTLY + 1};
    struct policy_view view = {.run_state = &run_state,
                               .candidate = COSTLY + 1,
                               .first = COSTLY + 1,
                               .last = COSTLY + 1,
                               .visible = COSTLY};
    struct policy_decision decision;
    policy_find("threshold")->decide(&view, &decision);
    return decision;
}

static struct policy_decision decide_at(double log2, double confidence, uint64_t rules)
{
    return decide_with(log2, confidence, rules, BIN_COUNT);
}

// Confidence is that measuring is not worth its cost now: what takes four times as long as usual
// is trusted with less of it, and what takes a fifth needs more.
static void what_is_cheap_needs_more_confidence_and_what_is_dear_less(void **state)
{
    (void)state;
    struct policy_decision dear = decide_at(-3, 0.8, RUN_RULE_WORTH),
                           cheap = decide_at(2, 0.95, RUN_RULE_WORTH);
    assert_int_equal(dear.decision, DECISION_TRUST);
    assert_int_equal(cheap.decision, DECISION_MEASURE);
    assert_non_null(strstr(dear.reason, "of the usual cost"));
    assert_non_null(strstr(cheap.reason, "of the usual cost"));
    assert_true(dear.confidence == 0.8); // the forecast's own is what is recorded
    assert_int_equal(decide_at(-3, 0.5, RUN_RULE_WORTH).decision, DECISION_MEASURE);
    assert_int_equal(decide_at(2, 0.999, RUN_RULE_WORTH).decision, DECISION_TRUST);
    // What does not say how fast it is may cost anything.
    assert_int_equal(decide_with(-3, 0.8, RUN_RULE_WORTH, 0).decision, DECISION_MEASURE);
    assert_int_equal(decide_with(-3, 0.92, RUN_RULE_WORTH, 0).decision, DECISION_TRUST);
    // A search that began without the rule goes by the confidence alone.
    assert_int_equal(decide_at(-3, 0.8, 0).decision, DECISION_MEASURE);
    assert_int_equal(decide_at(2, 0.95, 0).decision, DECISION_TRUST);
    assert_null(strstr(decide_at(2, 0.95, 0).reason, "usual cost"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_cheap_needs_more_confidence_and_what_is_dear_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
