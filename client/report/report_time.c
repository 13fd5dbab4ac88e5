// Design. The picture divides the time at work into stretches of equal length, and each of them,
// from the bottom up, into the parts of WALL_PARTS in the order below: what moves the search on
// first, then what it waits for. Blue is work in three shades, orange is waiting, grey the rest.
#include "client/report/report_time.h"
#include "client/report/report_text.h"
#include "client/report/svg.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define STRETCHES_WIDE 120
#define STRETCHES_NARROW 60
#define DEVICES_SHOWN 64 // rows of the table of devices

// The parts from the bottom of the picture up, and what they mean. The CSS class of a part is "t-"
// and its name in JSON.
static const struct {
    enum wall_part part;
    const char *meaning;
} order[] = {
    {WALL_MEASURING, "a device was held for one of its jobs"},
    {WALL_COMPILING,
     "no job was measured or waited for a device, and one was compiled or next for a compile slot"},
    {WALL_FORECASTING,
     "no job was at a daemon, and the worker was asked for forecasts or told outcomes"},
    {WALL_WAITING, "no job was measured, and a compiled one waited for a device"},
    {WALL_QUEUED,
     "no job was measured, compiled or waited for a device, and one was queued to be compiled or "
     "its answer was on the way"},
    {WALL_PROPOSING,
     "nothing of this: candidates were proposed, decided about and recorded, or a language model "
     "wrote them"},
    {WALL_START_UP, "before the first job of each session: finding daemons, devices and worker"},
    {WALL_NOT_RECORDED, "sessions of a kcast that recorded no times"},
};

// ---- the picture ----

struct stretches {
    double *seconds; // [count][WALL_PART_COUNT]
    size_t count;
    double length; // seconds
};

static void add_stretch(void *owner, enum wall_part part, double begin, double end)
{
    const struct stretches *stretches = owner;
    size_t i = (size_t)(begin / stretches->length);
    for (; i < stretches->count && begin < end; i++) {
        // The last one ends where the time ends, whatever rounding says.
        double until =
            i + 1 < stretches->count ? fmin(end, (double)(i + 1) * stretches->length) : end;
        if (until > begin) {
            stretches->seconds[i * WALL_PART_COUNT + part] += until - begin;
            begin = until;
        }
    }
}

// Draws one part as an area with steps. below[i] is the percentage of stretch i that lies below it,
// and is raised by the part's own.
static void draw_part(struct strbuf *out, const struct svg_frame *frame,
                      const struct stretches *stretches, enum wall_part part, double *below)
{
    struct svg_point *point = xcalloc(stretches->count + 1, sizeof *point);
    bool any = false;
    for (size_t i = 0; i < stretches->count; i++) {
        double share = 100 * stretches->seconds[i * WALL_PART_COUNT + part] / stretches->length;
        point[i] = (struct svg_point){.x = (double)i * stretches->length,
                                      .y = below[i],
                                      .low = below[i],
                                      .high = below[i] + share};
        below[i] += share;
        any |= share > 0;
    }
    point[stretches->count] = point[stretches->count - 1];
    point[stretches->count].x = frame->x.max;
    if (any) {
        char class[32];
        (void)snprintf(class, sizeof class, "t-%s", wall_part_name(part));
        svg_band(out, frame, class, point, stretches->count + 1, true);
    }
    free(point);
}

static void draw_parts(struct strbuf *out, const struct svg_frame *frame,
                       const struct run_state *run_state, size_t count)
{
    struct stretches stretches = {.count = count,
                                  .length = run_state->wall_seconds / (double)count};
    double *below = xcalloc(count, sizeof *below);
    stretches.seconds = xcalloc(count * WALL_PART_COUNT, sizeof *stretches.seconds);
    wall_time_visit(run_state, add_stretch, &stretches);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        draw_part(out, frame, &stretches, order[i].part, below);
    }
    free(stretches.seconds);
    free(below);
}

void report_chart_time(struct strbuf *out, const struct run_state *run_state, bool narrow)
{
    struct svg_frame frame = svg_frame_of(narrow);
    double wall = run_state->wall_seconds;
    frame.width = narrow ? frame.width : 2 * frame.width + 20;
    frame.height = 230;
    svg_axis_linear(&frame.x, 0, wall > 0 ? wall : 1, narrow ? 4 : 8,
                    "seconds at work since the search began");
    svg_axis_linear(&frame.y, 0, 100, 4, "percent of the time");
    frame.x.max = wall > 0 ? wall : frame.x.max;
    while (frame.x.tick_count > 0 && frame.x.tick[frame.x.tick_count - 1].at > frame.x.max) {
        frame.x.tick_count--;
    }
    svg_begin(out, &frame, "Where the time went along the search",
              "For each stretch of the search, which share of it was measuring, compiling, "
              "forecasting, waiting, proposing and start-up.");
    svg_axes(out, &frame);
    if (wall > 0) {
        draw_parts(out, &frame, run_state, narrow ? STRETCHES_NARROW : STRETCHES_WIDE);
    } else {
        svg_empty(out, &frame, "no time has passed yet");
    }
    svg_end(out);
}

// ---- tables ----

static void add_strip(struct strbuf *out, const double seconds[WALL_PART_COUNT])
{
    strbuf_adds(out, "<div class=\"strip\" aria-hidden=\"true\">");
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (seconds[order[i].part] > 0) {
            strbuf_addf(out, "<i class=\"t-%s\" style=\"flex:%.6f 1 0\"></i>",
                        wall_part_name(order[i].part), seconds[order[i].part]);
        }
    }
    strbuf_adds(out, "</div>");
}

static void add_share(struct strbuf *out, double seconds, double wall)
{
    double share = wall > 0 ? seconds / wall : NAN;
    if (share > 0 && share < 0.0005) {
        strbuf_adds(out, "below 0.1\xE2\x80\xAF%");
    } else {
        strbuf_addf(out, isnan(share) ? "\xE2\x80\x93" : "%.1f\xE2\x80\xAF%%", 100 * share);
    }
}

static void add_parts(struct strbuf *out, const double seconds[WALL_PART_COUNT], double wall)
{
    strbuf_adds(out, "<div class=\"scroll\"><table class=\"parts\"><tr><th>Part</th><th "
                     "class=\"right\">Time</th><th class=\"right\">Share</th><th>When</th></tr>\n");
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        enum wall_part part = order[i].part;
        if (part == WALL_NOT_RECORDED && !(seconds[part] > 0)) {
            continue;
        }
        strbuf_addf(out,
                    "<tr><td class=\"still\"><i class=\"t-%s\"></i>%s</td><td class=\"right\">",
                    wall_part_name(part), wall_part_text(part));
        text_add_seconds(out, seconds[part]);
        strbuf_adds(out, "</td><td class=\"right\">");
        add_share(out, seconds[part], wall);
        strbuf_addf(out, "</td><td>%s</td></tr>\n", order[i].meaning);
    }
    strbuf_adds(out, "</table></div>");
}

static void add_fact(struct strbuf *out, const char *name, double seconds, const char *note)
{
    strbuf_addf(out, "<dt>%s</dt><dd>", name);
    text_add_seconds(out, seconds);
    strbuf_addf(out, "%s%s</dd>", note[0] != '\0' ? " " : "", note);
}

static void add_held(struct strbuf *out, const struct work_seconds *work)
{
    static const char *const name[] = {"start", "inputs", "verification", "timing",
                                       "waiting for processes and the rest"};
    double rest = work->held - work->start - work->inputs - work->verify - work->time;
    const double seconds[] = {work->start, work->inputs, work->verify, work->time, fmax(rest, 0)};
    strbuf_adds(out, "<dt>Devices held</dt><dd>");
    text_add_seconds(out, work->held);
    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        strbuf_addf(out, "%s%s ", i == 0 ? ", of them " : ", ", name[i]);
        text_add_seconds(out, seconds[i]);
    }
    strbuf_adds(out, "</dd>");
}

// The seconds of the stages, which overlap, and the devices.
static void add_work(struct strbuf *out, const struct run_state *run_state)
{
    struct work_seconds work = work_seconds_of(run_state);
    strbuf_adds(out, "<h3>Seconds of each stage</h3><p class=\"quiet\">Jobs overlap, so these do "
                     "not sum to the search time.</p><dl class=\"facts\">");
    add_held(out, &work);
    add_fact(out, "Compile slots held", work.compiling, "");
    add_fact(out, "Jobs waited", work.queued, "to be measured, all jobs together");
    add_fact(out, "Forecasts", work.forecasting, "of the worker");
    if (work.asking > 0) {
        add_fact(out, "Language models", work.asking, "asked for candidates");
    }
    for (size_t i = 0; i < run_state->device_count && i < DEVICES_SHOWN; i++) {
        const struct run_state_device *device = &run_state->device[i];
        strbuf_adds(out, "<dt>Device ");
        text_add_markup(out, device->name);
        strbuf_adds(out, "</dt><dd>held ");
        text_add_percent(out, run_state->wall_seconds > 0
                                  ? device->held_seconds / run_state->wall_seconds
                                  : NAN);
        strbuf_adds(out, " of the search time, ");
        text_add_seconds(out, device->held_seconds);
        strbuf_adds(out, " for ");
        text_add_count(out, device->runs);
        strbuf_adds(out, device->runs == 1 ? " measurement" : " measurements");
        if (device->pool) {
            strbuf_adds(out, ", at ");
            text_add_markup(out, device->pool);
        }
        strbuf_adds(out, "</dd>");
    }
    if (run_state->device_count > DEVICES_SHOWN) {
        strbuf_addf(out, "<dt>Others</dt><dd>%zu devices more</dd>",
                    run_state->device_count - DEVICES_SHOWN);
    }
    strbuf_adds(out, "</dl>");
}

void report_section_time(struct strbuf *out, const struct report_page *page)
{
    const struct run_state *run_state = page->report->run_state;
    double seconds[WALL_PART_COUNT];
    strbuf_adds(out, "<section><h2>Where the time went</h2>\n<p>Stages overlap, so the search time "
                     "is divided by what the search waited for: each moment counts once, for the "
                     "first that applies of start-up, measuring, waiting for a device, compiling, "
                     "waiting for the daemon, forecasting, proposing.</p>\n<figure class=\"card "
                     "time\">");
    if (wall_time_is_recorded(run_state)) {
        wall_time_parts(run_state, seconds);
        add_strip(out, seconds);
        strbuf_adds(out, "<div class=\"wide\">");
        report_chart_time(out, run_state, false);
        strbuf_adds(out, "</div><div class=\"narrow\">");
        report_chart_time(out, run_state, true);
        strbuf_adds(out, "</div>");
        add_parts(out, seconds, run_state->wall_seconds);
    } else {
        strbuf_adds(out, "<p>Not recorded: this run is of a kcast that did not record when its "
                         "jobs were compiled and measured.</p>");
    }
    add_work(out, run_state);
    strbuf_adds(out, "</figure></section>\n");
}
