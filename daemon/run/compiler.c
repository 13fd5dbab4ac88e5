// Design note. A task is one compilation that somebody waits for; requests for the same key join
// it.
//
//   LOOKUP   the ledger is asked for the key; a hit ends it
//   WAITING  in the list of those that need a slot, oldest first
//   LOADING  the source is read (and the problem, for cuda); holds a slot
//   RUNNING  kcast-exec runs; holds a slot; when it is lost: WAITING again, once; when the host
//            cannot start it: WAITING again, as often as that happens
//   STORING  object and entry are being stored; no slot
//
// A task whose last request is cancelled leaves the table of keys at once (a new request starts
// anew); its memory stays until what is under way for it has come back. A hit counts only if the
// object is still in the blob store. The entry is written after the object, so that a crash in
// between costs a compilation and nothing else. What cannot be stored (a full disk) is still
// delivered when there is no object to be stored (a compile error). An object that finds no room is
// made again when HELD_TICKS have passed, and nothing else is compiled meanwhile: a full disk ends
// no job. One that cannot be stored for another reason cannot be used, and the request is lost.
#include "daemon/run/compiler.h"
#include "common/log.h"
#include "daemon/run/outcome.h"
#include "daemon/store/cache.h"
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>
#include <utlist.h>

#define OUTCOME_MAX ((size_t)34 << 20)
// Of the jail altogether: a compiler at its limit, and as much for its helpers, scratch files and
// kcast-exec itself; twice the processes that the jail's own limit allows.
#define GROUP_MEMORY (2 * COMPILER_MEMORY_MAX)
#define GROUP_PROCESSES 128
#define HELD_TICKS 10 // seconds between tries of a full disk

enum task_state { TASK_LOOKUP, TASK_WAITING, TASK_LOADING, TASK_RUNNING, TASK_STORING };

struct compile_task {
    struct compiler *compiler;
    struct digest key;
    enum task_state state;
    bool orphan; // nobody waits any more; not in the table
    bool fresh;  // the cache does not count
    unsigned attempts;
    struct compile_input input;       // its texts are copies
    struct compile_request *requests; // list
    struct executor *executor;        // RUNNING
    struct compile_outcome outcome;   // of the last run
    bool has_outcome;
    struct err unread;         // why a report could not be read
    double seconds;            // of children so far
    struct compile_task *prev; // WAITING list
    struct compile_task *next;
    UT_hash_handle hh;
};

struct compiler {
    const struct daemon_parts *parts;
    struct compiler_events events;
    struct compile_task *tasks;   // by key
    struct compile_task *waiting; // list
    size_t waiting_count;
    size_t slots_used;
    size_t under_way; // tasks that exist
    unsigned held;    // ticks until something is compiled again; 0: as usual
    bool full;        // the last object found no room
    bool stopping;
};

struct compiler *compiler_create(const struct daemon_parts *parts,
                                 const struct compiler_events *events)
{
    struct compiler *compiler = xcalloc(1, sizeof(*compiler));

    compiler->parts = parts;
    compiler->events = *events;
    return compiler;
}

void compiler_free(struct compiler *compiler)
{
    free(compiler);
}

static struct digest key_of(const struct compiler *compiler, const struct compile_input *input)
{
    return compile_input_key(input, compiler->parts->limits.sandbox_off);
}

static void leave_table(struct compile_task *task)
{
    if (!task->orphan) {
        task->orphan = true;
        HASH_DEL(task->compiler->tasks, task);
    }
}

static void task_free(struct compile_task *task)
{
    leave_table(task);
    if (--task->compiler->under_way == 0) {
        task->compiler->full = false; // nothing waits for room any more
    }
    if (task->has_outcome) {
        message_clear(&compile_outcome_message, &task->outcome);
    }
    free((char *)(uintptr_t)task->input.header);
    free((char *)(uintptr_t)task->input.glue);
    free((char *)(uintptr_t)task->input.name);
    free(task);
}

// Tells everybody and ends the task. The first requester pays.
static void finish_as(struct compile_task *task, struct compile_answer outcome)
{
    outcome.seconds = task->seconds;
    leave_table(task); // a request made by a callback starts anew
    struct compile_request *request;
    while ((request = task->requests)) {
        DL_DELETE(task->requests, request);
        request->task = NULL;
        request->on_done(request, &outcome);
        outcome.seconds = 0;
    }
    task_free(task);
}

static void finish(struct compile_task *task, const struct compiled *compiled)
{
    finish_as(task, (struct compile_answer){.compiled = compiled});
}

static void lose(struct compile_task *task, enum job_cause cause, const char *reason)
{
    log_event(LOG_WARNING, "compile-lost name=%s cause=%s reason=\"%s\"", task->input.name,
              job_cause_name(cause), reason);
    finish_as(task, (struct compile_answer){.reason = reason, .cause = cause});
}

static void wait_for_slot(struct compile_task *task)
{
    struct compiler *compiler = task->compiler;

    task->state = TASK_WAITING;
    if (task->attempts > 0) {
        DL_PREPEND(compiler->waiting, task);
    } else {
        DL_APPEND(compiler->waiting, task);
    }
    compiler->waiting_count++;
    compiler_kick(compiler);
}

static void stop_waiting(struct compile_task *task)
{
    DL_DELETE(task->compiler->waiting, task);
    task->compiler->waiting_count--;
}

static void free_slot(struct compile_task *task, double seconds)
{
    struct compiler *compiler = task->compiler;

    compiler->slots_used--;
    compiler->events.on_idle(compiler->events.owner, seconds);
}

static void on_entry_stored(void *owner, const struct err *error, struct bytes *answer,
                            size_t count)
{
    struct compile_task *task = owner;

    // Without the entry the compilation is done again next time; nobody has to know.
    (void)error;
    (void)answer;
    (void)count;
    finish(task, task->outcome.compiled);
}

static void store_entry(struct compile_task *task)
{
    struct bytes packed = cache_pack(&compiled_message, task->outcome.compiled);

    ledger_keep_compiled(task->compiler->parts->ledger, &task->key, &packed, on_entry_stored, task);
    bytes_clear(&packed);
}

// It will be the next one to begin.
static void put_back(struct compile_task *task)
{
    task->state = TASK_WAITING;
    DL_PREPEND(task->compiler->waiting, task);
    task->compiler->waiting_count++;
}

// There is no room for its object. The disk is tried again later, with this task first.
static void hold(struct compile_task *task, const char *reason)
{
    struct compiler *compiler = task->compiler;

    log_event(LOG_WARNING, "compile-held name=%s seconds=%d reason=\"%s\"", task->input.name,
              HELD_TICKS, reason);
    message_clear(&compile_outcome_message, &task->outcome);
    task->has_outcome = false;
    task->seconds = 0; // the search is not charged for tries of a full disk
    put_back(task);
    compiler->held = HELD_TICKS;
    compiler->full = true;
}

static void on_object_stored(void *owner, const struct err *error)
{
    struct compile_task *task = owner;

    if (error && error->code == ERR_NO_SPACE && task->requests) {
        hold(task, error->text);
    } else if (error) {
        lose(task, JOB_CAUSE_STORAGE, error->text);
    } else {
        task->compiler->full = false;
        store_entry(task);
    }
}

static void store(struct compile_task *task)
{
    struct compiled *compiled = task->outcome.compiled;
    struct bytes object = task->outcome.object;

    task->state = TASK_STORING;
    task->outcome.object = (struct bytes){0};
    compiled->cached = false;
    if (!compiled->toolchain) {
        compiled->toolchain = xstrdup(task->input.device_class->toolchain);
    }
    if (compiled->verdict == VERDICT_NONE) {
        blob_put(task->compiler->parts->blobs, &compiled->object, &object, false, on_object_stored,
                 task);
    } else {
        bytes_clear(&object);
        store_entry(task);
    }
}

static struct compile_expectation expectation_of(const struct compile_task *task)
{
    return (struct compile_expectation){
        .target = compile_input_is_cuda(&task->input) ? task->input.device_class->target : NULL,
        .sandbox_off = task->compiler->parts->limits.sandbox_off,
    };
}

// Perhaps on another thread. What lies is not asked again.
static bool read_outcome(void *owner, const struct bytes *packed)
{
    struct compile_task *task = owner;
    struct compile_expectation expected = expectation_of(task);

    task->unread = (struct err)ERR_INIT;
    task->has_outcome = outcome_read_compile(&task->outcome, packed, &expected, &task->unread) == 0;
    return !task->has_outcome;
}

// The run has ended and the task still has its slot.
static void on_executor_end(void *owner, struct executor_end *end)
{
    struct compile_task *task = owner;

    task->executor = NULL;
    task->seconds += end->seconds;
    free_slot(task, end->seconds);
    if (task->orphan || task->compiler->stopping) {
        task_free(task);
        return;
    }
    if (task->has_outcome) {
        store(task);
        return;
    }
    char reason[ERR_TEXT_MAX];
    (void)snprintf(reason, sizeof(reason), "%s", end->ok ? task->unread.text : end->reason);
    if (++task->attempts < COMPILER_ATTEMPTS) {
        log_event(LOG_WARNING, "compile-retried name=%s reason=\"%s\"", task->input.name, reason);
        wait_for_slot(task);
        return;
    }
    lose(task, JOB_CAUSE_LOST_EXECUTOR, reason);
}

// How kcast-exec is run; for cuda in processes that stay.
static struct executor_config executor_of(const struct daemon_limits *limits, bool cuda)
{
    return (struct executor_config){
        .mode = cuda ? "cuda-compile" : "compile",
        .keep = cuda ? "" : NULL,
        .outcome_max = OUTCOME_MAX,
        .deadline_ms = limits->compile_seconds * 1000 + limits->slack_ms,
        .grace_ms = limits->grace_ms,
        .limits = {.memory = GROUP_MEMORY, .processes = GROUP_PROCESSES},
        .read = read_outcome,
        .on_end = on_executor_end,
    };
}

static void on_blobs(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                     size_t count)
{
    struct compile_task *task = owner;
    const struct daemon_parts *parts = task->compiler->parts;
    struct executor_config run = executor_of(&parts->limits, compile_input_is_cuda(&task->input));

    (void)failed;
    (void)count;
    if (task->orphan || task->compiler->stopping) {
        free_slot(task, 0);
        task_free(task);
        return;
    }
    if (error) {
        free_slot(task, 0);
        lose(task, JOB_CAUSE_MISSING_BLOB, error->text);
        return;
    }
    struct bytes plan = compile_input_plan(&task->input, &parts->limits, blobs);
    task->state = TASK_RUNNING;
    if (!plan.data) {
        free_slot(task, 0);
        lose(task, JOB_CAUSE_TOO_LARGE, "its source, header or glue is too large for a plan");
        return;
    }
    run.owner = task;
    struct err err = ERR_INIT;
    if (executor_start(&task->executor, parts->executors, &run, &plan, &err) != 0) {
        log_event(LOG_WARNING, "compile-waits name=%s seconds=%u reason=\"%s\"", task->input.name,
                  executor_pool_held(parts->executors), err.text);
        put_back(task);
        free_slot(task, 0);
    }
}

void compiler_keep_ready(struct compiler *compiler)
{
    const struct daemon_parts *parts = compiler->parts;
    struct executor_config run = executor_of(&parts->limits, true);

    executors_prestart(parts->executors, &run, parts->limits.compile_slots);
}

void compiler_kick(struct compiler *compiler)
{
    const struct daemon_parts *parts = compiler->parts;
    const struct compiler_events *events = &compiler->events;

    while (compiler->waiting && !compiler->stopping && !compiler->held &&
           compiler->slots_used < parts->limits.compile_slots &&
           executor_pool_held(parts->executors) == 0 && events->may_start(events->owner)) {
        struct compile_task *task = compiler->waiting;
        struct digest blobs[] = {task->input.source, task->input.problem};

        stop_waiting(task);
        compiler->slots_used++;
        task->state = TASK_LOADING;
        blob_load(parts->blobs, blobs, compile_input_is_cuda(&task->input) ? 2 : 1, on_blobs, task);
    }
}

void compiler_tick(struct compiler *compiler)
{
    if (compiler->held > 0 && --compiler->held == 0) {
        compiler_kick(compiler);
    }
}

static void on_looked_up(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct compile_task *task = owner;

    (void)error;
    if (task->orphan || task->compiler->stopping) {
        task_free(task);
        return;
    }
    struct compiled compiled;
    if (task->fresh || count == 0 || !answer[0].data ||
        message_read(&compiled_message, &compiled, answer[0].data, answer[0].len, NULL) != 0) {
        wait_for_slot(task);
        return;
    }
    if (compiled.verdict == VERDICT_NONE &&
        !blob_have(task->compiler->parts->blobs, &compiled.object)) {
        wait_for_slot(task);
    } else {
        compiled.cached = true;
        finish(task, &compiled);
    }
    message_clear(&compiled_message, &compiled);
}

static struct compile_task *new_task(struct compiler *compiler, const struct digest *key,
                                     const struct compile_input *input)
{
    struct compile_task *task = xcalloc(1, sizeof(*task));

    task->compiler = compiler;
    task->key = *key;
    task->input = *input;
    task->input.header = xstrdup(input->header);
    task->input.glue = xstrdup(input->glue);
    task->input.name = xstrdup(input->name);
    HASH_ADD(hh, compiler->tasks, key, sizeof(task->key), task);
    compiler->under_way++;
    return task;
}

void compiler_request(struct compiler *compiler, struct compile_request *request,
                      const struct compile_input *input)
{
    struct digest key = key_of(compiler, input);
    struct compile_task *task;

    HASH_FIND(hh, compiler->tasks, &key, sizeof(key), task);
    if (!task) {
        task = new_task(compiler, &key, input);
        ledger_read_compiled(compiler->parts->ledger, &key, on_looked_up, task);
    }
    task->fresh = task->fresh || input->fresh;
    request->task = task;
    DL_APPEND(task->requests, request);
}

void compiler_cancel(struct compiler *compiler, struct compile_request *request)
{
    struct compile_task *task = request->task;

    (void)compiler;
    if (!task) {
        return;
    }
    DL_DELETE(task->requests, request);
    request->task = NULL;
    if (task->requests || task->state == TASK_STORING) {
        return; // others want it, or it is as good as done
    }
    leave_table(task);
    if (task->state == TASK_WAITING) {
        stop_waiting(task);
        task_free(task);
    } else if (task->state == TASK_RUNNING) {
        executor_stop(task->executor);
    }
}

void compiler_forget(struct compiler *compiler, const struct compile_input *input)
{
    struct digest key = key_of(compiler, input);

    ledger_drop_compiled(compiler->parts->ledger, &key);
}

void compiler_stop(struct compiler *compiler)
{
    struct compile_task *task;
    struct compile_task *next;

    compiler->stopping = true;
    HASH_ITER (hh, compiler->tasks, task, next) {
        while (task->requests) {
            struct compile_request *request = task->requests;

            DL_DELETE(task->requests, request);
            request->task = NULL;
        }
        if (task->state == TASK_WAITING) {
            stop_waiting(task);
            task_free(task);
        } else if (task->state == TASK_RUNNING) {
            executor_stop(task->executor);
        }
    }
}

size_t compiler_running(const struct compiler *compiler)
{
    return compiler->slots_used;
}

size_t compiler_waiting(const struct compiler *compiler)
{
    return compiler->held ? 0 : compiler->waiting_count;
}

bool compiler_is_held(const struct compiler *compiler)
{
    return compiler->full;
}

bool compiler_busy(const struct compiler *compiler)
{
    return compiler->under_way > 0;
}
