// Design. A forecaster that knows nothing says of every candidate the average of what was measured
// before it; a forecast is worth something when it is closer to the outcome than that. Both errors
// are means of |log2|, over the same candidates; which of two is closer is judged by the sign test's
// interval (Wilson), so that a few lucky candidates prove nothing.
#include "client/report/report_model.h"
#include "client/report/report_quality.h"
#include "client/report/report_text.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define Z_TWO_SIDED 1.959963984540054 // 95 %
#define RUNGS_MAX 16
#define NO_BREAK "\xE2\x80\xAF"

// Positions of pairs, in the order in which their candidates were measured.
static int by_order(const void *a, const void *b, void *owner)
{
    const struct report *report = owner;
    const struct report_pair *left = &report->pair[*(const size_t *)a];
    const struct report_pair *right = &report->pair[*(const size_t *)b];
    uint64_t x = report->run_state->candidate[left->candidate - 1].measured_order;
    uint64_t y = report->run_state->candidate[right->candidate - 1].measured_order;
    return (x > y) - (x < y);
}

void report_add_plain(struct report *report)
{
    struct report_plain *plain = &report->plain;
    size_t *order = xcalloc(report->pair_count + 1, sizeof *order);
    double sum = 0, error = 0, average_error = 0;
    *plain = (struct report_plain){.error = NAN, .average_error = NAN, .lo = NAN, .hi = NAN};
    for (size_t i = 0; i < report->pair_count; i++) {
        order[i] = i;
    }
    qsort_r(order, report->pair_count, sizeof *order, by_order, report);
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct report_pair *pair = &report->pair[order[i]];
        double ours = fabs(pair->forecast - pair->log2);
        double average = i > 0 ? fabs(sum / (double)i - pair->log2) : 0;
        sum += pair->log2;
        if (i == 0) {
            continue; // nothing had been measured before it
        }
        error += ours;
        average_error += average;
        plain->closer += ours < average;
        plain->count++;
    }
    free(order);
    if (plain->count == 0) {
        return;
    }
    plain->error = error / (double)plain->count;
    plain->average_error = average_error / (double)plain->count;
    report_wilson((double)plain->closer / (double)plain->count, (double)plain->count, Z_TWO_SIDED,
                  &plain->lo, &plain->hi);
}

// ---- the section ----

struct rungs {
    const char *name[RUNGS_MAX];
    uint64_t asked[RUNGS_MAX];
    size_t count;
    uint64_t unanswered;
    const char *reason; // of the last one without an answer
    const char *model;
};

static void note_rung(struct rungs *rungs, const char *name)
{
    size_t i = 0;
    while (i < rungs->count && strcmp(rungs->name[i], name) != 0) {
        i++;
    }
    if (i == RUNGS_MAX) {
        return;
    }
    rungs->name[i] = name;
    rungs->asked[i]++;
    rungs->count += i == rungs->count;
}

static void count_rungs(struct rungs *rungs, const struct run_state *run_state)
{
    *rungs = (struct rungs){.count = 0};
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        const struct forecast *forecast = candidate->forecast;
        if (!forecast && candidate->forecast_reason) {
            rungs->unanswered++;
            rungs->reason = candidate->forecast_reason;
        }
        if (forecast && forecast->raw) {
            rungs->model = forecast->raw->model;
        }
        if (forecast && forecast->rung) {
            note_rung(rungs, forecast->rung);
        }
    }
}

static void add_verdict(struct strbuf *out, const struct report_plain *plain)
{
    strbuf_adds(out, "<p class=\"claim\">");
    if (plain->count == 0) {
        strbuf_adds(out, "Too little was measured to say whether the forecasts were better than "
                         "always saying the average of what was measured before.</p>\n");
        return;
    }
    strbuf_addf(out,
                "The forecasts were <b>%s</b> always saying the average of what was measured "
                "before: ",
                plain->lo > 0.5   ? "better than"
                : plain->hi < 0.5 ? "worse than"
                                  : "not shown to be better or worse than");
    strbuf_adds(out, "off by a factor of ");
    text_add_speedup(out, plain->error);
    strbuf_adds(out, " on average against ");
    text_add_speedup(out, plain->average_error);
    strbuf_adds(out, ", and closer for ");
    text_add_count(out, plain->closer);
    strbuf_adds(out, " of ");
    text_add_count(out, plain->count);
    strbuf_adds(out, " candidates (");
    text_add_percent(out, (double)plain->closer / (double)plain->count);
    strbuf_adds(out, ", 95" NO_BREAK "% interval ");
    text_add_percent(out, plain->lo);
    strbuf_adds(out, " to ");
    text_add_percent(out, plain->hi);
    strbuf_adds(out, ").</p>\n");
}

static void add_fact(struct strbuf *out, const char *name, const struct strbuf *value)
{
    strbuf_addf(out, "<dt>%s</dt><dd>%s</dd>\n", name, strbuf_text(value));
}

static void add_answers(struct strbuf *out, const struct rungs *rungs)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < rungs->count; i++) {
        strbuf_adds(&text, i > 0 ? ", " : "");
        text_add_count(&text, rungs->asked[i]);
        strbuf_adds(&text, " by ");
        text_add_markup(&text, rungs->name[i]);
    }
    if (rungs->count == 0) {
        strbuf_adds(&text, "none");
    }
    add_fact(out, "Answers", &text);
    if (rungs->unanswered > 0) {
        strbuf_reset(&text);
        text_add_count(&text, rungs->unanswered);
        if (rungs->reason) {
            strbuf_adds(&text, ", the last because ");
            text_add_markup(&text, rungs->reason);
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
    struct rungs rungs;
    count_rungs(&rungs, run_state);
    bool model = rungs.count > 0 || run_state->input_tokens + run_state->output_tokens > 0;
    strbuf_adds(out, "<section><h2>What the forecasts were worth</h2>\n<div class=\"card\">");
    add_verdict(out, &report->plain);
    strbuf_adds(out, "<dl class=\"facts\">\n");
    if (model) {
        struct strbuf text = STRBUF_INIT;
        text_add_markup(&text, rungs.model ? rungs.model : "a language model");
        add_fact(out, "Made by", &text);
        strbuf_release(&text);
        add_answers(out, &rungs);
        add_cost(out, run_state);
    }
    add_quality(out, report);
    strbuf_adds(out, "</dl></div></section>\n");
}
