// Design note. Each job gives up to three intervals, and each request to the worker one. The ends
// of all intervals are sorted by time. A sweep over them knows at each moment how many intervals of
// each part are open, and the first part with an open one has the moment. Intervals may reach
// beyond a session, because a daemon works on while its client is away; only what lies in a window
// of the time at work is visited.
#include "client/run/wall_time.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

// The end of an interval.
struct edge {
    double at; // seconds since 1970
    enum wall_part part;
    bool opens;
};

struct edges {
    struct edge *edge;
    size_t count, room;
};

const char *wall_part_name(enum wall_part part)
{
    static const char *const name[] = {
#define X(id, name, text) name,
        WALL_PARTS(X)
#undef X
    };
    return name[part];
}

const char *wall_part_text(enum wall_part part)
{
    static const char *const text[] = {
#define X(id, name, text) text,
        WALL_PARTS(X)
#undef X
    };
    return text[part];
}

static void add(struct edges *edges, enum wall_part part, double from, double to)
{
    if (!(from < to)) { // also where one of them is not known
        return;
    }
    if (edges->count + 2 > edges->room) {
        edges->room = 2 * edges->room + 64;
        edges->edge = xrealloc(edges->edge, edges->room, sizeof(*edges->edge));
    }
    edges->edge[edges->count++] = (struct edge){from, part, true};
    edges->edge[edges->count++] = (struct edge){to, part, false};
}

// The first of two times that is known.
static double known(double first, double second)
{
    return isnan(first) ? second : first;
}

static void add_job(struct edges *edges, const struct job_times *times)
{
    if (!times) {
        return;
    }
    double ended = known(times->ended, times->answered);
    double compiled = known(times->ready, known(times->running, ended));
    add(edges, WALL_QUEUED, times->submitted, times->answered);
    add(edges, WALL_COMPILING, times->compiling, compiled);
    add(edges, WALL_WAITING, times->ready, known(times->running, ended));
    add(edges, WALL_MEASURING, times->running, ended);
}

static int by_time(const void *a, const void *b)
{
    double x = ((const struct edge *)a)->at, y = ((const struct edge *)b)->at;
    return x < y ? -1 : x > y;
}

static void collect(const struct run_state *run_state, struct edges *edges)
{
    add_job(edges, run_state->baseline_times);
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        add_job(edges, candidate->compile_times);
        add_job(edges, candidate->measure_times);
        add_job(edges, candidate->record_times);
    }
    for (size_t i = 0; i < run_state->game_count; i++) {
        add_job(edges, run_state->game[i].times);
    }
    for (size_t i = 0; i < run_state->worker_count; i++) {
        add(edges, WALL_FORECASTING, run_state->worker[i].from, run_state->worker[i].to);
    }
    if (edges->count > 0) {
        qsort(edges->edge, edges->count, sizeof(*edges->edge), by_time);
    }
}

static enum wall_part part_of(const size_t open[WALL_PART_COUNT])
{
    enum wall_part part = WALL_MEASURING;
    while (part < WALL_PROPOSING && open[part] == 0) {
        part++;
    }
    return part;
}

// Who visits, and the stretch that is not told yet because the next one may be of the same part.
struct visitor {
    void (*visit)(void *owner, enum wall_part part, double begin, double end);
    void *owner;
    enum wall_part part;
    double begin, end;
};

static void tell(struct visitor *visitor)
{
    if (visitor->begin < visitor->end) {
        visitor->visit(visitor->owner, visitor->part, visitor->begin, visitor->end);
    }
    visitor->begin = visitor->end;
}

// The time at work up to `end` is of this part.
static void go_on(struct visitor *visitor, enum wall_part part, double end)
{
    if (part != visitor->part) {
        tell(visitor);
        visitor->part = part;
    }
    visitor->end = end > visitor->end ? end : visitor->end;
}

static void sweep(const struct run_state_window *window, const struct edges *edges,
                  struct visitor *visitor)
{
    double shift = window->wall_from - window->from;
    if (!window->recorded) {
        go_on(visitor, WALL_NOT_RECORDED, window->to + shift);
        return;
    }
    size_t open[WALL_PART_COUNT] = {0};
    go_on(visitor, WALL_START_UP, window->started_at + shift);
    for (size_t i = 0; i < edges->count && edges->edge[i].at < window->to; i++) {
        const struct edge *edge = &edges->edge[i];
        if (edge->at > window->started_at) {
            go_on(visitor, part_of(open), edge->at + shift);
        }
        open[edge->part] += edge->opens ? 1 : (size_t)-1;
    }
    go_on(visitor, part_of(open), window->to + shift);
}

void wall_time_visit(const struct run_state *run_state,
                     void (*visit)(void *owner, enum wall_part part, double begin, double end),
                     void *owner)
{
    struct edges edges = {0};
    struct visitor visitor = {.visit = visit, .owner = owner};
    collect(run_state, &edges);
    for (size_t i = 0; i < run_state->window_count; i++) {
        sweep(&run_state->window[i], &edges, &visitor);
    }
    tell(&visitor);
    free(edges.edge);
}

static void add_part(void *owner, enum wall_part part, double begin, double end)
{
    double *seconds = owner;
    seconds[part] += end - begin;
}

void wall_time_parts(const struct run_state *run_state, double ret[WALL_PART_COUNT])
{
    for (size_t i = 0; i < WALL_PART_COUNT; i++) {
        ret[i] = 0;
    }
    wall_time_visit(run_state, add_part, ret);
}

bool wall_time_is_recorded(const struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->window_count; i++) {
        if (run_state->window[i].recorded) {
            return true;
        }
    }
    return false;
}

// Adds what is known.
static void add_seconds(double *sum, double seconds)
{
    *sum += seconds > 0 ? seconds : 0; // false for NaN
}

static void add_result(struct work_seconds *work, const struct result *result)
{
    const struct accounts *seconds = result && !result->cached ? result->seconds : NULL;
    if (!seconds) {
        return;
    }
    add_seconds(&work->compiling, seconds->compile);
    add_seconds(&work->queued, seconds->queue);
    add_seconds(&work->held, seconds->held);
    add_seconds(&work->start, seconds->start);
    add_seconds(&work->inputs, seconds->inputs);
    add_seconds(&work->verify, seconds->verify);
    add_seconds(&work->time, seconds->time);
}

struct work_seconds work_seconds_of(const struct run_state *run_state)
{
    struct work_seconds work = {.asking = run_state->asked_seconds,
                                .compiling = run_state->compile_seconds};
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        if (candidate->forecast) {
            add_seconds(&work.forecasting, candidate->forecast->seconds);
        }
        add_result(&work, candidate->result);
        add_result(&work, candidate->record);
    }
    for (size_t i = 0; i < run_state->game_count; i++) {
        add_result(&work, run_state->game[i].result);
    }
    return work;
}
