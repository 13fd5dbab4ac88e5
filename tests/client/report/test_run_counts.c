// What became of every candidate: each is in one row, and the rows sum to what was considered, for
// runs of every policy and every end.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/report/report.h"
#include "client/report/run_counts.h"
#include "common/mem.h"
#include "tests/client/report/report_run.h"
#include <math.h>

static uint64_t sum_of(const struct run_counts *counts)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < RUN_COUNT_ROW_COUNT; i++) {
        sum += counts->row[i];
    }
    return sum;
}

// A run of one candidate.
static enum run_count_row row_of(const struct run_state_candidate *candidate)
{
    struct run_state_candidate copy = *candidate;
    struct run_state run_state = {.candidate = &copy, .candidate_count = 1, .considered = 1};
    struct run_counts counts = run_counts_of(&run_state);
    assert_int_equal(counts.considered, 1);
    assert_int_equal(sum_of(&counts), 1);
    enum run_count_row row = 0;
    while (counts.row[row] == 0) {
        row++;
    }
    return row;
}

static void each_candidate_is_in_the_row_of_what_became_of_it(void **state)
{
    (void)state;
    struct compiled compiled = {.verdict = VERDICT_NONE},
                    broken = {.verdict = VERDICT_COMPILE_ERROR},
                    rejected = {.verdict = VERDICT_REJECTED};
    struct result slower = {.verdict = VERDICT_SLOWER}, wrong = {.verdict = VERDICT_WRONG},
                  late = {.verdict = VERDICT_COMPILE_ERROR};
    const struct run_decided measure = {.decision = DECISION_MEASURE},
                             audit = {.decision = DECISION_AUDIT},
                             trust = {.decision = DECISION_TRUST},
                             reuse = {.decision = DECISION_REUSE};
    const struct {
        struct run_state_candidate candidate;
        enum run_count_row row;
    } cases[] = {
        {{.compiled = &compiled, .decided = measure, .result = &slower}, RUN_COUNT_MEASURED},
        {{.compiled = &compiled, .decided = measure, .result = &wrong}, RUN_COUNT_MEASURED},
        {{.compiled = &compiled, .decided = audit, .result = &slower}, RUN_COUNT_AUDIT},
        {{.compiled = &compiled, .decided = trust}, RUN_COUNT_TRUSTED},
        {{.compiled = &broken}, RUN_COUNT_NOT_COMPILED},
        {{.compiled = &rejected}, RUN_COUNT_NOT_COMPILED},
        {{.compiled = &compiled, .decided = audit, .result = &late}, RUN_COUNT_NOT_COMPILED},
        {{.proposed = {.candidate = 2, .duplicate_of = 1}}, RUN_COUNT_DUPLICATE},
        {{.compiled = &compiled, .object_duplicate_of = 1, .decided = reuse}, RUN_COUNT_DUPLICATE},
        {{.compiled = &compiled, .object_duplicate_of = 1}, RUN_COUNT_DUPLICATE},
        {{.compiled = &compiled}, RUN_COUNT_NOT_REACHED},
        {{.proposed = {.candidate = 1}}, RUN_COUNT_NOT_REACHED},
        {{.compiled = &compiled, .decided = measure}, RUN_COUNT_NO_RESULT},
        {{.compiled = &compiled, .decided = audit, .given_up = true}, RUN_COUNT_NO_RESULT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (row_of(&cases[i].candidate) != cases[i].row) {
            fail_msg("candidate %zu is \"%s\" and not \"%s\"", i,
                     run_count_name(row_of(&cases[i].candidate)), run_count_name(cases[i].row));
        }
    }
}

static void only_what_a_forecast_decided_is_saved(void **state)
{
    (void)state;
    struct compiled compiled = {.verdict = VERDICT_NONE},
                    broken = {.verdict = VERDICT_COMPILE_ERROR};
    struct result slower = {.verdict = VERDICT_SLOWER};
    struct run_state_candidate candidate[40] = {{.decided = {.decision = 0}}};
    // 10 measured, 2 of them as audits, 10 that do not compile, 10 duplicates, 10 never reached.
    for (size_t i = 0; i < 40; i++) {
        candidate[i].compiled = i / 10 == 1 ? &broken : &compiled;
        candidate[i].object_duplicate_of = i / 10 == 2;
        candidate[i].result = i < 10 ? &slower : NULL;
        candidate[i].decided.decision = i < 2 ? DECISION_AUDIT : i < 10 ? DECISION_MEASURE : 0;
    }
    struct run_state run_state = {.candidate = candidate, .candidate_count = 40, .considered = 40};
    struct run_counts counts = run_counts_of(&run_state);
    assert_true(isnan(counts.saving)); // and not 4
    assert_int_equal(counts.measured, 10);
    for (size_t i = 30; i < 35; i++) {
        candidate[i].decided.decision = DECISION_TRUST;
    }
    counts = run_counts_of(&run_state);
    assert_true(counts.saving == 1.5);
    run_state.candidate_count = 0;
    counts = run_counts_of(&run_state);
    assert_true(isnan(counts.saving) && sum_of(&counts) == 0);
}

// Searches with duplicates of sources and objects and with compile errors, finished or not.
static void the_rows_of_a_run_sum_to_what_was_considered(void **state)
{
    (void)state;
    static const struct made_search search[] = {
        {.candidates = 420, .seed = 7, .finished = true, .forecasts = true},
        {.candidates = 300, .seed = 8, .finished = true},
        {.candidates = 100, .seed = 9, .forecasts = true},
        {.candidates = 100, .seed = 9, .finished = true, .all_wrong = true},
        {.candidates = 0}};
    for (size_t i = 0; i < ARRAY_LEN(search); i++) {
        struct run_state run_state;
        run_state_init(&run_state);
        struct made_sink sink = {.run_state = &run_state};
        assert_true(made_run(&sink, &search[i]));
        struct run_counts counts = run_counts_of(&run_state);
        assert_int_equal(counts.considered, run_state.considered);
        assert_int_equal(sum_of(&counts), run_state.considered);
        assert_int_equal(counts.measured, run_state.measured);
        assert_int_equal(counts.row[RUN_COUNT_AUDIT], run_state.audited);
        assert_int_equal(counts.row[RUN_COUNT_TRUSTED], run_state.trusted);
        assert_int_equal(counts.row[RUN_COUNT_NOT_COMPILED], run_state.compile_failed);
        if (search[i].candidates > 0) {
            // Of sources, too.
            assert_true(counts.row[RUN_COUNT_DUPLICATE] >= run_state.reused + (i < 2));
            assert_int_equal(counts.saving > 1, search[i].forecasts);
        }
        run_state_release(&run_state);
    }
}

static void rows_are_in_the_json_by_their_names(void **state)
{
    (void)state;
    struct run_counts counts = {.considered = 28};
    for (size_t i = 0; i < RUN_COUNT_ROW_COUNT; i++) {
        counts.row[i] = i + 1;
    }
    json_auto_t *object = run_counts_json(&counts);
    assert_int_equal(json_object_size(object), RUN_COUNT_ROW_COUNT + 6);
    assert_int_equal(json_integer_value(json_object_get(object, "considered")), 28);
    for (enum run_count_row row = 0; row < RUN_COUNT_ROW_COUNT; row++) {
        assert_int_equal(json_integer_value(json_object_get(object, run_count_name(row))), row + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_candidate_is_in_the_row_of_what_became_of_it),
        cmocka_unit_test(only_what_a_forecast_decided_is_saved),
        cmocka_unit_test(the_rows_of_a_run_sum_to_what_was_considered),
        cmocka_unit_test(rows_are_in_the_json_by_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
