// Design note. Waiting items are a linked list in the order of posting. The first one moves to
// `current` and is handed to libuv's thread pool; its completion on the loop thread starts the next
// one. All fields but those that the running item itself touches belong to the loop thread.
#include "worker/work_queue.h"

#include "common/mem.h"
#include <stdlib.h>

struct work_queue {
    uv_loop_t *loop;
    uv_work_t work;
    struct work_item *current;       // runs on the pool's thread; NULL: none
    struct work_item *first, **last; // waiting; last is where the next one is linked
    size_t length;                   // current and waiting
    bool closing;
    void (*on_closed)(void *owner);
    void *owner;
};

static void start_next(struct work_queue *queue);

struct work_queue *work_queue_create(uv_loop_t *loop)
{
    struct work_queue *queue = xcalloc(1, sizeof(*queue));
    queue->loop = loop;
    queue->last = &queue->first;
    queue->work.data = queue;
    return queue;
}

static void finish_close(struct work_queue *queue)
{
    void (*on_closed)(void *owner) = queue->on_closed;
    void *owner = queue->owner;
    free(queue);
    on_closed(owner);
}

static void on_work(uv_work_t *work)
{
    struct work_queue *queue = work->data;
    queue->current->work(queue->current);
}

static void on_worked(uv_work_t *work, int status)
{
    struct work_queue *queue = work->data;
    struct work_item *item = queue->current;
    queue->current = NULL;
    queue->length--;
    item->done(item, status == 0);
    if (queue->closing) {
        finish_close(queue);
    } else {
        start_next(queue);
    }
}

static void start_next(struct work_queue *queue)
{
    struct work_item *item = queue->first;
    if (queue->current || !item) {
        return;
    }
    queue->first = item->next;
    if (!queue->first) {
        queue->last = &queue->first;
    }
    queue->current = item;
    uv_queue_work(queue->loop, &queue->work, on_work, on_worked);
}

void work_queue_post(struct work_queue *queue, struct work_item *item)
{
    item->next = NULL;
    *queue->last = item;
    queue->last = &item->next;
    queue->length++;
    start_next(queue);
}

size_t work_queue_length(const struct work_queue *queue)
{
    return queue->length;
}

void work_queue_close(struct work_queue *queue, void (*on_closed)(void *owner), void *owner)
{
    queue->closing = true;
    queue->on_closed = on_closed;
    queue->owner = owner;
    while (queue->first) {
        struct work_item *item = queue->first;
        queue->first = item->next;
        queue->length--;
        item->done(item, false);
    }
    queue->last = &queue->first;
    if (!queue->current) {
        finish_close(queue);
    }
}
