// Design. Each chart collects its points into arrays of struct svg_point, chooses the axes from
// them, and draws back to front: areas, grid, marks, labels. Two hues have the same meaning in all
// four charts: blue is what the search found or chose, orange is what failed or was audited. Grey
// is context. A series has its name at its end where there is room, else in the legend.
#include "client/report/report_charts.h"
#include "client/report/report_text.h"
#include "client/report/svg.h"
#include "common/mem.h"
#include "proto/bins.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINE_COUNT_MIN 4  // bands of fewer candidates are dots beside the line
#define OCTAVES_SHOWN 6.0 // below the best; a slower candidate lies on the edge

// The range of the finite values that were added.
struct range {
    double min, max;
};

static const struct range range_none = {INFINITY, -INFINITY};

static void range_add(struct range *range, double value)
{
    if (!isfinite(value)) {
        return;
    }
    range->min = fmin(range->min, value);
    range->max = fmax(range->max, value);
}

// Ends a linear axis where the data end, instead of at the next round number.
static void end_at(struct svg_axis *axis, double max)
{
    if (!(max > axis->min)) {
        return;
    }
    axis->max = max;
    while (axis->tick_count > 0 && axis->tick[axis->tick_count - 1].at > max) {
        axis->tick_count--;
    }
}

static char *candidate_tooltip(const struct report *report, uint64_t number)
{
    const struct run_state_candidate *candidate = &report->run_state->candidate[number - 1];
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "k%llu ", (unsigned long long)number);
    if (candidate->proposed.name) {
        strbuf_add(&text, candidate->proposed.name, strnlen(candidate->proposed.name, 120));
    }
    const struct estimate *estimate = candidate->result ? candidate->result->speedup : NULL;
    if (estimate) {
        strbuf_adds(&text, "\n");
        text_add_speedup(&text, estimate->log2);
        strbuf_adds(&text, " (");
        text_add_speedup(&text, estimate->lo);
        strbuf_adds(&text, " to ");
        text_add_speedup(&text, estimate->hi);
        strbuf_adds(&text, ")");
    }
    return strbuf_detach(&text);
}

static void free_points(struct svg_point *point, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)point[i].tooltip);
    }
    free(point);
}

// ---- best speedup against device-seconds ----

static void best_axes(struct svg_frame *frame, const struct report *report)
{
    struct range y = range_none, x = range_none;
    for (size_t i = 0; i < report->step_count; i++) {
        range_add(&y, report->step[i].log2);
    }
    double best = y.max;
    for (size_t i = 0; i < report->measured_count; i++) {
        range_add(&x, report->measured[i].seconds);
        double value = report->measured[i].log2;
        if (isfinite(value)) {
            range_add(&y, fmax(value, best - OCTAVES_SHOWN));
        }
    }
    // Without a correct candidate the chart still needs a range.
    if (!(y.max > y.min)) {
        range_add(&y, -1);
        range_add(&y, 1);
    }
    range_add(&x, 0);
    range_add(&x, report->run_state->device_seconds > 0 ? report->run_state->device_seconds : 1);
    svg_axis_log2(&frame->y, y.min, y.max, 6,
                  frame->hover ? "speedup over the baseline" : "speedup");
    frame->y.max += 0.05 * (frame->y.max - frame->y.min); // room for the label above the line
    svg_axis_linear(&frame->x, x.min, x.max, frame->hover ? 6 : 4, "device-seconds spent");
    end_at(&frame->x, x.max);
}

static void draw_measured(struct strbuf *out, const struct svg_frame *frame,
                          const struct report *report)
{
    struct svg_point *good = xcalloc(report->measured_count + 1, sizeof *good);
    struct svg_point *bad = xcalloc(report->measured_count + 1, sizeof *bad);
    size_t goods = 0, bads = 0;
    bool tooltips = frame->hover && report->measured_count <= SVG_HOVER_MAX;
    const double bottom = frame->y.min + 0.02 * (frame->y.max - frame->y.min);
    for (size_t i = 0; i < report->measured_count; i++) {
        const struct report_measured *from = &report->measured[i];
        bool ratio = isfinite(from->log2);
        struct svg_point *to = ratio ? &good[goods++] : &bad[bads++];
        *to = (struct svg_point){from->seconds, ratio ? from->log2 : bottom, NAN, NAN, NULL};
        if (tooltips) {
            to->tooltip = candidate_tooltip(report, from->candidate);
        }
    }
    svg_points(out, frame, "context", good, goods, 2.6);
    svg_points(out, frame, "orange", bad, bads, 2.6);
    free_points(good, goods);
    free_points(bad, bads);
}

static void draw_best_line(struct strbuf *out, const struct svg_frame *frame,
                           const struct report *report)
{
    struct svg_point *step = xcalloc(report->step_count + 1, sizeof *step);
    for (size_t i = 0; i < report->step_count; i++) {
        const struct report_step *from = &report->step[i];
        step[i] = (struct svg_point){from->seconds, from->log2, from->lo, from->hi, NULL};
    }
    size_t n = report->step_count;
    step[n] = step[n - 1];
    step[n].x = fmax(step[n - 1].x, report->run_state->device_seconds);
    svg_band(out, frame, "band", step, n + 1, true);
    svg_line(out, frame, "line", step, n + 1, true);
    if (report->best) {
        svg_points(out, frame, "blue", step + 1, n - 1, 3.6);
        struct strbuf label = STRBUF_INIT;
        text_add_speedup(&label, step[n].y);
        svg_label(out, frame, "mark", step[n].x, step[n].y, -2, -9, "end", strbuf_text(&label));
        strbuf_release(&label);
    }
    free(step);
}

void report_chart_best(struct strbuf *out, const struct report *report, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    best_axes(&frame, report);
    bool any_bad = false;
    for (size_t i = 0; i < report->measured_count; i++) {
        any_bad |= !isfinite(report->measured[i].log2);
    }
    svg_begin(out, &frame, "Best speedup against device-seconds",
              "A line that rises with every confirmed improvement, and a dot for each measured "
              "candidate.");
    svg_axes(out, &frame);
    svg_segment(out, &frame, "rule", frame.x.min, 0, frame.x.max, 0);
    draw_measured(out, &frame, report);
    draw_best_line(out, &frame, report);
    static const struct svg_key key[] = {
        {"line", "best", true}, {"context", "measured", false}, {"orange", "not correct", false}};
    if (report->measured_count > 0) {
        svg_legend(out, &frame, key + (narrow ? 1 : 0),
                   (size_t)(any_bad ? 3 : 2) - (narrow ? 1 : 0));
    } else {
        svg_empty(out, &frame, "nothing has been measured yet");
    }
    svg_end(out);
}

// ---- considered against measured ----

// Places the names of the line and of the area above it where they are clear of both.
static void label_measured(struct strbuf *out, const struct svg_frame *frame,
                           const struct report_progress *last)
{
    const double most = (double)last->considered, share = (double)last->measured / most;
    struct strbuf label = STRBUF_INIT;
    text_add_count(&label, last->measured);
    strbuf_adds(&label, " measured");
    if (share < 0.6) {
        svg_label(out, frame, "mark", most, (double)last->measured, -2, -9, "end",
                  strbuf_text(&label));
    } else {
        svg_label(out, frame, "mark", most, 0.4 * (double)last->measured, -10, 0, "end",
                  strbuf_text(&label));
    }
    if (share < 0.6) {
        strbuf_reset(&label);
        text_add_count(&label, last->considered - last->measured);
        strbuf_adds(&label, " not measured");
        svg_label(out, frame, "quiet", most * 0.72, most * (0.36 + share / 2), 0, 4, "middle",
                  strbuf_text(&label));
    }
    svg_label(out, frame, "quiet", most * 0.5, most * 0.5, -8, -8, "end", "measuring everything");
    strbuf_release(&label);
}

void report_chart_measured(struct strbuf *out, const struct report *report, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    size_t n = report->progress_count;
    const struct report_progress *last = &report->progress[n - 1];
    double most = fmax(4, (double)last->considered);
    svg_axis_linear(&frame.y, 0, most, 5, "candidates measured");
    svg_axis_linear(&frame.x, 0, most, narrow ? 4 : 5, "candidates considered");
    end_at(&frame.y, most);
    end_at(&frame.x, most);
    struct svg_point *point = xcalloc(n, sizeof *point), *all = xcalloc(n, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        double x = (double)report->progress[i].considered, y = (double)report->progress[i].measured;
        point[i] = (struct svg_point){x, y, 0, y, NULL};
        all[i] = (struct svg_point){x, y, y, x, NULL};
    }
    svg_begin(out, &frame, "Candidates considered against candidates measured",
              "A line far below the diagonal means that most candidates were not measured.");
    svg_band(out, &frame, "saved", all, n, false);
    svg_band(out, &frame, "band", point, n, false);
    svg_axes(out, &frame);
    svg_segment(out, &frame, "rule", 0, 0, most, most);
    svg_line(out, &frame, "line", point, n, false);
    if (last->considered == 0) {
        svg_empty(out, &frame, "no candidate has been considered yet");
    } else {
        label_measured(out, &frame, last);
    }
    svg_end(out);
    free(point);
    free(all);
}

// ---- forecast against outcome ----

bool report_has_pairs(const struct report *report)
{
    return report->pair_count > 0;
}

// Draws the cells of the diagonal, in which forecast and outcome lie in the same bin.
static void draw_diagonal(struct strbuf *out, const struct svg_frame *frame)
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        double low = fmax(bin_edge[i], frame->x.min), high = fmin(bin_edge[i + 1], frame->x.max);
        if (low < high) {
            svg_rect(out, frame, i % 2 == 0 ? "cell" : "cell other", low, low, high, high);
        }
    }
}

static void draw_pairs(struct strbuf *out, const struct svg_frame *frame,
                       const struct report *report, bool audit, const char *class)
{
    struct svg_point *point = xcalloc(report->pair_count + 1, sizeof *point);
    size_t count = 0;
    bool tooltips = frame->hover && report->pair_count <= SVG_HOVER_MAX;
    for (size_t i = 0; i < report->pair_count; i++) {
        const struct report_pair *pair = &report->pair[i];
        if (pair->audit != audit) {
            continue;
        }
        point[count] = (struct svg_point){pair->forecast, pair->log2, pair->lo, pair->hi, NULL};
        if (tooltips) {
            point[count].tooltip = candidate_tooltip(report, pair->candidate);
        }
        count++;
    }
    svg_points(out, frame, class, point, count, 2.8);
    free_points(point, count);
}

void report_chart_forecast(struct strbuf *out, const struct report *report, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    struct range both = range_none;
    bool audits = false;
    for (size_t i = 0; i < report->pair_count; i++) {
        range_add(&both, report->pair[i].log2);
        range_add(&both, report->pair[i].forecast);
        audits |= report->pair[i].audit;
    }
    range_add(&both, report->pair_count > 0 ? 0 : -2);
    range_add(&both, report->pair_count > 0 ? 0 : 2);
    both.min = fmax(both.min, both.max - 2 * OCTAVES_SHOWN);
    svg_axis_log2(&frame.x, both.min, both.max, narrow ? 5 : 6, "forecast speedup");
    svg_axis_log2(&frame.y, both.min, both.max, narrow ? 5 : 6, "measured speedup");
    svg_begin(
        out, &frame, "Forecast speedup against measured speedup",
        "Dots on the diagonal were forecast exactly; shaded cells are the bins of a forecast.");
    if (report->pair_count > 0) {
        draw_diagonal(out, &frame);
    }
    svg_axes(out, &frame);
    if (report->pair_count == 0) {
        svg_empty(out, &frame, "no forecast has met a measurement yet");
    } else {
        svg_segment(out, &frame, "rule", frame.x.min, frame.y.min, frame.x.max, frame.y.max);
        draw_pairs(out, &frame, report, false, "blue");
        draw_pairs(out, &frame, report, true, "orange");
        static const struct svg_key key[] = {{"blue", "measured", false},
                                             {"orange", "trusted, audited", false}};
        svg_legend(out, &frame, key, audits ? 2 : 1);
    }
    svg_end(out);
}

// ---- reliability ----

bool report_has_reliability(const struct report *report)
{
    return report->correct.count > 0 || report->call.count > 0;
}

static void draw_reliability(struct strbuf *out, const struct svg_frame *frame,
                             const struct report_reliability *from, const char *class,
                             const char *line)
{
    struct svg_point point[REPORT_BAND_COUNT], joined[REPORT_BAND_COUNT];
    double share[REPORT_BAND_COUNT];
    size_t n = 0, firm = 0;
    for (size_t i = 0; i < REPORT_BAND_COUNT; i++) {
        const struct report_band *band = &from->band[i];
        if (band->count == 0) {
            continue;
        }
        point[n] = (struct svg_point){100 * band->forecast, 100 * band->observed, 100 * band->lo,
                                      100 * band->hi, NULL};
        share[n++] = (double)band->count / (double)from->count;
        if (band->count >= LINE_COUNT_MIN) {
            joined[firm++] = point[n - 1];
        }
    }
    svg_line(out, frame, line, joined, firm, false);
    for (size_t i = 0; i < n; i++) {
        svg_points(out, frame, class, &point[i], 1, 3 + 5 * sqrt(share[i]));
    }
}

void report_chart_reliability(struct strbuf *out, const struct report *report, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    svg_axis_linear(&frame.x, 0, 100, 5, "what the forecast promised, %");
    svg_axis_linear(&frame.y, 0, 100, 5, "what came true, %");
    svg_begin(
        out, &frame, "Reliability of the forecasts",
        "Dots on the diagonal mean that promised probabilities came true as often as promised.");
    svg_axes(out, &frame);
    if (report_has_reliability(report)) {
        svg_segment(out, &frame, "rule", 0, 0, 100, 100);
    } else {
        svg_empty(out, &frame, "no forecast has met a measurement yet");
    }
    draw_reliability(out, &frame, &report->call, "orange", "thin orange");
    draw_reliability(out, &frame, &report->correct, "blue", "thin blue");
    struct svg_key key[2];
    size_t keys = 0;
    if (report->correct.count > 0) {
        key[keys++] = (struct svg_key){"blue", narrow ? "correct" : "is correct", false};
    }
    if (report->call.count > 0) {
        key[keys++] = (struct svg_key){"orange", narrow ? "improves" : "improves or not", false};
    }
    svg_legend(out, &frame, key, keys);
    svg_end(out);
}
