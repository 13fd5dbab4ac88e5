// Design note. A struct fair per class, asked in the order interactive, normal, scavenge.
//
// Interactive: a bucket of device-seconds that fills at QUEUE_INTERACTIVE_SHARE of the devices.
// What is taken while normal entries wait is counted against it like a charge: expected, refreshed,
// corrected. While it is empty interactive entries wait behind normal ones, but not without them.
// The two classes are charged apart: who was interactive does not stand behind in the other class.
#include "daemon/sched/queue.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

struct queue {
    struct fair *fair[QUEUE_CLASS_COUNT];
    double bucket_s; // device-seconds that may be interactive
    double filled_s; // when it was filled last; NaN: never
};

static const enum queue_class order[QUEUE_CLASS_COUNT] = {QUEUE_INTERACTIVE, QUEUE_NORMAL,
                                                          QUEUE_SCAVENGE};
struct queue *queue_create(void)
{
    struct queue *queue = xcalloc(1, sizeof(*queue));

    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        queue->fair[i] = fair_create();
    }
    queue->filled_s = NAN;
    return queue;
}

void queue_free(struct queue *queue)
{
    if (queue) {
        for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
            fair_free(queue->fair[i]);
        }
        free(queue);
    }
}

void queue_add(struct queue *queue, struct queue_entry *entry, enum queue_class in,
               const struct fair_who *who, uint64_t priority, uint64_t number)
{
    entry->in = in;
    entry->fair.priority = priority;
    entry->fair.order = number;
    fair_add(queue->fair[in], &entry->fair, who);
}

bool queue_holds(const struct queue_entry *entry)
{
    return entry->fair.search;
}

void queue_remove(struct queue *queue, struct queue_entry *entry)
{
    fair_remove(queue->fair[entry->in], &entry->fair);
}

// --- who goes next

static void fill_bucket(struct queue *queue, const struct fair_terms *terms, double now_s)
{
    double rate = QUEUE_INTERACTIVE_SHARE * fmax(terms->devices, 1);
    double full = rate * QUEUE_INTERACTIVE_BURST_S;
    double since = now_s - queue->filled_s;

    queue->bucket_s = isnan(since) ? full : fmin(full, queue->bucket_s + rate * fmax(since, 0));
    queue->filled_s = now_s;
}

static struct queue_entry *first_of(struct queue *queue, enum queue_class in,
                                    const struct fair_terms *terms)
{
    return (struct queue_entry *)fair_first(queue->fair[in], terms);
}

static struct queue_entry *first(struct queue *queue, const struct fair_terms *terms, double now_s)
{
    bool others = fair_count(queue->fair[QUEUE_NORMAL]) > 0;

    fill_bucket(queue, terms, now_s);
    struct queue_entry *found = NULL;
    if (!others || queue->bucket_s > 0) {
        found = first_of(queue, QUEUE_INTERACTIVE, terms);
    }
    found = found ? found : first_of(queue, QUEUE_NORMAL, terms);
    found = found ? found : first_of(queue, QUEUE_INTERACTIVE, terms);
    return found ? found : first_of(queue, QUEUE_SCAVENGE, terms);
}

bool queue_has(struct queue *queue, const struct fair_terms *terms, double now_s)
{
    return first(queue, terms, now_s);
}

// --- charging

static void count_interactive(struct queue *queue, const struct queue_ticket *ticket, double before)
{
    if (ticket->counted) {
        queue->bucket_s -= ticket->fair.charged - before;
    }
}

struct queue_entry *queue_take(struct queue *queue, const struct fair_terms *terms, double now_s,
                               struct queue_ticket *ret_ticket)
{
    struct queue_entry *entry = first(queue, terms, now_s);

    if (!entry) {
        return NULL;
    }
    *ret_ticket = (struct queue_ticket){
        .in = entry->in,
        .counted = entry->in == QUEUE_INTERACTIVE && fair_count(queue->fair[QUEUE_NORMAL]) > 0,
    };
    fair_take(queue->fair[entry->in], &entry->fair, &ret_ticket->fair);
    count_interactive(queue, ret_ticket, 0);
    return entry;
}

void queue_refresh(struct queue *queue, struct queue_ticket *ticket, double seconds)
{
    double before = ticket->fair.charged;

    fair_refresh(queue->fair[ticket->in], &ticket->fair, seconds);
    count_interactive(queue, ticket, before);
}

void queue_settle(struct queue *queue, struct queue_ticket *ticket, double seconds, bool free)
{
    if (!ticket->fair.search) {
        return;
    }
    if (ticket->counted) {
        queue->bucket_s += ticket->fair.charged - (free ? 0 : seconds);
    }
    fair_settle(queue->fair[ticket->in], &ticket->fair, seconds, free);
    *ticket = (struct queue_ticket){0};
}

void queue_sweep(struct queue *queue)
{
    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        fair_sweep(queue->fair[i]);
    }
}

// --- for others to see

size_t queue_count(const struct queue *queue)
{
    size_t count = 0;

    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        count += fair_count(queue->fair[i]);
    }
    return count;
}

struct visiting {
    enum queue_class in;
    void (*visit)(void *owner, enum queue_class in, const struct fair_view *view);
    void *owner;
};

static void on_view(void *owner, const struct fair_view *view)
{
    const struct visiting *visiting = owner;

    visiting->visit(visiting->owner, visiting->in, view);
}

void queue_visit(const struct queue *queue,
                 void (*visit)(void *owner, enum queue_class in, const struct fair_view *view),
                 void *owner)
{
    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        struct visiting visiting = {.in = order[i], .visit = visit, .owner = owner};

        fair_visit(queue->fair[visiting.in], on_view, &visiting);
    }
}

bool queue_check(const struct queue *queue)
{
    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        if (!fair_check(queue->fair[i])) {
            return false;
        }
    }
    return true;
}
