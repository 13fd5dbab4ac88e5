// Entries that tests put into a queue.
#ifndef TESTS_DAEMON_SCHED_QUEUE_FIXTURE_H
#define TESTS_DAEMON_SCHED_QUEUE_FIXTURE_H

#include "daemon/sched/queue.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct item {
    struct queue_entry entry; // first
    uint64_t search;
    uint64_t number;
};

static inline void add_as(struct queue *queue, struct item *item, enum queue_class in,
                          const struct fair_who *who, uint64_t number)
{
    item->search = who->search;
    item->number = number;
    queue_add(queue, &item->entry, in, who, 0, number);
}

static inline void add(struct queue *queue, struct item *item, uint64_t search, uint64_t priority,
                       uint64_t number)
{
    struct fair_who who = {.tenant = 1, .search = search, .tenant_weight = 1, .weight = 1};

    item->search = search;
    item->number = number;
    queue_add(queue, &item->entry, QUEUE_NORMAL, &who, priority, number);
}

// Takes an entry under these terms. Returns its number, or NONE.
#define NONE UINT64_MAX
static inline uint64_t next(struct queue *queue, const struct fair_terms *terms, double now_s,
                            struct queue_grant *grant)
{
    bool has = queue_has(queue, terms, now_s);
    struct item *item = (struct item *)queue_take(queue, terms, now_s, grant);

    assert_int_equal(has, !!item);
    assert_true(queue_check(queue));
    return item ? item->number : NONE;
}

#endif
