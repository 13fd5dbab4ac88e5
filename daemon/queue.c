// Design note. One heap of searches (shares) by virtual time, and in each share a heap of entries
// by priority and age. Start-time fair queueing with retroactive charging (Goyal et al. 1996):
//
//   arrival at an idle search f   v_f = max(v_f, V)
//   take                          f with the least v_f; V = max(V, v_f); v_f += e_f
//   settle                        v_f += actual - charged; e_f = 0.9 e_f + 0.1 actual
//
// Invariants: a share is in the heap of shares exactly when it has entries; the sum of the shares'
// entries is `count`. A share without entries and without charges to settle is dropped as soon as V
// has caught up with it, because then forgetting it changes nothing. Others are dropped when they
// are met again or when the queue runs empty.
#include "daemon/queue.h"
#include "common/heap.h"
#include "common/mem.h"
#include <stdlib.h>
#include <uthash.h>

#define ESTIMATE_KEEP 0.9    // of the running mean of a search's costs
#define FIRST_ESTIMATE_S 0.5 // for a search that nothing is known about

struct share {
    uint64_t search;     // whose it is
    double virtual_time; // seconds it has been charged, on the queue's scale
    double estimate;     // mean cost of its entries, in seconds
    size_t taken;        // entries taken and not settled yet
    size_t index;        // in queue.shares
    struct heap entries; // of struct queue_entry
    UT_hash_handle hh;
};

struct queue {
    struct share *by_search;
    struct heap shares; // those that have entries
    double virtual_time;
    size_t count; // entries in all shares
};

static bool entry_less(const void *a, const void *b)
{
    const struct queue_entry *x = a;
    const struct queue_entry *y = b;

    return x->priority != y->priority ? x->priority < y->priority : x->order < y->order;
}

static void entry_set_index(void *item, size_t index)
{
    ((struct queue_entry *)item)->index = index;
}

static bool share_less(const void *a, const void *b)
{
    const struct share *x = a;
    const struct share *y = b;
    const struct queue_entry *x_top = heap_top(&x->entries);
    const struct queue_entry *y_top = heap_top(&y->entries);

    if (x->virtual_time < y->virtual_time || x->virtual_time > y->virtual_time) {
        return x->virtual_time < y->virtual_time;
    }
    // While an entry is being taken out a share may be empty for a moment; it goes last.
    if (!x_top || !y_top) {
        return x_top != NULL;
    }
    return x_top->order < y_top->order;
}

static void share_set_index(void *item, size_t index)
{
    ((struct share *)item)->index = index;
}

struct queue *queue_create(void)
{
    struct queue *queue = xcalloc(1, sizeof(*queue));

    heap_init(&queue->shares, share_less, share_set_index);
    return queue;
}

static void share_free(struct queue *queue, struct share *share)
{
    HASH_DEL(queue->by_search, share);
    heap_release(&share->entries);
    free(share);
}

void queue_free(struct queue *queue)
{
    struct share *share;
    struct share *next;

    if (!queue) {
        return;
    }
    HASH_ITER (hh, queue->by_search, share, next) {
        share_free(queue, share);
    }
    heap_release(&queue->shares);
    free(queue);
}

static struct share *find_share(const struct queue *queue, uint64_t search)
{
    struct share *share;

    HASH_FIND(hh, queue->by_search, &search, sizeof(search), share);
    return share;
}

static struct share *get_share(struct queue *queue, uint64_t search)
{
    struct share *share = find_share(queue, search);

    if (!share) {
        share = xcalloc(1, sizeof(*share));
        share->search = search;
        share->virtual_time = queue->virtual_time;
        share->estimate = FIRST_ESTIMATE_S;
        share->index = HEAP_NOT_IN;
        heap_init(&share->entries, entry_less, entry_set_index);
        HASH_ADD(hh, queue->by_search, search, sizeof(share->search), share);
    }
    return share;
}

static bool share_is_idle(const struct share *share)
{
    return share->entries.count == 0 && share->taken == 0;
}

// Forgets shares that no longer matter. All idle ones do when nothing at all is going on.
static void drop_idle(struct queue *queue, struct share *share)
{
    struct share *next;

    if (share_is_idle(share) && share->virtual_time <= queue->virtual_time) {
        share_free(queue, share);
    }
    if (queue->count > 0) {
        return;
    }
    HASH_ITER (hh, queue->by_search, share, next) {
        if (!share_is_idle(share)) {
            return;
        }
    }
    HASH_ITER (hh, queue->by_search, share, next) {
        share_free(queue, share);
    }
    queue->virtual_time = 0;
}

void queue_add(struct queue *queue, struct queue_entry *entry, uint64_t search, uint64_t priority,
               uint64_t order)
{
    struct share *share = get_share(queue, search);

    entry->share = share;
    entry->priority = priority;
    entry->order = order;
    heap_insert(&share->entries, entry);
    queue->count++;
    if (share->index != HEAP_NOT_IN) {
        heap_rekey(&queue->shares, share->index);
        return;
    }
    if (share->taken == 0 && share->virtual_time < queue->virtual_time) {
        share->virtual_time = queue->virtual_time;
    }
    heap_insert(&queue->shares, share);
}

bool queue_holds(const struct queue_entry *entry)
{
    return entry->share != NULL;
}

// Takes the entry out and puts its share back in order. The share stays.
static void remove_entry(struct queue *queue, struct queue_entry *entry)
{
    struct share *share = entry->share;

    (void)heap_remove(&queue->shares, share->index);
    (void)heap_remove(&share->entries, entry->index);
    entry->share = NULL;
    queue->count--;
    if (share->entries.count > 0) {
        heap_insert(&queue->shares, share);
    }
}

void queue_remove(struct queue *queue, struct queue_entry *entry)
{
    struct share *share = entry->share;

    if (share) {
        remove_entry(queue, entry);
        drop_idle(queue, share);
    }
}

struct queue_entry *queue_take(struct queue *queue, double *ret_charge)
{
    struct share *share = heap_top(&queue->shares);
    struct queue_entry *entry;

    if (!share) {
        return NULL;
    }
    entry = heap_top(&share->entries);
    if (queue->virtual_time < share->virtual_time) {
        queue->virtual_time = share->virtual_time;
    }
    share->virtual_time += share->estimate;
    share->taken++;
    *ret_charge = share->estimate;
    remove_entry(queue, entry);
    return entry;
}

void queue_settle(struct queue *queue, uint64_t search, double charge, double seconds)
{
    struct share *share = find_share(queue, search);

    if (!share || share->taken == 0) {
        return;
    }
    share->taken--;
    share->virtual_time += seconds - charge;
    share->estimate = ESTIMATE_KEEP * share->estimate + (1 - ESTIMATE_KEEP) * seconds;
    if (share->index != HEAP_NOT_IN) {
        heap_rekey(&queue->shares, share->index);
    }
    drop_idle(queue, share);
}

size_t queue_count(const struct queue *queue)
{
    return queue->count;
}

double queue_debt(const struct queue *queue, uint64_t search)
{
    const struct share *share = find_share(queue, search);

    return share ? share->virtual_time - queue->virtual_time : 0;
}

bool queue_check(const struct queue *queue)
{
    const struct share *share;
    size_t entries = 0;
    size_t backlogged = 0;

    for (share = queue->by_search; share; share = share->hh.next) {
        if (!heap_check(&share->entries)) {
            return false;
        }
        if ((share->entries.count > 0) != (share->index != HEAP_NOT_IN)) {
            return false;
        }
        entries += share->entries.count;
        backlogged += share->entries.count > 0;
    }
    return entries == queue->count && backlogged == queue->shares.count &&
           heap_check(&queue->shares);
}
