// For which part of the last minute, and since the start, a device was held.
#include "common/clock.h"
#include "daemon/devices/device.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define AT(seconds) ((uint64_t)((seconds) * (double)NS_PER_S))

static void hold(struct device *device, double from_s, double to_s)
{
    device_hold(device, 1, AT(from_s));
    (void)device_release(device, AT(to_s));
}

static void assert_parts(const struct device *device, double started_s, double now_s, double start,
                         double minute)
{
    double since_start, last_minute;

    device_utilisation(device, AT(started_s), AT(now_s), &since_start, &last_minute);
    assert_float_equal(since_start, start, 1e-9);
    assert_float_equal(last_minute, minute, 1e-9);
}

static void a_device_that_was_never_held_is_not_used(void **state)
{
    struct device device = {.name = "d"};

    (void)state;
    assert_parts(&device, 100, 100, 0, 0); // the daemon has just started
    assert_parts(&device, 100, 500, 0, 0);
}

static void a_young_daemon_divides_by_its_age(void **state)
{
    struct device device = {.name = "d"};

    (void)state;
    hold(&device, 101, 102.5);
    hold(&device, 102.5, 104);
    assert_parts(&device, 100, 110, 0.3, 0.3);
}

static void a_device_that_is_kept_for_a_job_is_not_held_yet(void **state)
{
    struct device device = {.name = "d"};

    (void)state;
    device_lease(&device, 1, AT(104));
    assert_parts(&device, 100, 108, 0, 0);
    device_hold(&device, 1, AT(108));
    assert_parts(&device, 100, 110, 0.2, 0.2);
}

static void the_minute_slides(void **state)
{
    struct device device = {.name = "d"};

    (void)state;
    hold(&device, 1010, 1040);
    assert_parts(&device, 1000, 1050, 0.6, 0.6);
    assert_parts(&device, 1000, 1070, 30.0 / 70, 0.5);
    assert_parts(&device, 1000, 1080, 30.0 / 80, 20.0 / 60);
    assert_parts(&device, 1000, 1090.5, 30.0 / 90.5, 9.5 / 60); // the half of a second
    assert_parts(&device, 1000, 1100, 0.3, 0);
    assert_parts(&device, 1000, 2000, 0.03, 0);
}

static void the_hold_that_lasts_counts(void **state)
{
    struct device device = {.name = "d"};

    (void)state;
    hold(&device, 1000, 1010);
    device_hold(&device, 2, AT(1020));
    assert_parts(&device, 1000, 1040, 0.75, 0.75);
    assert_parts(&device, 1000, 1120, 110.0 / 120, 1);
}

// A hold of hours leaves only its last minute, and entries of earlier minutes do not come back.
static void old_seconds_are_overwritten(void **state)
{
    struct device device = {.name = "d"};

    (void)state;
    hold(&device, 1000, 9000);
    assert_parts(&device, 0, 9000, 8000.0 / 9000, 1);
    for (int second = 9000; second < 9200; second++) {
        hold(&device, second, second + 0.25);
    }
    assert_parts(&device, 0, 9200, 8050.0 / 9200, 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_was_never_held_is_not_used),
        cmocka_unit_test(a_young_daemon_divides_by_its_age),
        cmocka_unit_test(a_device_that_is_kept_for_a_job_is_not_held_yet),
        cmocka_unit_test(the_minute_slides),
        cmocka_unit_test(the_hold_that_lasts_counts),
        cmocka_unit_test(old_seconds_are_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
