// Design. The page is read from the top: the answer (how much faster, how sure), its price (what
// was measured, and what forecasts saved), then the figures behind it. A section is a function that
// appends; it does not depend on other sections and handles an empty run. Numbers come from struct
// report, texts from the run file. Every text is escaped by text_add_markup().
#include "client/report/report_html.h"
#include "client/policy/false_omission.h"
#include "client/policy/guarantee.h"
#include "client/report/report_charts.h"
#include "client/report/report_model.h"
#include "client/report/report_sections.h"
#include "client/report/report_text.h"
#include "client/report/report_time.h"
#include "common/version.h"
#include <math.h>
#include <string.h>

#define NDASH "\xE2\x80\x93"

static const char *problem_title(const struct report_page *page)
{
    if (page->title && page->title[0] != '\0') {
        return page->title;
    }
    const char *name = page->report->run_state->started.problem;
    return name ? name : "unnamed problem";
}

static void add_head(struct strbuf *out, const struct report_page *page)
{
    strbuf_adds(
        out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" "
             "content=\"kernelcast " KCAST_VERSION "\">\n<title>");
    if (page->report->best) {
        text_add_speedup(out, page->report->speedup.log2);
        strbuf_adds(out, " ");
    }
    text_add_markup(out, problem_title(page));
    strbuf_adds(out, " \xC2\xB7 kernelcast</title>\n<style>\n");
    strbuf_adds(out, report_css);
    strbuf_adds(out, "</style>\n</head>\n<body>\n<main>\n");
}

static void add_top(struct strbuf *out, const struct report_page *page)
{
    const struct run_state *run_state = page->report->run_state;
    strbuf_adds(out, "<div class=\"top\"><span><b>");
    text_add_markup(out, problem_title(page));
    strbuf_adds(out, "</b>");
    if (run_state->session.device_class) {
        strbuf_adds(out, " on ");
        text_add_markup(out, run_state->session.device_class);
    }
    strbuf_adds(out, "</span><span>");
    if (run_state->finished) {
        strbuf_adds(out, "search finished: ");
        text_add_markup(out, run_state->finish_reason);
    } else {
        strbuf_adds(out, "search not finished: this is what was known");
    }
    strbuf_adds(out, ", ");
    text_add_time(out, run_state->last_at);
    strbuf_adds(out, "</span></div>\n");
}

static void add_warning(struct strbuf *out, const struct report *report)
{
    if (!report->sandbox_off) {
        return;
    }
    strbuf_adds(out, "<div class=\"warning\" role=\"note\"><b>The sandbox was off.</b> Candidates "
                     "ran without isolation and could have read "
                     "the clock, the expected results or files. Take these numbers for development "
                     "only and measure "
                     "again with the sandbox on before you rely on one.</div>\n");
}

static void add_answer(struct strbuf *out, const struct report *report)
{
    if (!report->best) {
        const char *none = report->any_correct          ? "No candidate is faster than the baseline"
                           : report->measured_count > 0 ? "No candidate was correct"
                                                        : "Nothing has been measured yet";
        strbuf_addf(
            out,
            "<div><h1><span class=\"number none\">%s</span></h1><p class=\"after\">%s</p></div>\n",
            none,
            report->run_state->finished
                ? "The baseline stays the best that is known."
                : "The search is not finished; <code>kcast resume</code> goes on with it.");
        return;
    }
    strbuf_adds(out, "<div><h1><span class=\"number\">");
    text_add_speedup(out, report->speedup.log2);
    strbuf_adds(out,
                "</span>as fast as the baseline</h1><p class=\"after\">95\xE2\x80\xAF% interval ");
    text_add_speedup(out, report->speedup.lo);
    strbuf_adds(out, " to ");
    text_add_speedup(out, report->speedup.hi);
    strbuf_adds(out, ", from a second measurement in a fresh process with new seeds.</p></div>\n");
}

// One bar for all that was considered: correct, failed, decided without a measurement, other.
static void add_strip(struct strbuf *out, const struct report *report)
{
    static const struct {
        const char *fill, *name;
    } part[] = {{"fill-blue", "measured, correct"},
                {"fill-orange", "failed"},
                {"fill-grey", "trusted to the forecast"},
                {"fill-pale", "duplicate or never reached"}};
    uint64_t count[4] = {0}, total = 0;
    for (size_t fate = 0; fate < FATE_COUNT; fate++) {
        for (size_t i = 0; i < 4; i++) {
            if (strcmp(part[i].fill, report_fate_fill((enum report_fate)fate)) == 0) {
                count[i] += report->fate_count[fate];
            }
        }
        total += report->fate_count[fate];
    }
    if (total == 0) {
        return;
    }
    strbuf_adds(out, "<div class=\"strip\" aria-hidden=\"true\">");
    for (size_t i = 0; i < 4; i++) {
        if (count[i] > 0) {
            strbuf_addf(out, "<i class=\"%s\" style=\"flex:%llu 1 0\"></i>", part[i].fill,
                        (unsigned long long)count[i]);
        }
    }
    strbuf_adds(out, "</div><p class=\"keys\">");
    for (size_t i = 0; i < 4; i++) {
        if (count[i] == 0) {
            continue;
        }
        strbuf_addf(out, "<span><i class=\"%s\"></i>", part[i].fill);
        text_add_count(out, count[i]);
        strbuf_addf(out, " %s</span>", part[i].name);
    }
    strbuf_adds(out, "</p>");
}

static void add_price(struct strbuf *out, const struct report *report)
{
    const struct run_counts *counts = &report->counts;
    strbuf_adds(out, "<div><p class=\"claim\"><b>");
    text_add_count(out, counts->considered);
    strbuf_adds(out, "</b> candidates considered, <b>");
    text_add_count(out, counts->measured);
    strbuf_adds(out, "</b> measured, <b>");
    text_add_count(out, counts->row[RUN_COUNT_TRUSTED]);
    strbuf_adds(out, "</b> trusted to their forecast");
    if (counts->screened > 0) {
        strbuf_adds(out, ", <b>");
        text_add_count(out, counts->screened);
        strbuf_adds(out, "</b> chosen from up to ");
        text_add_count(out, counts->compared);
        strbuf_adds(out, " points each time before any was compiled");
    }
    if (counts->saving >= RUN_COUNTS_SAVING_LEAST) {
        strbuf_addf(out, ": <b>%.*f times fewer measurements</b>", counts->saving >= 9.95 ? 0 : 1,
                    counts->saving);
    }
    strbuf_adds(out, ".</p>");
    add_strip(out, report);
    strbuf_adds(out, "</div>\n");
}

static void add_hero(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out, "<section class=\"card hero\">\n");
    add_answer(out, report);
    add_price(out, report);
    strbuf_adds(out, "</section>\n");
}

// Opens a tile and leaves it open for its value. close_tile() adds the note.
static void open_tile(struct strbuf *out, const char *name)
{
    strbuf_addf(out, "<div class=\"card tile\"><dt>%s</dt><dd>", name);
}

static void close_tile(struct strbuf *out, const char *note)
{
    strbuf_addf(out, "<div class=\"note\">%s</div></dd></div>\n", note);
}

static void add_cost_tiles(struct strbuf *out, const struct report *report)
{
    const struct run_state *run_state = report->run_state;
    open_tile(out, "Device time");
    text_add_seconds(out, run_state->device_seconds);
    struct strbuf note = STRBUF_INIT;
    text_add_count(&note, run_state->measured);
    strbuf_adds(&note, run_state->measured == 1 ? " measurement, " : " measurements, ");
    text_add_count(&note, run_state->records);
    strbuf_adds(&note, run_state->records == 1 ? " replication" : " replications");
    close_tile(out, strbuf_text(&note));

    open_tile(out, "Search time");
    text_add_seconds(out, run_state->wall_seconds);
    strbuf_reset(&note);
    text_add_seconds(&note, run_state->compile_seconds);
    strbuf_addf(&note, " of compiling%s", run_state->sessions > 1 ? "; resumed" : "");
    close_tile(out, strbuf_text(&note));

    open_tile(out, "Forecasts trusted");
    text_add_count(out, report->missed.unmeasured);
    strbuf_reset(&note);
    if (run_state->measured > 0 && report->missed.unmeasured > 0) {
        strbuf_adds(&note, "about ");
        text_add_seconds(&note, run_state->device_seconds /
                                    (double)(run_state->measured + run_state->records) *
                                    (double)report->missed.unmeasured);
        strbuf_adds(&note, " of device time not spent");
    } else {
        strbuf_adds(&note, "no forecast was trusted");
    }
    if (run_state->input_tokens + run_state->output_tokens > 0) {
        strbuf_adds(&note, "; ");
        text_add_count(&note, run_state->input_tokens + run_state->output_tokens);
        strbuf_addf(&note, " tokens, at a cost of %.4g", run_state->model_cost);
    }
    close_tile(out, strbuf_text(&note));
    strbuf_release(&note);
}

// An estimate where there are audits enough and one of them improved, else only its bound.
static void add_missed(struct strbuf *out, struct strbuf *note, const struct report_missed *missed)
{
    unsigned long long audited = missed->audited;
    double most = ceil(missed->estimate_hi), confidence = 100 * FALSE_OMISSION_CONFIDENCE;
    if (missed->shown && missed->improvers > 0) {
        strbuf_addf(out, missed->estimate >= 10 ? "%.0f" : "%.1f", missed->estimate);
        strbuf_addf(note, "by %llu audits; at most %.0f (%g\xE2\x80\xAF%%)", audited, most,
                    confidence);
        return;
    }
    strbuf_addf(out, "at most %.0f", most);
    if (missed->improvers == 0) {
        strbuf_addf(note, "none of %llu audits improved (%g\xE2\x80\xAF%%)", audited, confidence);
    } else {
        strbuf_addf(note, "%llu of %llu audits improved (%g\xE2\x80\xAF%%)",
                    (unsigned long long)missed->improvers, audited, confidence);
    }
}

// Why there is no estimate of missed improvements.
static const char *no_estimate_reason(const struct report *report)
{
    if (report->missed.trusted > 0) {
        return report->missed.audited == 0 ? "no audit has finished yet"
                                           : "not every one had a chance of being audited";
    }
    return report->counts.screened > 0 ? "not estimated for points that no screening chose"
                                       : "nothing was left unmeasured";
}

// What a reader can use comes first: by how much the best that was missed may be faster, or where
// nothing can be said of that, how many were missed.
static void add_missed_tile(struct strbuf *out, const struct report *report)
{
    const struct report_missed *missed = &report->missed;
    struct guarantee left = guarantee_of_run(report->run_state);
    if (left.said && left.forecast > 0) {
        open_tile(out, "Never measured");
        strbuf_addf(out, "at most +%.0f\xE2\x80\xAF%%", guarantee_percent(&left));
        close_tile(out, left.text);
        return;
    }
    open_tile(out, "Improvements missed");
    struct strbuf note = STRBUF_INIT;
    if (missed->audited == 0 || !isfinite(missed->estimate_hi)) {
        strbuf_adds(out, NDASH);
        text_add_markup(&note, *left.text ? left.text : no_estimate_reason(report));
    } else {
        add_missed(out, &note, missed);
    }
    close_tile(out, strbuf_text(&note));
    strbuf_release(&note);
}

static void add_quality_tiles(struct strbuf *out, const struct report *report)
{
    open_tile(out, "Typical forecast error");
    text_add_speedup(out, report->pair_error);
    struct strbuf note = STRBUF_INIT;
    if (report->pair_count == 0) {
        strbuf_adds(&note, "no forecast has met a measurement");
    } else if (isfinite(report->pair_rank)) {
        strbuf_addf(&note, "median factor; rank correlation %.2f", report->pair_rank);
    } else {
        strbuf_adds(&note, "median factor");
    }
    close_tile(out, strbuf_text(&note));

    open_tile(out, "80\xE2\x80\xAF% intervals that held");
    const struct report_coverage *cover = &report->cover[1];
    text_add_percent(out, cover->count > 0 ? (double)cover->inside / (double)cover->count : NAN);
    strbuf_reset(&note);
    if (cover->count > 0) {
        strbuf_addf(&note, "%zu of %zu forecasts; 80\xE2\x80\xAF%% is ideal", cover->inside,
                    cover->count);
    } else {
        strbuf_adds(&note, "no forecast has met a measurement");
    }
    close_tile(out, strbuf_text(&note));

    open_tile(out, "Calibration error");
    text_add_percent(out, report->correct.ece);
    strbuf_reset(&note);
    strbuf_adds(&note, "of correctness; of calls ");
    text_add_percent(&note, report->call.ece);
    close_tile(out, strbuf_text(&note));

    open_tile(out, "A/A controls off");
    if (report->controls > 0) {
        text_add_count(out, report->controls_off);
        strbuf_adds(out, " of ");
        text_add_count(out, report->controls);
    } else {
        strbuf_adds(out, NDASH);
    }
    close_tile(out, "of the baseline; 1 in 20 is chance");
    strbuf_release(&note);
}

static void add_tiles(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out, "<dl class=\"tiles\">\n");
    add_cost_tiles(out, report);
    add_missed_tile(out, report);
    add_quality_tiles(out, report);
    strbuf_adds(out, "</dl>\n");
}

static void add_figure(struct strbuf *out, const struct report *report, const char *name,
                       const char *caption,
                       void (*draw)(struct strbuf *out, const struct report *report, bool narrow))
{
    strbuf_addf(out, "<figure class=\"card\"><h3>%s</h3>\n<div class=\"wide\">", name);
    draw(out, report, false);
    strbuf_adds(out, "</div><div class=\"narrow\">");
    draw(out, report, true);
    strbuf_addf(out, "</div><figcaption>%s</figcaption></figure>\n", caption);
}

static void add_charts(struct strbuf *out, const struct report *report)
{
    strbuf_adds(out, "<section class=\"charts\">\n");
    add_figure(out, report, "Best speedup against device time",
               "The line is the best confirmed speedup after so much device time; each dot is a "
               "measured candidate, and the dashed line is "
               "the baseline.",
               report_chart_best);
    add_figure(
        out, report, "Considered against measured",
        "The further the line lies below the diagonal, the more candidates were not measured: "
        "trusted to their forecast, not compiled, there already or never reached.",
        report_chart_measured);
    add_figure(out, report, "Forecast against outcome",
               "Each dot is a candidate that was forecast and then measured: on the diagonal the "
               "forecast was exact, in a shaded cell it named "
               "the right range.",
               report_chart_forecast);
    add_figure(out, report, "Reliability of the forecasts",
               "Of what was promised at 80\xE2\x80\xAF%, 80\xE2\x80\xAF% should come true: dots on "
               "the diagonal can be taken at their word, larger "
               "dots stand for more candidates.",
               report_chart_reliability);
    strbuf_adds(out, "</section>\n");
}

void report_html(struct strbuf *out, const struct report_page *page)
{
    add_head(out, page);
    add_top(out, page);
    add_warning(out, page->report);
    add_hero(out, page->report);
    add_tiles(out, page->report);
    add_charts(out, page->report);
    report_section_time(out, page);
    report_section_forecasts(out, page);
    report_section_best(out, page);
    report_section_fates(out, page);
    report_section_source(out, page);
    report_section_method(out, page);
    report_section_repeat(out, page);
    strbuf_adds(out, "<footer>Made by kernelcast " KCAST_VERSION
                     " from one run file. A trusted candidate was never "
                     "measured, and the best candidate always was. Intervals are 95\xE2\x80\xAF% "
                     "unless something else "
                     "is said.</footer>\n</main>\n</body>\n</html>\n");
}
