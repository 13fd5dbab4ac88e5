#include "worker/lane.h"

#include "common/mem.h"
#include <stdlib.h>

struct lane {
    uv_loop_t *loop;
    uv_work_t work;
    struct lane_task *current; // on the thread
    struct lane_task *first, **last;
    size_t length;
    bool closing;
    void (*on_closed)(void *owner);
    void *owner;
};

static void start_next(struct lane *lane);

struct lane *lane_create(uv_loop_t *loop)
{
    struct lane *lane = xcalloc(1, sizeof(*lane));
    lane->loop = loop;
    lane->last = &lane->first;
    lane->work.data = lane;
    return lane;
}

static void finish_close(struct lane *lane)
{
    void (*on_closed)(void *owner) = lane->on_closed;
    void *owner = lane->owner;
    free(lane);
    on_closed(owner);
}

static void on_work(uv_work_t *work)
{
    struct lane *lane = work->data;
    lane->current->work(lane->current);
}

static void on_worked(uv_work_t *work, int status)
{
    struct lane *lane = work->data;
    struct lane_task *task = lane->current;
    lane->current = NULL;
    lane->length--;
    task->done(task, status == 0);
    if (lane->closing) {
        finish_close(lane);
    } else {
        start_next(lane);
    }
}

static void start_next(struct lane *lane)
{
    struct lane_task *task = lane->first;
    if (lane->current || !task) {
        return;
    }
    lane->first = task->next;
    if (!lane->first) {
        lane->last = &lane->first;
    }
    lane->current = task;
    uv_queue_work(lane->loop, &lane->work, on_work, on_worked);
}

void lane_post(struct lane *lane, struct lane_task *task)
{
    task->next = NULL;
    *lane->last = task;
    lane->last = &task->next;
    lane->length++;
    start_next(lane);
}

size_t lane_length(const struct lane *lane)
{
    return lane->length;
}

void lane_close(struct lane *lane, void (*on_closed)(void *owner), void *owner)
{
    lane->closing = true;
    lane->on_closed = on_closed;
    lane->owner = owner;
    while (lane->first) {
        struct lane_task *task = lane->first;
        lane->first = task->next;
        lane->length--;
        task->done(task, false);
    }
    lane->last = &lane->first;
    if (!lane->current) {
        finish_close(lane);
    }
}
