// Drives a pipeline. Order of things: daemon, device, worker, RUN_SESSION, baseline, pipeline,
// loop, RUN_FINISHED. Everything that can fail because of somebody else comes before the first
// event of the session.
#include "client/search.h"

#include "client/forecaster.h"
#include "client/generator.h"
#include "client/pipeline.h"
#include "client/pool.h"
#include "client/progress.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STATUS_MS 10000
#define TICK_MS 200 // of the progress line

struct search {
    struct session *session;
    struct run *run;
    struct fold *fold;
    struct pool *pool;
    struct forecaster *forecaster;
    struct proposer *proposer; // NULL unless the generator asks
    struct problem *problem; // from the run file
    struct generator *generator;
    struct pipeline *pipeline;
    struct progress *progress;
    uv_timer_t *tick;  // progress; freed by its close callback
    uv_timer_t *limit; // the same, end of --max-time
    bool limit_reached;
    size_t certifications; // that were told
    struct compiled *baseline; // the answer to job c0
    struct err failure;        // in a callback
};

// ---- who measures ----

static bool is_in_service(const struct device_info *device)
{
    return strcmp(device->state, "out-of-service") != 0 &&
           strcmp(device->state, "out of service") != 0;
}

// A daemon of before there were languages has devices for C only.
static bool runs(const struct device_info *device, const struct problem *problem)
{
    return strcmp(device->language != NULL ? device->language : "c", problem->language) == 0;
}

static int choose_device(const struct status *status, const char *device_class,
                         const struct problem *problem, struct device_info *ret, struct err *err)
{
    const char *reason = NULL;
    const char *other = NULL;
    bool foreign = false;
    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *device = &status->devices[i];
        if (!runs(device, problem)) {
            foreign = true;
        } else if (device_class != NULL && strcmp(device->device_class, device_class) != 0) {
            other = device->device_class;
        } else if (is_in_service(device)) {
            message_copy(&device_info_message, ret, device);
            return 0;
        } else {
            reason = device->reason != NULL ? device->reason : "no reason given";
        }
    }
    if (reason != NULL) {
        return err_set(err, ERR_UNREACHABLE, "no device of the daemon is in service: %.300s",
                       reason);
    }
    if (other != NULL) {
        return err_set(err, ERR_INVALID,
                       "the daemon has no device of class \"%.200s\" (it has \"%.200s\"); "
                       "measurements of different "
                       "classes cannot be compared",
                       device_class, other);
    }
    return foreign
               ? err_set(err, ERR_UNREACHABLE,
                         "the daemon has no device for problems in %s; `kcast status` shows those "
                         "it has",
                         problem->cuda ? "CUDA" : "C")
               : err_set(err, ERR_UNREACHABLE, "the daemon has no device");
}

int search_device(struct session *session, const char *device_class, const struct problem *problem,
                  struct device_info *ret, char **ret_sandbox, struct err *err)
{
    struct remote *pool;
    struct status_request request = {0};
    struct status status;
    int code = session_pool(session, &pool, err);
    if (code == 0) {
        code = remote_call_sync(pool, OP_STATUS, &status_request_message, &request, &status_message,
                                &status, STATUS_MS, err);
    }
    if (code != 0) {
        return code;
    }
    code = choose_device(&status, device_class, problem, ret, err);
    if (code == 0 && ret_sandbox != NULL) {
        *ret_sandbox = status.sandbox;
        status.sandbox = NULL;
    }
    message_clear(&status_message, &status);
    return code;
}

// ---- beginning ----

static int record_session(struct search *s, struct device_info *device, char **sandbox,
                          struct err *err)
{
    const struct session_options *options = session_options(s->session);
    struct remote *pool;
    char host[256] = "";
    struct timespec now;
    int code = session_pool(s->session, &pool, err);
    if (code != 0) {
        return code;
    }
    gethostname(host, sizeof(host) - 1);
    clock_gettime(CLOCK_REALTIME, &now);
    struct run_session event = {
        .pool = xstrdup(options->local ? "local" : remote_url(pool)),
        .worker = xstrdup(options->no_worker ? "none"
                          : options->local   ? "local"
                                             : options->worker),
        .device_class = device->device_class,
        .device = device->name,
        .engine = forecaster_engine(s->forecaster) != NULL
                      ? xstrdup(forecaster_engine(s->forecaster))
                      : NULL,
        .at = (double)now.tv_sec,
        .host = xstrdup(host),
        .sandbox = *sandbox,
        .device_facts = device->facts,
        .device_facts_count = device->facts_count,
    };
    // Taken over by the event.
    device->device_class = device->name = *sandbox = NULL;
    device->facts = NULL;
    device->facts_count = 0;
    return pipeline_record(s->run, s->fold, RUN_SESSION, &event, err);
}

static int read_problem(struct search *s, struct err *err)
{
    struct bytes json;
    int code = run_get_blob(s->run, &s->fold->started.problem_json, &json, err);
    if (code == 0) {
        code = problem_parse(&s->problem, (const char *)json.data, json.len, "problem.json", err);
        bytes_clear(&json);
    }
    return code;
}

static int open_generator(struct search *s, struct err *err)
{
    const struct run_started *started = &s->fold->started;
    bool pool = generator_is_pool(started->generator);
    struct bytes text = {0};
    char *path = pool
                     ? xstrdup(started->generator + 5)
                     : xasprintf("%s/template.%s", started->problem, problem_extension(s->problem));
    int code = generator_asks(started->generator)
                   ? 0
                   : run_get_blob(s->run, pool ? &started->pool_source : &started->template_source,
                                  &text, err);
    if (code == 0) {
        code = generator_create(&s->generator, started->generator, &text, path, err);
        bytes_clear(&text);
    }
    free(path);
    return code;
}

static void on_baseline(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct search *s = owner;
    (void)tag;
    if (error != NULL) {
        err_set(&s->failure, error->code, "the baseline: %s", error->text);
    } else if (info->compiled == NULL) {
        err_set(&s->failure, ERR_INVALID,
                "the baseline: the daemon gave its compilation up: %.500s",
                info->reason != NULL ? info->reason : "no reason given");
    } else if (info->compiled->verdict != VERDICT_NONE) {
        err_set(&s->failure, ERR_INVALID,
                "the baseline does not compile: %.500s; `kcast problem check` says more",
                info->compiled->reason != NULL ? info->compiled->reason
                                               : verdict_name(info->compiled->verdict));
    } else {
        s->baseline = info->compiled;
        info->compiled = NULL;
        pool_ack(s->pool, info->job);
    }
}

// The baseline's own compilation: its features are what candidates are compared with.
static int compile_baseline(struct search *s, struct err *err)
{
    const struct run_started *started = &s->fold->started;
    struct job_spec spec = {
        .kind = JOB_COMPILE,
        .problem = started->problem_json,
        .candidate = started->baseline,
        .anchor_log2 = NAN,
        .max_seconds = NAN,
        .precision_log2 = NAN,
    };
    pool_submit(s->pool, "c0", &spec, 0, on_baseline, s, 0);
    int code = pool_drain(s->pool, err);
    if (code == 0 && s->failure.code != ERR_NONE) {
        code = err_set(err, s->failure.code, "%s", s->failure.text);
    }
    if (code == 0) {
        struct run_baseline event = {.compiled = s->baseline};
        s->baseline = NULL;
        code = pipeline_record(s->run, s->fold, RUN_BASELINE, &event, err);
    }
    return code;
}

static int read_blob(void *owner, const struct digest *digest, struct bytes *ret, struct err *err)
{
    return run_get_blob(owner, digest, ret, err);
}

// ---- the loop ----

static void on_tick(uv_timer_t *timer)
{
    struct search *s = timer->data;
    progress_draw(s->progress, s->fold);
}

static void on_limit(uv_timer_t *timer)
{
    struct search *s = timer->data;
    s->limit_reached = true;
    uv_stop(timer->loop);
}

static void start_timers(struct search *s)
{
    double limit = s->fold->started.wall_limit_seconds;
    uv_loop_t *loop = session_loop(s->session);
    s->tick = xcalloc(1, sizeof(*s->tick));
    s->limit = xcalloc(1, sizeof(*s->limit));
    uv_timer_init(loop, s->tick);
    uv_timer_init(loop, s->limit);
    s->tick->data = s->limit->data = s;
    if (progress_is_on(s->progress)) {
        uv_timer_start(s->tick, on_tick, 0, TICK_MS);
    }
    if (limit > 0) {
        double left = limit - s->fold->wall_seconds;
        uv_timer_start(s->limit, on_limit, left > 0 ? (uint64_t)(left * 1000) : 0, 0);
    }
}

// Says where the threshold of policy risk is, when it is another one.
static void say_threshold(struct search *s)
{
    const struct run_certified *now = &s->fold->certified;
    char text[700];
    if (s->fold->certifications == s->certifications) {
        return;
    }
    s->certifications = s->fold->certifications;
    if (isnan(now->threshold)) {
        snprintf(text, sizeof(text), "measuring everything again: %s", now->text);
    } else {
        snprintf(text, sizeof(text), "trusting forecasts of P(improves) below %.3f: %s",
                 now->threshold, now->text);
    }
    progress_say(s->progress, text);
}

static int loop(struct search *s, struct err *err)
{
    const char *reason = NULL;
    int code = pipeline_advance(s->pipeline, err);
    while (code == 0 && !pipeline_done(s->pipeline, &reason)) {
        if (pool_outstanding(s->pool) == 0 && !forecaster_busy(s->forecaster) &&
            !pipeline_asking(s->pipeline)) {
            return err_set(err, ERR_INTERNAL,
                           "the search has nothing to wait for and is not at its end");
        }
        code = pool_run_once(s->pool, err);
        if (s->limit_reached) {
            pipeline_stop(s->pipeline, "time limit reached");
        }
        if (code == 0) {
            code = pipeline_advance(s->pipeline, err);
        }
        if (code == 0) {
            say_threshold(s);
        }
    }
    if (code == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        struct run_finished event = {.reason = xstrdup(reason),
                                     .at = (double)now.tv_sec,
                                     .wall_seconds = s->fold->wall_seconds};
        code = pipeline_record(s->run, s->fold, RUN_FINISHED, &event, err);
        pool_cancel_all(s->pool); // compilations of what will not be decided any more
    }
    return code;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void release(struct search *s)
{
    pipeline_free(s->pipeline);
    forecaster_free(s->forecaster);
    proposer_free(s->proposer);
    generator_free(s->generator);
    problem_free(s->problem);
    pool_close(s->pool);
    progress_free(s->progress);
    if (s->tick != NULL) {
        uv_close((uv_handle_t *)s->tick, free_handle);
        uv_close((uv_handle_t *)s->limit, free_handle);
    }
    if (s->baseline != NULL) {
        message_clear(&compiled_message, s->baseline);
        free(s->baseline);
    }
}

// Everything up to the pipeline. device_class is that of the run's earlier sessions, or NULL.
static int begin(struct search *s, const char *device_class, struct err *err)
{
    struct device_info device = {0};
    char *sandbox = NULL;
    int code = read_problem(s, err);
    if (code == 0) {
        code = open_generator(s, err);
    }
    if (code == 0) {
        code = pool_create(&s->pool, s->session, s->fold->started.search, err);
    }
    if (code == 0) {
        const struct run_started *started = &s->fold->started;
        struct pool_terms terms = {.weight = started->weight,
                                   .budget_seconds = started->hard_seconds,
                                   .in = (enum queue_class)started->queue_class};
        pool_set_terms(s->pool, &terms);
    }
    if (code == 0) {
        code = search_device(s->session, device_class, s->problem, &device, &sandbox, err);
    }
    if (code == 0) {
        s->progress =
            progress_create(session_options(s->session)->quiet, s->generator->point_count);
        s->forecaster = forecaster_create(s->session, progress_say, s->progress);
        pool_set_notice(s->pool, progress_say, s->progress);
        pool_set_blob_reader(s->pool, read_blob, s->run);
        forecaster_set_reader(s->forecaster, read_blob, s->run);
        code = record_session(s, &device, &sandbox, err);
    }
    if (code == 0 && s->generator->asks) {
        code = proposer_create(&s->proposer, s->session, read_blob, s->run, err);
    }
    if (code == 0 && s->fold->baseline == NULL) {
        code = compile_baseline(s, err);
    }
    if (code == 0) {
        struct pipeline_peers peers = pipeline_peers_of(s->pool, s->forecaster);
        code = pipeline_create(&s->pipeline, s->run, s->fold, &peers, s->proposer, s->generator,
                               err);
    }
    message_clear(&device_info_message, &device);
    free(sandbox);
    return code;
}

int search_drive(struct session *session, struct run *run, struct fold *fold, struct err *err)
{
    struct search s = {.session = session,
                       .run = run,
                       .fold = fold,
                       .certifications = fold->certifications};
    char *device_class =
        fold->session.device_class != NULL ? xstrdup(fold->session.device_class) : NULL;
    int code = begin(&s, device_class, err);
    if (code == 0) {
        start_timers(&s);
        code = loop(&s, err);
    }
    release(&s);
    free(device_class);
    return code;
}
