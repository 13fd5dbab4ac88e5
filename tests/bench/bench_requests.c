// Round trips on loopback against a private kcastd, over one connection and over many: STATUS, of
// the daemon and of one job; SUBMIT and WAIT of a finished job; and what a search does about a
// candidate that the cache has (SUBMIT with a new key, WAIT, and an ACK for every 64). Then the
// same with 100,000 jobs queued, and the memory that these take. Client and daemon share the
// machine. While jobs are queued the devices are drained, so that no job runs and only requests are
// measured. With a URL, the daemon there is used instead. It must have no jobs and allow a search
// to queue 4,096. A tls:// URL uses the certificates and the token that kcast would use.
//  bench_requests [SECONDS [URL]]
#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"
#include "tests/bench/load.h"
#include "tests/bench/samples.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define QUEUED 100000
#define SEARCHES 50
#define FLIGHT 32
#define WIDE 32
#define ACKED 64 // finished jobs of one ACK

struct bench {
    struct session *session;
    struct connections connections;
    struct job_spec spec; // of a job whose result the cache has
    double seconds;
};

static struct submit submit_of(const char *search, const char *key, const struct job_spec *spec)
{
    struct submit submit; // packed, never changed

    message_init(&submit_message, &submit);
    submit.search = (char *)(uintptr_t)search;
    submit.key = (char *)(uintptr_t)key;
    submit.spec = (struct job_spec *)(uintptr_t)spec;
    return submit;
}

// ---- a candidate that the cache has ----

struct pairs {
    const struct job_spec *spec;
    uint64_t next; // number of the next key
    uint64_t uncached;
    uint64_t finished[ACKED];
    size_t finished_count;
    size_t acks; // ACKs without an answer yet
};

static void on_acked(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct pairs *pairs = owner;

    (void)retry_after_ms;
    (void)reply;
    if (error) {
        die(error);
    }
    pairs->acks--;
}

static void on_waited(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct round *round = owner;
    struct pairs *pairs = round->load->owner;
    const struct waited *waited = reply;

    (void)retry_after_ms;
    if (error) {
        die(error);
    }
    pairs->uncached += waited->jobs_count != 1 || !waited->jobs[0].result;
    pairs->finished[pairs->finished_count++] = round->job;
    if (pairs->finished_count == ACKED) {
        struct job_ids ids = {.jobs = pairs->finished, .jobs_count = ACKED};

        remote_call(round->remote, OP_ACK, &job_ids_message, &ids, &empty_message, 20000, on_acked,
                    pairs);
        pairs->acks++;
        pairs->finished_count = 0;
    }
    load_round_done(round);
}

static void on_paired(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct round *round = owner;
    const struct submitted *submitted = reply;
    struct wait wait = {.jobs = &round->job, .jobs_count = 1, .max_ms = 1000};

    (void)retry_after_ms;
    if (error) {
        die(error);
    }
    round->job = submitted->job;
    ((struct pairs *)round->load->owner)->uncached += !submitted->cached;
    remote_call(round->remote, OP_WAIT, &wait_message, &wait, &waited_message, 20000, on_waited,
                round);
}

static void begin_pair(struct round *round)
{
    struct pairs *pairs = round->load->owner;
    char search[32], key[32];
    uint64_t n = pairs->next++;
    struct submit submit = submit_of(search, key, pairs->spec);

    (void)snprintf(search, sizeof(search), "cached%llu", (unsigned long long)(n % SEARCHES));
    (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)n);
    remote_call(round->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message, 20000,
                on_paired, round);
}

static void run_pairs(struct bench *bench, struct pairs *pairs, size_t wide, size_t flight,
                      const char *name)
{
    struct load load = {.name = name, .begin = begin_pair, .owner = pairs};

    load_run(bench->session, &bench->connections, wide, &load, flight, bench->seconds);
    while (pairs->acks > 0) {
        uv_run(session_loop(bench->session), UV_RUN_ONCE);
    }
    if (pairs->uncached > 0) {
        printf("   %llu were not answered from the cache\n", (unsigned long long)pairs->uncached);
        exit(1);
    }
}

// ---- single calls ----

static void run_plain(struct bench *bench, struct plain *plain, const char *name)
{
    static const size_t flights[][2] = {{1, 1}, {1, FLIGHT}, {WIDE, WIDE}};
    struct load load = {.name = name, .begin = load_begin_plain, .owner = plain};

    for (size_t i = 0; i < ARRAY_LEN(flights); i++) {
        load_run(bench->session, &bench->connections, flights[i][0], &load, flights[i][1],
                 bench->seconds);
    }
}

// ---- many jobs ----

static double resident_mib(uint64_t pid)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%llu/statm", (unsigned long long)pid);
    FILE *f = fopen(path, "re");
    unsigned long pages = 0;
    if (!f || fscanf(f, "%*u %lu", &pages) != 1) {
        pages = 0;
    }
    if (f) {
        (void)fclose(f);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

// Submits QUEUED different jobs, each with its own key.
struct queueing {
    struct remote *remote;
    struct job_spec spec;
    uint64_t next, answered;
};

static void submit_next(struct queueing *queueing);

static void on_queued(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct queueing *queueing = owner;

    (void)retry_after_ms;
    (void)reply;
    if (error) {
        die(error);
    }
    queueing->answered++;
    if (queueing->next < QUEUED) {
        submit_next(queueing);
    }
}

static void submit_next(struct queueing *queueing)
{
    char search[32];
    uint64_t n = queueing->next++;

    (void)snprintf(search, sizeof(search), "queued%llu", (unsigned long long)(n % SEARCHES));
    char key[32];
    (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)n);
    queueing->spec.repeat = n + 1; // a job that no cache has
    struct submit submit = submit_of(search, key, &queueing->spec);
    remote_call(queueing->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message, 60000,
                on_queued, queueing);
}

// Drains all devices, so that they take no more jobs.
static void drain(struct bench *bench)
{
    struct remote *remote = bench->connections.remote[0];
    struct status_request nothing = {0};
    struct status status;
    struct err err = ERR_INIT;

    if (remote_call_sync(remote, OP_STATUS, &status_request_message, &nothing, &status_message,
                         &status, 5000, &err) < 0) {
        die(&err);
    }
    struct drain request = {.reason = NULL};
    request.devices = xcalloc(status.devices_count + 1, sizeof(*request.devices));
    for (size_t i = 0; i < status.devices_count; i++) {
        request.devices[request.devices_count++] = status.devices[i].name;
    }
    struct empty empty;
    if (remote_call_sync(remote, OP_DRAIN, &drain_message, &request, &empty_message, &empty, 5000,
                         &err) < 0) {
        die(&err);
    }
    free(request.devices);
    message_clear(&status_message, &status);
}

static void queue_many(struct bench *bench, uint64_t pid)
{
    struct queueing queueing = {.remote = bench->connections.remote[0], .spec = bench->spec};
    double before = resident_mib(pid), after;
    uint64_t start = uv_hrtime();

    for (int i = 0; i < FLIGHT; i++) {
        submit_next(&queueing);
    }
    while (queueing.answered < QUEUED) {
        uv_run(session_loop(bench->session), UV_RUN_ONCE);
    }
    after = resident_mib(pid);
    printf("%-38s %3d connections %4d in flight %8.0f /s, each in the ledger before its reply; "
           "resident %.1f MiB, before %.1f MiB: %.0f bytes a job\n",
           "SUBMIT of 100,000 distinct jobs", 1, FLIGHT,
           QUEUED / ((double)(uv_hrtime() - start) / NS_PER_S), after, before,
           (after - before) * (1 << 20) / QUEUED);
}

// ---- the program ----

struct answer {
    uint64_t job;
};

static void on_job(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    (void)tag;
    if (error) {
        die(error);
    }
    ((struct answer *)owner)->job = info->job;
}

static void run_all(struct bench *bench, uint64_t finished, uint64_t pid)
{
    struct status_request nothing = {0};
    struct status_request one = {.jobs = &finished, .jobs_count = 1};
    struct plain status = {OP_STATUS, &status_request_message, &status_message, &nothing};
    struct plain status_job = {OP_STATUS, &status_request_message, &status_message, &one};
    struct submit submit = submit_of("bench", "first", &bench->spec);
    struct plain again = {OP_SUBMIT, &submit_message, &submitted_message, &submit};
    struct wait wait = {.jobs = &finished, .jobs_count = 1, .max_ms = 1000};
    struct plain waits = {OP_WAIT, &wait_message, &waited_message, &wait};
    struct pairs pairs = {.spec = &bench->spec};

    run_plain(bench, &status, "STATUS");
    run_plain(bench, &status_job, "STATUS of one job");
    run_plain(bench, &again, "SUBMIT of a finished job");
    run_plain(bench, &waits, "WAIT of a finished job");
    run_pairs(bench, &pairs, 1, 1, "cached SUBMIT, WAIT");
    run_pairs(bench, &pairs, WIDE, WIDE, "cached SUBMIT, WAIT");
    drain(bench);
    queue_many(bench, pid);
    run_plain(bench, &status, "STATUS, 100,000 jobs queued");
    run_plain(bench, &status_job, "STATUS of one job, 100,000 queued");
    run_pairs(bench, &pairs, 1, 1, "cached SUBMIT, WAIT, 100,000 queued");
    run_pairs(bench, &pairs, WIDE, WIDE, "cached SUBMIT, WAIT, 100,000 queued");
}

int main(int argc, char **argv)
{
    struct session_options options = {
        .local = argc < 3, .quiet = true, .pool = argc < 3 ? NULL : argv[2]};
    struct bench bench = {.seconds = 3};
    struct err err = ERR_INIT;
    struct problem_dir dir;
    struct job_client *pool = NULL;

    if ((argc > 1 && parse_f64(&bench.seconds, argv[1], 0.1, 600, "SECONDS", &err) < 0) ||
        session_create(&bench.session, &options, &err) < 0 ||
        problem_dir_load(&dir, "tests/data/bench/tiny", &err) < 0 ||
        samples_open(&pool, bench.session, "bench", &err) < 0) {
        die(&err);
    }
    samples_add_problem(pool, &dir);
    problem_dir_spec(&dir, JOB_MEASURE, &dir.baseline_digest, &bench.spec);
    struct answer answer = {0};
    job_client_submit(pool, "first", &bench.spec, 0, on_job, &answer, 0);
    if (job_client_drain(pool, &err) < 0) {
        die(&err);
    }
    connections_open(&bench.connections, bench.session, WIDE);
    struct hello_reply hello;
    if (remote_hello_sync(bench.connections.remote[0], "kcastd", &hello, &err) < 0) {
        die(&err);
    }
    run_all(&bench, answer.job, hello.pid);
    message_clear(&hello_reply_message, &hello);
    connections_close(&bench.connections);
    job_client_close(pool);
    problem_dir_release(&dir);
    session_free(bench.session);
    return 0;
}
