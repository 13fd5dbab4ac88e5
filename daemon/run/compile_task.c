// How a compilation ends: its object and its cache entry are stored, and those who wait are told.
// See the design note in compiler.c.
#include "common/log.h"
#include "daemon/run/compiler_inside.h"
#include "daemon/store/cache.h"
#include <stdlib.h>
#include <utlist.h>

#define HELD_TICKS 10 // seconds until a full disk is tried again

void compile_task_leave_table(struct compile_task *task)
{
    if (!task->orphan) {
        task->orphan = true;
        HASH_DEL(task->compiler->tasks, task);
    }
}

void compile_task_free(struct compile_task *task)
{
    compile_task_leave_table(task);
    if (--task->compiler->under_way == 0) {
        task->compiler->full = false; // nothing waits for room any more
    }
    if (task->has_outcome) {
        message_clear(&compile_outcome_message, &task->outcome);
    }
    compile_task_forget_known(task);
    free((char *)(uintptr_t)task->input.header);
    free((char *)(uintptr_t)task->input.glue);
    free((char *)(uintptr_t)task->input.name);
    free(task);
}

void compile_task_forget_known(struct compile_task *task)
{
    struct compile_known *known = &task->known;

    for (size_t i = 0; i < known->features_count; i++) {
        message_clear(&fact_message, &known->features[i]);
    }
    free(known->features);
    *known = (struct compile_known){0};
}

bool compile_covers(const struct compiled *compiled, const struct compile_request *request)
{
    return compiled->verdict != VERDICT_NONE ||
           ((request->features_only || !compiled->incomplete) &&
            (!request->machine_code || !compiled->no_machine_code));
}

// The first requester whose needs are covered; NULL when there is none.
static struct compile_request *find_covered(const struct compile_task *task,
                                            const struct compiled *compiled)
{
    struct compile_request *request;

    DL_FOREACH (task->requests, request) {
        if (!compiled || compile_covers(compiled, request)) {
            return request;
        }
    }
    return NULL;
}

void compile_task_tell(struct compile_task *task, struct compile_answer *answer)
{
    struct compile_request *request;

    while ((request = find_covered(task, answer->compiled))) {
        DL_DELETE(task->requests, request);
        request->task = NULL;
        request->on_done(request, answer);
        answer->seconds = 0;
    }
}

// Tells the requesters and frees the task. Those that need more, because they joined it when it
// ran, ask again and find what it made in the cache.
static void finish_as(struct compile_task *task, struct compile_answer answer)
{
    answer.seconds = task->seconds;
    compile_task_leave_table(task); // a request that a callback makes starts another task
    compile_task_tell(task, &answer);
    struct compile_request *request;
    while ((request = task->requests)) {
        struct compile_input input = task->input;

        DL_DELETE(task->requests, request);
        request->task = NULL;
        input.fresh = false;
        input.features_only = request->features_only;
        input.machine_code = request->machine_code;
        compiler_request(task->compiler, request, &input);
    }
    compile_task_free(task);
}

void compile_task_finish(struct compile_task *task, const struct compiled *compiled)
{
    finish_as(task, (struct compile_answer){.compiled = compiled});
}

void compile_task_lose(struct compile_task *task, enum job_cause cause, const char *reason)
{
    log_event(LOG_WARNING, "compile-lost name=%s cause=%s reason=\"%s\"", task->input.name,
              job_cause_name(cause), reason);
    finish_as(task, (struct compile_answer){.reason = reason, .cause = cause});
}

static void on_entry_stored(void *owner, const struct err *error, struct bytes *answer,
                            size_t count)
{
    struct compile_task *task = owner;

    // Without the entry the next request compiles again, so an error needs no other handling.
    (void)error;
    (void)answer;
    (void)count;
    compile_task_finish(task, task->outcome.compiled);
}

static void store_entry(struct compile_task *task)
{
    struct bytes packed = cache_pack(&compiled_message, task->outcome.compiled);

    ledger_keep_compiled(task->compiler->parts->ledger, &task->key, &packed, on_entry_stored, task);
    bytes_clear(&packed);
}

// There is no room for the task's object. The disk is tried again later, with this task among the
// first.
static void hold(struct compile_task *task, const char *reason)
{
    struct compiler *compiler = task->compiler;

    log_event(LOG_WARNING, "compile-held name=%s seconds=%d reason=\"%s\"", task->input.name,
              HELD_TICKS, reason);
    message_clear(&compile_outcome_message, &task->outcome);
    task->has_outcome = false;
    task->seconds = 0; // the search is not charged for runs whose object found no room
    compile_slots_wait(task);
    compiler->held = HELD_TICKS;
    compiler->full = true;
}

static void on_object_stored(void *owner, const struct err *error)
{
    struct compile_task *task = owner;

    if (error && error->code == ERR_NO_SPACE && task->requests) {
        hold(task, error->text);
    } else if (error) {
        compile_task_lose(task, JOB_CAUSE_STORAGE, error->text);
    } else {
        task->compiler->full = false;
        store_entry(task);
    }
}

void compile_task_store(struct compile_task *task)
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
        blob_put(task->compiler->parts->blobs, NULL, &compiled->object, &object, false,
                 on_object_stored, task);
    } else {
        bytes_clear(&object);
        store_entry(task);
    }
}
