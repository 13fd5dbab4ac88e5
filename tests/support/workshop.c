#include "tests/support/workshop.h"
#include "common/file.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/wait.h"
#include "daemon/run/compiler.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include <cmocka.h>

#define LIMIT_S 60 // then a test that waits in vain is killed

// --- executors

static char *name_of(const struct executor_config *config, const struct bytes *plan)
{
    if (strcmp(config->mode, "compile") != 0) {
        return xstrdup(config->mode);
    }
    struct compile_plan compile;
    assert_int_equal(message_read(&compile_plan_message, &compile, plan->data, plan->len, NULL), 0);
    char *name = xstrdup(compile.name);
    message_clear(&compile_plan_message, &compile);
    return name;
}

static int start_execution(void *owner, struct executor *executor,
                           const struct executor_config *config, const struct bytes *plan,
                           struct err *err)
{
    struct workshop *w = owner;

    if (w->broken) {
        return err_set(err, ERR_SYSTEM, "no process can be started");
    }
    struct execution *execution = xcalloc(1, sizeof(*execution));
    execution->name = name_of(config, plan);
    execution->plan = bytes_copy(plan->data, plan->len);
    execution->group = config->keep ? xstrdup(config->keep) : NULL;
    execution->deadline_ms = config->deadline_ms;
    execution->executor = executor;
    DL_APPEND(w->executions, execution);
    w->begun++;
    return 0;
}

static void stop_execution(void *owner, struct executor *executor)
{
    struct workshop *w = owner;
    struct execution *execution;

    DL_FOREACH (w->executions, execution) {
        execution->stopped |= execution->executor == executor;
    }
}

static void answer(struct workshop *w, struct execution *execution, struct executor_end *end)
{
    DL_DELETE(w->executions, execution);
    executor_answer(execution->executor, end);
    free(execution->name);
    free(execution->group);
    bytes_clear(&execution->plan);
    free(execution);
}

// Ends all executions that were stopped. Returns whether there was one.
static bool end_stopped(struct workshop *w)
{
    bool any = false;
    struct execution *execution;
    struct execution *next;

    DL_FOREACH_SAFE (w->executions, execution, next) {
        if (execution->stopped) {
            struct executor_end end = {.reason = "was stopped"};

            answer(w, execution, &end);
            any = true;
        }
    }
    return any;
}

static struct bytes pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
}

void workshop_compiled(struct workshop *w, struct execution *execution, const char *error)
{
    struct compile_plan plan;

    assert_int_equal(
        message_read(&compile_plan_message, &plan, execution->plan.data, execution->plan.len, NULL),
        0);
    struct compile_outcome outcome;
    message_init(&compile_outcome_message, &outcome);
    struct compiled compiled;
    message_init(&compiled_message, &compiled);
    outcome.compiled = &compiled;
    char *object = NULL;
    if (error) {
        compiled.verdict = VERDICT_COMPILE_ERROR;
        compiled.reason = (char *)(uintptr_t)error;
    } else {
        object = xasprintf("OBJ%.*s", (int)plan.source.len, (const char *)plan.source.data);
        outcome.object = (struct bytes){(unsigned char *)object, strlen(object)};
        compiled.log = (char *)(uintptr_t) "a warning";
    }
    workshop_compile_outcome(w, execution, &outcome);
    message_clear(&compile_plan_message, &plan);
    free(object);
}

void workshop_compile_outcome(struct workshop *w, struct execution *execution,
                              const struct compile_outcome *outcome)
{
    struct executor_end end = {.ok = true, .seconds = 1};

    end.outcome = pack(&compile_outcome_message, outcome);
    answer(w, execution, &end);
}

static void end_measurement(struct workshop *w, struct execution *execution, uint64_t verdict,
                            bool unsealed, bool doubtful)
{
    struct measure_outcome outcome;

    message_init(&measure_outcome_message, &outcome);
    struct result result;
    message_init(&result_message, &result);
    result.verdict = verdict;
    result.reason = (char *)(uintptr_t) "said so";
    result.unsealed = unsealed;
    outcome.result = &result;
    outcome.doubtful = doubtful;
    struct executor_end end = {.ok = true, .seconds = 1};
    end.outcome = pack(&measure_outcome_message, &outcome);
    answer(w, execution, &end);
}

void workshop_measured(struct workshop *w, struct execution *execution, uint64_t verdict)
{
    end_measurement(w, execution, verdict, false, false);
}

void workshop_measured_as(struct workshop *w, struct execution *execution, uint64_t verdict,
                          bool unsealed)
{
    end_measurement(w, execution, verdict, unsealed, false);
}

void workshop_doubtful(struct workshop *w, struct execution *execution)
{
    end_measurement(w, execution, VERDICT_TIMEOUT, false, true);
}

void workshop_lost(struct workshop *w, struct execution *execution, const char *reason)
{
    struct executor_end end = {.seconds = 1};

    (void)snprintf(end.reason, sizeof(end.reason), "%s", reason);
    answer(w, execution, &end);
}

// --- the loop

void workshop_turn(struct workshop *w)
{
    uv_run_mode mode = end_stopped(w) ? UV_RUN_NOWAIT : UV_RUN_ONCE;

    (void)uv_run(&w->loop, mode);
}

static void on_barrier(void *owner, const struct err *error, struct bytes *reply, size_t count)
{
    (void)error;
    (void)reply;
    (void)count;
    *(bool *)owner = true;
}

static void on_blob(void *owner, const struct err *error)
{
    assert_null(error);
    *(bool *)owner = true;
}

// What comes back may ask for more. Three rounds are more than any stage of a job takes.
void workshop_settle(struct workshop *w)
{
    for (int round = 0; round < 3; round++) {
        bool ledger = false;
        struct bytes blob = bytes_copy("", 0);
        struct digest digest = digest_of("", 0);

        ledger_barrier(w->parts.ledger, on_barrier, &ledger);
        bool store = false;
        blob_put(w->parts.blobs, NULL, &digest, &blob, false, on_blob, &store);
        while (!ledger || !store) {
            workshop_turn(w);
        }
        (void)uv_run(&w->loop, UV_RUN_NOWAIT);
    }
}

void workshop_until_state(struct workshop *w, const struct job *job, enum job_state state)
{
    while (job->state != state || job->completing) {
        workshop_turn(w);
    }
}

// Returns the oldest execution of this name that was not stopped. name NULL: any compilation.
static struct execution *find(const struct workshop *w, const char *name)
{
    struct execution *execution;

    DL_FOREACH (w->executions, execution) {
        if (!execution->stopped &&
            (name ? strcmp(execution->name, name) == 0 : !strstr(execution->name, "measure"))) {
            return execution;
        }
    }
    return NULL;
}

struct execution *workshop_execution(struct workshop *w, const char *name)
{
    while (!find(w, name)) {
        workshop_turn(w);
    }
    return find(w, name);
}

void workshop_compile_until(struct workshop *w, const struct job *job, enum job_state state)
{
    while (job->state != state) {
        struct execution *execution = find(w, NULL);

        if (execution) {
            workshop_compiled(w, execution, NULL);
        } else {
            workshop_turn(w);
        }
    }
}

struct digest workshop_put(struct workshop *w, const char *text)
{
    struct digest digest = digest_of(text, strlen(text));
    struct bytes blob = bytes_copy(text, strlen(text));
    bool done = false;

    blob_put(w->parts.blobs, NULL, &digest, &blob, false, on_blob, &done);
    while (!done) {
        workshop_turn(w);
    }
    return digest;
}

// --- jobs

struct submit workshop_submit_body(struct workshop *w, uint64_t kind, const char *key,
                                   const char *source)
{
    struct submit body;

    message_init(&submit_message, &body);
    body.search = xstrdup("s");
    body.key = xstrdup(key);
    body.spec = xmalloc(sizeof(*body.spec));
    message_init(&job_spec_message, body.spec);
    body.spec->kind = kind;
    body.spec->problem = w->problem;
    body.spec->candidate = workshop_put(w, source);
    if (kind == JOB_MEASURE) {
        body.spec->reference = w->reference;
        body.spec->baseline = w->baseline;
    }
    return body;
}

struct submitting {
    bool done;
    uint64_t job;
    struct err *error;
};

static void on_submitted(void *owner, const struct submission_end *end)
{
    struct submitting *submitting = owner;

    submitting->done = true;
    submitting->job = end->job ? end->job->id : 0;
    if (end->error && submitting->error) {
        *submitting->error = *end->error;
    } else if (end->error) {
        fail_msg("SUBMIT: %s", end->error->text);
    }
}

struct job *workshop_submit(struct workshop *w, uint64_t kind, const char *key, const char *source,
                            struct err *error)
{
    struct submit body = workshop_submit_body(w, kind, key, source);
    struct submitting submitting = {.error = error};

    submission_start(w->parts.submissions, "t", &body, on_submitted, &submitting);
    while (!submitting.done) {
        workshop_turn(w);
    }
    return submitting.job ? job_table_find(w->parts.jobs, submitting.job) : NULL;
}

// --- begin and end

static void on_due(void *owner, struct exchange *exchange, const uint64_t *jobs, size_t count)
{
    (void)owner;
    (void)exchange;
    (void)jobs;
    (void)count;
}

static void add_cores(struct workshop *w, size_t cores)
{
    int core[] = {0, 1, 2, 3};

    assert_in_range(cores, 0, ARRAY_LEN(core));
    struct probe_outcome probe;
    message_init(&probe_outcome_message, &probe);
    probe.device_class = (char *)(uintptr_t) "test cpu";
    probe.toolchain = xstrdup("test cc 1");
    devices_init(&w->devices);
    devices_add_cpus(&w->devices, core, cores, &probe);
}

static void open_files(struct workshop *w)
{
    assert_int_equal(file_make_temp_dir(&w->dir, "kcast-workshop", NULL), 0);
    char *ledger = xasprintf("%s/ledger.db", w->dir);
    char *blobs = xasprintf("%s/blobs", w->dir);
    char *secret = xasprintf("%s/secret", w->dir);
    struct err err = ERR_INIT;
    if (ledger_open(&w->parts.ledger, ledger, 0, &err) != 0 ||
        blob_store_create(&w->parts.blobs, &w->loop, blobs, &err) != 0 ||
        secret_open(&w->secret, secret, &err) != 0 ||
        ledger_start(w->parts.ledger, &w->loop, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(secret);
    free(blobs);
    free(ledger);
}

void workshop_open(struct workshop *w, size_t cores)
{
    struct executor_stand_in stand_in = {
        .start = start_execution, .stop = stop_execution, .owner = w};
    struct compiler_events compiler = {.may_start = scheduler_may_compile,
                                       .on_idle = scheduler_compiled};
    struct daemon_parts *parts = &w->parts;

    memset(w, 0, sizeof(*w));
    (void)alarm(LIMIT_S);
    // One thread for blobs: what is asked for last comes back last, on which workshop_settle rests.
    assert_int_equal(setenv("UV_THREADPOOL_SIZE", "1", 1), 0);
    assert_int_equal(uv_loop_init(&w->loop), 0);
    clock_fake_init(&w->clock, 1000 * NS_PER_S);
    *parts = (struct daemon_parts){
        .loop = &w->loop,
        .clock = &w->clock,
        .limits = {.compile_slots = 4,
                   .compile_seconds = 10,
                   .slack_ms = 1000,
                   .grace_ms = 1000,
                   .queue_max = 100,
                   .jobs_max = 1000},
        .secret = &w->secret,
        .devices = &w->devices,
        .counters = &w->counters,
    };
    open_files(w);
    add_cores(w, cores);
    parts->executors = executors_stand_in(&stand_in);
    parts->accounts = accounts_create();
    parts->jobs = job_table_create(1 << 20, parts->accounts);
    job_table_set_clock(parts->jobs, &w->clock);
    parts->waits = waits_create(&w->loop, on_due, w);
    parts->completions = completions_create(parts);
    parts->scheduler = scheduler_create(parts);
    compiler.owner = parts->scheduler;
    parts->compiler = compiler_create(parts, &compiler);
    parts->setups = setups_create(parts);
    parts->lifecycle = lifecycle_create(parts);
    parts->submissions = submissions_create(parts);
    w->problem = workshop_put(w, daemon_client_problem);
    w->reference = workshop_put(w, "reference");
    w->baseline = workshop_put(w, "baseline");
}

void workshop_close(struct workshop *w)
{
    struct daemon_parts *parts = &w->parts;

    lifecycle_stop(parts->lifecycle);
    compiler_stop(parts->compiler);
    while (scheduler_busy(parts->scheduler) || compiler_busy(parts->compiler) ||
           completions_pending(parts->completions) > 0) {
        workshop_turn(w);
    }
    waits_close(parts->waits);
    ledger_close(parts->ledger);
    submissions_free(parts->submissions);
    completions_free(parts->completions);
    job_table_free(parts->jobs);
    lifecycle_free(parts->lifecycle);
    setups_free(parts->setups);
    compiler_free(parts->compiler);
    scheduler_free(parts->scheduler);
    accounts_free(parts->accounts);
    executors_free(parts->executors);
    devices_release(&w->devices);
    counters_release(&w->counters);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    blob_store_free(parts->blobs);
    assert_int_equal(uv_loop_close(&w->loop), 0);
    assert_int_equal(file_remove_tree(w->dir, NULL), 0);
    free(w->dir);
    (void)alarm(0);
}
