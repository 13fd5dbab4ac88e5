// Who goes next: priority and age within a search, charged seconds between searches and between
// tenants, classes, bounds, gates. Shares over time: test_shares.c. Who lets others past:
// test_queue_past.c.
#include "common/mem.h"
#include "common/stats.h"
#include "tests/daemon/sched/queue_fixture.h"
#include <stdlib.h>

#define MANY 2000

static const struct fair_terms plenty = {.devices = 0};

static struct item *take(struct queue *queue, struct queue_grant *grant)
{
    struct item *item = (struct item *)queue_take(queue, &plenty, 0, grant);

    assert_true(queue_check(queue));
    return item;
}

// Takes an entry and finishes it with the cost that its item names.
static uint64_t serve(struct queue *queue, double seconds)
{
    struct queue_grant grant;
    struct item *item = take(queue, &grant);

    assert_non_null(item);
    queue_finish(queue, &grant, seconds, false);
    return item->number;
}

static void an_empty_queue_gives_nothing(void **state)
{
    struct queue *queue = queue_create();

    (void)state;
    struct queue_grant grant;
    assert_null(queue_take(queue, &plenty, 0, &grant));
    assert_false(queue_has(queue, &plenty, 0));
    assert_int_equal(queue_count(queue), 0);
    assert_true(queue_check(queue));
    queue_free(queue);
    queue_free(NULL);
}

static void priority_then_age_within_a_search(void **state)
{
    struct queue *queue = queue_create();

    (void)state;
    struct item item[4] = {0};
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

    (void)state;
    struct item item[3] = {0};
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

    (void)state;
    struct item item[2] = {0};
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

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        add(queue, &flood[i], 1, 0, i);
    }
    for (int i = 0; i < 10; i++) {
        (void)serve(queue, 1);
    }
    struct item one = {0};
    add(queue, &one, 2, 0, MANY);
    (void)serve(queue, 1); // at most one more of the flood
    if (queue_holds(&one.entry)) {
        assert_int_equal(serve(queue, 1), MANY);
    }
    queue_free(queue);
    free(flood);
}

// Two searches whose jobs have different costs get the same seconds.
static void searches_get_equal_seconds_whatever_their_jobs_cost(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        add(queue, &items[i], i % 2, 0, i);
    }
    const double cost[2] = {0.2, 3.0};
    double used[2] = {0, 0};
    double total = 0;
    while (total < 200) {
        struct queue_grant grant;
        struct item *item = take(queue, &grant);

        used[item->search] += cost[item->search];
        total += cost[item->search];
        queue_finish(queue, &grant, cost[item->search], false);
    }
    assert_true(used[0] > 92 && used[0] < 108);
    queue_free(queue);
    free(items);
}

static void a_new_search_is_charged_what_others_cost(void **state)
{
    struct queue *queue = queue_create();
    struct item old[101] = {0}, new = {0};
    struct queue_grant grant;

    (void)state;
    for (uint64_t i = 0; i < 101; i++) {
        add(queue, &old[i], 1, 0, i);
    }
    for (int i = 0; i < 100; i++) {
        (void)serve(queue, 0.02);
    }
    add(queue, &new, 2, 0, 1000);
    assert_int_equal(take(queue, &grant)->number, 1000);
    assert_true(grant.fair.charged > 0.0199 && grant.fair.charged < 0.0201);
    queue_finish(queue, &grant, 0.02, false);
    (void)serve(queue, 0.02);
    queue_free(queue);
}

static void sleeping_gives_no_credit(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));

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
    size_t served_of_late = 0;
    for (int i = 0; i < 20; i++) {
        served_of_late += serve(queue, 1) >= 500;
    }
    assert_in_range(served_of_late, 9, 11);
    queue_free(queue);
    free(items);
}

static double ahead_of_one;

static void on_view(void *owner, enum queue_class in, const struct fair_view *view)
{
    (void)owner;
    (void)in;
    if (view->search == 1) {
        ahead_of_one = view->ahead_s;
    }
}

static double ahead(struct queue *queue)
{
    ahead_of_one = -1;
    queue_visit(queue, on_view, NULL);
    return ahead_of_one;
}

static void what_was_lost_is_given_back(void **state)
{
    struct queue *queue = queue_create();

    (void)state;
    struct item item[2] = {0};
    add(queue, &item[0], 1, 0, 0);
    add(queue, &item[1], 1, 0, 1);
    struct queue_grant grant;
    (void)take(queue, &grant);
    assert_true(ahead(queue) > 0);
    queue_refresh(queue, &grant, 20);
    assert_float_equal(ahead(queue), 20, 1e-9);
    queue_refresh(queue, &grant, 10); // less than was charged already
    assert_float_equal(ahead(queue), 20, 1e-9);
    queue_finish(queue, &grant, 21, true);
    assert_float_equal(ahead(queue), 0, 1e-12);
    queue_finish(queue, &grant, 1, false); // once is enough
    assert_float_equal(ahead(queue), 0, 1e-12);
    queue_free(queue);
}

// Ten searches of one tenant together get what the only search of another tenant gets, by weight.
static void tenants_share_before_their_searches_do(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        bool alone = i % 2 == 0;
        struct fair_who who = {.tenant = alone ? 7 : 8,
                               .search = alone ? 100 : 1 + i / 2 % 10,
                               .tenant_weight = alone ? 3 : 1,
                               .weight = 1};

        add_as(queue, &items[i], QUEUE_NORMAL, &who, i);
    }
    size_t served = 0;
    for (int i = 0; i < 800; i++) {
        served += serve(queue, 1) % 2 == 0;
    }
    assert_in_range(served, 595, 605);
    queue_free(queue);
    free(items);
}

static void one_search_holds_a_bounded_number_while_others_wait(void **state)
{
    struct queue *queue = queue_create();

    (void)state;
    struct item item[12] = {0};
    for (uint64_t i = 0; i < 10; i++) {
        add(queue, &item[i], 1, 0, i);
    }
    struct queue_grant grant[12];
    struct fair_terms terms = {.devices = 8};
    size_t held = 0;
    // A search that is alone may hold all devices.
    for (; held < 7; held++) {
        assert_int_equal(next(queue, &terms, 0, &grant[held]), held);
    }
    // Another search comes, and the bound of the first one is now ceil(8 / 2) + 1.
    add(queue, &item[10], 2, 0, 10);
    assert_int_equal(next(queue, &terms, 0, &grant[10]), 10);
    add(queue, &item[11], 2, 0, 11);
    queue_finish(queue, &grant[10], 1000, false); // so that the first is behind
    assert_int_equal(next(queue, &terms, 0, &grant[11]), 11);
    assert_int_equal(next(queue, &terms, 0, &grant[7]), 7); // nobody else waits any more
    for (size_t i = 0; i < 8; i++) {
        queue_finish(queue, &grant[i], 1, false);
    }
    queue_finish(queue, &grant[11], 1, false);
    queue_free(queue);
}

static bool is_even(void *owner, uint64_t search)
{
    (void)owner;
    return search % 2 == 0;
}

static void a_search_behind_a_closed_gate_waits(void **state)
{
    struct queue *queue = queue_create();
    struct fair_terms terms = {.devices = 1, .may = is_even};

    (void)state;
    struct item item[2] = {0};
    add(queue, &item[0], 1, 0, 0);
    struct queue_grant grant;
    assert_int_equal(next(queue, &terms, 0, &grant), NONE);
    add(queue, &item[1], 2, 0, 1);
    assert_int_equal(next(queue, &terms, 0, &grant), 1);
    queue_finish(queue, &grant, 1, false);
    assert_int_equal(next(queue, &terms, 0, &grant), NONE);
    terms.may = NULL;
    assert_int_equal(next(queue, &terms, 0, &grant), 0);
    queue_finish(queue, &grant, 1, false);
    queue_free(queue);
}

// Interactive entries go first for a fifth of the time, and behind the others for the rest of it.
static void interactive_goes_first_within_its_share(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        struct fair_who who = {.tenant = 1, .search = i % 2, .tenant_weight = 1, .weight = 1};

        add_as(queue, &items[i], i % 2 ? QUEUE_INTERACTIVE : QUEUE_NORMAL, &who, i);
    }
    struct fair_terms terms = {.devices = 1};
    struct queue_grant grant;
    double now_s = 0;
    // The burst: a fifth of a minute.
    for (int i = 0; i < 12; i++, now_s += 1) {
        assert_int_equal(next(queue, &terms, now_s, &grant) % 2, 1);
        queue_finish(queue, &grant, 1, false);
    }
    size_t interactive = 0;
    for (int i = 0; i < 1000; i++, now_s += 1) {
        interactive += next(queue, &terms, now_s, &grant) % 2;
        queue_finish(queue, &grant, 1, false);
    }
    assert_in_range(interactive, 198, 206);
    queue_free(queue);
    free(items);
}

static void scavenge_begins_only_where_nothing_else_could(void **state)
{
    struct queue *queue = queue_create();

    (void)state;
    struct item item[3] = {0};
    struct fair_who who[2] = {{.tenant = 1, .search = 1, .tenant_weight = 1, .weight = 1},
                              {.tenant = 2, .search = 2, .tenant_weight = 9, .weight = 9}};
    add_as(queue, &item[0], QUEUE_SCAVENGE, &who[1], 0);
    add_as(queue, &item[1], QUEUE_NORMAL, &who[0], 1);
    add_as(queue, &item[2], QUEUE_NORMAL, &who[0], 2);
    struct fair_terms terms = {.devices = 2};
    struct queue_grant grant;
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(next(queue, &terms, 0, &grant), i % 3);
        queue_finish(queue, &grant, 100, false);
    }
    queue_free(queue);
}

// Random operations, compared with a list that is searched from end to end.
static void random_operations_keep_the_invariants(void **state)
{
    struct queue *queue = queue_create();
    struct item *items = xcalloc(MANY, sizeof(*items));

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 0);
    size_t held = 0;
    for (uint64_t round = 0; round < 20000; round++) {
        struct item *item = &items[stats_rng_below(&rng, MANY)];
        struct queue_grant grant;

        if (!queue_holds(&item->entry)) {
            struct fair_who who = {.tenant = stats_rng_below(&rng, 3),
                                   .tenant_weight = 0.5 + stats_rng_unit(&rng),
                                   .weight = 0.5 + stats_rng_unit(&rng)};

            who.search = who.tenant * 10 + stats_rng_below(&rng, 7);
            add_as(queue, item, (enum queue_class)stats_rng_below(&rng, QUEUE_CLASS_COUNT), &who,
                   round);
            held++;
        } else if (stats_rng_below(&rng, 2) == 0) {
            queue_remove(queue, &item->entry);
            held--;
        } else {
            item = take(queue, &grant);
            queue_refresh(queue, &grant, stats_rng_unit(&rng));
            queue_finish(queue, &grant, stats_rng_unit(&rng), stats_rng_below(&rng, 4) == 0);
            held--;
        }
        assert_int_equal(queue_count(queue), held);
        if (round % 64 == 0) {
            queue_sweep(queue);
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
        cmocka_unit_test(a_new_search_is_charged_what_others_cost),
        cmocka_unit_test(sleeping_gives_no_credit),
        cmocka_unit_test(what_was_lost_is_given_back),
        cmocka_unit_test(tenants_share_before_their_searches_do),
        cmocka_unit_test(one_search_holds_a_bounded_number_while_others_wait),
        cmocka_unit_test(a_search_behind_a_closed_gate_waits),
        cmocka_unit_test(interactive_goes_first_within_its_share),
        cmocka_unit_test(scavenge_begins_only_where_nothing_else_could),
        cmocka_unit_test(random_operations_keep_the_invariants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
