// Who goes next: priority and age within a search, charged seconds between searches.
#include "common/mem.h"
#include "common/stats.h"
#include "daemon/queue.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MANY 2000

struct item {
    struct queue_entry entry; // first
    uint64_t search;
    uint64_t number;
};

static void add(struct queue *queue, struct item *item, uint64_t search, uint64_t priority,
                uint64_t number)
{
    item->search = search;
    item->number = number;
    queue_add(queue, &item->entry, search, priority, number);
}

static struct item *take(struct queue *queue, double *charge)
{
    struct item *item = (struct item *)queue_take(queue, charge);

    assert_true(queue_check(queue));
    return item;
}

// Takes one and settles it with what it is said to have cost.
static uint64_t serve(struct queue *queue, double seconds)
{
    double charge;
    struct item *item = take(queue, &charge);

    assert_non_null(item);
    queue_settle(queue, item->search, charge, seconds);
    return item->number;
}

static void an_empty_queue_gives_nothing(void **state)
{
    struct queue *queue = queue_create();
    double charge;

    (void)state;
    assert_null(queue_take(queue, &charge));
    assert_int_equal(queue_count(queue), 0);
    assert_true(queue_check(queue));
    queue_free(queue);
    queue_free(NULL);
}

static void priority_then_age_within_a_search(void **state)
{
    struct queue *queue = queue_create();
    struct item item[4] = {0};

    (void)state;
    add(queue, &item[0], 1, 5, 10);
    add(queue, &item[1], 1, 0, 11);
    add(queue, &item[2], 1, 5, 9);
    add(queue, &item[3], 1, 0, 12);
    assert_int_equal(serve(queue, 1), 11);
    assert_int_equal(serve(queue, 1), 12);
    assert_int_equal(serve(queue, 1), 9);
    assert_int_equal(serve(queue, 1), 10);
    queue_free(queue);
}

static void a_removed_entry_does_not_come(void **state)
{
    struct queue *queue = queue_create();
    struct item item[3] = {0};

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        add(queue, &item[i], 1, 0, i);
    }
    queue_remove(queue, &item[0].entry);
    assert_false(queue_holds(&item[0].entry));
    queue_remove(queue, &item[0].entry); // no-op
    assert_true(queue_check(queue));
    assert_int_equal(serve(queue, 1), 1);
    queue_remove(queue, &item[2].entry);
    assert_int_equal(queue_count(queue), 0);
    assert_true(queue_check(queue));
    queue_free(queue);
}

static void the_last_entry_of_a_search_can_be_removed_while_another_waits(void **state)
{
    struct queue *queue = queue_create();
    struct item item[2] = {0};

    (void)state;
    add(queue, &item[0], 1, 0, 0);
    add(queue, &item[1], 2, 0, 1);
    queue_remove(queue, &item[0].entry);
    assert_true(queue_check(queue));
    assert_int_equal(serve(queue, 1), 1);
    queue_free(queue);
}

static void a_newcomer_does_not_wait_for_a_flood(void **state)
{
    struct queue *queue = queue_create();
    struct item *flood = xcalloc(MANY, sizeof(*flood));
    struct item one = {0};

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        add(queue, &flood[i], 1, 0, i);
    }
    for (int i = 0; i < 10; i++) {
        (void)serve(queue, 1);
    }
    add(queue, &one, 2, 0, MANY);
    (void)serve(queue, 1); // at most one more of the flood
    if (queue_holds(&one.entry)) {
        assert_int_equal(serve(queue, 1), MANY);
    }
    queue_free(queue);
    free(flood);
}

// Two searches whose jobs cost differently get the same seconds.
static void searches_get_equal_seconds_whatever_their_jobs_cost(void **state)
{
    const double cost[2] = {0.2, 3.0};
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));
    double used[2] = {0, 0};
    double total = 0;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        add(queue, &items[i], i % 2, 0, i);
    }
    while (total < 200) {
        double charge;
        struct item *item = take(queue, &charge);

        used[item->search] += cost[item->search];
        total += cost[item->search];
        queue_settle(queue, item->search, charge, cost[item->search]);
    }
    assert_true(used[0] > 92 && used[0] < 108);
    queue_free(queue);
    free(items);
}

static void sleeping_gives_no_credit(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));
    size_t served_of_late = 0;

    (void)state;
    add(queue, &items[0], 2, 0, 0);
    (void)serve(queue, 1); // search 2 was here once
    for (uint64_t i = 1; i < 500; i++) {
        add(queue, &items[i], 1, 0, i);
    }
    for (int i = 0; i < 100; i++) {
        (void)serve(queue, 1);
    }
    for (uint64_t i = 500; i < 600; i++) {
        add(queue, &items[i], 2, 0, i);
    }
    for (int i = 0; i < 20; i++) {
        served_of_late += serve(queue, 1) >= 500;
    }
    assert_in_range(served_of_late, 9, 11);
    queue_free(queue);
    free(items);
}

static void what_was_lost_is_given_back(void **state)
{
    struct queue *queue = queue_create();
    struct item item[2] = {0};
    double charge;

    (void)state;
    add(queue, &item[0], 1, 0, 0);
    add(queue, &item[1], 1, 0, 1);
    (void)take(queue, &charge);
    assert_true(queue_debt(queue, 1) > 0);
    queue_settle(queue, 1, charge, 0);
    assert_float_equal(queue_debt(queue, 1), 0, 1e-12);
    queue_settle(queue, 99, 1, 1); // an unknown search is nothing
    queue_free(queue);
}

// Random operations against a list that is searched.
static void random_operations_keep_the_invariants(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));
    struct stats_rng rng;
    size_t held = 0;

    (void)state;
    stats_rng_init(&rng, 1, 0);
    for (uint64_t round = 0; round < 20000; round++) {
        struct item *item = &items[stats_rng_below(&rng, MANY)];
        double charge;

        if (!queue_holds(&item->entry)) {
            add(queue, item, stats_rng_below(&rng, 7), stats_rng_below(&rng, 3), round);
            held++;
        } else if (stats_rng_below(&rng, 2) == 0) {
            queue_remove(queue, &item->entry);
            held--;
        } else {
            item = take(queue, &charge);
            queue_settle(queue, item->search, charge, stats_rng_unit(&rng));
            held--;
        }
        assert_int_equal(queue_count(queue), held);
        if (round % 64 == 0) {
            assert_true(queue_check(queue));
        }
    }
    queue_free(queue);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_queue_gives_nothing),
        cmocka_unit_test(priority_then_age_within_a_search),
        cmocka_unit_test(a_removed_entry_does_not_come),
        cmocka_unit_test(the_last_entry_of_a_search_can_be_removed_while_another_waits),
        cmocka_unit_test(a_newcomer_does_not_wait_for_a_flood),
        cmocka_unit_test(searches_get_equal_seconds_whatever_their_jobs_cost),
        cmocka_unit_test(sleeping_gives_no_credit),
        cmocka_unit_test(what_was_lost_is_given_back),
        cmocka_unit_test(random_operations_keep_the_invariants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
