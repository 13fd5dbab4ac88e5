#include "client/search/progress.h"

#include "client/show.h"
#include "client/status_line.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct progress {
    struct status_line *line;
    size_t points;
};

struct progress *progress_create(bool quiet, size_t points)
{
    struct progress *progress = xcalloc(1, sizeof(*progress));
    progress->line = status_line_create(stderr, quiet, &clock_system);
    progress->points = points;
    return progress;
}

void progress_free(struct progress *progress)
{
    if (progress) {
        status_line_free(progress->line);
        free(progress);
    }
}

// Which part of the search is over, by the limit that is nearest; 0 when there is no limit.
static double fraction(const struct run_state *run_state, size_t points, double wall)
{
    const struct run_started *started = &run_state->started;
    double most = points > 0 ? (double)run_state->candidate_count / (double)points : 0;
    const double parts[] = {
        started->candidates_max > 0
            ? (double)run_state->candidate_count / (double)started->candidates_max
            : 0,
        started->measurements_max > 0
            ? (double)run_state->measured / (double)started->measurements_max
            : 0,
        started->budget_seconds > 0 ? run_state->device_seconds / started->budget_seconds : 0,
        started->wall_limit_seconds > 0
            ? (wall - run_state->start_up_seconds) / started->wall_limit_seconds
            : 0,
    };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        most = parts[i] > most ? parts[i] : most;
    }
    return most;
}

// Adds ", <count> <what>" as a clause, with the limit where there is one.
static void add_count(struct strbuf *out, const char *what, uint64_t count, uint64_t limit)
{
    strbuf_addf(out, "\n%s %llu", what, (unsigned long long)count);
    if (limit > 0) {
        strbuf_addf(out, " of %llu", (unsigned long long)limit);
    }
}

void progress_describe(struct strbuf *out, const struct run_state *run_state, size_t points,
                       double now, const char *waiting)
{
    const struct run_started *started = &run_state->started;
    const struct run_state_candidate *best = run_state_best(run_state);
    double wall =
        run_state->wall_seconds + (now > run_state->last_at ? now - run_state->last_at : 0);
    double done = fraction(run_state, points, wall);
    char text[64];
    show_seconds(run_state->device_seconds, text, sizeof(text));
    strbuf_addf(out, "device %s", text);
    if (started->budget_seconds > 0) {
        show_seconds(started->budget_seconds, text, sizeof(text));
        strbuf_addf(out, " of %s", text);
    }
    if (done > 0.02 && done < 1) {
        show_seconds(wall * (1 - done) / done, text, sizeof(text));
        strbuf_addf(out, "\nabout %s left", text);
    }
    if (waiting) {
        strbuf_addf(out, "\n%s", waiting);
    }
    if (best) {
        show_speedup(best->record->speedup, text, sizeof(text));
        strbuf_addf(out, "\nbest %s", text);
    } else {
        strbuf_adds(out, "\nnothing faster yet");
    }
    add_count(out, "measured", run_state->measured, started->measurements_max);
    add_count(out, "considered", run_state->considered, started->candidates_max);
    add_count(out, "trusted", run_state->trusted, 0);
}

bool progress_is_due(const struct progress *progress)
{
    return status_line_due(progress->line);
}

void progress_draw(struct progress *progress, const struct run_state *run_state,
                   const char *waiting)
{
    status_line_waits(progress->line, waiting);
    if (!status_line_due(progress->line)) {
        return;
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct strbuf clauses = STRBUF_INIT;
    progress_describe(&clauses, run_state, progress->points,
                      (double)now.tv_sec + (double)now.tv_nsec * 1e-9, waiting);
    status_line_write(progress->line, strbuf_text(&clauses));
    strbuf_release(&clauses);
}

void progress_wipe(struct progress *progress)
{
    status_line_wipe(progress->line);
}

void progress_say(void *owner, const char *sentence)
{
    const struct progress *progress = owner;
    status_line_say(progress->line, sentence);
}
