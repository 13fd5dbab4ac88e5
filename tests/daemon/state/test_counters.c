// What searches used, for a bounded number of them.
#include "common/mem.h"
#include "daemon/state/counters.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct counters_search *numbered(struct counters *counters, unsigned number)
{
    char name[16];

    (void)snprintf(name, sizeof(name), "s%u", number);
    return counters_search(counters, "t", name);
}

static void a_search_keeps_its_numbers_and_a_new_one_has_none(void **state)
{
    struct counters counters = {.cached = 0};

    (void)state;
    counters_search(&counters, "t", "a")->device_seconds = 1.5;
    counters_search(&counters, "t", "b")->measured = 2;
    assert_float_equal(counters_search(&counters, "t", "a")->device_seconds, 1.5, 0);
    assert_int_equal(counters_search(&counters, "t", "a")->measured, 0);
    assert_int_equal(HASH_COUNT(counters.searches), 2);
    counters_release(&counters);
    assert_null(counters.searches);
    counters_release(&counters);
}

static void equal_names_of_two_tenants_are_two_searches(void **state)
{
    struct counters counters = {.cached = 0};

    (void)state;
    counters_search(&counters, "t", "a")->measured = 1;
    struct counters_search *other = counters_search(&counters, "u", "a");
    assert_int_equal(other->measured, 0);
    assert_string_equal(other->tenant, "u");
    assert_string_equal(other->name, "a");
    assert_int_equal(counters_search(&counters, "t", "")->measured, 0); // a name may be empty
    assert_int_equal(HASH_COUNT(counters.searches), 3);
    counters_release(&counters);
}

static void the_one_not_heard_of_for_longest_joins_the_others(void **state)
{
    struct counters counters = {.cached = 0};

    (void)state;
    for (unsigned i = 0; i < COUNTERS_SEARCHES_MAX; i++) {
        struct counters_search *search = numbered(&counters, i);

        search->device_seconds = i + 1;
        search->compile_seconds = 2 * (i + 1);
        search->measured = 10 * (i + 1);
    }
    assert_float_equal(counters.others.device_seconds, 0, 0);
    (void)numbered(&counters, 0); // heard of again, so it is the second one's turn
    (void)numbered(&counters, 1000);
    assert_int_equal(HASH_COUNT(counters.searches), COUNTERS_SEARCHES_MAX);
    assert_float_equal(counters.others.device_seconds, 2, 0);
    assert_float_equal(counters.others.compile_seconds, 4, 0);
    assert_int_equal(counters.others.measured, 20);
    assert_float_equal(numbered(&counters, 0)->device_seconds, 1, 0);
    assert_string_equal(counters.searches->name, "s2");               // the next one
    assert_float_equal(numbered(&counters, 1)->device_seconds, 0, 0); // it begins anew
    counters_release(&counters);
}

static void nothing_is_lost_however_many_searches_come(void **state)
{
    struct counters counters = {.cached = 0};
    uint64_t sum;

    (void)state;
    for (unsigned i = 0; i < 5 * COUNTERS_SEARCHES_MAX; i++) {
        numbered(&counters, i)->measured++;
    }
    sum = counters.others.measured;
    for (const struct counters_search *s = counters.searches; s; s = s->hh.next) {
        sum += s->measured;
    }
    assert_int_equal(sum, 5 * COUNTERS_SEARCHES_MAX);
    assert_int_equal(HASH_COUNT(counters.searches), COUNTERS_SEARCHES_MAX);
    assert_null(counters.others.name);
    counters_release(&counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_keeps_its_numbers_and_a_new_one_has_none),
        cmocka_unit_test(equal_names_of_two_tenants_are_two_searches),
        cmocka_unit_test(the_one_not_heard_of_for_longest_joins_the_others),
        cmocka_unit_test(nothing_is_lost_however_many_searches_come),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
