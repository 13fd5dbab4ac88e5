// Charts as SVG text: a frame with two axes, and marks in data coordinates. Pure; writes into a
// strbuf. Colours, fonts and line widths are CSS classes of the page that the picture stands in
// (client/report/report_css.c), so that one picture serves light and dark. Knows nothing of runs or
// forecasts.
//
// Whatever is not finite is left out; what lies beyond an axis is drawn on its edge. Every kind of
// mark draws a bounded number of elements, however many points it is given.
#ifndef CLIENT_REPORT_SVG_H
#define CLIENT_REPORT_SVG_H

#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

#define SVG_TICK_MAX 16
#define SVG_POINT_MAX 1500 // points drawn by one call; more are thinned out
#define SVG_STEP_MAX 600   // vertices of one line
#define SVG_HOVER_MAX 400  // up to here every point is an element of its own with a tooltip

enum svg_scale { SVG_LINEAR, SVG_LOG2 };

struct svg_tick {
    double at;      // in axis units
    char label[24]; // plain text
};

// A LOG2 axis runs over log2 values and is labelled with speedups: position 1 is "2×".
struct svg_axis {
    enum svg_scale scale;
    double min, max;   // finite, min < max
    const char *title; // plain text, escaped when written; NULL: none
    struct svg_tick tick[SVG_TICK_MAX];
    size_t tick_count;
};

// A range and ticks at round numbers for data from min to max, about `wanted` of them (2 to 8).
// Anything is accepted: an empty, reversed or infinite range becomes a usable one. The linear axis
// is widened to its outermost ticks; the log2 axis keeps the range with a little air.
void svg_axis_linear(struct svg_axis *axis, double min, double max, size_t wanted,
                     const char *title);
void svg_axis_log2(struct svg_axis *axis, double min, double max, size_t wanted, const char *title);

struct svg_frame {
    double width, height;            // of the view box
    double left, right, top, bottom; // margins around the plot
    struct svg_axis x, y;
    bool hover; // points get tooltips, where there are few
};

struct svg_point {
    double x, y;
    double low, high;    // ends of the error bar in y; NaN: none
    const char *tooltip; // plain text, escaped when written; NULL: none
};

// Opens the picture. name and description are for those who cannot see it (plain text, escaped).
void svg_begin(struct strbuf *out, const struct svg_frame *frame, const char *name,
               const char *description);
void svg_end(struct strbuf *out);

// Grid lines, tick labels and titles of both axes. The y title stands above the plot, where it can
// be read without turning.
void svg_axes(struct strbuf *out, const struct svg_frame *frame);

// Data to view box, clamped to the plot.
double svg_x(const struct svg_frame *frame, double x);
double svg_y(const struct svg_frame *frame, double y);

// A line through the points, or one that keeps each value until the next x (step). Points must
// ascend in x.
void svg_line(struct strbuf *out, const struct svg_frame *frame, const char *class,
              const struct svg_point *point, size_t count, bool step);
// The area between low and high of each point (y where there is none), with straight edges or
// stepped.
void svg_band(struct strbuf *out, const struct svg_frame *frame, const char *class,
              const struct svg_point *point, size_t count, bool step);
// Dots of this radius with their error bars.
void svg_points(struct strbuf *out, const struct svg_frame *frame, const char *class,
                const struct svg_point *point, size_t count, double radius);
// A rectangle between two corners in data coordinates: bars, bands, cells.
void svg_rect(struct strbuf *out, const struct svg_frame *frame, const char *class, double x0,
              double y0, double x1, double y1);
// A straight line between two points in data coordinates.
void svg_segment(struct strbuf *out, const struct svg_frame *frame, const char *class, double x0,
                 double y0, double x1, double y1);
// Text at a place of the view box; anchor is "start", "middle" or "end".
void svg_text(struct strbuf *out, const char *class, double x, double y, const char *anchor,
              const char *text);
// Text at a point of the data, moved by (dx, dy) view box units.
void svg_label(struct strbuf *out, const struct svg_frame *frame, const char *class, double x,
               double y, double dx, double dy, const char *anchor, const char *text);
// A row of marks and names above the plot's right end: for series that no label can stand beside.
struct svg_key {
    const char *class; // of the mark
    const char *text;  // plain, escaped when written
    bool line;         // a short line instead of a dot
};
void svg_legend(struct strbuf *out, const struct svg_frame *frame, const struct svg_key *key,
                size_t count);

#endif
