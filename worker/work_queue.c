// Design note. Waiting items are a linked list in the order of posting. The first one goes to a
// free lane and is handed to libuv's thread pool; its completion on the loop thread frees the lane
// for the next one. All fields but those that a running item itself touches belong to the loop
// thread.
#include "worker/work_queue.h"

#include "common/mem.h"
#include <stdlib.h>

// A place for one item that runs.
struct lane {
    uv_work_t work;
    struct work_queue *queue;
    struct work_item *current; // runs on a thread of the pool; NULL: none
};

struct work_queue {
    uv_loop_t *loop;
    struct work_item *first, **last; // waiting; last is where the next one is linked
    size_t length;                   // running and waiting
    size_t running;
    bool closing;
    void (*on_closed)(void *owner);
    void *owner;
    size_t width;
    struct lane lane[];
};

static void start_waiting(struct work_queue *queue);

struct work_queue *work_queue_create(uv_loop_t *loop, size_t width)
{
    struct work_queue *queue = xcalloc(1, sizeof(*queue) + width * sizeof(queue->lane[0]));
    queue->loop = loop;
    queue->last = &queue->first;
    queue->width = width;
    for (size_t i = 0; i < width; i++) {
        queue->lane[i].queue = queue;
        queue->lane[i].work.data = &queue->lane[i];
    }
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
    struct lane *lane = work->data;
    lane->current->work(lane->current);
}

static void on_worked(uv_work_t *work, int status)
{
    struct lane *lane = work->data;
    struct work_queue *queue = lane->queue;
    struct work_item *item = lane->current;
    lane->current = NULL;
    queue->length--;
    item->done(item, status == 0);
    queue->running--;
    if (!queue->closing) {
        start_waiting(queue);
    } else if (queue->running == 0) {
        finish_close(queue);
    }
}

// Takes the first waiting item out of the list.
static struct work_item *take_first(struct work_queue *queue)
{
    struct work_item *item = queue->first;
    queue->first = item->next;
    if (!queue->first) {
        queue->last = &queue->first;
    }
    return item;
}

static void start_waiting(struct work_queue *queue)
{
    for (size_t i = 0; i < queue->width && queue->first; i++) {
        struct lane *lane = &queue->lane[i];
        if (!lane->current) {
            lane->current = take_first(queue);
            queue->running++;
            uv_queue_work(queue->loop, &lane->work, on_work, on_worked);
        }
    }
}

void work_queue_post(struct work_queue *queue, struct work_item *item)
{
    item->next = NULL;
    *queue->last = item;
    queue->last = &item->next;
    queue->length++;
    start_waiting(queue);
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
        struct work_item *item = take_first(queue);
        queue->length--;
        item->done(item, false);
    }
    if (queue->running == 0) {
        finish_close(queue);
    }
}
