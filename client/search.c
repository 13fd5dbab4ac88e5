// Drives a pipeline. Order of things: daemon, device, worker, RUN_SESSION, baseline, pipeline,
// loop, RUN_FINISHED. Everything that can fail because of somebody else comes before the first
// event of the session.
#include "client/search.h"

#include "client/daemons.h"
#include "client/device_choice.h"
#include "client/fleet.h"
#include "client/forecaster.h"
#include "client/generator_list.h"
#include "client/pipeline.h"
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
    struct fleet *fleet;
    struct forecaster *forecaster;
    struct proposer *proposer; // NULL unless a generator asks
    struct problem *problem; // from the run file
    struct generator_list generators;
    struct pipeline *pipeline;
    struct progress *progress;
    uv_timer_t *tick;  // progress; freed by its close callback
    uv_timer_t *limit; // the same, end of --max-time
    bool limit_reached;
    size_t certifications; // that were told
    bool said_over;        // that the language model has left
    struct compiled *baseline; // the answer to job c0
    struct err failure;        // in a callback
};

// ---- who measures ----

int search_device(struct session *session, const char *device_class, const struct problem *problem,
                  struct device_info *ret, struct err *err)
{
    struct daemons daemons;
    struct status_request request = {0};
    struct status status;
    struct err first = ERR_INIT;
    int code = daemons_connect(&daemons, session, err);
    if (code != 0) {
        return code;
    }
    code = ERR_UNREACHABLE;
    for (size_t i = 0; i < daemons.count && code != 0; i++) {
        const struct daemon_link *link = &daemons.link[i];
        struct err why = ERR_INIT;
        if (link->remote == NULL) {
            continue;
        }
        code = remote_call_sync(link->remote, OP_STATUS, &status_request_message, &request,
                                &status_message, &status, STATUS_MS, &why);
        if (code == 0) {
            code = device_choose(&status, device_class, problem, ret, &why);
            message_clear(&status_message, &status);
        }
        if (first.code == ERR_NONE) {
            first = why;
        }
    }
    daemons_release(&daemons);
    return code == 0 ? 0 : err_set(err, first.code, "%s", first.text);
}

// ---- beginning ----

static int record_session(struct search *s, struct device_info *device, char **sandbox,
                          struct err *err)
{
    const struct session_options *options = session_options(s->session);
    struct remote *pool = NULL;
    char host[256] = "";
    struct timespec now;
    bool several = fleet_class(s->fleet) != NULL;
    int code = several ? 0 : session_pool(s->session, &pool, err);
    if (code != 0) {
        return code;
    }
    gethostname(host, sizeof(host) - 1);
    clock_gettime(CLOCK_REALTIME, &now);
    struct run_session event = {
        .pool = xstrdup(options->local ? "local" : several ? options->pool : remote_url(pool)),
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

static int open_generators(struct search *s, struct err *err)
{
    struct run_started *started = &s->fold->started;
    char *path = xasprintf("%s/template.%s", started->problem, problem_extension(s->problem));
    int code = generator_list_parse(&s->generators, started->generator, err);
    for (size_t i = 0; i < s->generators.count && code == 0; i++) {
        const struct digest *slot = generator_list_slot(&s->generators, started, i);
        if (slot != NULL) {
            code = run_get_blob(s->run, slot, &s->generators.text[i], err);
        } else if (!generator_asks(s->generators.kind[i])) {
            code = err_set(err, ERR_CORRUPT, "the run does not hold the candidates of %.200s",
                           s->generators.kind[i]);
        }
    }
    if (code == 0) {
        code = generator_list_create(&s->generators, path, err);
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
        fleet_ack(s->fleet, info->job);
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
    fleet_submit(s->fleet, "c0", &spec, 0, on_baseline, s, 0);
    int code = fleet_drain(s->fleet, err);
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

// Says when the language model has nothing to give any more, and others go on.
static void say_over(struct search *s)
{
    const char *reason = s->fold->asking_over_reason;
    if (s->fold->asking_over && !s->said_over) {
        char *text = xasprintf("the generator llm has left the search: %.600s",
                               reason != NULL ? reason : "it wrote nothing new");
        s->said_over = true;
        progress_say(s->progress, text);
        free(text);
    }
}

static int loop(struct search *s, struct err *err)
{
    const char *reason = NULL;
    int code = pipeline_advance(s->pipeline, err);
    while (code == 0 && !pipeline_done(s->pipeline, &reason)) {
        if (fleet_outstanding(s->fleet) == 0 && !forecaster_busy(s->forecaster) &&
            !pipeline_asking(s->pipeline)) {
            return err_set(err, ERR_INTERNAL,
                           "the search has nothing to wait for and is not at its end");
        }
        code = fleet_run_once(s->fleet, err);
        if (s->limit_reached) {
            pipeline_stop(s->pipeline, "time limit reached");
        }
        if (code == 0) {
            code = pipeline_advance(s->pipeline, err);
        }
        if (code == 0) {
            say_threshold(s);
            say_over(s);
        }
    }
    if (code == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        struct run_finished event = {.reason = xstrdup(reason),
                                     .at = (double)now.tv_sec,
                                     .wall_seconds = s->fold->wall_seconds};
        code = pipeline_record(s->run, s->fold, RUN_FINISHED, &event, err);
        fleet_cancel_all(s->fleet); // compilations of what will not be decided any more
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
    generator_list_release(&s->generators);
    problem_free(s->problem);
    fleet_close(s->fleet);
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
        code = open_generators(s, err);
    }
    if (code == 0) {
        s->progress = progress_create(session_options(s->session)->quiet,
                                      generator_list_points(&s->generators));
        code = fleet_create(&s->fleet, s->session, s->fold->started.search, NULL, err);
    }
    if (code == 0) {
        const struct run_started *started = &s->fold->started;
        struct pool_terms terms = {.weight = started->weight,
                                   .budget_seconds = started->hard_seconds,
                                   .in = (enum queue_class)started->queue_class};
        fleet_set_terms(s->fleet, &terms);
        fleet_set_notice(s->fleet, progress_say, s->progress);
        code = fleet_choose(s->fleet, device_class, s->problem, &device, &sandbox, err);
    }
    if (code == 0) {
        s->forecaster = forecaster_create(s->session, progress_say, s->progress);
        fleet_set_blob_reader(s->fleet, read_blob, s->run);
        forecaster_set_reader(s->forecaster, read_blob, s->run);
        code = record_session(s, &device, &sandbox, err);
    }
    if (code == 0 && generator_list_asking(&s->generators) < s->generators.count) {
        code = proposer_create(&s->proposer, s->session, read_blob, s->run, err);
    }
    if (code == 0 && s->fold->baseline == NULL) {
        code = compile_baseline(s, err);
    }
    if (code == 0) {
        struct pipeline_peers peers = pipeline_peers_of(s->fleet, s->forecaster);
        const struct generator *generator[GENERATOR_LIST_MAX];
        for (size_t i = 0; i < s->generators.count; i++) {
            generator[i] = s->generators.generator[i];
        }
        code = pipeline_create(&s->pipeline, s->run, s->fold, &peers, s->proposer, generator,
                               s->generators.count, err);
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
                       .certifications = fold->certifications,
                       .said_over = fold->asking_over};
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
