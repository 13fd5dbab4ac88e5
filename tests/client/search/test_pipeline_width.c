// How many candidates a search has under way: from devices, compile slots and the worker's speed.
#include "client/search/pipeline_width.h"

#include "client/run/run.h"
#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>

static struct pipeline_width settle(const char *policy, struct pipeline_width asked,
                                    struct pipeline_capacity capacity)
{
    pipeline_width_settle(&asked, policy_find(policy), &capacity);
    return asked;
}

static void assert_width(struct pipeline_width width, uint64_t batch, uint64_t wide, uint64_t lag)
{
    assert_int_equal(width.batch, batch);
    assert_int_equal(width.wide, wide);
    assert_int_equal(width.lag, lag);
}

// Batches keep their size; of these as many are under way as fill the compile slots.
static void one_device_has_as_many_under_way_as_are_compiled(void **state)
{
    static const struct {
        struct pipeline_capacity capacity;
        uint64_t threshold, rank, budget, twelve; // lags
    } cases[] = {
        {{.devices = 1, .compile_slots = 1, .worker_seconds = 10}, 2, 2, 2, 2},
        {{.devices = 0, .compile_slots = 1, .worker_seconds = 0.01}, 2, 2, 2, 2},
        {{.devices = 1, .compile_slots = 2, .worker_seconds = 10}, 2, 2, 2, 2},
        {{.devices = 1, .compile_slots = 7, .worker_seconds = 10}, 3, 5, 2, 2},
        {{.devices = 1, .compile_slots = 14, .worker_seconds = NAN}, 4, 8, 2, 3},
        {{.devices = 1, .compile_slots = 128, .worker_seconds = 10}, 4, 8, 2, 3},
        {{.devices = 1, .compile_slots = 0, .worker_seconds = NAN}, 4, 8, 2, 3},
    };
    const struct pipeline_width usual = {.batch = 4};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pipeline_capacity c = cases[i].capacity;
        assert_width(settle("threshold", usual, c), 4, 8, cases[i].threshold);
        assert_width(settle("rank", usual, c), 4, 4, cases[i].rank);
        assert_width(settle("budget", usual, c), 4, 16, cases[i].budget);
        assert_width(settle("published", usual, c), 16, 16, cases[i].budget);
        assert_width(settle("all", (struct pipeline_width){.batch = 3, .wide = 12}, c), 3, 12,
                     cases[i].twelve);
        assert_width(settle("all", (struct pipeline_width){.batch = 4, .lag = 1}, c), 4, 8, 1);
    }
}

// What is under way grows with the devices, and never shrinks.
static void more_devices_have_more_under_way(void **state)
{
    uint64_t before = 16;
    (void)state;
    for (uint64_t devices = 2; devices <= 64; devices++) {
        struct pipeline_width width =
            settle("threshold", (struct pipeline_width){.batch = 4},
                   (struct pipeline_capacity){
                       .devices = devices, .compile_slots = 0, .worker_seconds = NAN});
        assert_in_range(width.lag, RUN_LAG_DEFAULT, RUN_LAG_MAX);
        assert_in_range(width.wide, 8, RUN_BATCH_MAX);
        assert_true(width.wide * width.lag >= before);
        assert_true(width.wide * width.lag >= 2 * devices);
        before = width.wide * width.lag;
    }
    assert_true(before >= 512);
}

static void few_compile_slots_need_no_more_than_keeps_them_busy(void **state)
{
    (void)state;
    const struct pipeline_width asked = {.batch = 4};
    struct pipeline_capacity capacity = {.devices = 4, .compile_slots = 64, .worker_seconds = NAN};
    struct pipeline_width many = settle("threshold", asked, capacity);
    capacity.compile_slots = 14;
    struct pipeline_width few = settle("threshold", asked, capacity);
    assert_true(few.wide * few.lag < many.wide * many.lag);
    assert_true(few.wide * few.lag >= capacity.compile_slots + 2 * capacity.devices);
}

static void a_slow_worker_has_larger_batches_and_fewer(void **state)
{
    (void)state;
    const struct pipeline_width asked = {.batch = 4};
    struct pipeline_capacity capacity = {.devices = 4, .compile_slots = 64, .worker_seconds = 0.01};
    struct pipeline_width fast = settle("threshold", asked, capacity);
    capacity.worker_seconds = 0.1;
    struct pipeline_width slow = settle("threshold", asked, capacity);
    assert_true(slow.wide > fast.wide && slow.lag < fast.lag);
    capacity.worker_seconds = 1e9;
    assert_width(settle("threshold", asked, capacity), 4, RUN_BATCH_MAX, 2);
}

static void what_was_asked_for_stays(void **state)
{
    static const struct pipeline_capacity capacity = {
        .devices = 8, .compile_slots = 128, .worker_seconds = 0.01};
    (void)state;
    struct pipeline_width width =
        settle("threshold", (struct pipeline_width){.batch = 4, .wide = 16, .lag = 3}, capacity);
    assert_width(width, 4, 16, 3);
    width = settle("threshold", (struct pipeline_width){.batch = 4, .wide = 16}, capacity);
    assert_width(width, 4, 16, 10);
    width = settle("threshold", (struct pipeline_width){.batch = 4, .lag = 4}, capacity);
    assert_width(width, 4, 40, 4);
    width = settle("published", (struct pipeline_width){.batch = 4, .lag = 4}, capacity);
    assert_width(width, 16, 16, 4);
}

// Where points are compared before each batch, and nobody has said how large batches are.
static void later_batches_of_a_search_that_screens_are_larger(void **state)
{
    const struct pipeline_width asked = {.batch = 4}, otherwise[] = {{.batch = 4, .wide = 4},
                                                                     {.batch = 4, .lag = 3},
                                                                     {.batch = 1},
                                                                     {.batch = 8}};
    struct pipeline_capacity capacity = {.worker_seconds = 0.01, .compares_points = true};
    (void)state;
    for (uint64_t devices = 1; devices <= 64; devices *= 2) {
        capacity.devices = devices;
        capacity.compile_slots = 14 * devices;
        struct pipeline_width width = settle("rank", asked, capacity);
        assert_in_range(width.widest, width.wide, RUN_BATCH_MAX);
        assert_true(width.widest >= 8 * devices || width.widest == RUN_BATCH_MAX);
        assert_int_equal(settle("threshold", asked, capacity).widest, 0);
        assert_int_equal(settle("all", asked, capacity).widest, 0);
        for (size_t i = 0; i < ARRAY_LEN(otherwise); i++) {
            assert_int_equal(settle("rank", otherwise[i], capacity).widest, 0);
        }
        struct pipeline_capacity none = capacity;
        none.compares_points = false;
        assert_int_equal(settle("rank", asked, none).widest, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_has_as_many_under_way_as_are_compiled),
        cmocka_unit_test(more_devices_have_more_under_way),
        cmocka_unit_test(few_compile_slots_need_no_more_than_keeps_them_busy),
        cmocka_unit_test(a_slow_worker_has_larger_batches_and_fewer),
        cmocka_unit_test(what_was_asked_for_stays),
        cmocka_unit_test(later_batches_of_a_search_that_screens_are_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
