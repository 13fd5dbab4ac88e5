// Tables and lists of the page. The intervals in a table are drawn on one common axis, so that they
// can be compared down the column.
#include "client/report/report_sections.h"
#include "client/policy/guarantee.h"
#include "client/policy/risk.h"
#include "client/report/report_text.h"
#include "client/report/run_unsealed.h"
#include "common/version.h"
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NDASH "\xE2\x80\x93"
#define PARAMS_SHOWN 300 // bytes of a candidate's name
#define PICTURE_WIDTH 132.0

const char *report_fate_fill(enum report_fate fate)
{
    switch (fate) {
    case FATE_FASTER:
    case FATE_EQUIVALENT:
    case FATE_INCONCLUSIVE:
    case FATE_SLOWER:
        return "fill-blue";
    case FATE_TRUSTED:
        return "fill-grey";
    case FATE_SAME_OBJECT:
    case FATE_SAME_SOURCE:
    case FATE_LOST:
    case FATE_PENDING:
    case FATE_COUNT:
        return "fill-pale";
    default:
        return "fill-orange";
    }
}

void report_add_params(struct strbuf *out, const struct run_state_candidate *candidate)
{
    const struct run_proposed *proposed = &candidate->proposed;
    if (proposed->name && proposed->name[0] != '\0') {
        size_t len = strnlen(proposed->name, PARAMS_SHOWN + 1);
        text_add_markup_bytes(out, proposed->name, len > PARAMS_SHOWN ? PARAMS_SHOWN : len);
        if (len > PARAMS_SHOWN) {
            strbuf_adds(out, " \xE2\x80\xA6");
        }
        return;
    }
    for (size_t i = 0; i < proposed->params_count; i++) {
        if (i > 0) {
            strbuf_addc(out, ' ');
        }
        text_add_markup(out, proposed->params[i].name);
        strbuf_addf(out, "=%.6g", proposed->params[i].value);
    }
}

// ---- best candidates ----

struct span {
    double min, max; // log2
};

// The range from the lowest to the highest end of any interval in the table.
static struct span table_span(const struct report *report)
{
    struct span span = {INFINITY, -INFINITY};
    for (size_t i = 0; i < report->top_count; i++) {
        const struct estimate *estimate =
            report_estimate(&report->run_state->candidate[report->top[i] - 1]);
        // fmin and fmax ignore NaN.
        span.min = fmin(span.min, fmin(estimate->log2, estimate->lo));
        span.max = fmax(span.max, fmax(estimate->log2, estimate->hi));
    }
    if (!(span.max - span.min > 0.01) || isinf(span.max - span.min)) {
        double middle = report_estimate(&report->run_state->candidate[report->top[0] - 1])->log2;
        span = (struct span){middle - 0.5, middle + 0.5};
    }
    return span;
}

static double place(const struct span *span, double log2_speedup)
{
    double share = (log2_speedup - span->min) / (span->max - span->min);
    return 4 + fmin(fmax(share, 0), 1) * (PICTURE_WIDTH - 8);
}

// Draws the interval of `estimate`. `first` is the estimate in the first row, with which the others
// are compared.
static void add_interval_picture(struct strbuf *out, const struct span *span,
                                 const struct estimate *estimate, const struct estimate *first)
{
    strbuf_addf(out,
                "<svg viewBox=\"0 0 %.0f 36\" aria-hidden=\"true\"><path class=\"rule\" d=\"M%.1f "
                "0V36\"/>",
                PICTURE_WIDTH, place(span, first->log2));
    if (isfinite(estimate->lo) && isfinite(estimate->hi)) {
        strbuf_addf(out, "<path class=\"line\" d=\"M%.1f 18H%.1f\"/>", place(span, estimate->lo),
                    place(span, estimate->hi));
    }
    strbuf_addf(out, "<circle class=\"blue\" cx=\"%.1f\" cy=\"18\" r=\"3.6\"/></svg>",
                place(span, estimate->log2));
}

static void add_forecast_cell(struct strbuf *out, const struct run_state_candidate *candidate)
{
    if (!candidate->forecast) {
        strbuf_adds(out, NDASH);
        return;
    }
    text_add_speedup(out, candidate->forecast->mean_log2);
    if (candidate->forecast->p_correct >= 0 && candidate->forecast->p_correct <= 1) {
        strbuf_adds(out, ", ");
        text_add_percent(out, candidate->forecast->p_correct);
    }
}

static double seconds_of(const struct result *result)
{
    return result && result->seconds && result->seconds->held > 0 ? result->seconds->held : 0;
}

static void add_best_row(struct strbuf *out, const struct report *report, const struct span *span,
                         uint64_t number)
{
    const struct run_state_candidate *candidate = &report->run_state->candidate[number - 1];
    const struct estimate *estimate = report_estimate(candidate);
    const struct result *result = report_result(candidate);
    strbuf_addf(out, "<tr%s><td class=\"still\">k%" PRIu64 "</td><td class=\"right\">",
                candidate == report->best ? " class=\"first\"" : "", number);
    text_add_speedup(out, estimate->log2);
    strbuf_adds(out, "</td><td class=\"picture\">");
    add_interval_picture(out, span, estimate,
                         report_estimate(&report->run_state->candidate[report->top[0] - 1]));
    strbuf_adds(out, "</td><td class=\"still plain\">");
    text_add_speedup(out, estimate->lo);
    strbuf_adds(out, " to ");
    text_add_speedup(out, estimate->hi);
    strbuf_addf(out, "</td><td class=\"still plain\">%s%s%s</td><td class=\"still plain\">",
                verdict_name(result->verdict), result == candidate->record ? ", twice" : "",
                result->unsealed ? ", unsealed" : "");
    add_forecast_cell(out, candidate);
    strbuf_adds(out, "</td><td class=\"mono\">");
    report_add_params(out, candidate);
    strbuf_adds(out, "</td><td class=\"right plain\">");
    text_add_seconds(out, seconds_of(candidate->result) + seconds_of(candidate->record));
    strbuf_adds(out, "</td></tr>\n");
}

void report_section_best(struct strbuf *out, const struct report_page *page)
{
    const struct report *report = page->report;
    if (report->top_count == 0) {
        return;
    }
    struct span span = table_span(report);
    strbuf_adds(
        out,
        "<section><h2>Best candidates</h2><p>\xE2\x80\x9CTwice\xE2\x80\x9D: the figure is from a "
        "second measurement in a fresh process. The others were measured once and may flatter "
        "themselves. The dashed line is the first row.</p>\n"
        "<div class=\"card scroll\" "
        "style=\"padding-left:0;padding-right:0\"><table><thead><tr><th>Candidate</th>"
        "<th class=\"right\">Speedup</th><th class=\"picture\"></th><th>95\xE2\x80\xAF% "
        "interval</th><th>Verdict</th>"
        "<th>Forecast, P(correct)</th><th>Parameters</th><th class=\"right\">Device "
        "time</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < report->top_count; i++) {
        add_best_row(out, report, &span, report->top[i]);
    }
    strbuf_adds(out, "</tbody></table></div></section>\n");
}

// ---- what happened to all candidates ----

// The guarantee of the policy "risk", which was given before the search. The audits afterwards only
// estimate how many improvements were missed.
static void add_guarantee(struct strbuf *out, const struct run_state *run_state)
{
    char *sentence = risk_sentence(run_state);
    if (sentence) {
        strbuf_adds(out, " Guaranteed: ");
        text_add_markup(out, sentence);
        strbuf_adds(out, ".");
        if (run_state->certified.alarms > 0) {
            strbuf_adds(out, " Forecasts got worse along the way, and everything was measured "
                             "again until the next certificate.");
        }
        strbuf_adds(out, " How many improvements were missed is estimated from audits.");
    }
    free(sentence);
}

// How far each forecaster was trusted in the end.
static void add_trust(struct strbuf *out, const struct run_state *run_state)
{
    for (size_t i = run_state->trust_count; i > 0; i--) {
        const struct run_trusted *trust = &run_state->trust[i - 1];
        strbuf_adds(out, " Trust: ");
        text_add_markup(out, trust->text);
        if (trust->alarms > 0) {
            strbuf_addf(out, "; alarms that ended it: %llu", (unsigned long long)trust->alarms);
        }
        strbuf_adds(out, ".");
    }
}

// Adds a row of a table of counts, with a bar whose full width is `most`.
static void add_count_row(struct strbuf *out, const char *meaning, uint64_t count, const char *fill,
                          uint64_t most)
{
    strbuf_addf(out, "<tr><td>%s</td><td class=\"right\">", meaning);
    text_add_count(out, count);
    strbuf_addf(out, "</td><td><span class=\"bar %s\" style=\"width:%.1f%%\"></span></td></tr>\n",
                fill, 100 * (double)count / (double)most);
}

// Adds the rows whose sum is what was considered, and the sum.
static void add_counts(struct strbuf *out, const struct run_counts *counts)
{
    static const char *const fill[RUN_COUNT_ROW_COUNT] = {
        [RUN_COUNT_MEASURED] = "fill-blue",  [RUN_COUNT_AUDIT] = "fill-blue",
        [RUN_COUNT_TRUSTED] = "fill-grey",   [RUN_COUNT_NOT_COMPILED] = "fill-orange",
        [RUN_COUNT_DUPLICATE] = "fill-pale", [RUN_COUNT_NOT_REACHED] = "fill-pale",
        [RUN_COUNT_NO_RESULT] = "fill-pale",
    };
    strbuf_adds(out, "<div class=\"card scroll\" "
                     "style=\"padding-left:0;padding-right:0\"><table class=\"tally\"><tbody>\n");
    for (enum run_count_row row = 0; row < RUN_COUNT_ROW_COUNT; row++) {
        if (counts->row[row] > 0 || row < RUN_COUNT_NO_RESULT) {
            add_count_row(out, run_count_meaning(row), counts->row[row], fill[row],
                          counts->considered);
        }
    }
    strbuf_adds(out, "<tr><td><b>considered</b></td><td class=\"right\"><b>");
    text_add_count(out, counts->considered);
    strbuf_adds(out, "</b></td><td></td></tr>\n</tbody></table></div>\n");
}

void report_section_fates(struct strbuf *out, const struct report_page *page)
{
    const struct report *report = page->report;
    uint64_t most = 0;
    for (size_t i = 0; i < FATE_COUNT; i++) {
        most = report->fate_count[i] > most ? report->fate_count[i] : most;
    }
    if (most == 0) {
        return;
    }
    strbuf_adds(out,
                "<section><h2>What happened to every candidate</h2><p>Each is in exactly one row.");
    if (report->missed.trusted > 0 || report->run_state->draws > 0) {
        strbuf_adds(out, " By audits: ");
        text_add_markup(out, report->missed.text);
        strbuf_adds(out, ".");
    }
    struct guarantee left = guarantee_of_run(report->run_state);
    if (*left.text) {
        strbuf_adds(out, left.said ? " Guaranteed: " : " ");
        text_add_markup(out, left.text);
        strbuf_adds(out, ".");
    }
    char *unsealed = run_unsealed_sentence(report->run_state);
    if (unsealed) {
        strbuf_adds(out, " Unsealed: ");
        text_add_markup(out, unsealed);
        strbuf_adds(out, ".");
    }
    free(unsealed);
    add_guarantee(out, report->run_state);
    add_trust(out, report->run_state);
    strbuf_adds(out, "</p>\n");
    add_counts(out, &report->counts);
    strbuf_adds(out, "<p>The same in detail:</p>\n<div class=\"card scroll\" "
                     "style=\"padding-left:0;padding-right:0\"><table class=\"tally\"><tbody>\n");
    for (enum report_fate fate = 0; fate < FATE_COUNT; fate++) {
        if (report->fate_count[fate] > 0) {
            add_count_row(out, report_fate_meaning(fate), report->fate_count[fate],
                          report_fate_fill(fate), most);
        }
    }
    strbuf_adds(out, "</tbody></table></div></section>\n");
}

// ---- the winning source ----

void report_section_source(struct strbuf *out, const struct report_page *page)
{
    if (!page->source || !page->report->best) {
        return;
    }
    strbuf_addf(out, "<section><h2>The winning source</h2><p>Candidate k%zu, ",
                (size_t)(page->report->best - page->report->run_state->candidate) + 1);
    report_add_params(out, page->report->best);
    strbuf_adds(out, "</p>\n<pre class=\"source\" tabindex=\"0\"><code>");
    size_t at = 0, lines = 0;
    while (at < page->source_len && lines < REPORT_SOURCE_LINES_MAX) {
        const char *line = page->source + at;
        const char *end = memchr(line, '\n', page->source_len - at);
        size_t len = end ? (size_t)(end - line) : page->source_len - at;
        strbuf_adds(out, "<span>");
        text_add_markup_bytes(out, line, len > 0 && line[len - 1] == '\r' ? len - 1 : len);
        strbuf_adds(out, "</span>");
        at += len + 1;
        lines++;
    }
    strbuf_adds(out, "</code></pre>\n");
    if (at < page->source_len) {
        strbuf_addf(out, "<p>Cut after %zu lines; <code>kcast export</code> has all of it.</p>\n",
                    lines);
    }
    strbuf_adds(out, "</section>\n");
}

// ---- how to repeat the run ----

// Appends an argument, quoted for a shell.
static void add_argument(struct strbuf *out, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
    if (text[0] != '\0' && text[0] != '-' && text[strspn(text, plain)] == '\0') {
        text_add_markup(out, text);
        return;
    }
    struct strbuf quoted = STRBUF_INIT;
    strbuf_adds(&quoted, text[0] == '-' ? "./'" : "'");
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            strbuf_adds(&quoted, "'\\''");
        } else {
            strbuf_addc(&quoted, *text);
        }
    }
    strbuf_addc(&quoted, '\'');
    text_add_markup(out, strbuf_text(&quoted));
    strbuf_release(&quoted);
}

// Appends the options that lead to the daemon of the run. A private daemon has gone with its run,
// so a new one is started instead.
static void add_daemon_options(struct strbuf *out, const struct run_state *run_state)
{
    const char *command = run_state->started.command, *pool = run_state->session.pool;
    if (command && strstr(command, " --local")) {
        strbuf_adds(out, " --local");
    } else if (pool && strcmp(pool, KCAST_DEFAULT_POOL) != 0) {
        strbuf_adds(out, " --pool ");
        add_argument(out, pool);
    }
}

static void add_command(struct strbuf *out, const struct run_state *run_state, const char *command)
{
    strbuf_adds(out, "kcast");
    add_daemon_options(out, run_state);
    strbuf_addf(out, " %s ", command);
}

void report_section_repeat(struct strbuf *out, const struct report_page *page)
{
    const struct run_state *run_state = page->report->run_state;
    const char *run = page->run_path ? page->run_path : "RUN";
    const char *problem = run_state->started.problem ? run_state->started.problem : "PROBLEM";
    const char *extension = page->extension ? page->extension : "c";
    strbuf_adds(out, "<section><h2>Repeat it</h2><p>The run file holds every event and every "
                     "source; with the same seed and policy a search takes "
                     "the same decisions on the same results.</p>\n<pre class=\"commands\"><code>");
    if (run_state->started.command) {
        strbuf_adds(out, "<i># the search itself</i>\n");
        text_add_markup(out, run_state->started.command);
        strbuf_adds(out, "\n\n");
    }
    if (!run_state->finished) {
        strbuf_adds(out, "<i># go on with this run</i>\n");
        add_command(out, run_state, "resume");
        add_argument(out, run);
        strbuf_adds(out, "\n\n");
    }
    if (page->report->best) {
        strbuf_adds(
            out,
            "<i># measure the winner again, in a fresh process with new seeds</i>\nkcast export ");
        add_argument(out, run);
        strbuf_addf(out, " | jq -r 'select(.candidate == %zu).source' &gt; best.%s\n",
                    (size_t)(page->report->best - run_state->candidate) + 1, extension);
        add_command(out, run_state, "measure --fresh");
        add_argument(out, problem);
        strbuf_addf(out, " best.%s\n\n", extension);
    }
    strbuf_adds(out, "<i># this page, its numbers, and everything that is known about each "
                     "candidate</i>\nkcast report ");
    add_argument(out, run);
    strbuf_adds(out, "\nkcast report --json ");
    add_argument(out, run);
    strbuf_adds(out, "\nkcast export --format jsonl ");
    add_argument(out, run);
    strbuf_adds(out, "</code></pre></section>\n");
}
