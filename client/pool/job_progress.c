#include "client/pool/job_progress.h"

#include "client/pool/daemon_pool.h"
#include "client/session.h"
#include "client/show.h"
#include "client/status_line.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdlib.h>

struct job_progress {
    struct daemon_pool *daemon_pool; // NULL: none
    const char *what;
    size_t done, total; // total 0: there is nothing to count
    const struct clock *clock;
    uint64_t began_ns;
    struct status_line *line;
    uv_timer_t *tick; // writes the line; freed by its close callback
};

static void on_tick(uv_timer_t *timer)
{
    struct job_progress *job_progress = timer->data;
    char *waiting =
        job_progress->daemon_pool ? daemon_pool_waiting(job_progress->daemon_pool) : NULL;

    status_line_waits(job_progress->line, waiting);
    if (status_line_due(job_progress->line)) {
        char passed[32];
        struct strbuf clauses = STRBUF_INIT;

        show_seconds(clock_seconds(clock_now_ns(job_progress->clock) - job_progress->began_ns),
                     passed, sizeof(passed));
        strbuf_adds(&clauses, job_progress->what);
        if (job_progress->total > 0) {
            strbuf_addf(&clauses, " %zu of %zu", job_progress->done, job_progress->total);
        }
        strbuf_addf(&clauses, "\n%s", passed);
        if (waiting) {
            strbuf_addf(&clauses, "\n%s", waiting);
        }
        status_line_write(job_progress->line, strbuf_text(&clauses));
        strbuf_release(&clauses);
    }
    free(waiting);
}

struct job_progress *job_progress_create(struct session *session, struct daemon_pool *daemon_pool,
                                         const char *what, FILE *out, const struct clock *clock)
{
    struct job_progress *job_progress = xcalloc(1, sizeof(*job_progress));
    bool quiet = session_options(session)->quiet;

    job_progress->daemon_pool = daemon_pool;
    job_progress->what = what;
    job_progress->clock = clock;
    job_progress->began_ns = clock_now_ns(clock);
    job_progress->line = status_line_create(out, quiet, clock);
    job_progress->tick = xcalloc(1, sizeof(*job_progress->tick));
    uv_timer_init(session_loop(session), job_progress->tick);
    job_progress->tick->data = job_progress;
    if (daemon_pool) {
        daemon_pool_set_notice(daemon_pool, status_line_say, job_progress->line);
    }
    if (!quiet) {
        uv_timer_start(job_progress->tick, on_tick, 0, STATUS_LINE_TICK_MS);
    }
    return job_progress;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void job_progress_free(struct job_progress *job_progress)
{
    if (job_progress) {
        if (job_progress->daemon_pool) {
            daemon_pool_set_notice(job_progress->daemon_pool, NULL, NULL);
        }
        uv_close((uv_handle_t *)job_progress->tick, free_handle);
        status_line_free(job_progress->line);
        free(job_progress);
    }
}

void job_progress_set(struct job_progress *job_progress, const char *what, size_t done,
                      size_t total)
{
    job_progress->what = what;
    job_progress->done = done;
    job_progress->total = total;
}

void job_progress_wipe(struct job_progress *job_progress)
{
    status_line_wipe(job_progress->line);
}
