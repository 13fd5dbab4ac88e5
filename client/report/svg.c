// Design. A picture is written back to front into the buffer, each mark at once; nothing is kept.
// Three rules hold throughout:
//
//  Every number is written by add_number() and every text by text_add_markup(), so the result is
// well-formed whatever the data are.
//  A mark asks visible() before it uses a point, and svg_x and svg_y clamp, so no NaN and no
// coordinate outside the plot is written.
//  Lines and points are thinned to what a picture can show, so its size does not grow with the run.
// A line keeps the last value of each half unit of width. Points that fall into an occupied cell of
// 1.5 units are dropped. What is still too many is sampled evenly.
#include "client/report/svg.h"
#include "client/report/report_text.h"
#include "common/mem.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CELL 1.5       // view box units; points closer than this cover each other
#define LINE_GRAIN 0.5 // view box units
#define GRID_MAX 2048  // cells along one side

static void add_number(struct strbuf *out, double value)
{
    char text[40];
    int length = snprintf(text, sizeof text, "%.1f", value);
    if (length > 2 && strcmp(text + length - 2, ".0") == 0) {
        text[length - 2] = '\0';
    }
    strbuf_adds(out, strcmp(text, "-0") == 0 ? "0" : text);
}

static void add_pair(struct strbuf *out, double x, double y)
{
    add_number(out, x);
    strbuf_addc(out, ' ');
    add_number(out, y);
}

static void add_attribute(struct strbuf *out, const char *name, double value)
{
    strbuf_addf(out, " %s=\"", name);
    add_number(out, value);
    strbuf_addc(out, '"');
}

static double clamp(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static bool visible(const struct svg_point *point)
{
    return isfinite(point->x) && isfinite(point->y);
}

struct svg_frame svg_frame_of(bool narrow)
{
    return (struct svg_frame){.width = narrow ? 360 : 520,
                              .height = narrow ? 290 : 340,
                              .left = 50,
                              .right = 14,
                              .top = 34,
                              .bottom = 46,
                              .hover = !narrow};
}

double svg_x(const struct svg_frame *frame, double x)
{
    double share = (x - frame->x.min) / (frame->x.max - frame->x.min);
    return frame->left + clamp(share, 0, 1) * (frame->width - frame->left - frame->right);
}

double svg_y(const struct svg_frame *frame, double y)
{
    double share = (y - frame->y.min) / (frame->y.max - frame->y.min);
    return frame->height - frame->bottom -
           clamp(share, 0, 1) * (frame->height - frame->top - frame->bottom);
}

void svg_begin(struct strbuf *out, const struct svg_frame *frame, const char *name,
               const char *description)
{
    strbuf_adds(out, "<svg role=\"img\" viewBox=\"0 0 ");
    add_pair(out, frame->width, frame->height);
    strbuf_adds(out, "\"><title>");
    text_add_markup(out, name);
    strbuf_adds(out, "</title><desc>");
    text_add_markup(out, description);
    strbuf_adds(out, "</desc>\n");
}

void svg_end(struct strbuf *out)
{
    strbuf_adds(out, "</svg>\n");
}

void svg_text(struct strbuf *out, const char *class, double x, double y, const char *anchor,
              const char *text)
{
    strbuf_addf(out, "<text class=\"%s\" text-anchor=\"%s\"", class, anchor);
    add_attribute(out, "x", x);
    add_attribute(out, "y", y);
    strbuf_addc(out, '>');
    text_add_markup(out, text);
    strbuf_adds(out, "</text>\n");
}

void svg_label(struct strbuf *out, const struct svg_frame *frame, const char *class, double x,
               double y, double dx, double dy, const char *anchor, const char *text)
{
    if (isfinite(x) && isfinite(y)) {
        svg_text(out, class, svg_x(frame, x) + dx, svg_y(frame, y) + dy, anchor, text);
    }
}

void svg_empty(struct strbuf *out, const struct svg_frame *frame, const char *text)
{
    svg_text(out, "empty", (frame->left + frame->width - frame->right) / 2,
             (frame->top + frame->height - frame->bottom) / 2, "middle", text);
}

void svg_segment(struct strbuf *out, const struct svg_frame *frame, const char *class, double x0,
                 double y0, double x1, double y1)
{
    if (!isfinite(x0) || !isfinite(y0) || !isfinite(x1) || !isfinite(y1)) {
        return;
    }
    strbuf_addf(out, "<path class=\"%s\" d=\"M", class);
    add_pair(out, svg_x(frame, x0), svg_y(frame, y0));
    strbuf_addc(out, 'L');
    add_pair(out, svg_x(frame, x1), svg_y(frame, y1));
    strbuf_adds(out, "\"/>\n");
}

void svg_rect(struct strbuf *out, const struct svg_frame *frame, const char *class, double x0,
              double y0, double x1, double y1)
{
    if (isnan(x0) || isnan(y0) || isnan(x1) || isnan(y1)) {
        return;
    }
    double left = svg_x(frame, fmin(x0, x1));
    double top = svg_y(frame, fmax(y0, y1));
    strbuf_addf(out, "<rect class=\"%s\"", class);
    add_attribute(out, "x", left);
    add_attribute(out, "y", top);
    add_attribute(out, "width", svg_x(frame, fmax(x0, x1)) - left);
    add_attribute(out, "height", svg_y(frame, fmin(y0, y1)) - top);
    strbuf_adds(out, "/>\n");
}

void svg_axes(struct strbuf *out, const struct svg_frame *frame)
{
    const double right = frame->width - frame->right, floor_y = frame->height - frame->bottom;
    strbuf_adds(out, "<path class=\"grid\" d=\"");
    for (size_t i = 0; i < frame->y.tick_count; i++) {
        strbuf_addc(out, 'M');
        add_pair(out, frame->left, svg_y(frame, frame->y.tick[i].at));
        strbuf_addc(out, 'H');
        add_number(out, right);
    }
    strbuf_adds(out, "\"/>\n<path class=\"axis\" d=\"M");
    add_pair(out, frame->left, floor_y);
    strbuf_addc(out, 'H');
    add_number(out, right);
    for (size_t i = 0; i < frame->x.tick_count; i++) {
        strbuf_addc(out, 'M');
        add_pair(out, svg_x(frame, frame->x.tick[i].at), floor_y);
        strbuf_adds(out, "v4");
    }
    strbuf_adds(out, "\"/>\n");
    for (size_t i = 0; i < frame->y.tick_count; i++) {
        svg_text(out, "tick", frame->left - 7, svg_y(frame, frame->y.tick[i].at) + 4, "end",
                 frame->y.tick[i].label);
    }
    for (size_t i = 0; i < frame->x.tick_count; i++) {
        svg_text(out, "tick", svg_x(frame, frame->x.tick[i].at), floor_y + 18, "middle",
                 frame->x.tick[i].label);
    }
    if (frame->y.title) {
        svg_text(out, "name", 2, frame->top - 12, "start", frame->y.title);
    }
    if (frame->x.title) {
        svg_text(out, "name", right, frame->height - 4, "end", frame->x.title);
    }
}

// Writes the indices of the points that a line is drawn through, and returns how many, at most
// SVG_STEP_MAX. Points that are not finite are left out. Of points that share half a unit of width
// only the last is kept. The first and the last point are always kept.
static size_t thin_line(const struct svg_frame *frame, const struct svg_point *point, size_t count,
                        size_t *kept)
{
    const double grain =
        fmax(LINE_GRAIN, 1.5 * (frame->width - frame->left - frame->right) / SVG_STEP_MAX);
    size_t n = 0;
    double last = 0, before_last = 0;
    for (size_t i = 0; i < count; i++) {
        if (!visible(&point[i])) {
            continue;
        }
        double x = svg_x(frame, point[i].x);
        bool replace = n >= 2 && (last - before_last < grain || n == SVG_STEP_MAX);
        if (n > 0 && !replace) {
            before_last = last;
        }
        last = x;
        kept[replace ? n - 1 : n++] = i;
    }
    return n;
}

// Appends the next vertex of an outline: straight, or by way of the corner of a step.
static void add_vertex(struct strbuf *out, double x, double y, bool step, bool x_first)
{
    if (!step) {
        strbuf_addc(out, 'L');
        add_pair(out, x, y);
        return;
    }
    strbuf_addc(out, x_first ? 'H' : 'V');
    add_number(out, x_first ? x : y);
    strbuf_addc(out, x_first ? 'V' : 'H');
    add_number(out, x_first ? y : x);
}

void svg_line(struct strbuf *out, const struct svg_frame *frame, const char *class,
              const struct svg_point *point, size_t count, bool step)
{
    size_t *kept = xcalloc(SVG_STEP_MAX + 1, sizeof *kept);
    size_t n = thin_line(frame, point, count, kept);
    if (n >= 2) {
        strbuf_addf(out, "<path class=\"%s\" d=\"M", class);
        for (size_t i = 0; i < n; i++) {
            double x = svg_x(frame, point[kept[i]].x), y = svg_y(frame, point[kept[i]].y);
            if (i == 0) {
                add_pair(out, x, y);
            } else {
                add_vertex(out, x, y, step, true);
            }
        }
        strbuf_adds(out, "\"/>\n");
    }
    free(kept);
}

// The outline goes along the upper edge to the right and back along the lower edge.
void svg_band(struct strbuf *out, const struct svg_frame *frame, const char *class,
              const struct svg_point *point, size_t count, bool step)
{
    size_t *kept = xcalloc(SVG_STEP_MAX + 1, sizeof *kept);
    size_t n = thin_line(frame, point, count, kept);
    if (n >= 2) {
        strbuf_addf(out, "<path class=\"%s\" d=\"M", class);
        for (size_t i = 0; i < n; i++) {
            const struct svg_point *at = &point[kept[i]];
            double x = svg_x(frame, at->x), y = svg_y(frame, isnan(at->high) ? at->y : at->high);
            if (i == 0) {
                add_pair(out, x, y);
            } else {
                add_vertex(out, x, y, step, true);
            }
        }
        for (size_t i = n; i-- > 0;) {
            const struct svg_point *at = &point[kept[i]];
            double x = svg_x(frame, at->x), y = svg_y(frame, isnan(at->low) ? at->y : at->low);
            add_vertex(out, x, y, step, false);
        }
        strbuf_adds(out, "Z\"/>\n");
    }
    free(kept);
}

// Writes the indices of the points that are drawn as dots, and returns how many, at most
// SVG_POINT_MAX.
static size_t thin_points(const struct svg_frame *frame, const struct svg_point *point,
                          size_t count, size_t *kept)
{
    const size_t columns = (size_t)clamp(frame->width / CELL + 1, 1, GRID_MAX);
    const size_t rows = (size_t)clamp(frame->height / CELL + 1, 1, GRID_MAX);
    unsigned char *taken = count > SVG_HOVER_MAX ? xcalloc(columns, rows) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!visible(&point[i])) {
            continue;
        }
        if (taken) {
            size_t column =
                (size_t)clamp(svg_x(frame, point[i].x) / CELL, 0, (double)(columns - 1));
            size_t row = (size_t)clamp(svg_y(frame, point[i].y) / CELL, 0, (double)(rows - 1));
            if (taken[row * columns + column] != 0) {
                continue;
            }
            taken[row * columns + column] = 1;
        }
        kept[n++] = i;
    }
    free(taken);
    if (n <= SVG_POINT_MAX) {
        return n;
    }
    for (size_t i = 0; i < SVG_POINT_MAX; i++) {
        kept[i] = kept[i * n / SVG_POINT_MAX];
    }
    return SVG_POINT_MAX;
}

static void add_errors(struct strbuf *out, const struct svg_frame *frame, const char *class,
                       const struct svg_point *point, const size_t *kept, size_t n)
{
    bool open = false;
    for (size_t i = 0; i < n; i++) {
        const struct svg_point *at = &point[kept[i]];
        if (isnan(at->low) || isnan(at->high)) {
            continue;
        }
        double top = svg_y(frame, at->high), bottom = svg_y(frame, at->low);
        // The bar is not longer than the line is wide.
        if (bottom - top < 1) {
            continue;
        }
        if (!open) {
            strbuf_addf(out, "<path class=\"error %s\" d=\"", class);
        }
        open = true;
        strbuf_addc(out, 'M');
        add_pair(out, svg_x(frame, at->x), top);
        strbuf_addc(out, 'V');
        add_number(out, bottom);
    }
    if (open) {
        strbuf_adds(out, "\"/>\n");
    }
}

static void add_circle(struct strbuf *out, const struct svg_frame *frame, const char *class,
                       const struct svg_point *point, double radius)
{
    strbuf_addf(out, "<circle class=\"%s\"", class);
    add_attribute(out, "cx", svg_x(frame, point->x));
    add_attribute(out, "cy", svg_y(frame, point->y));
    add_attribute(out, "r", radius);
    if (!point->tooltip) {
        strbuf_adds(out, "/>\n");
        return;
    }
    strbuf_adds(out, "><title>");
    text_add_markup(out, point->tooltip);
    strbuf_adds(out, "</title></circle>\n");
}

// Draws many dots as one path of strokes without length and with round ends, which takes a few
// bytes for each.
static void add_dots(struct strbuf *out, const struct svg_frame *frame, const char *class,
                     const struct svg_point *point, const size_t *kept, size_t n, double radius)
{
    strbuf_addf(out, "<path class=\"dots %s\"", class);
    add_attribute(out, "stroke-width", 2 * radius);
    strbuf_adds(out, " d=\"");
    for (size_t i = 0; i < n; i++) {
        strbuf_addc(out, 'M');
        add_pair(out, svg_x(frame, point[kept[i]].x), svg_y(frame, point[kept[i]].y));
        strbuf_adds(out, "h0");
    }
    strbuf_adds(out, "\"/>\n");
}

void svg_points(struct strbuf *out, const struct svg_frame *frame, const char *class,
                const struct svg_point *point, size_t count, double radius)
{
    if (count == 0) {
        return;
    }
    size_t *kept = xcalloc(count, sizeof *kept);
    size_t n = thin_points(frame, point, count, kept);
    add_errors(out, frame, class, point, kept, n);
    if (frame->hover && n <= SVG_HOVER_MAX) {
        for (size_t i = 0; i < n; i++) {
            add_circle(out, frame, class, &point[kept[i]], radius);
        }
    } else if (n > 0) {
        add_dots(out, frame, class, point, kept, n, radius);
    }
    free(kept);
}

// The legend is one line of text that ends at the plot's right edge. Its marks are characters of
// the text, so that the spacing is right in every font.
void svg_legend(struct strbuf *out, const struct svg_frame *frame, const struct svg_key *key,
                size_t count)
{
    strbuf_adds(out, "<text class=\"name\" text-anchor=\"end\"");
    add_attribute(out, "x", frame->width - frame->right);
    add_attribute(out, "y", frame->top - 12);
    strbuf_addc(out, '>');
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(out, "<tspan class=\"key %s\"%s>%s</tspan><tspan dx=\"4\">", key[i].class,
                    i > 0 ? " dx=\"14\"" : "", key[i].line ? "\xE2\x94\x81" : "\xE2\x97\x8F");
        text_add_markup(out, key[i].text);
        strbuf_adds(out, "</tspan>");
    }
    strbuf_adds(out, "</text>\n");
}
