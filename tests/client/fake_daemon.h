// A daemon and a worker that invent their answers, in one process, for tests of the client. What
// they answer about a source depends on its bytes alone; when they answer it, and in which order,
// does not. Jobs are kept by key, as the real daemon does, and counted when they run.
//
// The source of a candidate is its template's text behind lines "#define NAME value". With values
// a, b and c of A, B and C:
//   log2 speedup = 1.5 - (log2 a - 3)² / 4 - (log2 b - 2)² / 3; c says nothing
//   a = 1 and b = 1 do not compile; b = 16 is wrong; a = 2 makes the same object for every c
// The worker writes such sources, too, for 200 tokens a request: with values of A and B that follow from
// the request's number, and C from 11 to 13. The same request again costs nothing.
#ifndef TESTS_CLIENT_FAKE_DAEMON_H
#define TESTS_CLIENT_FAKE_DAEMON_H

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
#define FAKE_LEARNT 8 // outcomes after which the worker is confident

// How a daemon is unlike the usual one.
struct fake_manner {
    const char *device_class; // NULL: FAKE_CLASS
    bool stuck;               // measurements never end
    bool full;                // refuses every job
    bool foreign;             // does not know our version
    bool busy;                // says so whatever is asked but HELLO
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
    struct exchange *exchange; // NULL: free
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
    uint64_t jobs;    // that ran
    char *told[4096]; // keys of outcomes
    size_t told_count;
    uint64_t asked[4096]; // numbers of requests for candidates
    size_t asked_count;
    struct stats_rng rng; // of delays
    struct fake_manner manner;
    bool draining; // changed by SIGUSR2
};

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
    char object[64];
    snprintf(object, sizeof(object), "%d %d %d", a, b, a == 2 ? 0 : c);
    compiled->object = digest_of(object, strlen(object));
    compiled->features = xcalloc(2, sizeof(*compiled->features));
    compiled->features_count = 2;
    compiled->features[0] = (struct fact){.name = xstrdup("a"), .value = a};
    compiled->features[1] = (struct fact){.name = xstrdup("b"), .value = b};
    return compiled;
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
    *result->seconds = (struct accounts){.held = 0.25, .time = 0.2};
    if (compiled->verdict != VERDICT_NONE || b == 16) {
        result->verdict = compiled->verdict != VERDICT_NONE ? compiled->verdict : VERDICT_WRONG;
        result->reason = xstrdup("it is wrong");
    } else {
        double y = fake_log2(a, b) + (spec->fresh ? 0.002 : 0);
        result->verdict = y > 0.01 ? VERDICT_FASTER : VERDICT_SLOWER;
        result->speedup = xcalloc(1, sizeof(*result->speedup));
        *result->speedup =
            (struct estimate){.log2 = y, .lo = y - 0.005, .hi = y + 0.005, .blocks = 8};
    }
    message_clear(&compiled_message, compiled);
    free(compiled);
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

// Answers a WAIT with what is done; false when nothing is and it must go on waiting.
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

static inline void fake_on_done(uv_timer_t *timer)
{
    struct fake_job *job = timer->data;
    job->done = true;
    fake_wake(job->fake);
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
        if (!w->exchange && exchange_park(exchange, fake_on_drop, w)) {
            w->exchange = exchange;
            w->wait = *wait;
            *wait = (struct wait){0};
            uv_timer_start(&w->timer, fake_on_wait_over, w->wait.max_ms, 0);
            return;
        }
    }
    (void)fake_answer(fake, exchange, wait, true);
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
    if (fake->manner.full) {
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
        if (!fake->manner.stuck || job->spec.kind == JOB_COMPILE) {
            uv_timer_start(&job->timer, fake_on_done, stats_rng_below(&fake->rng, 6), 0);
        }
    }
    reply.job = job->id;
    reply.state = job->done ? JOB_DONE : JOB_QUEUED;
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

static inline void fake_status(struct fake *fake, struct exchange *exchange,
                               const struct status_request *request)
{
    char name[] = "cpu0", state[] = "ready", draining[] = "draining", sandbox[] = "on";
    char *class = xstrdup(fake->manner.device_class ? fake->manner.device_class : FAKE_CLASS);
    struct job_info *info = xcalloc(HASH_COUNT(fake->job) + 1, sizeof(*info));
    size_t count = 0, len = request->search ? strlen(request->search) : 0;
    struct device_info device = {.name = name,
                                 .device_class = class,
                                 .state = fake->draining ? draining : state,
                                 .held_seconds = NAN};
    for (struct fake_job *job = fake->job; job && len > 0; job = job->hh.next) {
        if (strncmp(job->key, request->search, len) == 0 && job->key[len] == '\n') {
            info[count++] = (struct job_info){.job = job->id,
                                              .state = job->cancelled ? JOB_CANCELLED
                                                       : job->done    ? JOB_DONE
                                                                      : JOB_QUEUED,
                                              .key = job->key + len + 1};
        }
    }
    struct status status = {.devices = &device,
                            .devices_count = 1,
                            .sandbox = sandbox,
                            .jobs = info,
                            .jobs_count = count,
                            .results_cached = fake->jobs,
                            .uptime_seconds = 1};
    exchange_reply(exchange, &status_message, &status);
    free(class);
    free(info);
}

static inline void fake_on_pool(void *owner, struct exchange *exchange,
                                const struct request *request)
{
    static const char *const features[] = {"fake"};
    struct fake *fake = owner;
    if (fake->manner.busy && request->op != OP_HELLO) {
        struct err error = ERR_INIT;
        err_set(&error, ERR_BUSY, "the house is full");
        exchange_fail_busy(exchange, &error, 50);
        return;
    }
    struct empty nothing = {0};
    union {
        struct blob_have have;
        struct blob_put put;
        struct submit submit;
        struct wait wait;
        struct status_request status;
        struct job_ids ids;
    } body;
    switch (request->op) {
    case OP_HELLO:
        if (fake->manner.foreign) {
            struct err error = ERR_INIT;
            err_set(&error, ERR_VERSION, "this kcastd is of another time");
            exchange_fail(exchange, &error);
            break;
        }
        exchange_hello(exchange, request, "kcastd", features, 1, 10000);
        break;
    case OP_BLOB_HAVE:
        if (exchange_read_body(exchange, request, &blob_have_message, &body.have)) {
            struct blob_missing missing = {.digests =
                                               xcalloc(body.have.digests_count + 1, DIGEST_LEN)};
            for (size_t i = 0; i < body.have.digests_count; i++) {
                if (!fake_source(fake, &body.have.digests[i])) {
                    missing.digests[missing.digests_count++] = body.have.digests[i];
                }
            }
            exchange_reply(exchange, &blob_missing_message, &missing);
            message_clear(&blob_missing_message, &missing);
            message_clear(&blob_have_message, &body.have);
        }
        break;
    case OP_BLOB_PUT:
        if (exchange_read_body(exchange, request, &blob_put_message, &body.put)) {
            if (!fake_source(fake, &body.put.digest)) {
                struct fake_blob *blob = xcalloc(1, sizeof(*blob));
                blob->digest = body.put.digest;
                blob->data.data =
                    (unsigned char *)xstrndup((char *)body.put.data.data, body.put.data.len);
                HASH_ADD(hh, fake->blob, digest.byte, DIGEST_LEN, blob);
            }
            exchange_reply(exchange, &empty_message, &nothing);
            message_clear(&blob_put_message, &body.put);
        }
        break;
    case OP_SUBMIT:
        if (exchange_read_body(exchange, request, &submit_message, &body.submit)) {
            fake_submit(fake, exchange, &body.submit);
            message_clear(&submit_message, &body.submit);
        }
        break;
    case OP_WAIT:
        if (exchange_read_body(exchange, request, &wait_message, &body.wait)) {
            fake_wait(fake, exchange, &body.wait);
            message_clear(&wait_message, &body.wait);
        }
        break;
    case OP_STATUS:
        if (exchange_read_body(exchange, request, &status_request_message, &body.status)) {
            fake_status(fake, exchange, &body.status);
            message_clear(&status_request_message, &body.status);
        }
        break;
    case OP_CANCEL:
        if (exchange_read_body(exchange, request, &job_ids_message, &body.ids)) {
            fake_cancel(fake, exchange, &body.ids);
            message_clear(&job_ids_message, &body.ids);
        }
        break;
    default:
        exchange_reply(exchange, &empty_message, &nothing);
    }
}

static inline void fake_forecast(struct fake *fake, struct exchange *exchange,
                                 const struct forecast_request *request)
{
    struct forecast_reply reply = {
        .forecasts = xcalloc(request->candidates_count + 1, sizeof(struct forecast))};
    for (size_t i = 0; i < request->candidates_count; i++) {
        const struct candidate_facts *c = &request->candidates[i];
        double y = fake_log2((int)c->features[0].value, (int)c->features[1].value);
        double incumbent = isnan(request->incumbent_log2) ? 0 : request->incumbent_log2;
        // Depends on how much was told, so that a tale told too early or too late shows in the
        // decisions.
        reply.forecasts[reply.forecasts_count++] = (struct forecast){
            .id = c->id,
            .p_correct = 0.9,
            .mean_log2 = y,
            .expected_improvement = fmax(y - incumbent, 0),
            .p_improves = y > incumbent ? 0.9 : 0.1,
            .confidence = fake->told_count < FAKE_LEARNT ? 0
                          : fake->told_count % 2 == 0    ? 0.92
                                                         : 0.97,
            .engine = xstrdup("fake"),
            .trained_rows = fake->told_count,
        };
    }
    exchange_reply(exchange, &forecast_reply_message, &reply);
    message_clear(&forecast_reply_message, &reply);
}

static inline void fake_observe(struct fake *fake, struct exchange *exchange,
                                const struct observe *observe)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        bool known = false;
        for (size_t j = 0; j < fake->told_count; j++) {
            known = known || strcmp(fake->told[j], observe->outcomes[i].key) == 0;
        }
        if (!known && fake->told_count < ARRAY_LEN(fake->told)) {
            fake->told[fake->told_count++] = xstrdup(observe->outcomes[i].key);
        }
    }
    struct observed reply = {.rows = fake->told_count};
    exchange_reply(exchange, &observed_message, &reply);
}

static inline void fake_propose(struct fake *fake, struct exchange *exchange,
                                const struct propose_request *request)
{
    struct propose_reply reply = {.model = xstrdup("writer"),
                                  .proposals = xcalloc(request->count + 1, sizeof(struct proposal)),
                                  .first_tokens = 200,
                                  .first_cost = NAN,
                                  .cost = NAN,
                                  .seconds = NAN};
    for (size_t i = 0; i < fake->asked_count; i++) {
        reply.cached = reply.cached || fake->asked[i] == request->draw;
    }
    reply.input_tokens = reply.cached ? 0 : 150;
    reply.output_tokens = reply.cached ? 0 : 50;
    if (!reply.cached && fake->asked_count < ARRAY_LEN(fake->asked)) {
        fake->asked[fake->asked_count++] = request->draw;
    }
    for (uint64_t i = 0; i < request->count; i++) {
        uint64_t random = stats_philox(5, request->draw, i);
        char *text =
            xasprintf("#define A %d\n#define B %d\n#define C %d\nwritten\n", 1 << (random & 3),
                      1 << (random >> 2 & 3), 11 + (int)((random >> 4) % 3));
        reply.proposals[reply.proposals_count++].source =
            (struct bytes){.data = (unsigned char *)text, .len = strlen(text)};
    }
    exchange_reply(exchange, &propose_reply_message, &reply);
    message_clear(&propose_reply_message, &reply);
}

static inline void fake_on_worker(void *owner, struct exchange *exchange,
                                  const struct request *request)
{
    static const char *const features[] = {"fake"};
    struct fake *fake = owner;
    struct forecast_request forecast;
    struct observe observe;
    struct propose_request propose;
    if (request->op == OP_HELLO) {
        exchange_hello(exchange, request, "kcast-worker", features, 1, 0);
    } else if (request->op == OP_FORECAST) {
        if (exchange_read_body(exchange, request, &forecast_request_message, &forecast)) {
            fake_forecast(fake, exchange, &forecast);
            message_clear(&forecast_request_message, &forecast);
        }
    } else if (request->op == OP_OBSERVE) {
        if (exchange_read_body(exchange, request, &observe_message, &observe)) {
            fake_observe(fake, exchange, &observe);
            message_clear(&observe_message, &observe);
        }
    } else if (request->op == OP_PROPOSE) {
        if (exchange_read_body(exchange, request, &propose_request_message, &propose)) {
            fake_propose(fake, exchange, &propose);
            message_clear(&propose_request_message, &propose);
        }
    } else {
        char engine[] = "fake";
        struct worker_status status = {.engine = engine, .uptime_seconds = 1};
        exchange_reply(exchange, &worker_status_message, &status);
    }
}

// Forgets what the worker was told and asked, between runs: by SIGUSR1.
static inline void fake_on_signal(uv_signal_t *signal, int number)
{
    struct fake *fake = signal->data;
    (void)number;
    while (fake->told_count > 0) {
        free(fake->told[--fake->told_count]);
    }
    fake->asked_count = 0;
}

static inline void fake_on_drain(uv_signal_t *signal, int number)
{
    struct fake *fake = signal->data;
    (void)number;
    fake->draining = !fake->draining;
}

// pool: url to listen on for the daemon's part
static inline void fake_serve(int fd, uint64_t seed, const char *pool,
                              const struct fake_manner *manner)
{
    struct fake *fake = xcalloc(1, sizeof(*fake));
    uv_signal_t forget, drain;
    fake->manner = *manner;
    (void)signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&fake->loop);
    uv_signal_init(&fake->loop, &forget);
    forget.data = fake;
    uv_signal_start(&forget, fake_on_signal, SIGUSR1);
    uv_signal_init(&fake->loop, &drain);
    drain.data = fake;
    uv_signal_start(&drain, fake_on_drain, SIGUSR2);
    stats_rng_init(&fake->rng, seed, 1);
    for (size_t i = 0; i < ARRAY_LEN(fake->wait); i++) {
        uv_timer_init(&fake->loop, &fake->wait[i].timer);
        fake->wait[i].timer.data = &fake->wait[i];
        fake->wait[i].fake = fake;
    }
    struct service_config config = {.url = pool,
                                    .exchanges_max = 64,
                                    .parked_max = 32,
                                    .message_max = 16 << 20,
                                    .epoch = 1,
                                    .on_request = fake_on_pool,
                                    .owner = fake};
    struct err error = ERR_INIT;
    if (service_create(&fake->pool, &fake->loop, &config, &error) != 0) {
        _exit(1);
    }
    config.on_request = fake_on_worker;
    config.url = "tcp://127.0.0.1:0";
    if (service_create(&fake->worker, &fake->loop, &config, &error) != 0) {
        _exit(1);
    }
    dprintf(fd, "%s %s\n", service_url(fake->pool), service_url(fake->worker));
    close(fd);
    uv_run(&fake->loop, UV_RUN_DEFAULT);
    _exit(0);
}

struct fake_process {
    pid_t pid;
    char pool[64], worker[64]; // urls
};

// Starts both in a child, which ends with this process. The caller has no threads yet.
static inline void fake_start_as(struct fake_process *ret, uint64_t seed, const char *pool,
                                 const struct fake_manner *manner)
{
    int fd[2];
    pid_t parent = getpid();
    if (pipe(fd) != 0) {
        abort();
    }
    ret->pid = fork();
    if (ret->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        close(fd[0]);
        fake_serve(fd[1], seed, pool, manner);
    }
    close(fd[1]);
    FILE *in = fdopen(fd[0], "r");
    char line[256] = "";
    if (!in || !fgets(line, sizeof(line), in) ||
        sscanf(line, "%63s %63s", ret->pool, ret->worker) != 2) {
        abort();
    }
    fclose(in);
}

static inline void fake_start_at(struct fake_process *ret, uint64_t seed, const char *pool)
{
    const struct fake_manner usual = {0};
    fake_start_as(ret, seed, pool, &usual);
}

static inline void fake_start(struct fake_process *ret, uint64_t seed)
{
    fake_start_at(ret, seed, "tcp://127.0.0.1:0");
}

static inline void fake_stop(struct fake_process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
}

#endif
