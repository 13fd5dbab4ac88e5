// Who goes next. Entries belong to searches; searches share by start-time fair queueing: the one
// that has been charged the fewest seconds goes first, and a search that was away gets no credit
// for it. Within a search the lower priority number goes first, then the older entry. What an entry
// costs is known only afterwards: it is charged the search's recent mean when it is taken and
// corrected by queue_settle. Knows nothing of jobs, devices or time.
#ifndef DAEMON_QUEUE_H
#define DAEMON_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;
struct share;

// Embedded in what is queued; zeroed means "in no queue". In one queue at a time.
struct queue_entry {
    struct share *share; // of its search, in the queue it is in; NULL: in none
    size_t index;        // in the share's heap
    uint64_t priority;   // lower goes first
    uint64_t order;      // lower is older; unique within the queue
};

struct queue *queue_create(void);
void queue_free(struct queue *queue); // must be empty of entries that are still used; NULL is fine

void queue_add(struct queue *queue, struct queue_entry *entry, uint64_t search, uint64_t priority,
               uint64_t order);
bool queue_holds(const struct queue_entry *entry);
void queue_remove(struct queue *queue, struct queue_entry *entry); // no-op when it is in none
// The next entry, removed from the queue; NULL when there is none. *ret_charge is what its search
// was charged for it: give it back to queue_settle, exactly once, with the seconds it really took
// (0 for what was no fault of its own).
struct queue_entry *queue_take(struct queue *queue, double *ret_charge);
void queue_settle(struct queue *queue, uint64_t search, double charge, double seconds);

size_t queue_count(const struct queue *queue);
// Seconds charged to a search beyond the queue's virtual time; 0 for unknown ones. For tests and
// status.
double queue_debt(const struct queue *queue, uint64_t search);
bool queue_check(const struct queue *queue); // invariants, for assert

#endif
