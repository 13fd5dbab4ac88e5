// What a flood of one search does to another. The search that is timed has one job at a time on one
// CPU device, of a private kcastd or of the daemon at URL. Timed is how long it waits for each job,
// from submission to verdict: alone; beside a search that keeps two jobs there; beside one that has
// queued as many as it may; and beside one that then goes on submitting as soon as it is refused,
// whatever the daemon says about when to come again.
//  bench_flood [JOBS [URL]]      jobs of each part, default 50
#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "tests/bench/samples.h"
#include <stdio.h>
#include <stdlib.h>

struct waiting {
    bool done;
};

static void on_verdict(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    (void)tag;
    if (error) {
        die(error);
    }
    if (!info->result) {
        fprintf(stderr, "benchmark: %s\n", info->reason ? info->reason : "no result");
        exit(1);
    }
    ((struct waiting *)owner)->done = true;
}

// Measures `jobs` jobs one after the other. Returns how long each took in milliseconds, sorted; the
// caller frees the array.
static double *waits_of(struct session *session, const struct problem_dir *dir, const char *search,
                        size_t jobs)
{
    double *ms = xcalloc(jobs, sizeof(*ms));
    struct job_client *pool = NULL;
    struct err err = ERR_INIT;
    static uint64_t serial;

    if (samples_open(&pool, session, search, &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, dir);
    struct job_spec spec;
    problem_dir_spec(dir, JOB_MEASURE, &dir->baseline_digest, &spec);
    for (size_t i = 0; i < jobs; i++) {
        uint64_t start = uv_hrtime();
        char key[32];

        (void)snprintf(key, sizeof(key), "k%zu", i);
        spec.repeat = ++serial; // a job that no cache has
        struct waiting waiting = {.done = false};
        job_client_submit(pool, key, &spec, 0, on_verdict, &waiting, 0);
        while (!waiting.done) {
            if (job_client_run_once(pool, &err) < 0) {
                die(&err);
            }
        }
        ms[i] = (double)(uv_hrtime() - start) / NS_PER_MS;
    }
    job_client_close(pool);
    stats_sort(ms, jobs);
    return ms;
}

enum rate_limit {
    KEEPS_TWO, // submits the next one when one is finished
    FILLS,     // submits until it is refused
    GOES_ON,   // submits again as soon as it is refused
};

struct neighbour {
    struct remote *remote;
    struct job_spec spec;
    const char *search;
    uint64_t next, accepted, refused;
    size_t calls; // calls without an answer yet
    enum rate_limit rate_limit;
    bool stops;
};

static void submit(struct neighbour *n);

static void on_waited(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct neighbour *n = owner;
    const struct waited *waited = reply;

    (void)retry_after_ms;
    n->calls--;
    if (error && !n->stops) {
        die(error);
    }
    if (!error && waited->jobs_count == 0) {
        fprintf(stderr, "benchmark: a job of the neighbour took longer than a minute\n");
        exit(1);
    }
    submit(n);
}

static void on_submitted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct neighbour *n = owner;

    (void)retry_after_ms;
    n->calls--;
    if (error && error->code != ERR_BUSY && !n->stops) {
        die(error);
    }
    n->accepted += !error;
    n->refused += error ? 1 : 0;
    if (!error && n->rate_limit == KEEPS_TWO && !n->stops) {
        uint64_t job = ((struct submitted *)reply)->job;
        struct wait wait = {.jobs = &job, .jobs_count = 1, .max_ms = 60000};

        n->calls++;
        remote_call(n->remote, OP_WAIT, &wait_message, &wait, &waited_message, 70000, on_waited, n);
    } else if (!error || n->rate_limit == GOES_ON) {
        submit(n);
    }
}

static void submit(struct neighbour *n)
{
    if (n->stops) {
        return;
    }
    struct submit submit;
    message_init(&submit_message, &submit);
    char key[32];
    (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)n->next++);
    submit.search = (char *)(uintptr_t)n->search; // packed, never changed
    submit.key = key;
    submit.spec = &n->spec;
    n->spec.repeat = UINT32_MAX + n->next;
    n->calls++;
    remote_call(n->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message, 20000,
                on_submitted, n);
}

// Cancels the jobs that the neighbour has at the daemon, and waits until all its calls are
// answered.
static void stop(struct neighbour *n, struct session *session)
{
    struct job_ids ids = {.search = (char *)(uintptr_t)n->search};

    n->stops = true;
    struct job_infos infos;
    struct err err = ERR_INIT;
    if (remote_call_sync(n->remote, OP_CANCEL, &job_ids_message, &ids, &job_infos_message, &infos,
                         60000, &err) < 0) {
        die(&err);
    }
    message_clear(&job_infos_message, &infos);
    while (n->calls > 0) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
}

static void print(const char *name, const double *ms, size_t jobs)
{
    printf("%-44s p50 %6.0f ms  p90 %6.0f ms  most %6.0f ms\n", name, stats_quantile(ms, jobs, 0.5),
           stats_quantile(ms, jobs, 0.9), stats_quantile(ms, jobs, 1));
}

static void run_beside(struct session *session, const struct problem_dir *dir, size_t jobs,
                       enum rate_limit rate_limit, const char *name)
{
    struct neighbour n = {.search = name, .rate_limit = rate_limit};
    char *own = xasprintf("beside %s", name);
    struct err err = ERR_INIT;
    struct remote *first;

    if (session_daemon(session, &first, &err) < 0 ||
        session_remote(session, remote_url(first), &n.remote, &err) < 0) {
        die(&err);
    }
    problem_dir_spec(dir, JOB_MEASURE, &dir->baseline_digest, &n.spec);
    submit(&n);
    if (rate_limit == KEEPS_TWO) {
        submit(&n);
    }
    while (rate_limit != KEEPS_TWO && n.refused == 0) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
    double *ms = waits_of(session, dir, own, jobs);
    print(own, ms, jobs);
    printf("   the neighbour's: %llu accepted, %llu refused\n", (unsigned long long)n.accepted,
           (unsigned long long)n.refused);
    stop(&n, session);
    remote_close(n.remote);
    free(ms);
    free(own);
}

int main(int argc, char **argv)
{
    const struct session_options options = {
        .local = argc < 3, .quiet = true, .pool = argc < 3 ? NULL : argv[2]};
    struct session *session = NULL;
    struct err err = ERR_INIT;
    struct problem_dir dir;
    uint64_t jobs = 50;

    if ((argc > 1 && parse_u64(&jobs, argv[1], 1, 100000, "JOBS", &err) < 0) ||
        session_create(&session, &options, &err) < 0 ||
        problem_dir_load(&dir, "tests/data/bench/tiny", &err) < 0) {
        die(&err);
    }
    free(waits_of(session, &dir, "warm-up", 5));
    double *ms = waits_of(session, &dir, "alone", (size_t)jobs);
    print("alone", ms, (size_t)jobs);
    free(ms);
    run_beside(session, &dir, (size_t)jobs, KEEPS_TWO, "a search that keeps two jobs there");
    run_beside(session, &dir, (size_t)jobs, FILLS, "one that has queued all it may");
    run_beside(session, &dir, (size_t)jobs, GOES_ON, "one that does not stop submitting");
    problem_dir_release(&dir);
    session_free(session);
    return 0;
}
