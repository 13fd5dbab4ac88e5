#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/report/report.h"
#include "client/report/report_html.h"
#include "client/report/report_json.h"
#include "client/report/report_quality.h"
#include "client/report/report_text.h"
#include "common/file.h"
#include "tests/client/report/report_markup.h"
#include "tests/client/report/report_run.h"
#include <jansson.h>

struct made {
    struct run_state run_state;
    struct report report;
};

static void make(struct made *made, const struct made_search *search)
{
    run_state_init(&made->run_state);
    struct made_sink sink = {.run_state = &made->run_state};
    assert_true(made_run(&sink, search));
    report_init(&made->report, &made->run_state);
}

static void release(struct made *made)
{
    report_release(&made->report);
    run_state_release(&made->run_state);
}

static const struct made_search usual = {
    .candidates = 420, .seed = 7, .finished = true, .forecasts = true};

static void numbers_of_a_search_add_up(void **state)
{
    (void)state;
    struct made made;
    make(&made, &usual);
    const struct report *report = &made.report;
    uint64_t sum = 0;
    for (size_t i = 0; i < FATE_COUNT; i++) {
        sum += report->fate_count[i];
    }
    assert_int_equal(sum, made.run_state.candidate_count);
    assert_int_equal(report->measured_count, made.run_state.measured);
    assert_int_equal(report->progress[report->progress_count - 1].considered,
                     made.run_state.considered);
    assert_int_equal(report->progress[report->progress_count - 1].measured,
                     made.run_state.measured);
    assert_int_equal(report->missed.trusted, made.run_state.trusted + made.run_state.audited);
    assert_int_equal(report->missed.unmeasured, made.run_state.trusted);
    assert_int_equal(report->missed.audited, made.run_state.audited);
    assert_true(report->any_correct && report->best);
    // Only what was trusted is saved: not what did not compile or was there already.
    assert_true(
        fabs(report->counts.saving - (double)(made.run_state.measured + made.run_state.trusted) /
                                         (double)made.run_state.measured) < 1e-12);
    release(&made);
}

static void best_line_rises_from_the_baseline(void **state)
{
    (void)state;
    struct made made;
    make(&made, &usual);
    const struct report *report = &made.report;
    assert_int_equal(report->step_count, made.run_state.incumbent_count + 1);
    assert_true(report->step[0].log2 == 0 && report->step[0].candidate == 0);
    for (size_t i = 1; i < report->step_count; i++) {
        assert_true(report->step[i].log2 > report->step[i - 1].log2);
        assert_true(report->step[i].seconds > report->step[i - 1].seconds);
        assert_true(report->step[i].wall_seconds > report->step[i - 1].wall_seconds);
    }
    assert_true(report->speedup.log2 == report->step[report->step_count - 1].log2);
    for (size_t i = 1; i < report->measured_count; i++) {
        assert_true(report->measured[i].seconds >= report->measured[i - 1].seconds);
    }
    release(&made);
}

static void table_of_best_has_the_incumbent_first_and_then_descends(void **state)
{
    (void)state;
    struct made made;
    make(&made, &usual);
    const struct report *report = &made.report;
    assert_int_equal(report->top_count, REPORT_BEST_MAX);
    assert_ptr_equal(&made.run_state.candidate[report->top[0] - 1], report->best);
    double least = INFINITY;
    for (size_t i = 1; i < report->top_count; i++) {
        double now = report_estimate(&made.run_state.candidate[report->top[i] - 1])->log2;
        assert_true(now <= least);
        least = now;
    }
    size_t better = 0;
    for (size_t i = 0; i < made.run_state.candidate_count; i++) {
        const struct estimate *estimate = report_estimate(&made.run_state.candidate[i]);
        better += estimate && estimate->log2 > least;
    }
    assert_in_range(better, REPORT_BEST_MAX - 2, REPORT_BEST_MAX - 1);
    release(&made);
}

// Makes a candidate with a forecast and an outcome, as the run state would hold it.
static void put(struct run_state_candidate *candidate, uint64_t decision, double propensity,
                double p_improves, double confidence, double p_correct, double outcome)
{
    memset(candidate, 0, sizeof *candidate);
    candidate->decided = (struct run_decided){
        .decision = decision, .propensity = propensity, .confidence = confidence};
    candidate->forecast = xcalloc(1, sizeof *candidate->forecast);
    candidate->forecast->p_improves = p_improves;
    candidate->forecast->p_correct = p_correct;
    candidate->forecast->mean_log2 = outcome + 0.5;
    if (decision == DECISION_TRUST) {
        return;
    }
    candidate->result = xcalloc(1, sizeof *candidate->result);
    candidate->result->verdict = isnan(outcome) ? VERDICT_WRONG
                                 : outcome > 0  ? VERDICT_FASTER
                                                : VERDICT_SLOWER;
    if (!isnan(outcome)) {
        candidate->result->speedup = made_estimate(outcome, 0.01, 8);
    }
}

// The averages of what was measured before are 0, 0.5 and 1; the forecasts are 0.5 above.
static void forecasts_are_held_against_the_average(void **state)
{
    (void)state;
    struct run_state run_state;
    static const double outcome[] = {2, 0, 1, 3};
    static const uint64_t order[] = {3, 1, 2, 4};
    run_state_init(&run_state);
    run_state.candidate_count = 4;
    run_state.candidate = xcalloc(4, sizeof *run_state.candidate);
    for (size_t i = 0; i < 4; i++) {
        put(&run_state.candidate[i], DECISION_MEASURE, 1, 0.5, 0.5, 0.9, outcome[i]);
        run_state.candidate[i].measured_order = order[i];
    }
    struct report report;
    report_init(&report, &run_state);
    assert_int_equal(report.against_average.count, 3); // before the first one there is no average
    assert_int_equal(report.against_average.closer, 3);
    assert_true(fabs(report.against_average.error - 0.5) < 1e-12);
    assert_true(fabs(report.against_average.average_error - (1 + 1.5 + 2) / 3) < 1e-12);
    assert_true(report.against_average.lo > 0.43 && report.against_average.lo < 0.45 &&
                report.against_average.hi == 1);
    report_release(&report);
    run_state_release(&run_state);
}

static void expect_page(const struct run_state *run_state, const char *part)
{
    struct report report;
    report_init(&report, run_state);
    struct report_page page = {.report = &report};
    struct strbuf out = STRBUF_INIT;
    report_html(&out, &page);
    if (!strstr(strbuf_text(&out), part)) {
        fail_msg("the page lacks: %s", part);
    }
    strbuf_release(&out);
    report_release(&report);
}

static void a_language_models_answers_and_cost_are_shown(void **state)
{
    (void)state;
    struct run_state run_state;
    run_state_init(&run_state);
    run_state.candidate_count = 12;
    run_state.candidate = xcalloc(12, sizeof *run_state.candidate);
    // The forecasts are 0.5 off, where the average is exact.
    for (size_t i = 0; i < 12; i++) {
        put(&run_state.candidate[i], DECISION_MEASURE, 1, 0.5, 0.5, 0.9, 1);
        run_state.candidate[i].measured_order = i + 1;
        run_state.candidate[i].forecast->rung = xstrdup(i < 7 ? "json_schema" : "text");
    }
    run_state.forecasts = 12;
    run_state.input_tokens = 24000;
    run_state.output_tokens = 1200;
    run_state.model_cost = 0.25;
    expect_page(&run_state, "The forecasts were <b>worse than</b> always saying the average");
    expect_page(&run_state, "7 by json_schema, 5 by text");
    expect_page(&run_state, "24,000 in, 1,200 out; 2,100 a forecast");
    expect_page(&run_state, "measured, <b>0</b> trusted to their forecast.</p>"); // none is saved
    expect_page(&run_state, "0.25, at the worker");
    run_state.candidate[3].forecast_reason = xstrdup("late & <lost>");
    message_clear(&forecast_message, run_state.candidate[3].forecast);
    free(run_state.candidate[3].forecast);
    run_state.candidate[3].forecast = NULL;
    expect_page(&run_state, "1, the last because late &amp; &lt;lost&gt;");
    run_state_release(&run_state);

    struct strbuf percent = STRBUF_INIT;
    text_add_percent(&percent, 1e-12);
    assert_non_null(strstr(strbuf_text(&percent), "below 0.01"));
    strbuf_release(&percent);
}

static void audit_estimates_what_was_missed(void **state)
{
    (void)state;
    struct run_state run_state;
    run_state_init(&run_state);
    run_state.candidate_count = 30;
    run_state.candidate = xcalloc(30, sizeof *run_state.candidate);
    for (size_t i = 0; i < 20; i++) {
        put(&run_state.candidate[i], DECISION_TRUST, 0.25, 0.1, 0.9, 0.9, -1);
    }
    // 2 of 8 improve; one of them was drawn with half the probability of the others.
    for (size_t i = 20; i < 28; i++) {
        put(&run_state.candidate[i], DECISION_AUDIT, i == 20 ? 0.125 : 0.25, 0.1, 0.9, 0.9,
            i < 22 ? 0.5 : -0.5);
    }
    for (size_t i = 28; i < 30; i++) {
        put(&run_state.candidate[i], DECISION_MEASURE, 1, 0.7, 0.6, 0.9, 0.2);
    }
    struct report report;
    report_init(&report, &run_state);
    assert_int_equal(report.missed.trusted, 28);
    assert_int_equal(report.missed.audited, 8);
    assert_int_equal(report.missed.unmeasured, 20);
    assert_int_equal(report.missed.improvers, 2);
    // The forecasts say 0.1 for each. The audits say that this is too little
    // (certify_false_omission).
    assert_true(fabs(report.missed.share - (8.0 + 4.0) / (8.0 + 7 * 4.0)) < 1e-12);
    assert_true(fabs(report.missed.estimate - (28 * report.missed.share - 2)) < 1e-12);
    assert_true(report.missed.share_hi > report.missed.share && report.missed.share_hi <= 1);
    assert_true(fabs(report.missed.estimate_hi - (28 * report.missed.share_hi - 2)) < 1e-12);
    // From 8 audits the estimate is not said, only the bound.
    assert_false(report.missed.shown);
    expect_page(&run_state, "<dd>at most ");
    expect_page(&run_state, "2 of 8 audits improved (90");
    expect_page(&run_state, "2 of 8 audits improved: with 90 % confidence at most ");
    struct strbuf out = STRBUF_INIT;
    report_json(&out, &report);
    json_auto_t *object = json_loads(strbuf_text(&out), 0, NULL);
    const json_t *missed = json_object_get(object, "missed");
    assert_true(json_is_null(json_object_get(missed, "share")));
    assert_true(json_is_null(json_object_get(missed, "estimate")));
    assert_true(json_number_value(json_object_get(missed, "share_at_most")) > 0.3);
    assert_true(json_number_value(json_object_get(missed, "confidence")) == 0.9);
    strbuf_release(&out);
    report_release(&report);
    run_state_release(&run_state);
}

static void reliability_weighs_audits_by_what_they_stand_for(void **state)
{
    (void)state;
    struct run_state run_state;
    run_state_init(&run_state);
    run_state.candidate_count = 7;
    run_state.candidate = xcalloc(7, sizeof *run_state.candidate);
    // Confidence 0.95: two audits that stand for ten each, one of them right; and one right call
    // that was measured by choice.
    put(&run_state.candidate[0], DECISION_AUDIT, 0.1, 0.05, 0.95, 0.8, -0.3);
    put(&run_state.candidate[1], DECISION_AUDIT, 0.1, 0.05, 0.95, 0.8, 0.3);
    put(&run_state.candidate[2], DECISION_MEASURE, 1, 0.95, 0.95, 0.8, 0.3);
    // Forecasts without a record, with nonsense, and of a wrong candidate.
    put(&run_state.candidate[3], DECISION_MEASURE, 1, 0.5, 0, 0.8, 0.3);
    put(&run_state.candidate[4], DECISION_MEASURE, 1, NAN, NAN, NAN, 0.3);
    put(&run_state.candidate[5], DECISION_MEASURE, 1, 0.5, 1.0, 1.0, NAN);
    put(&run_state.candidate[6], DECISION_TRUST, 0.1, 0.05, 0.95, 0.8, 0);
    struct report report;
    report_init(&report, &run_state);
    const struct report_band *band = &report.call.band[9];
    assert_int_equal(band->count, 4); // 0.95 three times and 1.0, which belongs to the last band
    assert_int_equal(report.calls_without_record, 1);
    assert_true(fabs(band->weight - 22) < 1e-12);
    assert_true(fabs(band->observed - 11.0 / 22) < 1e-12);
    assert_true(fabs(report.call.ece - ((21 * 0.95 + 1.0) / 22 - 0.5)) < 1e-12);
    assert_true(band->lo < 0.5 && band->hi > 0.5);
    assert_int_equal(report.correct.count, 5);
    assert_true(fabs(report.correct.band[8].observed - 1) < 1e-12);
    assert_true(report.correct.band[9].observed == 0);
    assert_int_equal(report.pair_count, 5);
    assert_true(fabs(report.pair_error - 0.5) < 1e-12);
    report_release(&report);
    run_state_release(&run_state);
}

static void wilson_interval_is_the_known_one(void **state)
{
    (void)state;
    double lo, hi;
    report_wilson(0.5, 10, 1.959963984540054, &lo, &hi);
    assert_true(fabs(lo - 0.236593) < 1e-5 && fabs(hi - 0.763407) < 1e-5);
    report_wilson(0, 20, 1.959963984540054, &lo, &hi);
    assert_true(lo == 0 && fabs(hi - 0.161125) < 1e-4);
    report_wilson(0.5, 0, 2, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
}

static char *page_of(const struct made *made, const char *source)
{
    struct strbuf out = STRBUF_INIT;
    const struct report_page page = {.report = &made->report,
                                     .run_path = "dir with 'quotes'/a.run",
                                     .title = "C = A B <matrix>",
                                     .extension = "cu",
                                     .source = source,
                                     .source_len = source ? strlen(source) : 0};
    report_html(&out, &page);
    assert_false(out.truncated);
    assert_true(markup_balanced(strbuf_text(&out)));
    return strbuf_detach(&out);
}

static void page_asks_for_nothing_and_runs_nothing(void **state)
{
    (void)state;
    static const char *const banned[] = {
        "<script", "http:",   "https:", "url(",        "src=",        "href=", "@import",
        "<link",   "<iframe", "onload", "javascript:", "nan\xC3\x97", "-nan",  "inf\xC3\x97"};
    struct made_search search = usual;
    search.suffix = " <script>alert(1)</script> & \"x\"";
    struct made made;
    make(&made, &search);
    char *page = page_of(
        &made,
        "int x; // </code></pre><script>alert(2)</script>\n\tchar c = '\"'; \xC0\xBC\x1B\n\n");
    for (size_t i = 0; i < ARRAY_LEN(banned); i++) {
        if (strstr(page, banned[i])) {
            fail_msg("the page has \"%s\"", banned[i]);
        }
    }
    assert_non_null(strstr(page, "default-src 'none'"));
    assert_non_null(strstr(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_non_null(strstr(page, "&lt;script&gt;alert(2)&lt;/script&gt;"));
    assert_non_null(strstr(page, "C = A B &lt;matrix&gt;"));
    assert_non_null(strstr(
        // The path is quoted for a shell and then escaped for HTML.
        page, "kcast report &#39;dir with &#39;\\&#39;&#39;quotes"));
    assert_null(strstr(page, "The sandbox was off"));
    assert_int_equal(markup_count(page, "<figure"), 5);
    const char *path = getenv("KCAST_REPORT_PAGE"); // where to write the page, to look at it
    if (path) {
        assert_int_equal(file_replace(path, page, strlen(page), false, NULL), 0);
    }
    free(page);
    release(&made);
}

// An area for each part that the search has, in both sizes of the picture.
static void a_page_shows_where_the_time_went(void **state)
{
    (void)state;
    struct made_search search = usual;
    search.times = true;
    struct made made;
    make(&made, &search);
    char *page = page_of(&made, NULL);
    static const char *const part[] = {"measuring",      "compiling", "forecasting",   "start_up",
                                       "waiting_device", "proposing", "waiting_daemon"};
    for (size_t i = 0; i < ARRAY_LEN(part); i++) {
        char mark[64];
        snprintf(mark, sizeof mark, "<path class=\"t-%s\"", part[i]);
        assert_int_equal(markup_count(page, mark), 2);
    }
    assert_null(strstr(page, "class=\"t-not_recorded"));
    assert_non_null(strstr(page, "<dt>Device cpu0</dt><dd>held "));
    free(page);
    release(&made);
    make(&made, &usual);
    page = page_of(&made, NULL);
    assert_non_null(strstr(page, "Not recorded: this run is of a kcast that did not record"));
    assert_null(strstr(page, "class=\"t-"));
    assert_non_null(strstr(page, "<dt>Device cpu0</dt><dd>held ")); // results say so much
    free(page);
    release(&made);
}

static void the_parts_in_json_sum_to_the_wall_time(void **state)
{
    (void)state;
    for (int times = 0; times < 2; times++) {
        struct made_search search = usual;
        search.times = times != 0;
        struct made made;
        make(&made, &search);
        struct strbuf out = STRBUF_INIT;
        report_json(&out, &made.report);
        json_t *object = json_loads(strbuf_text(&out), JSON_REJECT_DUPLICATES, NULL), *value;
        const char *name;
        double sum = 0;
        json_object_foreach (json_object_get(object, "wall"), name, value) {
            bool known = times || strcmp(name, "not_recorded") == 0;
            assert_true(strcmp(name, "recorded") == 0 || json_is_real(value) == known);
            sum += json_is_real(value) ? json_real_value(value) : 0;
        }
        json_t *wall = json_object_get(object, "wall");
        assert_int_equal(json_is_true(json_object_get(wall, "recorded")), times);
        assert_float_equal(sum, json_real_value(json_object_get(object, "wall_seconds")), 1e-3);
        json_t *device = json_array_get(json_object_get(object, "devices"), 0);
        assert_int_equal(json_integer_value(json_object_get(device, "runs")),
                         made.run_state.measured + made.run_state.records);
        assert_float_equal(json_real_value(json_object_get(device, "held_seconds")),
                           made.run_state.device_seconds, 1e-3);
        json_t *held = json_object_get(json_object_get(object, "work"), "held");
        assert_float_equal(json_real_value(held), made.run_state.device_seconds, 1e-3);
        json_decref(object);
        strbuf_release(&out);
        release(&made);
    }
}

static void every_kind_of_run_gives_a_page(void **state)
{
    (void)state;
    static const struct {
        struct made_search search;
        const char *says;
    } row[] = {
        {{.candidates = 0, .seed = 1}, "Nothing has been measured yet"},
        {{.candidates = 1, .seed = 1}, "search not finished"},
        {{.candidates = 2, .seed = 1, .forecasts = true}, "How this number was obtained"},
        {{.candidates = 30, .seed = 3, .all_wrong = true}, "No candidate was correct"},
        {{.candidates = 30, .seed = 3, .all_wrong = true, .sandbox_off = true},
         "The sandbox was off"},
        {{.candidates = 200, .seed = 4, .finished = true}, "no forecast was trusted"},
        {{.candidates = 200, .seed = 4, .finished = true}, "never reached: the search ended"},
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct made made;
        make(&made, &row[i].search);
        char *page = page_of(&made, "void f(void);\n");
        assert_non_null(strstr(page, row[i].says));
        free(page);
        release(&made);
    }
}

static void ten_thousand_candidates_give_a_page_of_bounded_size(void **state)
{
    (void)state;
    struct made_search search = usual;
    search.candidates = 10000;
    search.forecasts = false; // everything is measured
    struct made made;
    make(&made, &search);
    char *page = page_of(&made, NULL);
    assert_true(strlen(page) < 400000);
    free(page);
    release(&made);
}

static void numbers_are_one_json_object(void **state)
{
    (void)state;
    static const struct made_search search[] = {{.candidates = 0},
                                                {.candidates = 60, .seed = 5, .forecasts = true},
                                                {.candidates = 20, .seed = 5, .all_wrong = true}};
    for (size_t i = 0; i < ARRAY_LEN(search); i++) {
        struct made made;
        make(&made, &search[i]);
        struct strbuf out = STRBUF_INIT;
        report_json(&out, &made.report);
        assert_ptr_equal(strchr(strbuf_text(&out), '\n'), strbuf_text(&out) + out.len - 1);
        json_t *object = json_loads(strbuf_text(&out), JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(object);
        assert_int_equal(json_integer_value(json_object_get(object, "measured")),
                         made.run_state.measured);
        assert_int_equal(json_is_object(json_object_get(object, "best")), !!made.report.best);
        assert_true(json_is_object(json_object_get(object, "counts")));
        assert_int_equal(json_is_null(json_object_get(object, "saving")), i != 1);
        json_decref(object);
        strbuf_release(&out);
        release(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_a_search_add_up),
        cmocka_unit_test(best_line_rises_from_the_baseline),
        cmocka_unit_test(table_of_best_has_the_incumbent_first_and_then_descends),
        cmocka_unit_test(audit_estimates_what_was_missed),
        cmocka_unit_test(reliability_weighs_audits_by_what_they_stand_for),
        cmocka_unit_test(wilson_interval_is_the_known_one),
        cmocka_unit_test(forecasts_are_held_against_the_average),
        cmocka_unit_test(a_language_models_answers_and_cost_are_shown),
        cmocka_unit_test(page_asks_for_nothing_and_runs_nothing),
        cmocka_unit_test(a_page_shows_where_the_time_went),
        cmocka_unit_test(the_parts_in_json_sum_to_the_wall_time),
        cmocka_unit_test(every_kind_of_run_gives_a_page),
        cmocka_unit_test(ten_thousand_candidates_give_a_page_of_bounded_size),
        cmocka_unit_test(numbers_are_one_json_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
