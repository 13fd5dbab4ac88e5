// Round trips on loopback against a private kcastd (STATUS; SUBMIT of a finished job plus WAIT), one after the other and with 32
// in flight, and what 100,000 queued jobs cost in memory.
// With a URL the daemon there, which must know nothing yet: over tls:// with the certificates and the token that kcast would take.
//   bench_requests [SECONDS [URL]]
#include "client/pool.h"
#include "client/problem_dir.h"
#include "client/session.h"
#include "common/clock.h"
#include "common/parse.h"
#include "common/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define QUEUED 100000
#define CACHED 20000
#define SEARCHES 50
#define FLIGHT 32

static void die(const struct err *err)
{
    fprintf(stderr, "bench_requests: %s\n", err->text);
    exit(err_exit(err->code));
}

struct load {
    struct remote *remote;
    enum op op;
    const struct message *message, *answer;
    const void *body;
    uint64_t stop_ns, done, in_flight;
    double *latency_us;
    size_t latency_count, latency_size;
    bool failed;
};

struct one {
    struct load *load;
    uint64_t start_ns;
};

static void start_one(struct load *load);

static void on_reply(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct one *one = owner;
    struct load *load = one->load;
    (void)retry_after_ms;
    (void)reply;
    if (error != NULL && !load->failed) {
        fprintf(stderr, "bench_requests: %s\n", error->text);
        load->failed = true;
    }
    if (load->latency_count < load->latency_size)
        load->latency_us[load->latency_count++] = (double)(uv_hrtime() - one->start_ns) / 1000;
    free(one);
    load->done++;
    load->in_flight--;
    if (!load->failed && uv_hrtime() < load->stop_ns)
        start_one(load);
}

static void start_one(struct load *load)
{
    struct one *one = xmalloc(sizeof *one);
    *one = (struct one){load, uv_hrtime()};
    load->in_flight++;
    remote_call(load->remote, load->op, load->message, load->body, load->answer, 20000, on_reply, one);
}

static void run_load(struct session *session, struct load *load, size_t flight, double seconds, const char *name)
{
    uint64_t start = uv_hrtime();
    load->latency_size = 1 << 20;
    load->latency_us = xcalloc(load->latency_size, sizeof(double));
    load->stop_ns = start + (uint64_t)(seconds * 1e9);
    for (size_t i = 0; i < flight; i++)
        start_one(load);
    while (load->in_flight > 0)
        uv_run(session_loop(session), UV_RUN_ONCE);
    double took = (double)(uv_hrtime() - start) / 1e9;
    stats_sort(load->latency_us, load->latency_count);
    printf("%-34s %3zu in flight  %8.0f /s  p50 %7.1f us  p99 %7.1f us\n", name, flight, (double)load->done / took,
           stats_quantile(load->latency_us, load->latency_count, 0.5), stats_quantile(load->latency_us, load->latency_count, 0.99));
    free(load->latency_us);
    load->done = load->latency_count = 0;
    if (load->failed)
        exit(1);
}

struct answer {
    uint64_t job;
    bool done;
};

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct answer *answer = owner;
    (void)tag;
    if (error != NULL)
        die(error);
    answer->job = info->job;
    answer->done = true;
}

static double resident_mib(uint64_t pid)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%llu/statm", (unsigned long long)pid);
    FILE *f = fopen(path, "re");
    if (f == NULL || fscanf(f, "%*u %lu", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

// COUNT submits, each with a key of its own: distinct jobs, or always what the result cache knows.
struct flood {
    struct remote *remote;
    const char *name;
    struct job_spec spec;
    bool distinct;
    uint64_t count, next, answered, refused, cached;
};

static void submit_next(struct flood *flood);

static void on_submitted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct flood *flood = owner;
    (void)retry_after_ms;
    flood->answered++;
    if (error != NULL && flood->refused++ == 0)
        fprintf(stderr, "bench_requests: %s\n", error->text);
    if (error == NULL && ((struct submitted *)reply)->cached)
        flood->cached++;
    if (flood->next < flood->count)
        submit_next(flood);
}

static void submit_next(struct flood *flood)
{
    char search[32], key[32];
    uint64_t n = flood->next++;
    snprintf(search, sizeof search, "%s%llu", flood->name, (unsigned long long)(n % SEARCHES));
    snprintf(key, sizeof key, "k%llu", (unsigned long long)n);
    if (flood->distinct)
        flood->spec.repeat = n + 1;
    struct submit submit = {.search = search, .key = key, .spec = &flood->spec};
    remote_call(flood->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message, 60000, on_submitted, flood);
}

static double run_flood(struct session *session, struct flood *flood)
{
    uint64_t start = uv_hrtime();
    for (int i = 0; i < FLIGHT; i++)
        submit_next(flood);
    while (flood->answered < flood->count)
        uv_run(session_loop(session), UV_RUN_ONCE);
    if (flood->refused > 0)
        exit(1);
    return (double)(uv_hrtime() - start) / 1e9;
}

static void bench_cached(struct session *session, struct remote *remote, const struct job_spec *spec)
{
    struct flood flood = {.remote = remote, .name = "cached", .spec = *spec, .count = CACHED};
    double took = run_flood(session, &flood);
    printf("%-34s %3d in flight  %8.0f /s, %llu of %d answered from the cache, each in the ledger before its reply\n",
           "SUBMIT, new key, cached result", FLIGHT, CACHED / took, (unsigned long long)flood.cached, CACHED);
}

static void bench_memory(struct session *session, struct remote *remote, const struct job_spec *spec, uint64_t pid)
{
    struct flood flood = {.remote = remote, .name = "flood", .spec = *spec, .distinct = true, .count = QUEUED};
    double before = resident_mib(pid), took = run_flood(session, &flood), after = resident_mib(pid);
    printf("%-34s %3d in flight  %8.0f /s, each in the ledger before its reply; resident %.1f MiB, before %.1f MiB: %.0f bytes a job\n",
           "SUBMIT of 100,000 distinct jobs", FLIGHT, QUEUED / took, after, before, (after - before) * (1 << 20) / QUEUED);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    double seconds = 3;
    struct session *session = NULL;
    struct session_options options = {.local = argc < 3, .quiet = true, .pool = argc < 3 ? NULL : argv[2]};
    struct remote *remote = NULL;
    struct problem_dir dir;
    struct pool *pool = NULL;
    struct job_spec spec;
    struct answer answer = {0};
    if ((argc > 1 && parse_f64(&seconds, argv[1], 0.1, 600, "SECONDS", &err) < 0) || session_create(&session, &options, &err) < 0 ||
        problem_dir_load(&dir, "tests/data/bench/tiny", &err) < 0 || pool_create(&pool, session, "bench", &err) < 0 ||
        session_pool(session, &remote, &err) < 0)
        die(&err);
    pool_add_problem(pool, &dir);
    problem_dir_spec(&dir, JOB_MEASURE, &dir.baseline_digest, &spec);
    pool_submit(pool, "first", &spec, 0, on_job, &answer, 0);
    if (pool_drain(pool, &err) < 0)
        die(&err);

    struct status_request nothing = {0};
    struct load status = {.remote = remote, .op = OP_STATUS, .message = &status_request_message, .answer = &status_message, .body = &nothing};
    run_load(session, &status, 1, seconds, "STATUS");
    run_load(session, &status, FLIGHT, seconds, "STATUS");
    struct submit submit = {.search = (char *)(uintptr_t) "bench", .key = (char *)(uintptr_t) "first", .spec = &spec};
    struct load cached = {.remote = remote, .op = OP_SUBMIT, .message = &submit_message, .answer = &submitted_message, .body = &submit};
    run_load(session, &cached, 1, seconds, "SUBMIT of a finished job");
    run_load(session, &cached, FLIGHT, seconds, "SUBMIT of a finished job");
    struct wait wait = {.jobs = &answer.job, .jobs_count = 1, .max_ms = 1000};
    struct load waits = {.remote = remote, .op = OP_WAIT, .message = &wait_message, .answer = &waited_message, .body = &wait};
    run_load(session, &waits, 1, seconds, "WAIT of a finished job");
    run_load(session, &waits, FLIGHT, seconds, "WAIT of a finished job");

    struct hello_reply hello;
    if (remote_hello(remote, "kcastd", &hello, &err) < 0)
        die(&err);
    bench_cached(session, remote, &spec);
    bench_memory(session, remote, &spec, hello.pid);
    run_load(session, &status, FLIGHT, seconds, "STATUS with 100,000 jobs queued");
    message_clear(&hello_reply_message, &hello);
    pool_close(pool);
    problem_dir_release(&dir);
    session_free(session);
    return 0;
}
