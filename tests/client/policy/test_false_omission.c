// The false omission rate of a run: which candidates count as discarded, audited and improving.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/forecast/forecast_request.h"
#include "client/policy/false_omission.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define COUNT 40

// Candidates that were all audited with probability 1/2 and are slower than the baseline.
struct made {
    struct run_state_candidate candidate[COUNT];
    struct forecast forecast[COUNT];
    struct result result[COUNT];
    struct estimate speedup[COUNT];
    struct run_state run_state;
};

static void make(struct made *made)
{
    memset(made, 0, sizeof(*made));
    made->run_state = (struct run_state){.candidate = made->candidate, .candidate_count = COUNT};
    for (size_t i = 0; i < COUNT; i++) {
        made->speedup[i] = (struct estimate){.log2 = -0.5};
        made->result[i] = (struct result){.verdict = VERDICT_SLOWER, .speedup = &made->speedup[i]};
        made->forecast[i] = (struct forecast){.p_improves = 0.1};
        made->candidate[i] = (struct run_state_candidate){
            .forecast = &made->forecast[i],
            .result = &made->result[i],
            .decided = {.decision = DECISION_AUDIT, .propensity = 0.5, .confidence = 0.9}};
    }
}

static struct false_omission of(const struct made *made)
{
    return false_omission_of_run(&made->run_state);
}

static void a_run_that_discarded_nothing_says_so(void **state)
{
    (void)state;
    const struct run_state empty = {0};
    struct false_omission omission = false_omission_of_run(&empty);
    assert_false(omission.estimated);
    assert_string_equal(omission.text, "nothing was discarded");
    struct made made;
    make(&made);
    for (size_t i = 0; i < COUNT; i++) {
        made.candidate[i].decided.decision = i % 2 == 0 ? DECISION_MEASURE : 0; // or undecided
    }
    omission = of(&made);
    assert_false(omission.estimated);
    assert_int_equal(omission.discarded, 0);
    assert_true(isnan(omission.share) && omission.upper == 1);
}

static void what_was_trusted_or_audited_was_discarded(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    for (size_t i = 0; i < COUNT; i++) {
        made.candidate[i].decided.decision = i < 10   ? DECISION_MEASURE
                                             : i < 25 ? DECISION_TRUST
                                                      : DECISION_AUDIT;
    }
    struct false_omission omission = of(&made);
    assert_true(omission.estimated);
    assert_int_equal(omission.discarded, 30);
    assert_int_equal(omission.audited, 15);
    assert_int_equal(omission.improvers, 0);
    assert_true(omission.hajek == 0);
}

// A result of a candidate that was trusted came later and was not drawn: it is no audit.
static void only_drawn_outcomes_that_came_are_audits(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 2 == 0) {
            made.candidate[i].result = NULL; // the daemon gave it up
        } else if (i % 4 == 1) {
            made.candidate[i].decided.decision = DECISION_TRUST;
            made.speedup[i].log2 = 3;
        }
    }
    struct false_omission omission = of(&made);
    assert_int_equal(omission.discarded, COUNT);
    assert_int_equal(omission.audited, COUNT / 4);
    assert_int_equal(omission.improvers, 0);
}

static void improvers_are_faster_than_the_incumbent_of_their_time_by_the_margin(void **state)
{
    static const struct {
        double log2, incumbent;
        uint64_t verdict;
        bool improves;
    } cases[] = {
        {0.5, 0.25, VERDICT_FASTER, true},
        {0.25, 0.25, VERDICT_FASTER, false},
        {0.25 + IMPROVEMENT_MARGIN_LOG2 / 2, 0.25, VERDICT_FASTER, false},
        {0.25 + 2 * IMPROVEMENT_MARGIN_LOG2, 0.25, VERDICT_FASTER, true},
        {0.5, NAN, VERDICT_FASTER, true}, // nobody said what the incumbent was: the baseline
        {-0.5, NAN, VERDICT_SLOWER, false},
        {-0.5, -1, VERDICT_SLOWER, true},
        {NAN, 0, VERDICT_FASTER, false},
        {INFINITY, 0, VERDICT_FASTER, false},
        {3, 0, VERDICT_WRONG, false}, // fast, and wrong
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct made made;
        make(&made);
        made.speedup[7].log2 = cases[i].log2;
        made.result[7].verdict = cases[i].verdict;
        made.candidate[7].decided.incumbent_log2 = cases[i].incumbent;
        struct false_omission omission = of(&made);
        assert_int_equal(omission.improvers, cases[i].improves);
        assert_true(fabs(omission.hajek - (cases[i].improves ? 1.0 / COUNT : 0)) < 1e-12);
        assert_true(omission.upper >= omission.share && omission.upper <= 1);
    }
}

static void rare_audits_weigh_more_than_frequent_ones(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    made.candidate[0].decided.propensity = 0.1;
    made.speedup[0].log2 = 1;
    double rare = of(&made).hajek;
    assert_true(fabs(rare - 10.0 / (10 + 2 * (COUNT - 1))) < 1e-12);
    make(&made);
    made.speedup[0].log2 = 1;
    assert_true(of(&made).hajek < rare);
}

static void a_propensity_that_is_none_estimates_nothing(void **state)
{
    static const double wrong[] = {0, -0.5, 1.5, NAN, INFINITY};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct made made;
        make(&made);
        made.candidate[3].decided.propensity = wrong[i];
        struct false_omission omission = of(&made);
        assert_false(omission.estimated);
        assert_true(isnan(omission.share) && isnan(omission.hajek) && omission.upper == 1);
        assert_non_null(strstr(omission.text, "is not known"));
    }
}

static void a_run_without_audits_knows_nothing(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    for (size_t i = 0; i < COUNT; i++) {
        made.candidate[i].decided.decision = DECISION_TRUST;
        made.candidate[i].result = NULL;
    }
    struct false_omission omission = of(&made);
    assert_false(omission.estimated);
    assert_int_equal(omission.discarded, COUNT);
    assert_true(omission.upper == 1);
    assert_non_null(strstr(omission.text, "none was audited"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_discarded_nothing_says_so),
        cmocka_unit_test(what_was_trusted_or_audited_was_discarded),
        cmocka_unit_test(only_drawn_outcomes_that_came_are_audits),
        cmocka_unit_test(improvers_are_faster_than_the_incumbent_of_their_time_by_the_margin),
        cmocka_unit_test(rare_audits_weigh_more_than_frequent_ones),
        cmocka_unit_test(a_propensity_that_is_none_estimates_nothing),
        cmocka_unit_test(a_run_without_audits_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
