// Design note. A task is one compilation that somebody waits for; requests for the same key join
// it.
//
//   LOOKUP   the ledger is asked for the key; a hit ends the task
//   WAITING  in the list of those that need a slot (compile_slots.c)
//   LOADING  the source, and the problem for cuda, are being read; holds a slot
//   RUNNING  kcast-exec runs; holds a slot
//   STORING  object and cache entry are being stored; holds no slot
//
// From RUNNING a task goes back to WAITING once if its executor is lost. From LOADING and RUNNING
// it goes back to WAITING as often as the host cannot open a blob or start kcast-exec, and from
// LOADING when there is no slot for the recording that its source turns out to need.
//
// Requests need more or less of a compilation: what the features need, or all variants; with or
// without the features of machine code. A run makes what its requests need together. An entry of
// the cache says what its object lacks. What it has is answered at once and given to the run that
// makes the rest, whose object then takes its place. A request that needs more than the run under
// way makes asks again at its end.
//
// A task whose last request is cancelled leaves the table of keys at once, so that a new request
// starts another task. It is freed when the operation under way for it has come back. A hit counts
// only if the object is still in the blob store. The entry is written after the object, so a crash
// in between costs a compilation and nothing else.
//
// A compile error has no object, so it is delivered even if its entry cannot be stored. An object
// that finds no room on the disk is made again after HELD_TICKS, and nothing else is compiled in
// the meantime: a full disk ends no job. If an object cannot be stored for another reason, the
// compilation is lost.
#include "daemon/run/compiler.h"
#include "common/log.h"
#include "daemon/run/compiler_inside.h"
#include "daemon/run/outcome.h"
#include "daemon/store/cache.h"
#include "problem/candidate_form.h"
#include "proto/result_check.h"
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#define OUTCOME_MAX (COMPILER_OUTPUT_MAX + ((size_t)2 << 20))
// Bytes of all processes of a compilation together: a compiler at its limit, and as much again for
// its helpers, scratch files and kcast-exec itself.
#define GROUP_MEMORY (2 * COMPILER_MEMORY_MAX)
#define GROUP_PROCESSES 128 // twice as many as the sandbox allows the compiler

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

static void wait_for_slot(struct compile_task *task)
{
    compile_slots_wait(task);
    compiler_kick(task->compiler);
}

static void free_slot(struct compile_task *task, double seconds)
{
    struct compiler *compiler = task->compiler;

    compile_slots_free(task);
    compiler->events.on_idle(compiler->events.owner, seconds);
}

// The task begins again when it gets another slot.
static void give_up_slot(struct compile_task *task)
{
    compile_slots_free(task);
    compile_slots_wait(task);
    task->compiler->events.on_idle(task->compiler->events.owner, 0);
}

static struct compile_expectation expectation_of(const struct compile_task *task)
{
    return (struct compile_expectation){
        .target = compile_input_is_cuda(&task->input) ? task->input.device_class->target : NULL,
        .sandbox_off = task->compiler->parts->limits.sandbox_off,
        .complete = !task->asked.features_only,
        .machine_code = task->asked.machine_code,
        .unsealed = task->input.unsealed,
    };
}

// May run on another thread. Returns true, so that the process is not used again, if the outcome
// cannot be true.
static bool read_outcome(void *owner, const struct bytes *packed)
{
    struct compile_task *task = owner;
    struct compile_expectation expected = expectation_of(task);

    task->unread = (struct err)ERR_INIT;
    task->has_outcome = outcome_read_compile(&task->outcome, packed, &expected, &task->unread) == 0;
    return !task->has_outcome;
}

static void log_run(const struct compile_task *task, const struct executor_end *end)
{
    char source[DIGEST_HEX_LEN + 1];

    digest_hex(&task->input.source, source);
    log_event(LOG_INFO, "compiled name=%s source=%.12s how=%s waited=%.3f seconds=%.3f",
              task->input.name, source, task->slow ? "recorded" : "compiled", task->waited_s,
              end->seconds);
}

// The run has ended, and the task still has its slot.
static void on_executor_end(void *owner, struct executor_end *end)
{
    struct compile_task *task = owner;

    task->executor = NULL;
    task->seconds += end->seconds;
    log_run(task, end);
    free_slot(task, end->seconds);
    if (task->orphan || task->compiler->stopping) {
        compile_task_free(task);
        return;
    }
    if (task->has_outcome) {
        compile_task_store(task);
        return;
    }
    char reason[ERR_TEXT_MAX];
    (void)snprintf(reason, sizeof(reason), "%s", end->ok ? task->unread.text : end->reason);
    if (++task->attempts < COMPILER_ATTEMPTS) {
        log_event(LOG_WARNING, "compile-retried name=%s reason=\"%s\"", task->input.name, reason);
        wait_for_slot(task);
        return;
    }
    compile_task_lose(task, JOB_CAUSE_LOST_EXECUTOR, reason);
}

// How kcast-exec makes an object of a source.
enum making { MAKING_C, MAKING_CUDA, MAKING_RECORDING };

static enum making making_of(const struct compile_input *input, const struct bytes *source)
{
    return !compile_input_is_cuda(input) ? MAKING_C
           : candidate_is_sealed(candidate_form((const char *)source->data, source->len))
               ? MAKING_CUDA
               : MAKING_RECORDING;
}

// Processes for cuda stay: a compiler that has been loaded, an interpreter that has PyTorch.
static struct executor_config executor_of(const struct daemon_limits *limits, enum making making)
{
    static const char *const mode[] = {"compile", "cuda-compile", "cuda-record"};

    return (struct executor_config){
        .mode = mode[making],
        .argument = making != MAKING_RECORDING ? NULL
                    : limits->python           ? limits->python
                                               : "python3",
        .keep = making == MAKING_C ? NULL : "",
        .outcome_max = OUTCOME_MAX,
        .deadline_ms = compile_input_wall_seconds(limits) * 1000 + limits->slack_ms,
        .grace_ms = limits->grace_ms,
        .limits = {.memory = GROUP_MEMORY, .processes = GROUP_PROCESSES},
        .read = read_outcome,
        .on_end = on_executor_end,
    };
}

// The host could not open a blob or start kcast-exec, and the executors are held for a while.
static void wait_for_host(struct compile_task *task, const char *reason)
{
    log_event(LOG_WARNING, "compile-waits name=%s seconds=%u reason=\"%s\"", task->input.name,
              executors_held(task->compiler->parts->executors), reason);
    give_up_slot(task);
}

// What the requests need together.
static struct compile_input needs_of(const struct compile_task *task)
{
    struct compile_input input = task->input;
    const struct compile_request *request;

    input.features_only = true;
    input.machine_code = false;
    DL_FOREACH (task->requests, request) {
        input.features_only = input.features_only && request->features_only;
        input.machine_code = input.machine_code || request->machine_code;
    }
    return input;
}

// A GPU of the class to record on, another one for each task in turn; NULL when there is none.
static const char *device_of(const struct compile_task *task)
{
    const struct devices *devices = task->compiler->parts->devices;
    size_t begin = task->compiler->recorded_on++;

    for (size_t i = 0; i < devices->count; i++) {
        const struct device *device = &devices->device[(begin + i) % devices->count];

        if (device->device_class == task->input.device_class && device->uuid[0] != '\0') {
            return device->uuid;
        }
    }
    return NULL;
}

// How many variants of a source may be compiled at once: as many as there are slots for each source
// that is being compiled or waits.
static size_t width_of(const struct compiler *compiler)
{
    return compiler->parts->limits.compile_slots / (compiler->slots_used + compiler->waiting_count);
}

// The blobs that the plan of the task has. Returns how many.
static size_t blobs_of(const struct compile_task *task, struct digest ret[static 3])
{
    ret[0] = task->input.source;
    ret[1] = task->input.problem;
    ret[2] = task->known.object;
    return !compile_input_is_cuda(&task->input) ? 1 : digest_is_zero(&ret[2]) ? 2 : 3;
}

static void on_blobs(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                     size_t count)
{
    struct compile_task *task = owner;
    const struct daemon_parts *parts = task->compiler->parts;

    (void)count;
    if (task->orphan || task->compiler->stopping) {
        free_slot(task, 0);
        compile_task_free(task);
        return;
    }
    struct err err = ERR_INIT;
    if (error && error->code != ERR_BUSY && failed == 2) {
        compile_task_forget_known(task); // all of it is compiled again
        give_up_slot(task);
        return;
    }
    if (error && error->code == ERR_BUSY) {
        executors_hold(parts->executors);
        wait_for_host(task, error->text);
        return;
    }
    if (error) {
        free_slot(task, 0);
        compile_task_lose(task, JOB_CAUSE_MISSING_BLOB, error->text);
        return;
    }
    enum making making = making_of(&task->input, &blobs[0]); // the plan takes these
    if (making == MAKING_RECORDING && !compile_slots_keep_slow(task)) {
        give_up_slot(task);
        return;
    }
    struct executor_config run = executor_of(&parts->limits, making);
    task->asked = needs_of(task);
    task->asked.device = device_of(task);
    task->asked.width = width_of(task->compiler);
    struct bytes plan = compile_input_plan(&task->asked, &parts->limits, &task->known, blobs);
    task->state = TASK_RUNNING;
    if (!plan.data) {
        free_slot(task, 0);
        compile_task_lose(task, JOB_CAUSE_TOO_LARGE,
                          "its source, header or glue is too large for a plan");
        return;
    }
    run.owner = task;
    if (executor_start(&task->executor, parts->executors, &run, &plan, &err) != 0) {
        wait_for_host(task, err.text);
    }
    if (making == MAKING_RECORDING) {
        compiler_kick(task->compiler); // beside it there may be room for something quick
    }
}

void compiler_keep_ready(struct compiler *compiler)
{
    const struct daemon_parts *parts = compiler->parts;
    struct executor_config compile = executor_of(&parts->limits, MAKING_CUDA);
    struct executor_config record = executor_of(&parts->limits, MAKING_RECORDING);

    executors_prestart(parts->executors, &compile, parts->limits.compile_slots, NULL, NULL);
    executors_prestart(parts->executors, &record, 1, NULL, NULL);
}

void compiler_kick(struct compiler *compiler)
{
    const struct daemon_parts *parts = compiler->parts;
    const struct compiler_events *events = &compiler->events;

    while (!compiler->stopping && !compiler->held && compiler->waiting &&
           executors_held(parts->executors) == 0 && events->may_start(events->owner)) {
        struct compile_task *task = compile_slots_take(compiler);
        struct digest blobs[3];

        if (!task) {
            return;
        }
        size_t count = blobs_of(task, blobs);
        task->state = TASK_LOADING;
        blob_load(parts->blobs, blobs, count, on_blobs, task);
    }
}

void compiler_tick(struct compiler *compiler)
{
    if (compiler->held > 0 && --compiler->held == 0) {
        compiler_kick(compiler);
    }
}

// Reads what the cache has. Returns false when it has nothing that can be used.
static bool read_entry(const struct compile_task *task, const struct bytes *entry,
                       struct compiled *ret)
{
    if (message_read(&compiled_message, ret, entry->data, entry->len, NULL) != 0) {
        return false;
    }
    if (compiled_check(ret, NULL) == 0 &&
        (ret->verdict != VERDICT_NONE || blob_have(task->compiler->parts->blobs, &ret->object))) {
        ret->cached = true;
        return true;
    }
    message_clear(&compiled_message, ret);
    return false;
}

// Keeps what the cache has for the run that makes the rest. Takes the features.
static void keep_known(struct compile_task *task, struct compiled *compiled)
{
    task->known = (struct compile_known){.object = compiled->object,
                                         .features = compiled->features,
                                         .features_count = compiled->features_count,
                                         .machine_code = !compiled->no_machine_code};
    compiled->features = NULL;
    compiled->features_count = 0;
}

static void on_looked_up(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct compile_task *task = owner;

    (void)error;
    if (task->orphan || task->compiler->stopping) {
        compile_task_free(task);
        return;
    }
    struct compiled compiled;
    if (task->fresh || count == 0 || !answer[0].data || !read_entry(task, &answer[0], &compiled)) {
        wait_for_slot(task);
        return;
    }
    struct compile_answer found = {.compiled = &compiled};
    compile_task_tell(task, &found);
    if (task->requests) {
        keep_known(task, &compiled);
        wait_for_slot(task);
    } else {
        compile_task_free(task); // also when a requester has cancelled the others
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
    task->number = ++compiler->made;
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
    if (input->fresh) {
        task->fresh = true;
        compile_task_forget_known(task);
    }
    request->features_only = input->features_only;
    request->machine_code = input->machine_code;
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
    if (task->requests || task->orphan || task->state == TASK_STORING) {
        return; // others wait for it, it tells its requesters just now, or it is almost done
    }
    compile_task_leave_table(task);
    if (task->state == TASK_WAITING) {
        compile_slots_leave(task);
        compile_task_free(task);
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
            compile_slots_leave(task);
            compile_task_free(task);
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
