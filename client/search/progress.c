#include "client/search/progress.h"

#include "client/show.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_NS (100 * NS_PER_MS)
#define WIDTH_DEFAULT 80

struct progress {
    bool on;
    bool quiet;
    size_t points;
    uint64_t drawn_ns; // monotonic time of the last drawing; 0: none
    bool dirty;        // the line on the terminal is not empty
};

struct progress *progress_create(bool quiet, size_t points)
{
    struct progress *progress = xcalloc(1, sizeof(*progress));
    const char *term = getenv("TERM");
    progress->on = !quiet && isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
    progress->quiet = quiet;
    progress->points = points;
    return progress;
}

static void wipe(struct progress *progress)
{
    if (progress->dirty) {
        fputs("\r\033[K", stderr);
        progress->dirty = false;
    }
}

void progress_free(struct progress *progress)
{
    if (progress) {
        wipe(progress);
        free(progress);
    }
}

bool progress_is_on(const struct progress *progress)
{
    return progress->on;
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

// Writes the text of the line to out. now is the wall clock in seconds since 1970.
static void describe(const struct run_state *run_state, size_t points, double now, char *out,
                     size_t size)
{
    struct strbuf line;
    const struct run_started *started = &run_state->started;
    const struct run_state_candidate *best = run_state_best(run_state);
    double wall =
        run_state->wall_seconds + (now > run_state->last_at ? now - run_state->last_at : 0);
    double done = fraction(run_state, points, wall);
    strbuf_init(&line, size - 1);
    strbuf_addf(&line, "considered %llu", (unsigned long long)run_state->considered);
    strbuf_addf(&line, ", measured %llu", (unsigned long long)run_state->measured);
    if (started->measurements_max > 0) {
        strbuf_addf(&line, " of %llu", (unsigned long long)started->measurements_max);
    }
    strbuf_addf(&line, ", trusted %llu", (unsigned long long)run_state->trusted);
    char text[64];
    if (best) {
        show_speedup(best->record->speedup, text, sizeof(text));
        strbuf_addf(&line, ", best %s", text);
    } else {
        strbuf_adds(&line, ", nothing faster yet");
    }
    show_seconds(run_state->device_seconds, text, sizeof(text));
    strbuf_addf(&line, ", device %s", text);
    if (started->budget_seconds > 0) {
        show_seconds(started->budget_seconds, text, sizeof(text));
        strbuf_addf(&line, " of %s", text);
    }
    if (done > 0.02 && done < 1) {
        show_seconds(wall * (1 - done) / done, text, sizeof(text));
        strbuf_addf(&line, ", about %s left", text);
    }
    snprintf(out, size, "%s", strbuf_text(&line));
    strbuf_release(&line);
}

void progress_draw(struct progress *progress, const struct run_state *run_state)
{
    uint64_t now_ns = clock_now_ns(&clock_system);
    if (!progress->on || (progress->drawn_ns != 0 && now_ns - progress->drawn_ns < INTERVAL_NS)) {
        return;
    }
    progress->drawn_ns = now_ns;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char text[512];
    describe(run_state, progress->points, (double)now.tv_sec + (double)now.tv_nsec * 1e-9, text,
             sizeof(text));
    struct winsize window;
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1 ? window.ws_col
                                                                                    : WIDTH_DEFAULT;
    fputs("\r", stderr);
    printable_printf(stderr, "%.*s", width - 1, text);
    fputs("\033[K", stderr);
    progress->dirty = true;
}

void progress_say(void *owner, const char *sentence)
{
    struct progress *progress = owner;
    if (!progress->quiet) {
        wipe(progress);
        printable_printf(stderr, "kcast: %s\n", sentence);
    }
}
