// Drives a pipeline. The order is daemon, device, worker, RUN_SESSION, pipeline, baseline, loop,
// RUN_FINISHED. Connections that may fail are made before the first event of the session.
#include "client/search/search.h"

#include "client/forecast/forecaster.h"
#include "client/pool/daemon_pool.h"
#include "client/program/program_proposer.h"
#include "client/propose/generator_list.h"
#include "client/search/job_times.h"
#include "client/search/pipeline.h"
#include "client/search/progress.h"
#include "client/search/trust_news.h"
#include "client/status_line.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct search {
    struct session *session;
    struct run *run;
    struct run_state *run_state;
    double began_at;                        // the session began, seconds since 1970
    const struct search_observer *observer; // NULL: none
    uint64_t observed;                      // number of the last event that it has seen
    struct daemon_pool *daemon_pool;
    struct forecaster *forecaster;
    struct proposer *proposer[GENERATOR_LIST_MAX]; // NULL for generators that do not ask
    struct problem *problem;                       // read from the run file
    struct generator_list generators;
    struct pipeline *pipeline;
    struct progress *progress;
    uv_timer_t *tick;  // draws the progress line; freed by its close callback
    uv_timer_t *limit; // fires at the end of --max-time; freed by its close callback
    bool limit_reached;
    size_t certifications;              // thresholds that the user was told about
    struct trust_news *trust_news;      // what the user was told of trust in forecasters
    bool said_over[GENERATOR_LIST_MAX]; // the user was told that the generator has left
    struct compiled *baseline;          // the answer to job c0 until it is recorded
    struct job_times *baseline_times;   // of that job, until it is recorded
    double baseline_submitted_at;
    struct err failure; // of a callback
};

// ---- beginning ----

static int record_session(struct search *s, struct device_info *device, char **sandbox,
                          struct err *err)
{
    const struct session_options *options = session_options(s->session);
    struct remote *daemon = NULL;
    bool several = daemon_pool_class(s->daemon_pool);
    int rc = several ? 0 : session_daemon(s->session, &daemon, err);
    if (rc != 0) {
        return rc;
    }
    char host[256] = "";
    gethostname(host, sizeof(host) - 1);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct run_session event = {
        .pool = xstrdup(options->local ? "local"
                        : several      ? options->pool
                                       : remote_url(daemon)),
        .worker = xstrdup(options->no_worker ? "none"
                          : options->local   ? "local"
                                             : options->worker),
        .device_class = device->device_class,
        .device = device->name,
        .engine =
            forecaster_engine(s->forecaster) ? xstrdup(forecaster_engine(s->forecaster)) : NULL,
        .at = (double)now.tv_sec,
        .host = xstrdup(host),
        .sandbox = *sandbox,
        .device_facts = device->facts,
        .device_facts_count = device->facts_count,
        .began_at = s->began_at,
    };
    // The event has taken these over.
    device->device_class = device->name = *sandbox = NULL;
    device->facts = NULL;
    device->facts_count = 0;
    return pipeline_record(s->run, s->run_state, RUN_SESSION, &event, err);
}

static int read_problem(struct search *s, struct err *err)
{
    struct bytes json;
    int rc = run_get_blob(s->run, &s->run_state->started.problem_json, &json, err);
    if (rc == 0) {
        rc = problem_parse(&s->problem, (const char *)json.data, json.len, "problem.json", err);
        bytes_clear(&json);
    }
    return rc;
}

static int open_generators(struct search *s, struct err *err)
{
    struct run_started *started = &s->run_state->started;
    char *path = xasprintf("%s/template.%s", started->problem, problem_extension(s->problem));
    int rc = generator_list_parse(&s->generators, started->generator, err);
    for (size_t i = 0; i < s->generators.count && rc == 0; i++) {
        const struct digest *slot = generator_list_slot(&s->generators, started, i);
        if (slot) {
            rc = run_get_blob(s->run, slot, &s->generators.text[i], err);
        } else if (!generator_asks(s->generators.kind[i])) {
            rc = err_set(err, ERR_CORRUPT, "the run does not hold the candidates of %.200s",
                         s->generators.kind[i]);
        }
    }
    if (rc == 0) {
        rc = generator_list_create(&s->generators, path, err);
    }
    free(path);
    return rc;
}

static void on_baseline(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct search *s = owner;
    (void)tag;
    if (error) {
        err_set(&s->failure, error->code, "the baseline: %s", error->text);
    } else if (!info->compiled) {
        err_set(&s->failure, ERR_INVALID,
                "the baseline: the daemon gave its compilation up: %.500s",
                info->reason ? info->reason : "no reason given");
    } else if (info->compiled->verdict != VERDICT_NONE) {
        err_set(&s->failure, ERR_INVALID,
                "the baseline does not compile: %.500s; `kcast problem check` says more",
                info->compiled->reason ? info->compiled->reason
                                       : verdict_name(info->compiled->verdict));
    } else {
        s->baseline_times = job_times_of(s->baseline_submitted_at, info);
        s->baseline = info->compiled;
        info->compiled = NULL;
        daemon_pool_jobs(s->daemon_pool)->ack(daemon_pool_jobs(s->daemon_pool), ref);
    }
}

// Compiles the baseline, with whose features those of candidates are compared. The first candidates
// are compiled beside it.
static int compile_baseline(struct search *s, struct err *err)
{
    const struct run_started *started = &s->run_state->started;
    struct job_spec spec = {
        .kind = JOB_COMPILE,
        .problem = started->problem_json,
        .candidate = started->baseline,
        .anchor_log2 = NAN,
        .max_seconds = NAN,
        .precision_log2 = NAN,
        .features_only = true,
        .no_machine_code = !started->machine_code,
    };
    struct job_service *jobs = daemon_pool_jobs(s->daemon_pool);
    s->baseline_submitted_at = job_times_now();
    jobs->submit(jobs, "c0", &spec, 0, on_baseline, s, 0);
    int rc = pipeline_begin(s->pipeline, err);
    while (rc == 0 && !s->baseline && s->failure.code == ERR_NONE) {
        rc = daemon_pool_run_once(s->daemon_pool, err);
    }
    if (rc == 0 && s->failure.code != ERR_NONE) {
        daemon_pool_cancel_all(s->daemon_pool);
        rc = err_set(err, s->failure.code, "%s", s->failure.text);
    }
    if (rc == 0) {
        struct run_baseline event = {.compiled = s->baseline, .times = s->baseline_times};
        s->baseline = NULL;
        s->baseline_times = NULL;
        rc = pipeline_record(s->run, s->run_state, RUN_BASELINE, &event, err);
    }
    return rc;
}

static int read_blob(void *owner, const struct digest *digest, struct bytes *ret, struct err *err)
{
    return run_get_blob(owner, digest, ret, err);
}

// ---- the loop ----

static int visit_event(void *owner, struct run_event *event, struct err *err)
{
    struct search *s = owner;
    s->observed = event->sequence;
    return s->observer->visit(s->observer->owner, event, err);
}

// Shows the observer the events that were recorded since the last call. Only what has been
// committed is shown, because the run file is read for it.
static int show_events(struct search *s, struct err *err)
{
    if (!s->observer || s->observed == s->run_state->last_sequence) {
        return 0;
    }
    progress_wipe(s->progress);
    return run_replay(s->run, s->observed, visit_event, s, err);
}

static void on_tick(uv_timer_t *timer)
{
    struct search *s = timer->data;
    char *waiting = daemon_pool_waiting(s->daemon_pool);
    progress_draw(s->progress, s->run_state, waiting);
    free(waiting);
}

static void on_limit(uv_timer_t *timer)
{
    struct search *s = timer->data;
    s->limit_reached = true;
    uv_stop(timer->loop);
}

static void start_timers(struct search *s)
{
    double limit = s->run_state->started.wall_limit_seconds;
    uv_loop_t *loop = session_loop(s->session);
    s->tick = xcalloc(1, sizeof(*s->tick));
    s->limit = xcalloc(1, sizeof(*s->limit));
    uv_timer_init(loop, s->tick);
    uv_timer_init(loop, s->limit);
    s->tick->data = s->limit->data = s;
    if (!session_options(s->session)->quiet) {
        uv_timer_start(s->tick, on_tick, 0, STATUS_LINE_TICK_MS);
    }
    if (limit > 0) {
        double left = limit - (s->run_state->wall_seconds - s->run_state->start_up_seconds);
        uv_timer_start(s->limit, on_limit, left > 0 ? (uint64_t)(left * 1000) : 0, 0);
    }
}

// Tells the user the threshold of policy risk when it has changed.
static void say_threshold(struct search *s)
{
    const struct run_certified *now = &s->run_state->certified;
    if (s->run_state->certifications == s->certifications) {
        return;
    }
    s->certifications = s->run_state->certifications;
    char text[700];
    if (isnan(now->threshold)) {
        snprintf(text, sizeof(text), "measuring everything again: %s", now->text);
    } else {
        snprintf(text, sizeof(text), "trusting forecasts of P(improves) below %.3f: %s",
                 now->threshold, now->text);
    }
    progress_say(s->progress, text);
}

static void say_trust(struct search *s)
{
    const char *text = trust_news_next(s->trust_news);
    if (text) {
        progress_say(s->progress, text);
    }
}

// Tells the user once that a generator gives no more candidates while others go on.
static void say_over(struct search *s)
{
    for (size_t i = 0; i < s->generators.count; i++) {
        const struct run_state_asking *asking = &s->run_state->asking[i];
        if (asking->over && !s->said_over[i]) {
            char *text =
                xasprintf("the generator %.200s has left the search: %.600s", s->generators.kind[i],
                          asking->reason ? asking->reason : "it wrote nothing new");
            s->said_over[i] = true;
            progress_say(s->progress, text);
            free(text);
        }
    }
}

// Ends the search when its time is up or it has what it was asked for.
static void stop_at_limits(struct search *s)
{
    double target = s->run_state->started.target;
    if (s->limit_reached) {
        pipeline_stop(s->pipeline, "time limit reached");
    }
    if (run_state_reached(s->run_state, target)) {
        char reason[64];
        snprintf(reason, sizeof(reason), "target of %.4gx reached", target);
        pipeline_stop(s->pipeline, reason);
    }
}

static int loop(struct search *s, struct err *err)
{
    const char *reason = NULL;
    stop_at_limits(s);
    int rc = pipeline_advance(s->pipeline, err);
    while (rc == 0 && !pipeline_done(s->pipeline, &reason)) {
        if (daemon_pool_outstanding(s->daemon_pool) == 0 &&
            !forecaster_service(s->forecaster)->busy && !pipeline_asking(s->pipeline)) {
            return err_set(err, ERR_INTERNAL,
                           "the search has nothing to wait for and is not at its end");
        }
        rc = daemon_pool_run_once(s->daemon_pool, err);
        stop_at_limits(s);
        if (rc == 0) {
            rc = pipeline_advance(s->pipeline, err);
        }
        if (rc == 0) {
            say_threshold(s);
            say_trust(s);
            say_over(s);
            rc = show_events(s, err);
        }
    }
    if (rc == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        struct run_finished event = {.reason = xstrdup(reason),
                                     .at = (double)now.tv_sec,
                                     .wall_seconds = s->run_state->wall_seconds};
        rc = pipeline_record(s->run, s->run_state, RUN_FINISHED, &event, err);
        if (rc == 0) {
            rc = show_events(s, err);
        }
        // Compilations of candidates that are not decided about may still be under way.
        daemon_pool_cancel_all(s->daemon_pool);
    }
    return rc;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void release(struct search *s)
{
    pipeline_free(s->pipeline);
    forecaster_free(s->forecaster);
    for (size_t i = 0; i < GENERATOR_LIST_MAX; i++) {
        proposer_free(s->proposer[i]);
    }
    generator_list_release(&s->generators);
    problem_free(s->problem);
    daemon_pool_close(s->daemon_pool);
    progress_free(s->progress);
    trust_news_free(s->trust_news);
    if (s->tick) {
        uv_close((uv_handle_t *)s->tick, free_handle);
        uv_close((uv_handle_t *)s->limit, free_handle);
    }
    if (s->baseline) {
        message_clear(&compiled_message, s->baseline);
        free(s->baseline);
    }
    free(s->baseline_times);
}

// Connects to the daemons and chooses a device. *ret_device is the caller's, and *ret_sandbox is
// malloc'd or NULL. device_class is that of the run's earlier sessions; NULL when there are none.
static int open_daemons(struct search *s, const char *device_class, struct device_info *ret_device,
                        char **ret_sandbox, struct err *err)
{
    const struct run_started *started = &s->run_state->started;
    int rc = daemon_pool_create(&s->daemon_pool, s->session, started->search, NULL, err);
    if (rc != 0) {
        return rc;
    }
    struct job_client_terms terms = {.weight = started->weight,
                                     .budget_seconds = started->hard_seconds,
                                     .in = (enum queue_class)started->queue_class,
                                     .planned = started->measurements_max,
                                     .planned_seconds = started->budget_seconds};
    daemon_pool_set_terms(s->daemon_pool, &terms);
    daemon_pool_set_notice(s->daemon_pool, progress_say, s->progress);
    daemon_pool_set_blob_reader(s->daemon_pool, read_blob, s->run);
    return daemon_pool_choose(s->daemon_pool, device_class, s->problem, ret_device, ret_sandbox,
                              err);
}

static int open_pipeline(struct search *s, struct err *err)
{
    const struct generator *generator[GENERATOR_LIST_MAX];
    for (size_t i = 0; i < s->generators.count; i++) {
        generator[i] = s->generators.generator[i];
    }
    return pipeline_create(&s->pipeline, s->run, s->run_state, daemon_pool_jobs(s->daemon_pool),
                           forecaster_service(s->forecaster), s->proposer, generator,
                           s->generators.count, err);
}

static int open_proposers(struct search *s, struct err *err)
{
    const struct run_started *started = &s->run_state->started;
    int rc = 0;
    for (size_t i = 0; i < s->generators.count && rc == 0; i++) {
        const char *command = generator_command(s->generators.kind[i]);
        if (command) {
            s->proposer[i] = program_proposer_create(s->session, started, command, read_blob,
                                                     s->run, progress_say, s->progress);
        } else if (generator_asks(s->generators.kind[i])) {
            rc = proposer_create(&s->proposer[i], s->session, read_blob, s->run, err);
        }
    }
    return rc;
}

// Does everything until the baseline has compiled. device_class as for open_daemons.
static int begin(struct search *s, const char *device_class, struct err *err)
{
    struct device_info device = {0};
    char *sandbox = NULL;
    int rc = read_problem(s, err);
    if (rc != 0) {
        goto out;
    }
    rc = open_generators(s, err);
    if (rc != 0) {
        goto out;
    }
    s->progress =
        progress_create(session_options(s->session)->quiet, generator_list_points(&s->generators));
    rc = open_daemons(s, device_class, &device, &sandbox, err);
    if (rc != 0) {
        goto out;
    }
    s->forecaster = forecaster_create(s->session, progress_say, s->progress);
    forecaster_set_reader(s->forecaster, read_blob, s->run);
    rc = record_session(s, &device, &sandbox, err);
    if (rc != 0) {
        goto out;
    }
    rc = open_proposers(s, err);
    if (rc != 0) {
        goto out;
    }
    rc = open_pipeline(s, err);
    if (rc == 0 && !s->run_state->baseline) {
        rc = compile_baseline(s, err);
    }
out:
    message_clear(&device_info_message, &device);
    free(sandbox);
    return rc;
}

int search_drive(struct session *session, struct run *run, struct run_state *run_state,
                 double began_at, const struct search_observer *observer, struct err *err)
{
    struct search s = {.session = session,
                       .observer = observer,
                       .observed = observer ? observer->after : 0,
                       .run = run,
                       .run_state = run_state,
                       .began_at = began_at,
                       .certifications = run_state->certifications,
                       .trust_news = trust_news_create(run_state)};
    for (size_t i = 0; i < GENERATOR_LIST_MAX; i++) {
        s.said_over[i] = run_state->asking[i].over;
    }
    char *device_class =
        run_state->session.device_class ? xstrdup(run_state->session.device_class) : NULL;
    int rc = begin(&s, device_class, err);
    if (rc == 0) {
        rc = show_events(&s, err);
    }
    if (rc == 0) {
        start_timers(&s);
        rc = loop(&s, err);
    }
    release(&s);
    free(device_class);
    return rc;
}
