// A/A controls of a device: when one is due, and what a bad one does.
#include "common/clock.h"
#include "common/mem.h"
#include "daemon/devices/device.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND NS_PER_S

static int set_up(void **state)
{
    static const int core[] = {1};
    struct devices *devices = xcalloc(1, sizeof(*devices));
    struct probe_outcome probe;

    message_init(&probe_outcome_message, &probe);
    probe.device_class = xstrdup("class");
    probe.toolchain = xstrdup("cc");
    devices_init(devices);
    devices_add_cpus(devices, core, 1, &probe);
    message_clear(&probe_outcome_message, &probe);
    *state = devices;
    return 0;
}

static int tear_down(void **state)
{
    devices_release(*state);
    free(*state);
    return 0;
}

static struct digest about(const char *name)
{
    return digest_of(name, strlen(name));
}

static struct estimate interval(double lo, double hi)
{
    return (struct estimate){.log2 = (lo + hi) / 2, .lo = lo, .hi = hi, .blocks = 32};
}

static const struct estimate in_order = {.log2 = 0.001, .lo = -0.002, .hi = 0.004, .blocks = 32};

static void a_control_is_due_once_an_hour_for_each_pair(void **state)
{
    struct device *device = &((struct devices *)*state)->device[0];
    struct digest a = about("a");
    struct digest b = about("b");

    assert_true(device_needs_control(device, &a, SECOND));
    assert_null(device_last_control(device, &a));
    assert_true(device_add_control(device, &a, &in_order, SECOND));
    assert_false(device_needs_control(device, &a, 2 * SECOND));
    assert_true(device_needs_control(device, &b, 2 * SECOND));
    assert_false(device_needs_control(device, &a, 3601 * SECOND));
    assert_true(device_needs_control(device, &a, 3602 * SECOND));
    assert_float_equal(device_last_control(device, &a)->log2, 0.001, 1e-12);
}

static void two_bad_controls_in_a_row_take_the_device_out(void **state)
{
    struct devices *devices = *state;
    struct device *device = &devices->device[0];
    struct estimate bad = interval(0.02, 0.03);
    struct digest pair = about("a");

    assert_false(device_add_control(device, &pair, &bad, 0));
    assert_int_equal(device->state, DEVICE_READY);
    assert_true(device_needs_control(device, &pair, SECOND)); // a second control is due at once
    bad = interval(-0.03, -0.02);
    assert_false(device_add_control(device, &pair, &bad, SECOND));
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    assert_non_null(strstr(device_why(device), "twice in a row"));
    assert_true(devices_tick(devices, 61 * SECOND));
    assert_false(
        device_add_control(device, &pair, &bad, 62 * SECOND)); // on probation one more is enough
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    assert_true(devices_tick(devices, 182 * SECOND));
    assert_true(device_add_control(device, &pair, &in_order, 183 * SECOND));
    assert_int_equal(device->bad_controls, 0);
}

static void a_control_that_excludes_zero_by_less_than_a_percent_is_fine(void **state)
{
    struct device *device = &((struct devices *)*state)->device[0];
    struct estimate small = interval(0.010, 0.030);
    struct digest pair = about("a");

    assert_true(device_add_control(device, &pair, &small, 0));
    assert_true(device_add_control(device, &pair, &small, 0));
    assert_int_equal(device->state, DEVICE_READY);
}

static void the_number_of_remembered_controls_is_bounded(void **state)
{
    struct device *device = &((struct devices *)*state)->device[0];
    struct digest pair;
    char name[16];

    for (int i = 0; i < DEVICE_CONTROLS_MAX + 10; i++) {
        (void)snprintf(name, sizeof(name), "%d", i);
        pair = about(name);
        assert_true(device_add_control(device, &pair, &in_order, (uint64_t)i));
    }
    assert_int_equal(device->control_count, DEVICE_CONTROLS_MAX);
    pair = about("9");
    assert_null(device_last_control(device, &pair)); // the oldest ones have been dropped
    pair = about("10");
    assert_non_null(device_last_control(device, &pair));
    assert_true(
        device_add_control(device, &pair, &in_order, 1000)); // a renewed control is the youngest
    pair = about("11");
    assert_non_null(device_last_control(device, &pair));
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH(a_control_is_due_once_an_hour_for_each_pair),
        WITH(two_bad_controls_in_a_row_take_the_device_out),
        WITH(a_control_that_excludes_zero_by_less_than_a_percent_is_fine),
        WITH(the_number_of_remembered_controls_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
