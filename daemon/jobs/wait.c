// Design note. A parked WAIT has one link for each of its jobs, and a job has a list of the links
// that point to it. When a WAIT is woken, its links leave all these lists and it joins the list of
// WAITs that are due. A timer of 0 ms answers that list in the next turn of the loop, so that many
// jobs that end at once (a cancelled search) give one reply. The deadlines of parked WAITs form a
// heap, which the same timer serves.
#include "daemon/jobs/wait.h"
#include "common/heap.h"
#include <stdlib.h>
#include <utlist.h>

struct parked;

struct wait_link {
    struct parked *wait;
    struct job *job; // NULL when the link is in no list
    struct wait_link *prev;
    struct wait_link *next;
};

struct parked {
    struct waits *waits;
    struct exchange *exchange;
    uint64_t due_ms;        // deadline on the loop's clock
    size_t index;           // in the heap; HEAP_NOT_IN when it is due
    uint64_t *ids;          // numbers of the jobs, for on_due
    size_t id_count;        // length of ids
    struct wait_link *link; // one for each unfinished job
    size_t link_count;      // length of link
    struct parked *prev;    // in the list of WAITs that are due
    struct parked *next;
};

struct waits {
    uv_loop_t *loop;
    uv_timer_t timer;
    void (*on_due)(void *owner, struct exchange *exchange, const uint64_t *jobs, size_t count);
    void *owner;
    struct heap parked; // WAITs that are not due yet, by due_ms
    struct parked *due; // list of WAITs that are due
    size_t count;       // of both
};

static bool wait_less(const void *a, const void *b)
{
    return ((const struct parked *)a)->due_ms < ((const struct parked *)b)->due_ms;
}

static void wait_set_index(void *item, size_t index)
{
    ((struct parked *)item)->index = index;
}

struct waits *waits_create(uv_loop_t *loop,
                           void (*on_due)(void *owner, struct exchange *exchange,
                                          const uint64_t *jobs, size_t count),
                           void *owner)
{
    struct waits *waits = xcalloc(1, sizeof(*waits));

    waits->loop = loop;
    waits->on_due = on_due;
    waits->owner = owner;
    heap_init(&waits->parked, wait_less, wait_set_index);
    (void)uv_timer_init(loop, &waits->timer);
    waits->timer.data = waits;
    return waits;
}

static void unlink_jobs(struct parked *wait)
{
    for (size_t i = 0; i < wait->link_count; i++) {
        struct wait_link *link = &wait->link[i];

        if (link->job) {
            DL_DELETE(link->job->waits, link);
            link->job = NULL;
        }
    }
}

static void wait_free(struct parked *wait)
{
    wait->waits->count--;
    free(wait->link);
    free(wait->ids);
    free(wait);
}

// The turn of the caller whose WAIT is due.
static void on_turn(void *owner)
{
    struct parked *wait = owner;
    struct waits *waits = wait->waits;

    DL_DELETE(waits->due, wait);
    waits->on_due(waits->owner, wait->exchange, wait->ids, wait->id_count);
    wait_free(wait);
}

static void make_due(struct parked *wait)
{
    struct waits *waits = wait->waits;

    if (wait->index != HEAP_NOT_IN) {
        (void)heap_remove(&waits->parked, wait->index);
        unlink_jobs(wait);
        DL_APPEND(waits->due, wait);
        exchange_later(wait->exchange, on_turn, wait);
    }
}

static void tell_due(struct waits *waits)
{
    while (waits->due) {
        on_turn(waits->due);
    }
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct waits *waits)
{
    const struct parked *first = heap_top(&waits->parked);
    uint64_t now_ms = uv_now(waits->loop);

    if (uv_is_closing((uv_handle_t *)&waits->timer)) {
        return;
    }
    if (first) {
        (void)uv_timer_start(&waits->timer, on_timer,
                             first->due_ms > now_ms ? first->due_ms - now_ms : 0, 0);
    } else {
        (void)uv_timer_stop(&waits->timer);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct waits *waits = timer->data;
    uint64_t now_ms = uv_now(waits->loop);
    struct parked *wait;

    while ((wait = heap_top(&waits->parked)) && wait->due_ms <= now_ms) {
        make_due(wait);
    }
    set_timer(waits);
}

// The service has dropped the parked exchange, which no longer exists. Nobody is to be answered.
static void on_drop(void *waiter)
{
    struct parked *wait = waiter;

    if (wait->index != HEAP_NOT_IN) {
        (void)heap_remove(&wait->waits->parked, wait->index);
        unlink_jobs(wait);
    } else {
        DL_DELETE(wait->waits->due, wait);
    }
    wait_free(wait);
}

bool waits_park(struct waits *waits, struct exchange *exchange, const uint64_t *ids,
                size_t id_count, struct job *const *jobs, size_t job_count, uint64_t timeout_ms)
{
    struct parked *wait = xcalloc(1, sizeof(*wait));

    size_t held = sizeof(*wait) + id_count * sizeof(*ids) + job_count * sizeof(*wait->link);

    if (!exchange_park(exchange, held, on_drop, wait)) {
        free(wait);
        return false;
    }
    wait->waits = waits;
    wait->exchange = exchange;
    wait->due_ms = uv_now(waits->loop) + timeout_ms;
    wait->ids = xmemdup(ids, id_count * sizeof(*ids));
    wait->id_count = id_count;
    wait->link = xcalloc(job_count, sizeof(*wait->link));
    wait->link_count = job_count;
    for (size_t i = 0; i < job_count; i++) {
        wait->link[i].wait = wait;
        wait->link[i].job = jobs[i];
        DL_APPEND(jobs[i]->waits, &wait->link[i]);
    }
    waits->count++;
    heap_insert(&waits->parked, wait);
    set_timer(waits);
    return true;
}

void waits_wake(struct waits *waits, struct job *job)
{
    while (job->waits) {
        make_due(job->waits->wait);
    }
    set_timer(waits);
}

size_t waits_count(const struct waits *waits)
{
    return waits->count;
}

static void on_close(uv_handle_t *handle)
{
    struct waits *waits = handle->data;

    heap_release(&waits->parked);
    free(waits);
}

void waits_flush(struct waits *waits)
{
    struct parked *wait;

    while ((wait = heap_top(&waits->parked))) {
        make_due(wait);
    }
    tell_due(waits);
}

void waits_close(struct waits *waits)
{
    if (waits) {
        waits_flush(waits);
        uv_close((uv_handle_t *)&waits->timer, on_close);
    }
}
