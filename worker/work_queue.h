// A work queue: runs work items off the loop thread, begun in the order of posting, at most `width`
// of them at a time. With a width of 1 they run strictly one after another: data that only the
// items of one such queue touch needs no lock, and results do not depend on timing. A queue
// occupies at most `width` threads of libuv's thread pool at a time. The engines own queues. A
// queue knows nothing of what its items do. All functions run on the loop thread.
#ifndef WORKER_WORK_QUEUE_H
#define WORKER_WORK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct work_queue;

// One piece of work, embedded in its owner's struct. The owner sets work and done.
struct work_item {
    // Runs on a thread of the thread pool.
    void (*work)(struct work_item *item);
    // Runs afterwards on the loop thread. From then on the item is the owner's again. worked is
    // false when the queue was closed before the item's turn: work has not run.
    void (*done)(struct work_item *item, bool worked);
    struct work_item *next; // used by the queue
};

// width is at least 1.
struct work_queue *work_queue_create(uv_loop_t *loop, size_t width);

// Appends the item, which stays in place until its done callback.
void work_queue_post(struct work_queue *queue, struct work_item *item);

// How many posted items have not had their done callback.
size_t work_queue_length(const struct work_queue *queue);

// Items that have not begun get their done callback inside this call, with worked == false. Those
// that are running come to their end. Then on_closed runs once on the loop thread, possibly inside
// this call, and the queue no longer exists.
void work_queue_close(struct work_queue *queue, void (*on_closed)(void *owner), void *owner);

#endif
