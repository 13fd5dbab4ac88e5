// Design. The page has one section for each engine: its table, then its two charts, in the style of
// the report's page. Engine names come from the input file, so they are escaped by
// text_add_markup().
#include "client/eval/eval_show.h"
#include "client/report/report_html.h"
#include "client/report/report_quality.h"
#include "client/report/report_text.h"
#include "client/report/svg.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/version.h"
#include <math.h>
#include <stdlib.h>

static size_t draw_bands(struct strbuf *out, const struct svg_frame *frame,
                         const struct eval_set *set, enum score_metric metric, const char *class,
                         const char *line)
{
    struct score_band band[SCORE_BAND_COUNT];
    struct svg_point point[SCORE_BAND_COUNT];
    size_t count = 0, rows = score_bands(band, metric, set->row, set->count);
    for (size_t i = 0; i < SCORE_BAND_COUNT; i++) {
        double lo, hi;
        if (!(band[i].weight > 0)) {
            continue;
        }
        report_wilson(band[i].observed, band[i].effective, REPORT_Z_95, &lo, &hi);
        point[count++] = (struct svg_point){100 * band[i].stated, 100 * band[i].observed, 100 * lo,
                                            100 * hi, NULL};
    }
    svg_line(out, frame, line, point, count, false);
    svg_points(out, frame, class, point, count, 4);
    return rows;
}

void eval_chart_reliability(struct strbuf *out, const struct eval_set *set, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    svg_axis_linear(&frame.x, 0, 100, 5, "what the forecast promised, %");
    svg_axis_linear(&frame.y, 0, 100, 5, "what came true, %");
    svg_begin(out, &frame, "Reliability of the forecasts",
              "Dots on the diagonal mean that promised probabilities came true as often as "
              "promised.");
    svg_axes(out, &frame);
    svg_segment(out, &frame, "rule", 0, 0, 100, 100);
    size_t bin = draw_bands(out, &frame, set, SCORE_ECE_BIN, "context", "thin");
    size_t improves = draw_bands(out, &frame, set, SCORE_ECE_IMPROVES, "orange", "thin orange");
    size_t correct = draw_bands(out, &frame, set, SCORE_ECE_CORRECT, "blue", "thin blue");
    struct svg_key key[3];
    size_t keys = 0;
    if (correct > 0) {
        key[keys++] = (struct svg_key){"blue", "correct", false};
    }
    if (improves > 0) {
        key[keys++] = (struct svg_key){"orange", "improves", false};
    }
    if (bin > 0) {
        key[keys++] = (struct svg_key){"context", narrow ? "bin" : "likeliest bin", false};
    }
    if (keys == 0) {
        svg_empty(out, &frame, "no probability has met an outcome yet");
    }
    svg_legend(out, &frame, key, keys);
    svg_end(out);
}

void eval_chart_risk(struct strbuf *out, const struct eval_set *set, double risk, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    struct score_step *step;
    size_t count = score_steps(&step, set->row, set->count);
    double most = 100 * risk;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, 100 * step[i].risk);
    }
    svg_axis_linear(&frame.x, 0, 100, 5, "most confident calls, % of all");
    svg_axis_linear(&frame.y, 0, fmax(most, 5), 5, "wrong among them, %");
    svg_begin(out, &frame, "Risk over coverage",
              "A line that rises late and little means that confidence tells right calls from "
              "wrong ones.");
    svg_axes(out, &frame);
    if (count == 0) {
        svg_empty(out, &frame, "no call has met an outcome yet");
    } else {
        struct svg_point *point = xcalloc(count, sizeof *point);
        for (size_t i = 0; i < count; i++) {
            point[i] = (struct svg_point){100 * step[i].coverage, 100 * step[i].risk, 0,
                                          100 * step[i].risk, NULL};
        }
        svg_band(out, &frame, "band", point, count, false);
        svg_line(out, &frame, "line", point, count, false);
        svg_points(out, &frame, "blue", point + count - 1, 1, 4);
        svg_segment(out, &frame, "rule", 0, 100 * risk, 100, 100 * risk);
        free(point);
    }
    svg_end(out);
    free(step);
}

static void add_number(struct strbuf *out, double value)
{
    if (isnan(value)) {
        strbuf_adds(out, "\xE2\x80\x93");
    } else {
        strbuf_addf(out, "%.3f", value == 0 ? 0.0 : value);
    }
}

static void add_table(struct strbuf *out, const struct eval_set *set, double risk)
{
    strbuf_adds(out,
                "<div class=\"card scroll\"><table><thead><tr><th>Measure</th>"
                "<th class=\"right\">Value</th><th class=\"right\">95\xE2\x80\xAF% interval</th>"
                "<th class=\"right\">Rows</th><th>Meaning</th></tr></thead><tbody>\n");
    for (enum score_metric m = 0; m < SCORE_COUNT; m++) {
        const struct score_value *value = &set->value[m];
        strbuf_addf(out, "<tr><td class=\"mono\">%s</td><td class=\"right\">", score_name(m));
        add_number(out, value->value);
        strbuf_adds(out, "</td><td class=\"right\">");
        add_number(out, value->lo);
        if (!isnan(value->lo)) {
            strbuf_adds(out, " to ");
            add_number(out, value->hi);
        }
        strbuf_addf(out, "</td><td class=\"right\">%zu</td><td>%s", value->rows, score_meaning(m));
        if (m == SCORE_COVERAGE) {
            strbuf_addf(out, " of %g\xE2\x80\xAF%%", 100 * risk);
        }
        if (score_unit(m)[0] != '\0') {
            strbuf_addf(out, ", %s", score_unit(m));
        }
        strbuf_addf(out, "; %s is better</td></tr>\n", score_higher_is_better(m) ? "more" : "less");
    }
    strbuf_adds(out, "</tbody></table></div>\n");
}

static void add_set(struct strbuf *out, const struct eval_set *set, double risk)
{
    strbuf_adds(out, "<section><h2>Engine ");
    text_add_markup(out, set->engine);
    strbuf_adds(out, "</h2><p>");
    text_add_count(out, set->count);
    strbuf_adds(out, " forecasts with an outcome, in ");
    text_add_count(out, score_clusters(set->row, set->count));
    strbuf_adds(out, " clusters; ");
    text_add_count(out, set->unmeasured);
    strbuf_adds(out, " without one.</p>\n");
    add_table(out, set, risk);
    strbuf_adds(out, "<div class=\"charts\"><figure class=\"card\"><h3>Reliability</h3>\n"
                     "<div class=\"wide\">");
    eval_chart_reliability(out, set, false);
    strbuf_adds(out, "</div><div class=\"narrow\">");
    eval_chart_reliability(out, set, true);
    strbuf_adds(out,
                "</div><figcaption>Forecasts in ten bands of equal weight: on the diagonal they "
                "can be taken at their word.</figcaption></figure>\n"
                "<figure class=\"card\"><h3>Risk over coverage</h3>\n<div class=\"wide\">");
    eval_chart_risk(out, set, risk, false);
    strbuf_adds(out, "</div><div class=\"narrow\">");
    eval_chart_risk(out, set, risk, true);
    strbuf_adds(out,
                "</div><figcaption>The share of wrong calls among the most confident ones; the "
                "dashed line is the risk asked for.</figcaption></figure></div></section>\n");
}

void eval_html(struct strbuf *out, const struct eval_page *page)
{
    strbuf_adds(
        out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" "
             "content=\"kernelcast " KCAST_VERSION "\">\n<title>Forecasts of ");
    text_add_markup(out, file_base_name(page->path));
    strbuf_adds(out, " \xC2\xB7 kernelcast</title>\n<style>\n");
    strbuf_adds(out, report_css);
    strbuf_adds(out,
                "</style>\n</head>\n<body>\n<main>\n<div class=\"top\"><span><b>Forecasts of ");
    text_add_markup(out, file_base_name(page->path));
    strbuf_adds(out, "</b></span><span>forecast against outcome</span></div>\n");
    for (size_t i = 0; i < page->eval->set_count; i++) {
        add_set(out, &page->eval->set[i], page->risk);
    }
    strbuf_addf(out,
                "<footer>Made by kernelcast " KCAST_VERSION
                ". Every outcome counts 1 / propensity. Intervals are of a cluster bootstrap, "
                "%llu draws, seed %llu.</footer>\n</main>\n</body>\n</html>\n",
                (unsigned long long)page->draws, (unsigned long long)page->seed);
}
