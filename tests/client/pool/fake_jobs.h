// The jobs of a daemon that invents its answers, for tests of the client;
// tests/client/fake_daemon.h serves them. An answer depends on the bytes of the source alone. The
// time and the order of answers are random. Jobs are kept by key, as the real daemon does, and
// counted when they run.
//
// The source of a candidate is its template's text behind lines "#define NAME value". With values
// a, b and c of A, B and C:
//   log2 speedup = 1.5 - (log2 a - 3)² / 4 - (log2 b - 2)² / 3, whatever c is
//   a = 1 and b = 1 do not compile; b = 16 is wrong; a = 2 makes the same object for every c
#ifndef TESTS_CLIENT_POOL_FAKE_JOBS_H
#define TESTS_CLIENT_POOL_FAKE_JOBS_H

#include "common/mem.h"
#include "common/stats.h"
#include "net/rpc/service.h"
#include "proto/verdict.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uthash.h>

#define FAKE_CLASS "fake cpu"
#define FAKE_DEVICES_MAX 64
#define FAKE_ASKED_MAX 256 // candidates, by number, whose first forecast is remembered
#define FAKE_LEARNT 8      // outcomes after which the worker is confident

// How a daemon or its worker differs from the usual one.
struct fake_behaviour {
    bool blind;               // the worker reads no sources
    const char *device_class; // NULL: FAKE_CLASS
    bool stuck;               // measurements never end
    bool full;                // refuses every job
    bool foreign;             // does not speak the client's version
    bool busy;                // answers everything but HELLO with ERR_BUSY
    bool late;              // the worker listens only from the first measurement on, see fake_visit
    bool hosted;            // candidates with A=8 have host code that cannot be recorded
    bool lies;              // its verdicts contradict their intervals
    bool old;               // the worker names only its engine "llm", as a feature
    bool reads_facts;       // the worker forecasts by facts of sources, too
    bool ranks;             // the worker screens nothing, and says which sources go first
    uint64_t ignorant;      // outcomes of which the worker needs so many to say anything
    uint64_t devices;       // 0: 1; the second and every other one after it rests
    uint64_t compile_slots; // 0: it does not say
    uint64_t measure_ms;    // that a measurement takes longer than a compilation
    uint64_t compiles;      // compilations of later candidates of a search never end; 0: all do
    uint64_t slow;          // the compilation of this candidate waits until slow_after others have
    uint64_t slow_after;    // ended; 0: of none
};

struct fake_blob {
    struct digest digest;
    struct bytes data;
    UT_hash_handle hh;
};

struct fake_job {
    char *key; // "search\nkey"
    uint64_t id;
    struct job_spec spec;
    bool done, cancelled;
    uv_timer_t timer;
    struct fake *fake;
    UT_hash_handle hh;
};

struct fake_wait {
    struct exchange *exchange; // NULL when the entry is free
    struct wait wait;
    uv_timer_t timer;
    struct fake *fake;
};

struct fake {
    uv_loop_t loop;
    struct service *pool, *worker;
    struct fake_blob *blob;
    struct fake_job *job; // by key
    struct fake_wait wait[32];
    uint64_t jobs;     // number of jobs that ran
    uint64_t compiled; // of these, compilations that have ended
    char *told[4096];  // keys of the outcomes that the worker was told
    size_t told_count;
    size_t first_told[FAKE_ASKED_MAX]; // outcomes at a candidate's first forecast, and 1; 0: none
    uint64_t asked[4096];              // numbers of requests for candidates
    size_t asked_count;
    uint64_t ranked[FAKE_ASKED_MAX]; // seeds of the questions which sources go first
    size_t ranked_count;
    struct stats_rng rng; // random delays
    struct fake_behaviour behaviour;
    bool draining;                       // changed by SIGUSR2
    struct service_config worker_config; // its url is where the worker listens now or later
    uv_timer_t leave;
    unsigned visits;    // how often a late worker came
    unsigned forecasts; // requests for forecasts in this visit
    bool greeted;       // it was greeted in this visit
};

static inline void fake_open_worker(struct fake *fake)
{
    struct err error = ERR_INIT;
    if (service_create(&fake->worker, &fake->loop, &fake->worker_config, &error) != 0) {
        fprintf(stderr, "fake worker: %s\n", error.text);
        _exit(1);
    }
}

// Lets a late worker come with the first measurement. At its third request for forecasts it leaves
// without an answer. It comes again with the next measurement, then as one that reads sources.
// Measurements wait until it has been greeted, so that the search does not end before. Returns
// whether this measurement must wait.
static inline bool fake_visit(struct fake *fake)
{
    if (!fake->behaviour.late) {
        return false;
    }
    if (!fake->worker) {
        fake->visits++;
        fake->greeted = false;
        fake->forecasts = 0;
        fake_open_worker(fake);
    }
    return !fake->greeted;
}

static inline int fake_define(const char *source, const char *name)
{
    char line[64];
    snprintf(line, sizeof(line), "#define %s ", name);
    const char *at = strstr(source, line);
    return !at ? 1 : (int)strtol(at + strlen(line), NULL, 10);
}

static inline double fake_log2(int a, int b)
{
    return 1.5 - pow(log2(a) - 3, 2) / 4 - pow(log2(b) - 2, 2) / 3;
}

static inline const char *fake_source(struct fake *fake, const struct digest *digest)
{
    struct fake_blob *blob = NULL;
    HASH_FIND(hh, fake->blob, digest->byte, DIGEST_LEN, blob);
    return !blob ? NULL : (const char *)blob->data.data;
}

static inline struct compiled *fake_compile(struct fake *fake, const struct job_spec *spec)
{
    const char *source = fake_source(fake, &spec->candidate);
    int a = fake_define(source, "A"), b = fake_define(source, "B"), c = fake_define(source, "C");
    struct compiled *compiled = xcalloc(1, sizeof(*compiled));
    compiled->seconds = 0.01;
    if (a == 1 && b == 1 && strstr(source, "#define")) {
        compiled->verdict = VERDICT_COMPILE_ERROR;
        compiled->reason = xstrdup("candidate.c:1: it does not like A=1 B=1");
        return compiled;
    }
    if (fake->behaviour.hosted && a == 8) {
        compiled->unsealed = spec->unsealed;
        if (!spec->unsealed) {
            compiled->verdict = VERDICT_REJECTED;
            compiled->reason = xstrdup("it reads a result on the host");
            return compiled;
        }
    }
    char object[64];
    snprintf(object, sizeof(object), "%d %d %d", a, b, a == 2 ? 0 : c);
    compiled->object = digest_of(object, strlen(object));
    compiled->features = xcalloc(2, sizeof(*compiled->features));
    compiled->features_count = 2;
    compiled->features[0] = (struct fact){.name = xstrdup("a"), .value = a};
    compiled->features[1] = (struct fact){.name = xstrdup("b"), .value = b};
    compiled->incomplete = spec->features_only;
    compiled->no_machine_code = spec->no_machine_code;
    return compiled;
}

static inline struct estimate *fake_estimate(double y)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    *ret = (struct estimate){.log2 = y, .lo = y - 0.005, .hi = y + 0.005, .blocks = 8};
    return ret;
}

static inline struct quantiles *fake_times(double ns)
{
    struct quantiles *ret = xcalloc(1, sizeof(*ret));

    *ret = (struct quantiles){.p10 = ns, .p50 = ns, .p90 = ns};
    return ret;
}

// Makes the result a ratio of one case.
static inline void fake_ratio(struct result *result, double y)
{
    struct case_result *one = xcalloc(1, sizeof(*one));

    *one = (struct case_result){.params = xstrdup("N=1"), .weight = 1, .floor_ns = NAN};
    one->speedup = fake_estimate(y);
    one->baseline_ns = fake_times(1000);
    one->candidate_ns = fake_times(1000 / exp2(y));
    result->cases = one;
    result->cases_count = 1;
    result->speedup = fake_estimate(y);
    result->launches = result->checks = 16;
    result->verdict = y > 0.005    ? VERDICT_FASTER
                      : y < -0.005 ? VERDICT_SLOWER
                                   : VERDICT_INCONCLUSIVE;
}

// The log2 speedup of what is measured against: of a candidate, in a play-off; 0 of the baseline.
static inline double fake_baseline_log2(struct fake *fake, const struct job_spec *spec)
{
    const char *source = fake_source(fake, &spec->baseline);
    bool plain = !source || !strstr(source, "#define A ");
    return plain ? 0 : fake_log2(fake_define(source, "A"), fake_define(source, "B")) + 0.002;
}

static inline struct result *fake_measure(struct fake *fake, const struct job_spec *spec)
{
    struct compiled *compiled = fake_compile(fake, spec);
    struct result *result = xcalloc(1, sizeof(*result));
    const char *source = fake_source(fake, &spec->candidate);
    int a = fake_define(source, "A"), b = fake_define(source, "B");
    *result =
        (struct result){.max_error = 1, .error_bound = 16, .measured_at = 1, .overhead_ns = NAN};
    result->candidate = spec->candidate;
    result->device = xstrdup("cpu0");
    result->device_class = xstrdup(FAKE_CLASS);
    result->seconds = xcalloc(1, sizeof(*result->seconds));
    *result->seconds = (struct accounts){.held = fmin(0.25, spec->max_seconds), .time = 0.2};
    if (compiled->verdict != VERDICT_NONE || b == 16) {
        result->verdict = compiled->verdict != VERDICT_NONE ? compiled->verdict : VERDICT_WRONG;
        result->reason = xstrdup("it is wrong");
    } else {
        double y = fake_log2(a, b) + (spec->fresh ? 0.002 : 0);
        y -= fake_baseline_log2(fake, spec);
        fake_ratio(result, y);
        result->verdict = fake->behaviour.lies ? VERDICT_INCONCLUSIVE : result->verdict;
    }
    result->compiled = compiled;
    result->unsealed = compiled->unsealed;
    return result;
}

static inline void fake_info(struct fake *fake, const struct fake_job *job, struct job_info *ret)
{
    *ret = (struct job_info){.job = job->id, .state = JOB_DONE, .kind = job->spec.kind};
    if (job->cancelled) {
        ret->state = JOB_CANCELLED;
    } else if (job->spec.kind == JOB_COMPILE) {
        ret->compiled = fake_compile(fake, &job->spec);
    } else {
        ret->result = fake_measure(fake, &job->spec);
    }
}

// Answers a WAIT with the jobs that are done. False when none is, so that it must go on waiting.
static inline bool fake_answer(struct fake *fake, struct exchange *exchange,
                               const struct wait *wait, bool at_once)
{
    struct waited waited = {.jobs = xcalloc(wait->jobs_count + 1, sizeof(struct job_info)),
                            .unknown = xcalloc(wait->jobs_count + 1, sizeof(uint64_t))};
    for (size_t i = 0; i < wait->jobs_count; i++) {
        struct fake_job *job = NULL, *found = NULL;
        for (job = fake->job; job; job = job->hh.next) {
            found = job->id == wait->jobs[i] ? job : found;
        }
        if (!found) {
            waited.unknown[waited.unknown_count++] = wait->jobs[i];
        } else if (found->done) {
            fake_info(fake, found, &waited.jobs[waited.jobs_count++]);
        }
    }
    bool answered = at_once || waited.jobs_count > 0 || waited.unknown_count > 0;
    if (answered) {
        exchange_reply(exchange, &waited_message, &waited);
    }
    message_clear(&waited_message, &waited);
    return answered;
}

static inline void fake_wake(struct fake *fake)
{
    for (size_t i = 0; i < ARRAY_LEN(fake->wait); i++) {
        struct fake_wait *w = &fake->wait[i];
        if (w->exchange && fake_answer(fake, w->exchange, &w->wait, false)) {
            w->exchange = NULL;
            message_clear(&wait_message, &w->wait);
            uv_timer_stop(&w->timer);
        }
    }
}

// The number of the candidate whose job has this key, a letter and the number.
static inline uint64_t fake_candidate(const char *key)
{
    return strtoull(key + 1, NULL, 10);
}

// Ends a job, and the compilation that waits until so many others have ended.
static inline void fake_on_done(uv_timer_t *timer)
{
    struct fake_job *job = timer->data;
    struct fake *fake = job->fake;
    job->done = true;
    fake->compiled += job->spec.kind == JOB_COMPILE;
    for (job = fake->job; job && fake->compiled == fake->behaviour.slow_after; job = job->hh.next) {
        if (job->spec.kind == JOB_COMPILE && !job->done &&
            fake_candidate(strchr(job->key, '\n') + 1) == fake->behaviour.slow) {
            uv_timer_start(&job->timer, fake_on_done, 0, 0);
        }
    }
    fake_wake(fake);
}

static inline void fake_on_wait_over(uv_timer_t *timer)
{
    struct fake_wait *w = timer->data;
    (void)fake_answer(w->fake, w->exchange, &w->wait, true);
    w->exchange = NULL;
    message_clear(&wait_message, &w->wait);
}

static inline void fake_on_drop(void *waiter)
{
    struct fake_wait *w = waiter;
    w->exchange = NULL;
    message_clear(&wait_message, &w->wait);
    uv_timer_stop(&w->timer);
}

static inline void fake_wait(struct fake *fake, struct exchange *exchange, struct wait *wait)
{
    if (fake_answer(fake, exchange, wait, false)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(fake->wait); i++) {
        struct fake_wait *w = &fake->wait[i];
        if (!w->exchange && exchange_park(exchange, 0, fake_on_drop, w)) {
            w->exchange = exchange;
            w->wait = *wait;
            *wait = (struct wait){0};
            uv_timer_start(&w->timer, fake_on_wait_over, w->wait.max_ms, 0);
            return;
        }
    }
    (void)fake_answer(fake, exchange, wait, true);
}

static inline enum job_state fake_state(const struct fake_job *job)
{
    return job->cancelled ? JOB_CANCELLED : job->done ? JOB_DONE : JOB_QUEUED;
}

// Whether the compilation with this key comes to an end by itself.
static inline bool fake_compiles(const struct fake *fake, const char *key)
{
    uint64_t id = fake_candidate(key);
    bool waits = id == fake->behaviour.slow && fake->compiled < fake->behaviour.slow_after;
    return (fake->behaviour.compiles == 0 || id <= fake->behaviour.compiles) && !(id > 0 && waits);
}

static inline void fake_submit(struct fake *fake, struct exchange *exchange,
                               const struct submit *submit)
{
    struct fake_job *job = NULL;
    char *key = xasprintf("%s\n%s", submit->search, submit->key);
    const struct digest needed[] = {submit->spec->problem, submit->spec->candidate};
    HASH_FIND_STR(fake->job, key, job);
    struct submitted reply = {.duplicate = job};
    struct err error = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
        if (!fake_source(fake, &needed[i])) {
            err_set(&error, ERR_NEED_BLOB, "a blob is missing");
        }
    }
    if (job && !message_equal(&job_spec_message, &job->spec, submit->spec)) {
        err_set(&error, ERR_CONFLICT, "key %s was used for something else", submit->key);
    }
    if (fake->behaviour.full) {
        err_clear(&error);
        err_set(&error, ERR_NO_SPACE, "the disk is full");
    }
    if (error.code != ERR_NONE) {
        exchange_fail(exchange, &error);
        free(key);
        return;
    }
    if (!job) {
        job = xcalloc(1, sizeof(*job));
        job->key = key;
        key = NULL;
        job->id = ++fake->jobs;
        job->fake = fake;
        message_copy(&job_spec_message, &job->spec, submit->spec);
        HASH_ADD_KEYPTR(hh, fake->job, job->key, strlen(job->key), job);
        uv_timer_init(&fake->loop, &job->timer);
        job->timer.data = job;
        bool measures = job->spec.kind != JOB_COMPILE;
        if (measures ? !fake->behaviour.stuck && !fake_visit(fake)
                     : fake_compiles(fake, submit->key)) {
            uint64_t more_ms = measures ? fake->behaviour.measure_ms : 0;
            uv_timer_start(&job->timer, fake_on_done, more_ms + stats_rng_below(&fake->rng, 6), 0);
        }
    }
    reply.job = job->id;
    reply.state = fake_state(job);
    exchange_reply(exchange, &submitted_message, &reply);
    free(key);
}

static inline void fake_cancel(struct fake *fake, struct exchange *exchange,
                               const struct job_ids *ids)
{
    for (struct fake_job *job = fake->job; job; job = job->hh.next) {
        for (size_t i = 0; i < ids->jobs_count; i++) {
            if (job->id == ids->jobs[i] && !job->done) {
                job->done = job->cancelled = true;
                uv_timer_stop(&job->timer);
            }
        }
    }
    fake_wake(fake);
    struct job_infos none = {0};
    exchange_reply(exchange, &job_infos_message, &none);
}

static inline void fake_on_closed(uv_handle_t *timer)
{
    struct fake_job *job = timer->data;
    message_clear(&job_spec_message, &job->spec);
    free(job->key);
    free(job);
}

// Forgets those jobs that were cancelled. The others are kept, since tests count that none of them
// runs twice.
static inline void fake_ack(struct fake *fake, const struct job_ids *ids)
{
    for (struct fake_job *job = fake->job, *next; job; job = next) {
        next = job->hh.next;
        for (size_t i = 0; i < ids->jobs_count; i++) {
            if (job->id == ids->jobs[i] && job->cancelled) {
                HASH_DEL(fake->job, job);
                uv_close((uv_handle_t *)&job->timer, fake_on_closed);
                break;
            }
        }
    }
}

static inline void fake_status(struct fake *fake, struct exchange *exchange,
                               const struct status_request *request)
{
    char name[] = "cpu0", state[] = "ready", draining[] = "draining", sandbox[] = "on";
    char *class = xstrdup(fake->behaviour.device_class ? fake->behaviour.device_class : FAKE_CLASS);
    struct job_info *info = xcalloc(HASH_COUNT(fake->job) + 1, sizeof(*info));
    size_t count = 0, len = request->search ? strlen(request->search) : 0;
    struct device_info device[FAKE_DEVICES_MAX];
    uint64_t devices = fake->behaviour.devices != 0 ? fake->behaviour.devices : 1;
    for (uint64_t i = 0; i < devices; i++) {
        device[i] = (struct device_info){.name = name,
                                         .device_class = class,
                                         .state = fake->draining || i % 2 == 1 ? draining : state,
                                         .held_seconds = NAN};
    }
    for (struct fake_job *job = fake->job; job && len > 0; job = job->hh.next) {
        if (strncmp(job->key, request->search, len) == 0 && job->key[len] == '\n') {
            info[count++] = (struct job_info){
                .job = job->id, .state = fake_state(job), .key = job->key + len + 1};
        }
    }
    struct status status = {.devices = device,
                            .devices_count = devices,
                            .compile_slots = fake->behaviour.compile_slots,
                            .sandbox = sandbox,
                            .jobs = info,
                            .jobs_count = count,
                            .results_cached = fake->jobs,
                            .uptime_seconds = 1};
    exchange_reply(exchange, &status_message, &status);
    free(class);
    free(info);
}

#endif
