// Who compiles next. A slot is one run of kcast-exec. Of those who wait, the task whose search has
// the fewest slots goes first, then the oldest one: a search with many candidates does not keep one
// with a single candidate waiting. A task for which several searches wait counts for the one with
// the fewest.
//
// A recording runs an interpreter for seconds, while other compilations take tenths of one. So that
// these do not wait for those, up to a quarter of the slots have one of each kind while both kinds
// run, and as many more processes run than there are slots. What kind a task is shows when its
// source has been read; until then it counts as quick.
#include "common/clock.h"
#include "daemon/run/compiler_inside.h"
#include <stdlib.h>
#include <utlist.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

// How many slots so many tasks of each kind take.
static size_t slots_of(const struct compiler *compiler, size_t slow, size_t quick)
{
    size_t shared = (compiler->parts->limits.compile_slots + 3) / 4;

    return slow + quick - least(shared, least(slow, quick));
}

// Whether there would still be no more in use than there are, with so many more tasks.
static bool has_room(const struct compiler *compiler, size_t slow, size_t quick)
{
    size_t slow_now = compiler->slots_slow;

    return slots_of(compiler, slow_now + slow, compiler->slots_used - slow_now + quick) <=
           compiler->parts->limits.compile_slots;
}

// How many slots the searches have that wait for the task: the fewest. Stores whose these are.
static size_t fewest_slots(const struct compile_task *task, uint64_t *ret_search)
{
    const struct compile_request *request;
    size_t fewest = SIZE_MAX;

    DL_FOREACH (task->requests, request) {
        const struct slot_share *share;

        HASH_FIND(hh, task->compiler->shares, &request->search, sizeof(request->search), share);
        if ((share ? share->slots : 0) < fewest) {
            fewest = share ? share->slots : 0;
            *ret_search = request->search;
        }
    }
    return fewest;
}

void compile_slots_wait(struct compile_task *task, bool again)
{
    struct compiler *compiler = task->compiler;

    task->state = TASK_WAITING;
    task->begun_ns = clock_now_ns(compiler->parts->clock);
    if (again) {
        DL_PREPEND(compiler->waiting, task);
    } else {
        DL_APPEND(compiler->waiting, task);
    }
    compiler->waiting_count++;
}

void compile_slots_leave(struct compile_task *task)
{
    DL_DELETE(task->compiler->waiting, task);
    task->compiler->waiting_count--;
}

static void take(struct compile_task *task)
{
    struct compiler *compiler = task->compiler;
    uint64_t now_ns = clock_now_ns(compiler->parts->clock);
    struct slot_share *share;

    compile_slots_leave(task);
    HASH_FIND(hh, compiler->shares, &task->search, sizeof(task->search), share);
    if (!share) {
        share = xcalloc(1, sizeof(*share));
        share->search = task->search;
        HASH_ADD(hh, compiler->shares, search, sizeof(share->search), share);
    }
    share->slots++;
    compiler->slots_used++;
    compiler->slots_slow += task->slow;
    task->waited_s += clock_seconds(now_ns - task->begun_ns);
    task->begun_ns = now_ns;
}

struct compile_task *compile_slots_take(struct compiler *compiler)
{
    bool slow = has_room(compiler, 1, 0);
    bool quick = has_room(compiler, 0, 1);
    struct compile_task *task, *next = NULL;
    size_t fewest = 0;

    if (!slow && !quick) {
        return NULL;
    }
    DL_FOREACH (compiler->waiting, task) {
        uint64_t search = 0;
        size_t slots = fewest_slots(task, &search);

        if ((task->slow ? slow : quick) && (!next || slots < fewest)) {
            next = task;
            fewest = slots;
            task->search = search;
        }
    }
    if (next) {
        take(next);
    }
    return next;
}

bool compile_slots_keep_slow(struct compile_task *task)
{
    struct compiler *compiler = task->compiler;

    if (!task->slow) {
        task->slow = true;
        compiler->slots_slow++;
    }
    return has_room(compiler, 0, 0);
}

void compile_slots_free(struct compile_task *task)
{
    struct compiler *compiler = task->compiler;
    struct slot_share *share;

    HASH_FIND(hh, compiler->shares, &task->search, sizeof(task->search), share);
    if (--share->slots == 0) {
        HASH_DEL(compiler->shares, share);
        free(share);
    }
    compiler->slots_used--;
    compiler->slots_slow -= task->slow;
}
