#include "client/run/run_state_time.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

void run_state_release_time(struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->device_count; i++) {
        free(run_state->device[i].pool);
        free(run_state->device[i].name);
    }
    free(run_state->device);
    free(run_state->window);
    free(run_state->worker);
}

static struct run_state_window *add_window(struct run_state *run_state, double from, bool recorded)
{
    size_t count = run_state->window_count++;
    run_state->window = xrealloc(run_state->window, count + 1, sizeof(*run_state->window));
    run_state->window[count] = (struct run_state_window){.from = from,
                                                         .to = from,
                                                         .wall_from = run_state->wall_seconds,
                                                         .started_at = from,
                                                         .recorded = recorded};
    return &run_state->window[count];
}

// A session is recorded when its daemons and devices were found; what came before is start-up.
static void add_session(struct run_state *run_state, double at)
{
    double from = run_state->session.began_at;
    bool recorded = from > 0; // false for NaN
    size_t windows = run_state->window_count;
    if (windows > 0 && from < run_state->window[windows - 1].to) {
        from = run_state->window[windows - 1].to; // the clock has jumped: this was counted before
    }
    if (!(recorded && from < at)) {
        from = at;
    }
    struct run_state_window *window = add_window(run_state, from, recorded);
    window->to = window->started_at = at;
    run_state->wall_seconds += at - from;
    run_state->start_up_seconds += at - from;
}

void run_state_add_time(struct run_state *run_state, enum run_event_kind kind, double at)
{
    if (kind == RUN_SESSION) {
        add_session(run_state, at);
        return;
    }
    // What is given to a search that has ended comes after a pause, and before its next session.
    if (run_state->last_sequence == 0 || !(at > run_state->last_at) || kind == RUN_EXTENDED) {
        return;
    }
    struct run_state_window *window =
        run_state->window_count > 0 ? &run_state->window[run_state->window_count - 1] : NULL;
    if (!window || window->to < run_state->last_at || window->to > run_state->last_at) {
        window = add_window(run_state, run_state->last_at, window && window->recorded);
    }
    window->to = at;
    run_state->wall_seconds += at - run_state->last_at;
}

void run_state_add_worker(struct run_state *run_state, double from, double to)
{
    size_t count = run_state->worker_count;
    if (!(from > 0 && from < to)) {
        return;
    }
    struct run_state_span *last = count > 0 ? &run_state->worker[count - 1] : NULL;
    if (last && from >= last->from && from <= last->from) {
        last->to = to;
        return;
    }
    // The array has room for 2^k - 1 spans and doubles when it is full.
    if ((count & (count + 1)) == 0) {
        run_state->worker = xrealloc(run_state->worker, 2 * count + 1, sizeof(*run_state->worker));
    }
    run_state->worker[run_state->worker_count++] = (struct run_state_span){from, to};
}

static bool is_of(const struct run_state_device *device, const char *pool, const char *name)
{
    return strcmp(device->name, name) == 0 &&
           strcmp(device->pool ? device->pool : "", pool ? pool : "") == 0;
}

void run_state_add_run(struct run_state *run_state, const char *pool, const struct result *result)
{
    if (!result->device || result->cached) {
        return;
    }
    size_t i = 0;
    while (i < run_state->device_count && !is_of(&run_state->device[i], pool, result->device)) {
        i++;
    }
    if (i == run_state->device_count) {
        run_state->device = xrealloc(run_state->device, i + 1, sizeof(*run_state->device));
        run_state->device[i] = (struct run_state_device){.pool = pool ? xstrdup(pool) : NULL,
                                                         .name = xstrdup(result->device)};
        run_state->device_count++;
    }
    run_state->device[i].runs++;
    run_state->device[i].held_seconds += run_state_held_seconds(result);
}
