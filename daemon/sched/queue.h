// What waits for devices of one kind (or for a place to be compiled), and who goes next. Three
// classes: `interactive` goes before everything, but on the whole for no more than a fifth of the
// time; `normal`; `scavenge` only where nothing else could begin. Within a class fair.h decides.
// Knows nothing of jobs and devices; time is an argument.
#ifndef DAEMON_SCHED_QUEUE_H
#define DAEMON_SCHED_QUEUE_H

#include "daemon/sched/fair.h"
#include "proto/queue_class.h"

#define QUEUE_INTERACTIVE_S 2.0        // longest job that may be interactive, as it is expected
#define QUEUE_INTERACTIVE_SHARE 0.2    // of all device-seconds, while others wait
#define QUEUE_INTERACTIVE_BURST_S 60.0 // the share of so many seconds may be used at once

struct queue;

// Embedded in what is queued; zeroed means "in no queue". In one queue at a time.
struct queue_entry {
    struct fair_entry fair; // first
    enum queue_class in;    // where it waits
};

// What was taken, until queue_settle. Zeroed means nothing.
struct queue_ticket {
    struct fair_ticket fair;
    enum queue_class in;
    bool counted; // against the interactive share
};

struct queue *queue_create(void);
void queue_free(struct queue *queue); // must be empty of entries that are still used; NULL is fine

// priority and order as in struct fair_entry.
void queue_add(struct queue *queue, struct queue_entry *entry, enum queue_class in,
               const struct fair_who *who, uint64_t priority, uint64_t order);
bool queue_holds(const struct queue_entry *entry);
void queue_remove(struct queue *queue, struct queue_entry *entry); // no-op when it is in none
// The next entry, removed from the queue; NULL when none may begin now. A device must be idle.
// now_s: of any clock that does not go back. Settle *ret_ticket exactly once.
struct queue_entry *queue_take(struct queue *queue, const struct fair_terms *terms, double now_s,
                               struct queue_ticket *ret_ticket);
// Whether queue_take would give one.
bool queue_has(struct queue *queue, const struct fair_terms *terms, double now_s);
// Held for so many seconds already, respectively altogether; as fair_refresh and fair_settle.
void queue_refresh(struct queue *queue, struct queue_ticket *ticket, double seconds);
void queue_settle(struct queue *queue, struct queue_ticket *ticket, double seconds, bool free);
// Now and then: forgets what no longer matters.
void queue_sweep(struct queue *queue);

size_t queue_count(const struct queue *queue); // entries
// Every search that waits or holds something, or is still remembered; once per class.
void queue_visit(const struct queue *queue,
                 void (*visit)(void *owner, enum queue_class in, const struct fair_view *view),
                 void *owner);
bool queue_check(const struct queue *queue); // invariants, for assert

#endif
