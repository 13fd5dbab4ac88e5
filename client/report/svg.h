// Charts as SVG text: a frame with two axes, and marks in data coordinates. Colours, fonts and line
// widths are CSS classes of the page that the picture stands in (client/report/report_css.c), so
// that one picture serves light and dark. The pages of client/report and client/eval call this. It
// does no I/O and knows nothing of runs or forecasts.
//
// A value that is not finite is left out. A value beyond an axis is drawn on its edge. Every kind
// of mark draws a bounded number of elements, however many points it is given.
#ifndef CLIENT_REPORT_SVG_H
#define CLIENT_REPORT_SVG_H

#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

#define SVG_TICK_MAX 16
#define SVG_POINT_MAX 1500 // points that one call draws; more are thinned out
#define SVG_STEP_MAX 600   // vertices of one line
#define SVG_HOVER_MAX 400  // most points that are elements of their own, with tooltips

enum svg_scale { SVG_LINEAR, SVG_LOG2 };

struct svg_tick {
    double at;      // in axis units
    char label[24]; // plain text
};

// An axis. SVG_LOG2 runs over log2 values and is labelled with speedups: position 1 is "2×".
struct svg_axis {
    enum svg_scale scale;
    double min, max;   // finite; min < max
    const char *title; // plain text, escaped when written; NULL: none
    struct svg_tick tick[SVG_TICK_MAX];
    size_t tick_count;
};

// Choose a range and ticks at round numbers for data from min to max. `wanted` is about how many
// ticks there shall be (2 to 8). Any range is accepted; an empty, reversed or infinite one becomes
// a usable one. The linear axis is widened to its outermost ticks. The log2 axis keeps the range
// and adds a margin of 5 %. The axis borrows `title`.
void svg_axis_linear(struct svg_axis *axis, double min, double max, size_t wanted,
                     const char *title);
void svg_axis_log2(struct svg_axis *axis, double min, double max, size_t wanted, const char *title);

// The picture's size, its margins and its axes.
struct svg_frame {
    double width, height;            // of the view box
    double left, right, top, bottom; // margins around the plot
    struct svg_axis x, y;
    bool hover; // points get tooltips when there are at most SVG_HOVER_MAX
};

// The frame of a page's charts, without its axes. A narrow one is for screens below about 560
// pixels and has no tooltips.
struct svg_frame svg_frame_of(bool narrow);

// A point of a line, a band or a series of dots.
struct svg_point {
    double x, y;
    double low, high;    // ends of the error bar in y; NaN: none
    const char *tooltip; // plain text, escaped when written; NULL: none
};

// Opens the picture. `name` and `description` are for readers who cannot see it (plain text,
// escaped).
void svg_begin(struct strbuf *out, const struct svg_frame *frame, const char *name,
               const char *description);
void svg_end(struct strbuf *out);

// Appends grid lines, tick labels and titles of both axes. The y title stands above the plot, where
// it can be read without turning the head.
void svg_axes(struct strbuf *out, const struct svg_frame *frame);

// Convert data coordinates to view box units, clamped to the plot.
double svg_x(const struct svg_frame *frame, double x);
double svg_y(const struct svg_frame *frame, double y);

// Draws a line through the points. With `step`, the line keeps each value until the next x. Points
// must ascend in x.
void svg_line(struct strbuf *out, const struct svg_frame *frame, const char *class,
              const struct svg_point *point, size_t count, bool step);
// Fills the area between low and high of each point, with straight edges or with steps. A missing
// low or high is y.
void svg_band(struct strbuf *out, const struct svg_frame *frame, const char *class,
              const struct svg_point *point, size_t count, bool step);
// Draws dots of this radius with their error bars.
void svg_points(struct strbuf *out, const struct svg_frame *frame, const char *class,
                const struct svg_point *point, size_t count, double radius);
// Draws a rectangle between two corners in data coordinates.
void svg_rect(struct strbuf *out, const struct svg_frame *frame, const char *class, double x0,
              double y0, double x1, double y1);
// Draws a straight line between two points in data coordinates.
void svg_segment(struct strbuf *out, const struct svg_frame *frame, const char *class, double x0,
                 double y0, double x1, double y1);
// Writes text at a position in the view box. `anchor` is "start", "middle" or "end".
void svg_text(struct strbuf *out, const char *class, double x, double y, const char *anchor,
              const char *text);
// Writes text at a point of the data, moved by (dx, dy) view box units.
void svg_label(struct strbuf *out, const struct svg_frame *frame, const char *class, double x,
               double y, double dx, double dy, const char *anchor, const char *text);
// Writes a note in the middle of the plot, for a chart without data.
void svg_empty(struct strbuf *out, const struct svg_frame *frame, const char *text);
// A mark and its name in the legend, which stands above the plot's right end.
struct svg_key {
    const char *class; // of the mark
    const char *text;  // plain text, escaped when written
    bool line;         // the mark is a short line instead of a dot
};
void svg_legend(struct strbuf *out, const struct svg_frame *frame, const struct svg_key *key,
                size_t count);

#endif
