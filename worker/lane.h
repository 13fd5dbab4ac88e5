// Work off the loop thread, strictly one piece after another in the order of posting: what it
// touches needs no locks, and its results do not depend on timing. Runs on libuv's thread pool; at
// most one thread of it at a time.
#ifndef WORKER_LANE_H
#define WORKER_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct lane;

// One piece of work, embedded in its owner.
struct lane_task {
    void (*work)(struct lane_task *task); // on the lane's thread
    void (*done)(struct lane_task *task,
                 bool worked); // on the loop thread, afterwards; owns task from then on.
                               // worked is false when the lane closed before its turn
    struct lane_task *next;    // the lane's
};

struct lane *lane_create(uv_loop_t *loop);
void lane_post(struct lane *lane, struct lane_task *task);
size_t lane_length(const struct lane *lane); // tasks that are not done
// Tasks that have not begun are done at once, unworked. The one at work comes to its end; on_closed
// runs, on the loop thread, after that (possibly inside this call), and the lane is gone.
void lane_close(struct lane *lane, void (*on_closed)(void *owner), void *owner);

#endif
