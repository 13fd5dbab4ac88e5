// Design. The forecasts are compared with a forecaster that knows nothing: of every candidate it
// says the average of what was measured before. Forecasts are useful when they are closer to the
// outcomes than that. Both errors are means of |log2| over the same candidates. Which of the two is
// closer is decided by the Wilson interval of the share of candidates for which the forecast was
// closer, so that a few lucky candidates prove nothing.
#include "client/report/report_model.h"
#include "client/report/report_quality.h"
#include "client/report/report_text.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_FORMS_MAX 16
#define NO_BREAK "\xE2\x80\xAF"

// Orders indices of pairs by the order in which their candidates were measured.
static int by_order(const void *a, const void *b, void *owner)
{
    const struct report *report = owner;
    const struct report_pair *left = &report->pair[*(const size_t *)a];
    const struct report_pair *right = &report->pair[*(const size_t *)b];
    uint64_t x = report->run_state->candidate[left->candidate - 1].measured_order;
    uint64_t y = report->run_state->candidate[right->candidate - 1].measured_order;
    return (x > y) - (x < y);
}

void report_add_against_average(struct report *report)
{
    struct report_against_average *result = &report->against_average;
    *result =
        (struct report_against_average){.error = NAN, .average_error = NAN, .lo = NAN, .hi = NAN};
    size_t *order = xcalloc(report->pair_count + 1, sizeof *order);
    for (size_t i = 0; i < report->pair_count; i++) {
        order[i] = i;
    }
    qsort_r(order, report->pair_count, sizeof *order, by_order, report);
    double sum = 0, error = 0, average_error = 0;
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct report_pair *pair = &report->pair[order[i]];
        if (i > 0) { // before the first one there is no average
            double ours = fabs(pair->forecast - pair->log2);
            double average = fabs(sum / (double)i - pair->log2);
            error += ours;
            average_error += average;
            result->closer += ours < average;
            result->count++;
        }
        sum += pair->log2;
    }
    free(order);
    if (result->count == 0) {
        return;
    }
    result->error = error / (double)result->count;
    result->average_error = average_error / (double)result->count;
    report_wilson((double)result->closer / (double)result->count, (double)result->count,
                  REPORT_Z_95, &result->lo, &result->hi);
}

// ---- the section ----

// Who made the forecasts of a run. All pointers belong to the run state.
struct answers {
    // Forms of a language model's answers ("rung" of a forecast).
    const char *form[ANSWER_FORMS_MAX];
    uint64_t given[ANSWER_FORMS_MAX]; // answers in this form
    size_t count;                     // different forms
    uint64_t unanswered;              // candidates without a forecast
    const char *reason;               // why the last one without an answer has none
    const char *model;
};

static void note_form(struct answers *answers, const char *name)
{
    size_t i = 0;
    while (i < answers->count && strcmp(answers->form[i], name) != 0) {
        i++;
    }
    if (i == ANSWER_FORMS_MAX) {
        return;
    }
    answers->form[i] = name;
    answers->given[i]++;
    answers->count += i == answers->count;
}

static void count_answers(struct answers *answers, const struct run_state *run_state)
{
    *answers = (struct answers){.count = 0};
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        const struct forecast *forecast = candidate->forecast;
        if (!forecast && candidate->forecast_reason) {
            answers->unanswered++;
            answers->reason = candidate->forecast_reason;
        }
        if (forecast && forecast->raw) {
            answers->model = forecast->raw->model;
        }
        if (forecast && forecast->rung) {
            note_form(answers, forecast->rung);
        }
    }
}

static void add_comparison(struct strbuf *out, const struct report_against_average *average)
{
    strbuf_adds(out, "<p class=\"claim\">");
    if (average->count == 0) {
        strbuf_adds(out, "Too little was measured to say whether the forecasts were better than "
                         "always saying the average of what was measured before.</p>\n");
        return;
    }
    strbuf_addf(out,
                "The forecasts were <b>%s</b> always saying the average of what was measured "
                "before: ",
                average->lo > 0.5   ? "better than"
                : average->hi < 0.5 ? "worse than"
                                    : "not shown to be better or worse than");
    strbuf_adds(out, "off by a factor of ");
    text_add_speedup(out, average->error);
    strbuf_adds(out, " on average against ");
    text_add_speedup(out, average->average_error);
    strbuf_adds(out, ", and closer for ");
    text_add_count(out, average->closer);
    strbuf_adds(out, " of ");
    text_add_count(out, average->count);
    strbuf_adds(out, " candidates (");
    text_add_percent(out, (double)average->closer / (double)average->count);
    strbuf_adds(out, ", 95" NO_BREAK "% interval ");
    text_add_percent(out, average->lo);
    strbuf_adds(out, " to ");
    text_add_percent(out, average->hi);
    strbuf_adds(out, ").</p>\n");
}

static void add_fact(struct strbuf *out, const char *name, const struct strbuf *value)
{
    strbuf_addf(out, "<dt>%s</dt><dd>%s</dd>\n", name, strbuf_text(value));
}

static void add_answers(struct strbuf *out, const struct answers *answers)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < answers->count; i++) {
        strbuf_adds(&text, i > 0 ? ", " : "");
        text_add_count(&text, answers->given[i]);
        strbuf_adds(&text, " by ");
        text_add_markup(&text, answers->form[i]);
    }
    if (answers->count == 0) {
        strbuf_adds(&text, "none");
    }
    add_fact(out, "Answers", &text);
    if (answers->unanswered > 0) {
        strbuf_reset(&text);
        text_add_count(&text, answers->unanswered);
        if (answers->reason) {
            strbuf_adds(&text, ", the last because ");
            text_add_markup(&text, answers->reason);
        }
        add_fact(out, "Without an answer", &text);
    }
    strbuf_release(&text);
}

static void add_cost(struct strbuf *out, const struct run_state *run_state)
{
    struct strbuf text = STRBUF_INIT;
    text_add_count(&text, run_state->input_tokens);
    strbuf_adds(&text, " in, ");
    text_add_count(&text, run_state->output_tokens);
    strbuf_adds(&text, " out");
    if (run_state->forecasts > 0) {
        strbuf_adds(&text, "; ");
        text_add_count(&text,
                       (run_state->input_tokens + run_state->output_tokens) / run_state->forecasts);
        strbuf_adds(&text, " a forecast");
    }
    add_fact(out, "Tokens", &text);
    strbuf_reset(&text);
    strbuf_addf(&text, "%.4g, at the worker\xE2\x80\x99s prices", run_state->model_cost);
    add_fact(out, "Cost", &text);
    strbuf_release(&text);
}

static void add_quality(struct strbuf *out, const struct report *report)
{
    const struct report_coverage *cover = report->cover;
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < REPORT_COVER_COUNT && cover[i].count > 0; i++) {
        strbuf_addf(&text, "%s%.0f" NO_BREAK "%% intervals held %zu of %zu times",
                    i > 0 ? ", " : "", 100 * cover[i].nominal, cover[i].inside, cover[i].count);
    }
    if (text.len > 0) {
        add_fact(out, "Calibration", &text);
    }
    strbuf_reset(&text);
    if (isfinite(report->correct.ece)) {
        text_add_percent(&text, report->correct.ece);
        strbuf_adds(&text, " off on average");
        add_fact(out, "P(correct)", &text);
    }
    strbuf_release(&text);
}

void report_section_forecasts(struct strbuf *out, const struct report_page *page)
{
    const struct report *report = page->report;
    const struct run_state *run_state = report->run_state;
    if (run_state->forecasts == 0 && run_state->input_tokens == 0) {
        return;
    }
    struct answers answers;
    count_answers(&answers, run_state);
    bool model = answers.count > 0 || run_state->input_tokens + run_state->output_tokens > 0;
    strbuf_adds(out, "<section><h2>What the forecasts were worth</h2>\n<div class=\"card\">");
    add_comparison(out, &report->against_average);
    strbuf_adds(out, "<dl class=\"facts\">\n");
    if (model) {
        struct strbuf text = STRBUF_INIT;
        text_add_markup(&text, answers.model ? answers.model : "a language model");
        add_fact(out, "Made by", &text);
        strbuf_release(&text);
        add_answers(out, &answers);
        add_cost(out, run_state);
    }
    add_quality(out, report);
    strbuf_adds(out, "</dl></div></section>\n");
}
