// A queue of entries that wait for the devices of one class, or for their preparation. It has three
// classes. `interactive` goes before the others, but while `normal` entries wait it gets at most a
// fifth of the device time; `scavenge` begins only when nothing else can. Within a class fair.h
// decides who goes next.
//
// Used by daemon/jobs/scheduler.c and daemon/run/measure.c. Knows nothing of jobs and devices. Time
// is an argument, in seconds of any monotonic clock.
#ifndef DAEMON_SCHED_QUEUE_H
#define DAEMON_SCHED_QUEUE_H

#include "daemon/sched/fair.h"
#include "proto/queue_class.h"

#define QUEUE_INTERACTIVE_S 2.0        // longest expected time of a job that may be interactive
#define QUEUE_INTERACTIVE_SHARE 0.2    // part of all device-seconds, while normal entries wait
#define QUEUE_INTERACTIVE_BURST_S 60.0 // the share of so many seconds may be used at once

struct queue;

// Embedded in whatever is queued. It is in at most one queue at a time; a zeroed one is in none.
struct queue_entry {
    struct fair_entry fair; // must be the first member
    enum queue_class in;    // class in which it waits
};

// An entry that was taken and has not been finished. A zeroed one stands for nothing.
struct queue_grant {
    struct fair_grant fair;
    enum queue_class in; // class in which it waited
    bool counted;        // whether it counts against the share of `interactive`
    bool beyond;         // the taker's: it was taken beyond a limit of its own
};

struct queue *queue_create(void);
// It must contain no entry that is still used. NULL is fine.
void queue_free(struct queue *queue);

// Adds an entry that is in no queue. priority and order are those of struct fair_entry.
void queue_add(struct queue *queue, struct queue_entry *entry, enum queue_class in,
               const struct fair_who *who, uint64_t priority, uint64_t order);
// Returns whether the entry is in a queue.
bool queue_holds(const struct queue_entry *entry);
// Removes an entry. No-op when it is in no queue.
void queue_remove(struct queue *queue, struct queue_entry *entry);
// Removes the next entry from the queue and returns it; NULL when none may begin now. A device must
// be idle. The caller finishes *ret_grant exactly once.
struct queue_entry *queue_take(struct queue *queue, const struct fair_terms *terms, double now_s,
                               struct queue_grant *ret_grant);
// Returns whether queue_take would return an entry.
bool queue_has(struct queue *queue, const struct fair_terms *terms, double now_s);
// Stores in ret[] up to max entries that queue_take is going to return if nothing else happens, as
// far as that can be told: time and what grants cost change it. Returns how many. Changes nothing.
size_t queue_preview(struct queue *queue, const struct fair_terms *terms, double now_s,
                     struct queue_entry **ret, size_t max);
// Charge a grant that has been held for `seconds` so far, and finish one that was held for
// `seconds` in total. The arguments are those of fair_refresh and fair_finish.
void queue_refresh(struct queue *queue, struct queue_grant *grant, double seconds);
void queue_finish(struct queue *queue, struct queue_grant *grant, double seconds, bool free);
// Forgets searches and tenants that no longer matter. To be called from time to time.
void queue_sweep(struct queue *queue);

size_t queue_count(const struct queue *queue); // entries that wait
// Calls `visit` for every search that is remembered, once for each class in which it is.
void queue_visit(const struct queue *queue,
                 void (*visit)(void *owner, enum queue_class in, const struct fair_view *view),
                 void *owner);
bool queue_check(const struct queue *queue); // checks the invariants, for assert

#endif
