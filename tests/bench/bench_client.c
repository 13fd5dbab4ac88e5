// What the client itself costs: a search of a template through the whole pipeline, with a run file
// on disk. The daemon and the worker are stand-ins that answer at once with results of a recorded
// space, so that only the client uses the processor.
//  bench_client SPACE PROBLEM [CANDIDATES]     default 10000; PROBLEM needs a template with at
//                                              least as many points
#include "client/problem/problem_dir.h"
#include "client/run/run_state.h"
#include "client/search/pipeline.h"
#include "client/space/space.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/stats.h"
#include "common/version.h"
#include "proto/bins.h"
#include "tests/bench/samples.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MEASURED 0.15 // share of the candidates that are forecast to improve
#define STREAM_ROW 0x726f7773ULL

// An answer that has not been delivered yet.
struct answer {
    struct answer *next;
    job_service_callback *done; // for a job; for other calls one of the next two is set
    forecast_service_callback *forecasts;
    forecast_service_told *told;
    void *owner;
    uint64_t tag, kind, job, first, last;
    bool fresh;
};

struct peers {
    struct job_service daemon;
    struct forecast_service worker;
    const struct space *space;
    struct answer *head, **tail;
    uint64_t jobs;
};

struct bench {
    struct space space;
    struct problem_dir dir;
    struct generator *generator;
    struct peers peers;
    struct run *run;
    struct run_state run_state;
    struct pipeline *pipeline;
};

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(int code, const struct err *err)
{
    if (code != 0) {
        die(err);
    }
}

// ---- the stand-ins for daemon and worker ----

static void expect(struct peers *peers, struct answer one)
{
    struct answer *answer = xmemdup(&one, sizeof(one));

    *peers->tail = answer;
    peers->tail = &answer->next;
}

static void submit(struct job_service *daemon, const char *key, const struct job_spec *spec,
                   uint64_t priority, job_service_callback *callback, void *callee, uint64_t tag)
{
    struct peers *peers = (struct peers *)((uintptr_t)daemon - offsetof(struct peers, daemon));

    (void)key;
    (void)priority;
    expect(peers, (struct answer){.done = callback,
                                  .owner = callee,
                                  .tag = tag,
                                  .kind = spec->kind,
                                  .fresh = spec->fresh,
                                  .job = ++peers->jobs});
}

static void ack(struct job_service *daemon, struct job_ref ref)
{
    (void)daemon;
    (void)ref;
}

static const char *where(const struct job_service *daemon, struct job_ref ref)
{
    (void)daemon;
    (void)ref;
    return NULL;
}

static struct peers *of_worker(struct forecast_service *worker)
{
    return (struct peers *)((uintptr_t)worker - offsetof(struct peers, worker));
}

static void ask(struct forecast_service *worker, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_service_callback *callback, void *callee)
{
    (void)run_state;
    (void)visible;
    expect(of_worker(worker),
           (struct answer){.forecasts = callback, .owner = callee, .first = first, .last = last});
}

static void tell(struct forecast_service *worker, const struct run_state *run_state, uint64_t after,
                 uint64_t last, forecast_service_told *callback, void *callee)
{
    (void)run_state;
    expect(of_worker(worker),
           (struct answer){.told = callback, .owner = callee, .first = after, .last = last});
}

// The candidate of the space whose outcome the candidate with this tag gets.
static const struct space_candidate *row_of(const struct peers *peers, uint64_t tag, bool compiled)
{
    uint64_t at = stats_philox(1, STREAM_ROW, tag) % peers->space->head.candidates;

    for (;; at = (at + 1) % peers->space->head.candidates) {
        const struct space_candidate *row = &peers->space->candidate[at];
        if (compiled ? row->compiled && row->compiled->verdict == VERDICT_NONE : !!row->result) {
            return row;
        }
    }
}

static void answer_job(const struct peers *peers, const struct answer *answer)
{
    const struct space_candidate *row = row_of(peers, answer->tag, answer->kind == JOB_COMPILE);
    struct job_info info;

    message_init(&job_info_message, &info);
    info.job = answer->job;
    info.kind = answer->kind;
    info.state = JOB_DONE;
    if (answer->kind == JOB_COMPILE) {
        info.compiled = xmalloc(sizeof(*info.compiled));
        message_copy(&compiled_message, info.compiled, row->compiled);
        info.compiled->object = digest_of(&answer->tag, sizeof(answer->tag));
    } else {
        info.result = xmalloc(sizeof(*info.result));
        message_copy(&result_message, info.result, row->result);
    }
    answer->done(answer->owner, answer->tag, (struct job_ref){.job = answer->job}, &info, NULL);
    message_clear(&job_info_message, &info);
}

static void answer_forecasts(const struct answer *answer)
{
    struct forecast_reply reply = {.forecasts_count = answer->last - answer->first + 1};

    reply.forecasts = xcalloc(reply.forecasts_count, sizeof(*reply.forecasts));
    for (uint64_t id = answer->first; id <= answer->last; id++) {
        struct forecast *forecast = &reply.forecasts[id - answer->first];
        double share = (double)(stats_philox(2, STREAM_ROW, id) >> 11) * 0x1p-53;

        message_init(&forecast_message, forecast);
        forecast->id = id;
        forecast->p_correct = 0.9;
        forecast->p_improves = share < MEASURED ? 0.6 : 0.02;
        forecast->confidence = fmax(forecast->p_improves, 1 - forecast->p_improves);
        forecast->trained_rows = id;
        forecast->bins_count = BIN_COUNT;
        forecast->bins = xcalloc(BIN_COUNT, sizeof(*forecast->bins));
        for (size_t bin = 0; bin < BIN_COUNT; bin++) {
            forecast->bins[bin] = 1.0 / BIN_COUNT;
        }
    }
    answer->forecasts(answer->owner, &reply, NULL);
    message_clear(&forecast_reply_message, &reply);
}

// Delivers the next answer. Returns false when there is none.
static bool deliver(struct peers *peers)
{
    struct answer *answer = peers->head;

    if (!answer) {
        return false;
    }
    peers->head = answer->next;
    peers->tail = !peers->head ? &peers->head : peers->tail;
    if (answer->done) {
        answer_job(peers, answer);
    } else if (answer->forecasts) {
        answer_forecasts(answer);
    } else {
        answer->told(answer->owner, true, answer->last);
    }
    free(answer);
    return true;
}

// ---- the search ----

static void record_start(struct bench *b, uint64_t candidates)
{
    struct run_started started = {.problem = xstrdup(b->dir.problem->name),
                                  .problem_json = b->dir.json_digest,
                                  .reference = b->dir.reference_digest,
                                  .baseline = b->dir.baseline_digest,
                                  .generator = xstrdup("tunable"),
                                  .strategy = xstrdup("greedy"),
                                  .policy = xstrdup("threshold"),
                                  .confidence = 0.9,
                                  .audit = 0.05,
                                  .share = 0.15,
                                  .seed = 1,
                                  .budget_seconds = NAN,
                                  .candidates_max = candidates,
                                  .search = xstrdup("bench"),
                                  .release = xstrdup(KCAST_VERSION),
                                  .wall_limit_seconds = NAN,
                                  .batch = RUN_BATCH_DEFAULT};
    struct run_session session = {.pool = xstrdup("bench"),
                                  .device_class = xstrdup(b->space.head.device_class)};
    struct run_baseline baseline = {.compiled = xmalloc(sizeof(*baseline.compiled))};

    message_copy(&compiled_message, baseline.compiled, row_of(&b->peers, 0, true)->compiled);
    struct err err = ERR_INIT;
    check(pipeline_record(b->run, &b->run_state, RUN_STARTED, &started, &err), &err);
    check(pipeline_record(b->run, &b->run_state, RUN_SESSION, &session, &err), &err);
    check(pipeline_record(b->run, &b->run_state, RUN_BASELINE, &baseline, &err), &err);
}

static void start_pipeline(struct bench *b)
{
    const struct generator *generator = b->generator;

    b->peers.daemon = (struct job_service){.submit = submit, .ack = ack, .where = where};
    b->peers.worker = (struct forecast_service){.ask = ask, .tell = tell};
    struct err err = ERR_INIT;
    check(pipeline_create(&b->pipeline, b->run, &b->run_state, &b->peers.daemon, &b->peers.worker,
                          NULL, &generator, 1, &err),
          &err);
    check(pipeline_advance(b->pipeline, &err), &err);
}

static void stop(struct bench *b)
{
    pipeline_free(b->pipeline);
    run_state_release(&b->run_state);
    run_close(b->run);
    for (struct answer *next; b->peers.head; b->peers.head = next) {
        next = b->peers.head->next;
        free(b->peers.head);
    }
    b->peers.tail = &b->peers.head;
}

static void search(struct bench *b, const char *path, uint64_t candidates)
{
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    double last_cpu = cpu, most = 0;

    run_state_init(&b->run_state);
    struct err err = ERR_INIT;
    check(run_create(&b->run, path, &err), &err);
    record_start(b, candidates);
    start_pipeline(b);
    uint64_t mark = 0;
    const char *reason;
    while (!pipeline_done(b->pipeline, &reason)) {
        if (!deliver(&b->peers)) {
            (void)err_set(&err, ERR_INTERNAL, "the search waits for nothing");
            die(&err);
        }
        check(pipeline_advance(b->pipeline, &err), &err);
        // Another tenth of the candidates has been considered.
        if (b->run_state.considered >= mark + candidates / 10) {
            double now = seconds(CLOCK_PROCESS_CPUTIME_ID);
            most = fmax(most, (now - last_cpu) / (double)(b->run_state.considered - mark));
            mark = b->run_state.considered;
            last_cpu = now;
        }
    }
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("%llu considered, %llu measured: %.3f ms of CPU a candidate, %.3f in the dearest tenth; "
           "%.1f s in all\n",
           (unsigned long long)b->run_state.considered, (unsigned long long)b->run_state.measured,
           1e3 * cpu / (double)b->run_state.considered, 1e3 * most, wall);
    stop(b);
    struct stat file;
    printf("run file %.1f MB\n", stat(path, &file) == 0 ? (double)file.st_size / 1e6 : NAN);
}

static void resume(struct bench *b, const char *path)
{
    double wall = seconds(CLOCK_MONOTONIC);

    run_state_init(&b->run_state);
    struct err err = ERR_INIT;
    check(run_open(&b->run, path, &err), &err);
    check(run_state_read(&b->run_state, b->run, &err), &err);
    start_pipeline(b);
    printf("resumed with %zu candidates in %.3f s\n", b->run_state.candidate_count,
           seconds(CLOCK_MONOTONIC) - wall);
    stop(b);
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc > 4) {
        (void)fprintf(stderr, "usage: bench_client SPACE PROBLEM [CANDIDATES]\n");
        return 2;
    }
    struct err err = ERR_INIT;
    uint64_t candidates = 10000;
    if (argc == 4) {
        check(parse_u64(&candidates, argv[3], 10, 1000000, "CANDIDATES", &err), &err);
    }
    struct bench b = {0};
    check(space_read(&b.space, argv[1], &err), &err);
    check(problem_dir_load(&b.dir, argv[2], &err), &err);
    struct bytes text;
    check(generator_read(&text, "tunable", &b.dir, &err), &err);
    check(generator_create(&b.generator, "tunable", &text, "template", &err), &err);
    bytes_clear(&text);
    b.peers = (struct peers){.space = &b.space, .tail = &b.peers.head};
    char folder[] = "/tmp/bench_client-XXXXXX";
    if (!mkdtemp(folder)) {
        (void)err_set(&err, ERR_INTERNAL, "%s cannot be made", folder);
        die(&err);
    }
    char *path = xasprintf("%s/bench.run", folder);
    search(&b, path, candidates);
    resume(&b, path);
    (void)unlink(path);
    (void)rmdir(folder);
    free(path);
    generator_free(b.generator);
    problem_dir_release(&b.dir);
    space_release(&b.space);
    return 0;
}
