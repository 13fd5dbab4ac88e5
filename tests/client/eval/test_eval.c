// `kcast eval`: what its reader accepts and refuses, exact measures of small files, a made-up run,
// and its page. tests/client/eval/test_score.c tests the measures themselves.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/eval/eval.h"
#include "client/eval/eval_show.h"
#include "client/report/report.h"
#include "tests/client/report/report_markup.h"
#include "tests/client/report/report_run.h"
#include <jansson.h>

static const struct score_options plain = {.risk = 0.1};

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

static void read_good(struct eval *eval, const char *text)
{
    eval_init(eval);
    struct err err = ERR_INIT;
    if (eval_read_lines(eval, text, strlen(text), "f.jsonl", &err) != 0) {
        fail_msg("%s", err.text);
    }
    eval_compute(eval, &plain);
}

#define BINS "\"bins\":[0,0,0,0,1,3,0,0,0,0,0,0,0,0,0]"

static void a_line_becomes_a_row(void **state)
{
    (void)state;
    struct eval eval;
    read_good(
        &eval,
        "{\"engine\":\"llm\",\"cluster\":7,\"p_correct\":0.9,\"p_improves\":0.7," BINS
        ",\"confidence\":0.6,\"verdict\":\"faster\",\"log2\":0.25,\"propensity\":0.25,"
        "\"incumbent_log2\":0.2,\"remark\":[]}\r\n"
        "  \n"
        "{\"cluster\":\"7\",\"mean_log2\":-1,\"verdict\":\"crash\",\"log2\":3,\"bins\":null}\n"
        "{\"engine\":\"llm\",\"cluster\":7,\"verdict\":\"equivalent\",\"log2\":0.207}\n"
        "{\"engine\":\"llm\",\"verdict\":\"quarantined\"}\n{\"engine\":\"llm\"}");
    assert_int_equal(eval.set_count, 2);
    const struct eval_set *set = &eval.set[0];
    assert_string_equal(set->engine, "llm");
    assert_string_equal(eval.set[1].engine, EVAL_NO_ENGINE);
    assert_int_equal(set->count, 2);
    assert_int_equal(set->unmeasured, 2);
    const struct score_row *row = &set->row[0];
    assert_true(row->has_bins && row->correct && row->improved && row->weight == 4);
    assert_near(row->bins[5], 0.75, 1e-15);
    assert_true(isnan(row->mean_log2) && row->confidence == 0.6 && row->log2 == 0.25);
    assert_true(set->row[1].cluster == row->cluster && isnan(set->row[1].p_correct));
    row = &eval.set[1].row[0];
    assert_true(!row->correct && !row->improved && !row->has_bins && row->mean_log2 == -1);
    assert_true(row->cluster != set->row[0].cluster && row->weight == 1);
    eval_release(&eval);
}

static void lines_that_would_be_read_wrongly_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"{", "f.jsonl:2: no JSON: "},
        {"[1]", "f.jsonl:2: no JSON object with a forecast"},
        {"{\"verdict\":\"faster\"}", "f.jsonl:2: \"log2\" is missing"},
        {"{\"verdict\":\"fast\"}", "f.jsonl:2: \"verdict\" is none of"},
        {"{\"verdict\":3}", "f.jsonl:2: \"verdict\" is none of"},
        {"{\"p_correct\":1.5}", "f.jsonl:2: \"p_correct\" is 1.5, which is not within 0 and 1"},
        {"{\"p_improves\":\"0.5\"}", "f.jsonl:2: \"p_improves\" is no number"},
        {"{\"propensity\":0}", "f.jsonl:2: \"propensity\" is 0"},
        {"{\"log2\":1e300}", "f.jsonl:2: \"log2\" is 1e+300"},
        {"{\"bins\":[1,0]}", "f.jsonl:2: \"bins\" is no list of 15 numbers"},
        {"{\"bins\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}", "f.jsonl:2: \"bins\" holds"},
        {"{\"bins\":[1,0,0,0,0,0,0,0,0,0,0,0,0,0,-1]}", "f.jsonl:2: \"bins\" holds"},
        {"{\"bins\":[1,0,0,0,0,0,0,0,0,0,0,0,0,0,\"\"]}", "f.jsonl:2: \"bins\" holds"},
        {"{\"bins\":3}", "f.jsonl:2: \"bins\" is no list of 15 numbers"},
        {"{\"cluster\":1.5}", "f.jsonl:2: \"cluster\" is neither an integer nor text"},
        {"{\"engine\":1}", "f.jsonl:2: \"engine\" is no text"},
        {"{\"log2\":1,\"log2\":1}", "f.jsonl:2: no JSON: "},
        {"{\"engine\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
         "f.jsonl:2: an engine's name is longer than 64 bytes"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct eval eval;
        char *text = xasprintf("{}\n%s\n", cases[i].line);
        eval_init(&eval);
        struct err err = ERR_INIT;
        assert_int_not_equal(eval_read_lines(&eval, text, strlen(text), "f.jsonl", &err), 0);
        if (strncmp(err.text, cases[i].says, strlen(cases[i].says)) != 0) {
            fail_msg("%s: \"%s\"", cases[i].line, err.text);
        }
        eval_release(&eval);
        free(text);
    }
    struct eval eval;
    eval_init(&eval);
    struct err err = ERR_INIT;
    assert_int_equal(eval_read_lines(&eval, "\n\n", 2, "f.jsonl", &err), ERR_INVALID);
    assert_string_equal(err.text, "f.jsonl holds no forecasts");
    struct strbuf many = STRBUF_INIT;
    for (int i = 0; i <= EVAL_ENGINES_MAX; i++) {
        strbuf_addf(&many, "{\"engine\":\"%d\"}\n", i);
    }
    err_clear(&err);
    assert_int_equal(eval_read_lines(&eval, many.data, many.len, "f.jsonl", &err), ERR_LIMIT);
    assert_string_equal(err.text, "f.jsonl:65: more than 64 engines");
    strbuf_release(&many);
    eval_release(&eval);
}

static void small_files_have_exact_measures(void **state)
{
    (void)state;
    struct eval eval;
    // The bins are ¾ for bin 5 and ¼ for bin 4. The outcomes are in bin 5, in bin 4 (weight 2) and
    // in bin 7; one candidate is wrong.
    read_good(&eval, "{" BINS ",\"p_improves\":0.9,\"verdict\":\"faster\",\"log2\":0.2}\n"
                     "{" BINS ",\"p_improves\":0.8,\"verdict\":\"slower\",\"log2\":-0.01,"
                     "\"propensity\":0.5}\n"
                     "{" BINS ",\"p_improves\":0.3,\"verdict\":\"faster\",\"log2\":1}\n"
                     "{\"p_improves\":0.1,\"verdict\":\"timeout\",\"p_correct\":0.25}\n");
    const struct score_value *v = eval.set[0].value;
    assert_near(v[SCORE_ACCURACY].value, 0.25, 1e-12);
    assert_near(v[SCORE_WITHIN_ONE].value, 0.75, 1e-12);
    assert_near(v[SCORE_HALF_BRIER].value, (0.0625 + 2 * 0.5625 + (0.5625 + 0.0625 + 1) / 2) / 4,
                1e-12);
    assert_near(v[SCORE_NLL].value, -(log(0.75) + 2 * log(0.25) + log(1e-6)) / 4, 1e-12);
    // There are improvers (weight 2) and others (weight 3). The improver at 0.9 is above the other
    // at 0.8, whose weight is 2; both improvers are above the other at 0.1.
    assert_near(v[SCORE_AUC].value, (2.0 + 1 + 1) / 6, 1e-12);
    // Calls by falling confidence: at 0.9 two right ones, at 0.8 two wrong ones, at 0.7 a wrong
    // one.
    assert_near(v[SCORE_COVERAGE].value, 0.4, 1e-12);
    assert_near(v[SCORE_AUGRC].value, 0.4 * 0.2 + 0.2 * 0.5, 1e-12);
    // All but one state 0. That one states ¼ and is wrong.
    assert_near(v[SCORE_ECE_CORRECT].value, 0.25, 1e-12);
    assert_int_equal(v[SCORE_ECE_CORRECT].rows, 1);
    assert_true(isnan(v[SCORE_AUC].lo));
    eval_release(&eval);
}

static void a_run_is_scored_by_its_events(void **state)
{
    (void)state;
    struct run_state run_state;
    run_state_init(&run_state);
    struct made_sink sink = {.run_state = &run_state};
    assert_true(made_run(
        &sink,
        &(struct made_search){.candidates = 420, .seed = 7, .finished = true, .forecasts = true}));
    struct report report;
    report_init(&report, &run_state);
    struct eval eval;
    eval_init(&eval);
    struct err err = ERR_INIT;
    assert_int_equal(eval_read_run_state(&eval, &run_state, "a.run", &err), 0);
    eval_compute(&eval, &(struct score_options){.risk = 0.1, .draws = 50, .seed = 1});
    assert_int_equal(eval.set_count, 1);
    assert_string_equal(eval.set[0].engine, "static");
    assert_int_equal(eval.set[0].count, run_state.measured);
    assert_int_equal(eval.set[0].unmeasured, run_state.trusted);
    const struct score_value *v = eval.set[0].value;
    assert_int_equal(v[SCORE_CRPS].rows, report.pair_count);
    assert_true(v[SCORE_TAU].value > 0.5 && v[SCORE_AUC].value > 0.6);
    assert_true(v[SCORE_TAU].lo < v[SCORE_TAU].value && v[SCORE_TAU].value < v[SCORE_TAU].hi);
    // The report counts the same calls and the same outcomes.
    double wrong = 0, weight = 0;
    for (size_t i = 0; i < eval.set[0].count; i++) {
        const struct score_row *row = &eval.set[0].row[i];
        wrong += row->weight * !row->correct;
        weight += row->weight;
    }
    assert_near(1 - wrong / weight, report.correct.observed, 1e-12);
    eval_release(&eval);
    report_release(&report);
    run_state_release(&run_state);
}

static void what_is_shown_is_well_formed(void **state)
{
    (void)state;
    struct eval eval;
    read_good(&eval, "{\"engine\":\"<script>\\u0007&\",\"p_correct\":0.5,\"p_improves\":0.4,"
                     "\"mean_log2\":1,\"verdict\":\"faster\",\"log2\":2}\n{\"engine\":\"none\"}\n");
    const struct eval_page page = {&eval, "dir/<f>.jsonl", 0.1, 0, 1};
    struct strbuf out = STRBUF_INIT;
    eval_html(&out, &page);
    assert_true(markup_balanced(strbuf_text(&out)));
    assert_null(strstr(strbuf_text(&out), "<script"));
    assert_non_null(strstr(strbuf_text(&out), "Forecasts of &lt;f&gt;.jsonl"));
    assert_non_null(strstr(strbuf_text(&out), "no call has met an outcome yet"));
    strbuf_reset(&out);
    eval_json(&out, &page);
    char *second = strchr(out.data, '\n') + 1;
    json_t *object = json_loads(second, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(object, "engine")), "none");
    assert_int_equal(json_integer_value(json_object_get(object, "unmeasured")), 1);
    const json_t *metrics = json_object_get(object, "metrics");
    assert_int_equal(json_object_size(metrics), SCORE_COUNT);
    assert_true(json_is_null(json_object_get(json_object_get(metrics, "nll"), "value")));
    json_decref(object);
    strbuf_reset(&out);
    eval_table(&out, &page);
    assert_non_null(strstr(strbuf_text(&out), "engine <script>\\x07&: 1 forecasts"));
    assert_null(strstr(strbuf_text(&out), "nan"));
    strbuf_release(&out);
    eval_release(&eval);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_becomes_a_row),
        cmocka_unit_test(lines_that_would_be_read_wrongly_are_refused),
        cmocka_unit_test(small_files_have_exact_measures),
        cmocka_unit_test(a_run_is_scored_by_its_events),
        cmocka_unit_test(what_is_shown_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
