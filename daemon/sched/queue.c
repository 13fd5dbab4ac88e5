// Design note. Each class has a struct fair. They are asked in the order interactive, normal,
// scavenge.
//
// The share of the class `interactive` is kept by a token bucket of device-seconds, which fills at
// QUEUE_INTERACTIVE_SHARE of the devices. An interactive entry that is taken while normal entries
// wait counts against the bucket as it is charged: the estimate first, more while it is held, and
// the difference at its end. While the bucket is empty, interactive entries wait behind normal
// entries; when no normal entries wait, they begin all the same.
//
// The classes are charged apart: use of one class does not put a search back in another one.
#include "daemon/sched/queue.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

struct queue {
    struct fair *fair[QUEUE_CLASS_COUNT];
    double bucket_s; // device-seconds that `interactive` may use; may be negative
    double filled_s; // time at which the bucket was filled last; NaN before the first time
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

// Gives the classes in the order in which they are looked at now.
static void take_turns(struct queue *queue, const struct fair_terms *terms, double now_s,
                       enum queue_class ret[QUEUE_CLASS_COUNT])
{
    fill_bucket(queue, terms, now_s);
    bool late = fair_count(queue->fair[QUEUE_NORMAL]) > 0 && queue->bucket_s <= 0;

    ret[0] = late ? QUEUE_NORMAL : QUEUE_INTERACTIVE;
    ret[1] = late ? QUEUE_INTERACTIVE : QUEUE_NORMAL;
    ret[2] = QUEUE_SCAVENGE;
}

static struct queue_entry *first(struct queue *queue, const struct fair_terms *terms, double now_s)
{
    enum queue_class turn[QUEUE_CLASS_COUNT];
    struct fair_entry *found = NULL;

    take_turns(queue, terms, now_s, turn);
    for (int i = 0; i < QUEUE_CLASS_COUNT && !found; i++) {
        found = fair_first(queue->fair[turn[i]], terms);
    }
    return (struct queue_entry *)found;
}

size_t queue_preview(struct queue *queue, const struct fair_terms *terms, double now_s,
                     struct queue_entry **ret, size_t max)
{
    enum queue_class turn[QUEUE_CLASS_COUNT];
    struct fair_entry **entry = xcalloc(max + 1, sizeof(struct fair_entry *));
    size_t count = 0;

    take_turns(queue, terms, now_s, turn);
    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        count += fair_preview(queue->fair[turn[i]], terms, entry + count, max - count);
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct queue_entry *)entry[i];
    }
    free(entry);
    return count;
}

bool queue_has(struct queue *queue, const struct fair_terms *terms, double now_s)
{
    return first(queue, terms, now_s);
}

// --- charging

// Counts what was charged since `before` against the bucket.
static void count_interactive(struct queue *queue, const struct queue_grant *grant, double before)
{
    if (grant->counted) {
        queue->bucket_s -= grant->fair.charged - before;
    }
}

struct queue_entry *queue_take(struct queue *queue, const struct fair_terms *terms, double now_s,
                               struct queue_grant *ret_grant)
{
    struct queue_entry *entry = first(queue, terms, now_s);

    if (!entry) {
        return NULL;
    }
    *ret_grant = (struct queue_grant){
        .in = entry->in,
        .counted = entry->in == QUEUE_INTERACTIVE && fair_count(queue->fair[QUEUE_NORMAL]) > 0,
    };
    fair_take(queue->fair[entry->in], &entry->fair, &ret_grant->fair);
    count_interactive(queue, ret_grant, 0);
    return entry;
}

void queue_refresh(struct queue *queue, struct queue_grant *grant, double seconds)
{
    double before = grant->fair.charged;

    fair_refresh(queue->fair[grant->in], &grant->fair, seconds);
    count_interactive(queue, grant, before);
}

void queue_finish(struct queue *queue, struct queue_grant *grant, double seconds, bool free)
{
    if (!grant->fair.search) {
        return;
    }
    if (grant->counted) {
        queue->bucket_s += grant->fair.charged - (free ? 0 : seconds);
    }
    fair_finish(queue->fair[grant->in], &grant->fair, seconds, free);
    *grant = (struct queue_grant){0};
}

void queue_sweep(struct queue *queue)
{
    for (int i = 0; i < QUEUE_CLASS_COUNT; i++) {
        fair_sweep(queue->fair[i]);
    }
}

// --- what others see

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
