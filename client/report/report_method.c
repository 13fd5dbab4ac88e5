// The section "How this number was obtained": everything that the headline rests on, as a list.
// Rows whose value is unknown are left out.
#include "client/policy/allocation.h"
#include "client/policy/play_off.h"
#include "client/propose/generator_list.h"
#include "client/report/report_sections.h"
#include "client/report/report_text.h"
#include "client/report/run_width.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void open_row(struct strbuf *out, const char *name)
{
    strbuf_addf(out, "<dt>%s</dt><dd>", name);
}

static void close_row(struct strbuf *out)
{
    strbuf_adds(out, "</dd>\n");
}

static void add_row(struct strbuf *out, const char *name, const char *text)
{
    if (!text || text[0] == '\0') {
        return;
    }
    open_row(out, name);
    text_add_markup(out, text);
    close_row(out);
}

static void add_digest(struct strbuf *out, const char *name, const struct digest *digest)
{
    if (digest_is_zero(digest)) {
        return;
    }
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(digest, hex);
    open_row(out, name);
    strbuf_addf(out, "<code>%s</code>", hex);
    close_row(out);
}

// The result that the headline comes from. Without a best candidate it is the first result of the
// run; NULL when there is none.
static const struct result *headline_result(const struct report *report)
{
    if (report->best) {
        return report_result(report->best);
    }
    for (size_t i = 0; i < report->run_state->candidate_count; i++) {
        if (report->run_state->candidate[i].result) {
            return report->run_state->candidate[i].result;
        }
    }
    return NULL;
}

static void add_device(struct strbuf *out, const struct report *report, const struct result *result)
{
    const struct run_session *session = &report->run_state->session;
    const char *device = result && result->device ? result->device : session->device;
    add_row(out, "Device", device);
    add_row(out, "Device class",
            result && result->device_class ? result->device_class : session->device_class);
    add_row(out, "Host", session->host);
    const char *compiler = session->toolchain;
    if (report->best && report->best->compiled && report->best->compiled->toolchain) {
        compiler = report->best->compiled->toolchain;
    }
    add_row(out, "Compiler", compiler);
    add_row(out, "Sandbox", report->sandbox_off ? "OFF" : session->sandbox);
    add_row(out, "Forecasts by", session->engine);
}

static void add_times(struct strbuf *out, const struct result *result)
{
    if (result->baseline_ns && result->candidate_ns) {
        open_row(out, "Time of a launch");
        strbuf_adds(out, "baseline ");
        text_add_nanoseconds(out, result->baseline_ns->p50);
        strbuf_adds(out, ", winner ");
        text_add_nanoseconds(out, result->candidate_ns->p50);
        strbuf_adds(out, " (medians, first benchmark case)");
        close_row(out);
    }
    for (size_t i = 0; i < result->cases_count && result->cases_count > 1; i++) {
        open_row(out, i == 0 ? "By case" : "");
        text_add_markup(out, result->cases[i].params);
        strbuf_adds(out, ": ");
        const struct estimate *speedup = result->cases[i].speedup;
        text_add_speedup(out, speedup ? speedup->log2 : NAN);
        strbuf_adds(out, " (");
        text_add_speedup(out, speedup ? speedup->lo : NAN);
        strbuf_adds(out, " to ");
        text_add_speedup(out, speedup ? speedup->hi : NAN);
        strbuf_adds(out, ")");
        close_row(out);
    }
}

static void add_statistics(struct strbuf *out, const struct result *result)
{
    add_row(out, "Clock", result->clock);
    if (result->speedup && result->speedup->blocks > 0) {
        open_row(out, "Samples");
        text_add_count(out, result->speedup->blocks);
        strbuf_adds(out, " ABBA blocks, ");
        text_add_count(out, result->launches);
        strbuf_adds(out, " timed launches; 20\xE2\x80\xAF% trimmed mean of log ratios, interval by "
                         "Student\xE2\x80\x99s t with corrected looks");
        close_row(out);
    }
    if (isfinite(result->overhead_ns) && result->overhead_ns > 0) {
        open_row(out, "Empty launch");
        text_add_nanoseconds(out, result->overhead_ns);
        strbuf_adds(out, ", not subtracted");
        close_row(out);
    }
    const struct estimate *control = result->control;
    if (control && isfinite(control->log2)) {
        open_row(out, "A/A control");
        strbuf_addf(out,
                    "%+.2f\xE2\x80\xAF%% (%+.2f to %+.2f), the baseline against a copy of itself",
                    100 * (exp2(control->log2) - 1), 100 * (exp2(control->lo) - 1),
                    100 * (exp2(control->hi) - 1));
        close_row(out);
    }
}

static void add_verification(struct strbuf *out, const struct result *result)
{
    if (isfinite(result->max_error)) {
        open_row(out, "Largest error");
        strbuf_addf(out, "%.3g of %.3g allowed, in units of u\xC2\xB7S", result->max_error,
                    result->error_bound);
        if (result->checks > 0) {
            strbuf_adds(out, "; ");
            text_add_count(out, result->checks);
            strbuf_adds(out, " launches verified element by element");
        }
        close_row(out);
    }
    if (result->seed != 0) {
        open_row(out, "Seed of the inputs");
        strbuf_addf(out, "%" PRIu64 ", drawn by the daemon after it had the candidate",
                    result->seed);
        close_row(out);
    }
    if (result->measured_at > 0) {
        open_row(out, "Measured at");
        text_add_time(out, result->measured_at);
        close_row(out);
    }
}

static void add_search(struct strbuf *out, const struct report *report)
{
    const struct run_started *started = &report->run_state->started;
    open_row(out, "Search");
    strbuf_adds(out, "generator ");
    text_add_markup(out, started->generator);
    strbuf_adds(out, ", strategy ");
    text_add_markup(out, started->strategy);
    strbuf_adds(out, ", policy ");
    text_add_markup(out, started->policy);
    if (isfinite(started->confidence) && started->confidence > 0) {
        strbuf_addf(out, ", confidence %.3g", started->confidence);
    }
    if (isfinite(started->audit)) {
        strbuf_addf(out, ", audit %.3g", started->audit);
    }
    strbuf_addf(out, ", seed %" PRIu64, started->seed);
    close_row(out);
    char *width = run_width_text(started);
    add_row(out, "Under way at a time", width);
    free(width);
    struct strbuf played = STRBUF_INIT;
    play_off_describe(report->run_state, &played);
    if (played.len > 0) {
        add_row(out, "Play-off", strbuf_text(&played));
    }
    strbuf_release(&played);
    if (started->started_at > 0) {
        open_row(out, "Started");
        text_add_time(out, started->started_at);
        close_row(out);
    }
    add_row(out, "kernelcast", started->release);
}

// Lists what each generator brought and cost. With one generator there is nothing to compare.
static void add_generators(struct strbuf *out, const struct run_state *run_state)
{
    struct generator_list list;
    if (generator_list_parse(&list, run_state->started.generator, NULL) != 0) {
        return;
    }
    struct allocation_share share[GENERATOR_LIST_MAX];
    allocation_shares(run_state, run_state->candidate_count, list.count, share);
    for (size_t i = 0; i < list.count && list.count > 1; i++) {
        strbuf_adds(out, "<dt>Generator ");
        text_add_markup(out, list.kind[i]);
        strbuf_adds(out, "</dt><dd>");
        text_add_count(out, share[i].considered);
        strbuf_adds(out, " considered, ");
        text_add_count(out, share[i].measured);
        strbuf_adds(out, " measured; raised the best ");
        text_add_count(out, share[i].improvements);
        strbuf_addf(out, " times, by a factor of %.3f together, at a cost of %.3g device-seconds",
                    exp2(share[i].gain_log2), share[i].cost);
        close_row(out);
    }
    generator_list_release(&list);
}

void report_section_method(struct strbuf *out, const struct report_page *page)
{
    const struct report *report = page->report;
    const struct run_started *started = &report->run_state->started;
    const struct result *result = headline_result(report);
    strbuf_adds(out, "<section><h2>How this number was obtained</h2><p>Candidate and baseline ran "
                     "alternately, each in a process of its own; the "
                     "clock and the expected results were out of their reach.</p>\n<div "
                     "class=\"card\"><dl class=\"facts\">\n");
    add_device(out, report, result);
    if (result) {
        add_times(out, result);
        add_statistics(out, result);
        add_verification(out, result);
    }
    add_search(out, report);
    add_generators(out, report->run_state);
    add_digest(out, "Problem", &started->problem_json);
    add_digest(out, "Reference", &started->reference);
    add_digest(out, "Baseline", &started->baseline);
    if (report->best) {
        add_digest(out, "Winning source", &report->best->proposed.source);
        const struct compiled *compiled = report->best->result && report->best->result->compiled
                                              ? report->best->result->compiled
                                              : report->best->compiled;
        if (compiled) {
            add_digest(out, "Winning object", &compiled->object);
        }
    }
    strbuf_adds(out, "</dl></div></section>\n");
}
