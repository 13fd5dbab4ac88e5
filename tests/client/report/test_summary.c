// What a search prints when it ends: rows that sum to what was considered, and what is claimed of
// forecasts and audits.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/certify.h"
#include "client/report/summary.h"
#include "tests/client/cmd/printed.h"
#include "tests/client/report/report_run.h"
#include <jansson.h>
#include <stdlib.h>

static void make(struct run_state *run_state, const struct made_search *search)
{
    run_state_init(run_state);
    struct made_sink sink = {.run_state = run_state};
    assert_true(made_run(&sink, search));
}

// What summary_print writes to stdout, malloc'd.
static char *summary_of(const struct run_state *run_state, bool json)
{
    const struct session_options options = {.json = json, .quiet = true};
    struct printed printed = printed_begin(stdout);
    int code = summary_print(&options, run_state, "a.run");
    char *text = printed_end(&printed);
    assert_int_equal(code, EXIT_OK);
    return text;
}

// The number at the beginning of the row with this label.
static unsigned long long number_of(const char *text, const char *label)
{
    char *line = xasprintf("\n%-11s ", label);
    const char *at = strstr(text, line);
    if (!at) {
        fail_msg("there is no row \"%s\" in: %s", label, text);
    }
    unsigned long long ret = strtoull(at + strlen(line), NULL, 10);
    free(line);
    return ret;
}

static void the_rows_of_the_summary_sum_to_what_was_considered(void **state)
{
    static const char *const label[] = {"measured", "audits",     "trusted",
                                        "failed",   "duplicates", "not reached"};
    static const struct made_search search[] = {
        {.candidates = 420, .seed = 7, .finished = true, .forecasts = true},
        {.candidates = 300, .seed = 8, .finished = true}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(search); i++) {
        struct run_state run_state;
        make(&run_state, &search[i]);
        char *text = summary_of(&run_state, false);
        unsigned long long sum = 0;
        for (size_t j = 0; j < ARRAY_LEN(label); j++) {
            sum += number_of(text, label[j]);
        }
        assert_int_equal(sum, number_of(text, "considered"));
        assert_int_equal(sum, search[i].candidates);
        assert_int_equal(printed_count(text, " times fewer measurements"), search[i].forecasts);
        assert_int_equal(printed_count(text, "\nno result "), 0);
        free(text);
        run_state_release(&run_state);
    }
}

static void what_the_daemon_gave_up_has_a_row(void **state)
{
    (void)state;
    struct run_state run_state;
    make(&run_state, &(struct made_search){.candidates = 30, .seed = 7, .finished = true});
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        struct run_state_candidate *candidate = &run_state.candidate[i];
        if (candidate->result && !candidate->record) {
            message_clear(&result_message, candidate->result);
            free(candidate->result);
            candidate->result = NULL;
            candidate->given_up = true;
            break;
        }
    }
    char *text = summary_of(&run_state, false);
    assert_int_equal(number_of(text, "no result"), 1);
    free(text);
    run_state_release(&run_state);
}

static void few_audits_are_not_read_as_nothing_lost(void **state)
{
    (void)state;
    struct run_state run_state;
    make(&run_state,
         &(struct made_search){.candidates = 420, .seed = 7, .finished = true, .forecasts = true});
    assert_in_range(run_state.audited, 1, CERTIFY_AUDITS_LEAST - 1);
    char *text = summary_of(&run_state, false), *json = summary_of(&run_state, true);
    printed_has(text, "audits improved: with 90 % confidence at most ");
    assert_null(strstr(text, "estimated"));
    json_auto_t *object = json_loads(json, 0, NULL);
    const json_t *risk = json_object_get(object, "risk");
    assert_true(json_is_null(json_object_get(risk, "share")));
    assert_true(json_number_value(json_object_get(risk, "at_most")) > 0.03);
    assert_int_equal(json_integer_value(json_object_get(risk, "audited")), run_state.audited);
    const json_t *counts = json_object_get(object, "counts");
    assert_int_equal(json_integer_value(json_object_get(counts, "considered")), 420);
    assert_int_equal(json_integer_value(json_object_get(counts, "trusted")), run_state.trusted);
    assert_true(json_number_value(json_object_get(object, "saving")) > 1);
    free(text);
    free(json);
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_of_the_summary_sum_to_what_was_considered),
        cmocka_unit_test(what_the_daemon_gave_up_has_a_row),
        cmocka_unit_test(few_audits_are_not_read_as_nothing_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
