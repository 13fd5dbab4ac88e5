// Who compiles next. Of those who wait, the task whose tenant has the fewest tasks under way goes
// first, then the one whose search has, then the oldest one: a search with many candidates does not
// keep one with a single candidate waiting. A task for which several wait counts for the one with
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

// How many tasks are under way for a tenant and a search.
struct busy {
    size_t tenant, search;
};

static size_t count_of(struct slot_share *shares, uint64_t number)
{
    struct slot_share *share;

    HASH_FIND(hh, shares, &number, sizeof(number), share);
    return share ? share->count : 0;
}

static bool is_less(const struct busy *a, const struct busy *b)
{
    return a->tenant != b->tenant ? a->tenant < b->tenant : a->search < b->search;
}

// The least busy one of those that wait for the task; the task will be theirs.
static struct busy least_busy(struct compile_task *task)
{
    const struct compiler *compiler = task->compiler;
    const struct compile_request *request;
    struct busy least = {SIZE_MAX, SIZE_MAX};

    DL_FOREACH (task->requests, request) {
        struct busy busy = {count_of(compiler->tenants, request->tenant),
                            count_of(compiler->searches, request->search)};

        if (is_less(&busy, &least)) {
            least = busy;
            task->tenant = request->tenant;
            task->search = request->search;
        }
    }
    return least;
}

static void count_one(struct slot_share **shares, uint64_t number)
{
    struct slot_share *share;

    HASH_FIND(hh, *shares, &number, sizeof(number), share);
    if (!share) {
        share = xcalloc(1, sizeof(*share));
        share->number = number;
        HASH_ADD(hh, *shares, number, sizeof(share->number), share);
    }
    share->count++;
}

static void count_one_less(struct slot_share **shares, uint64_t number)
{
    struct slot_share *share;

    HASH_FIND(hh, *shares, &number, sizeof(number), share);
    if (--share->count == 0) {
        HASH_DEL(*shares, share);
        free(share);
    }
}

void compile_slots_wait(struct compile_task *task)
{
    struct compiler *compiler = task->compiler;

    task->state = TASK_WAITING;
    task->waits_since_ns = clock_now_ns(compiler->parts->clock);
    DL_APPEND(compiler->waiting, task);
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

    compile_slots_leave(task);
    count_one(&compiler->tenants, task->tenant);
    count_one(&compiler->searches, task->search);
    compiler->slots_used++;
    compiler->slots_slow += task->slow;
    task->waited_s += clock_seconds(clock_now_ns(compiler->parts->clock) - task->waits_since_ns);
}

struct compile_task *compile_slots_take(struct compiler *compiler)
{
    bool slow = has_room(compiler, 1, 0);
    bool quick = has_room(compiler, 0, 1);
    struct compile_task *task, *next = NULL;
    struct busy least = {0, 0};

    if (!slow && !quick) {
        return NULL;
    }
    DL_FOREACH (compiler->waiting, task) {
        struct busy busy = least_busy(task);

        if ((task->slow ? slow : quick) &&
            (!next || is_less(&busy, &least) ||
             (!is_less(&least, &busy) && task->number < next->number))) {
            next = task;
            least = busy;
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

    count_one_less(&compiler->tenants, task->tenant);
    count_one_less(&compiler->searches, task->search);
    compiler->slots_used--;
    compiler->slots_slow -= task->slow;
}
