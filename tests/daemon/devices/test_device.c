// Devices: who is at fault for lost runs, and when a device is probed, quarantined or drained.
#include "common/clock.h"
#include "common/mem.h"
#include "daemon/devices/device.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND NS_PER_S

static int set_up(void **state)
{
    static const int core[] = {3, 2};
    struct devices *devices = xcalloc(1, sizeof(*devices));
    struct probe_outcome probe;

    message_init(&probe_outcome_message, &probe);
    probe.device_class = xstrdup("class");
    probe.toolchain = xstrdup("cc");
    probe.facts = xcalloc(2, sizeof(*probe.facts));
    probe.facts_count = 2;
    probe.facts[0].name = xstrdup("peak_flops");
    probe.facts[0].value = 1e10;
    probe.facts[1].name = xstrdup("cores");
    probe.facts[1].value = 4;
    devices_init(devices);
    devices_add_cpus(devices, core, 2, &probe);
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

static const struct estimate in_order = {.log2 = 0.001, .lo = -0.002, .hi = 0.004, .blocks = 32};

static void devices_come_from_the_probe(void **state)
{
    struct devices *devices = *state;

    assert_int_equal(devices->count, 2);
    assert_string_equal(devices->device[0].name, "cpu0");
    assert_int_equal(devices->device[0].core, 3);
    assert_float_equal(devices->classes->peak_flops, 1e10, 0);
    assert_true(isnan(devices->classes->peak_bytes));
    assert_ptr_equal(devices_class(devices, "class", NULL), devices->classes);
    assert_ptr_equal(devices_class(devices, NULL, "c"), devices->classes);
    assert_null(devices_class(devices, "another", NULL));
}

static void add_gpu(struct devices *devices, unsigned ordinal, const char *class_name)
{
    struct gpu_info gpu;

    message_init(&gpu_info_message, &gpu);
    gpu.uuid = xasprintf("GPU-%u", ordinal);
    gpu.ordinal = ordinal;
    gpu.device_class = xstrdup(class_name);
    gpu.target = xstrdup("sm_90");
    gpu.facts = xcalloc(1, sizeof(*gpu.facts));
    gpu.facts_count = 1;
    gpu.facts[0].name = xstrdup("peak_bytes");
    gpu.facts[0].value = 4e12;
    devices_add_gpu(devices, &gpu, "nvrtc");
    message_clear(&gpu_info_message, &gpu);
}

static void equal_gpus_share_a_class(void **state)
{
    struct devices *devices = *state;

    add_gpu(devices, 0, "big");
    add_gpu(devices, 2, "big");
    add_gpu(devices, 1, "small");
    assert_int_equal(devices->count, 5);
    struct device_class *big = devices_class(devices, NULL, "cuda");
    assert_string_equal(big->name, "big");
    assert_string_equal(big->target, "sm_90");
    assert_string_equal(big->toolchain, "nvrtc");
    assert_int_equal(big->facts_count, 1);
    assert_float_equal(big->peak_bytes, 4e12, 0);
    assert_ptr_equal(devices->device[2].device_class, big);
    assert_ptr_equal(devices->device[3].device_class, big);
    assert_string_equal(devices->device[3].name, "cuda2");
    assert_string_equal(devices->device[3].uuid, "GPU-2");
    assert_int_equal(devices->device[3].core, -1);
    assert_string_equal(devices->device[4].device_class->name, "small");
    assert_string_equal(devices->device[0].uuid, "");
}

static void a_problem_finds_the_class_that_runs_it(void **state)
{
    struct devices *devices = *state;
    struct device_class *chosen = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(devices_choose(&chosen, devices, NULL, "c", &err), 0);
    assert_string_equal(chosen->name, "class");
    assert_int_equal(devices_choose(&chosen, devices, NULL, "cuda", &err), ERR_NOT_FOUND);
    assert_string_equal(err.text,
                        "no device of this daemon runs cuda problems; there is class (c)");
    err_clear(&err);
    add_gpu(devices, 0, "big");
    add_gpu(devices, 1, "small");
    assert_int_equal(devices_choose(&chosen, devices, NULL, "cuda", &err), 0);
    assert_string_equal(chosen->name, "big");
    assert_int_equal(devices_choose(&chosen, devices, "small", "cuda", &err), 0);
    assert_string_equal(chosen->name, "small");
    assert_int_equal(devices_choose(&chosen, devices, "class", "cuda", &err), ERR_NOT_FOUND);
    assert_string_equal(err.text, "devices of class class do not run cuda problems; there is class "
                                  "(c), big (cuda), small (cuda)");
    err_clear(&err);
    assert_int_equal(devices_choose(&chosen, devices, "other", NULL, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "no device of class other here"));
}

static void the_least_held_idle_device_is_taken(void **state)
{
    struct devices *devices = *state;
    struct device *first = devices_idle(devices, devices->classes, 0);

    device_hold(first, 7, 0);
    assert_int_equal(devices_busy(devices), 1);
    assert_ptr_not_equal(devices_idle(devices, devices->classes, 0), first);
    device_hold(devices_idle(devices, devices->classes, 0), 8, 0);
    assert_null(devices_idle(devices, devices->classes, 0));
    assert_float_equal(device_release(first, 3 * SECOND), 3, 1e-9);
    assert_float_equal(device_release(&devices->device[1], SECOND), 1, 1e-9);
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), &devices->device[1]);
    assert_int_equal(first->held_ns, 3 * SECOND);
}

static void time_counts_as_held_from_when_the_process_has_its_plan(void **state)
{
    struct device *device = devices_idle(*state, ((struct devices *)*state)->classes, 0);

    device_lease(device, 7, SECOND);
    assert_int_equal(device->state, DEVICE_BUSY);
    assert_int_equal(device_job_ns(device, 5 * SECOND), 0);
    device_hold(device, 7, 5 * SECOND);
    assert_int_equal(device->leased_ns, SECOND);
    assert_int_equal(device_job_ns(device, 8 * SECOND), 3 * SECOND);
    assert_float_equal(device_release(device, 8 * SECOND), 3, 1e-9);
    device_lease(device, 8, 10 * SECOND);
    assert_float_equal(device_release(device, 20 * SECOND), 0, 0); // it never began
    assert_int_equal(device->held_ns, 3 * SECOND);
    assert_int_equal(device->state, DEVICE_READY);
    assert_int_equal(device_job_ns(device, 30 * SECOND), 0);
}

static void a_device_that_is_starting_takes_no_jobs(void **state)
{
    struct devices *devices = *state;
    struct device *device = &devices->device[0];
    uint32_t ready;

    device_starts(device);
    assert_string_equal(device_state_name(device->state), "starting");
    assert_non_null(device_why(device));
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), &devices->device[1]);
    assert_int_equal(devices_serving(devices, devices->classes, &ready), 1);
    device_drain(device, "by hand");
    device_started(device);
    assert_int_equal(device->state, DEVICE_DRAINING);
    device_undrain(device);
    assert_int_equal(device->state, DEVICE_READY);
}

// A device that fails at once is idle most of the time, and must not be preferred for that.
static void failing_fast_attracts_no_work(void **state)
{
    struct devices *devices = *state;
    struct device *bad = &devices->device[0];
    struct device *good = &devices->device[1];

    device_hold(good, 1, 0);
    (void)device_release(good, 60 * SECOND);
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), bad);
    assert_false(device_failed(bad, 2, "crash", 60 * SECOND));
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), good);
    device_hold(good, 3, 60 * SECOND);
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), bad); // it is better than none
    (void)device_release(good, 61 * SECOND);
    device_succeeded(bad);
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), bad);
    // A job that was lost on one device prefers the other one, whatever the other criteria say.
    assert_ptr_equal(devices_idle(devices, devices->classes, devices_number(devices, bad)), good);
    assert_false(device_failed(good, 4, "crash", 61 * SECOND));
    assert_ptr_equal(devices_idle(devices, devices->classes, devices_number(devices, bad)), good);
}

static void one_job_that_fails_often_is_not_the_devices_fault(void **state)
{
    struct device *device = &((struct devices *)*state)->device[0];

    for (int i = 0; i < 10; i++) {
        assert_false(device_failed(device, 42, "crash", 0));
    }
    assert_int_equal(device->state, DEVICE_READY);
}

// Failures of jobs that end every executor do not add up while other jobs are measured in between.
static void a_guilty_jobs_failure_is_forgiven(void **state)
{
    struct devices *devices = *state;
    struct device *first = &devices->device[0];
    struct device *last = &devices->device[1];

    for (uint64_t job = 1; job <= 10; job++) {
        (void)device_failed(first, job, "crash", 0);
        device_succeeded(first);
        assert_false(device_failed(last, job, "crash", 0));
        devices_forgive(devices, job, devices_number(devices, first));
        devices_forgive(devices, job,
                        devices_number(devices, first)); // a second call has no effect
        assert_int_equal(last->failures, 0);
    }
    assert_int_equal(last->state, DEVICE_READY);
}

// When nothing works, the host may be at fault.
static void nothing_is_forgiven_when_nothing_works(void **state)
{
    struct devices *devices = *state;

    for (uint64_t job = 1; job <= 3; job++) {
        (void)device_failed(&devices->device[0], job, "crash", 0);
        devices_forgive(devices, job, 0); // it was lost on one device only
        (void)device_failed(&devices->device[1], job, "crash", 0);
        devices_forgive(devices, job, 1);
    }
    assert_int_equal(devices->device[0].state, DEVICE_QUARANTINED);
    assert_int_equal(devices->device[1].state, DEVICE_QUARANTINED);
}

static void three_different_jobs_in_a_row_quarantine_the_device(void **state)
{
    struct devices *devices = *state;
    struct device *device = &devices->device[0];

    assert_false(device_failed(device, 1, "crash", 0));
    assert_false(device_failed(device, 2, "crash", 0));
    assert_true(device_failed(device, 3, "it crashed", 0));
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    assert_non_null(strstr(device_why(device), "it crashed"));
    assert_ptr_equal(devices_idle(devices, devices->classes, 0), &devices->device[1]);
}

static void a_success_in_between_forgives(void **state)
{
    struct device *device = &((struct devices *)*state)->device[0];

    (void)device_failed(device, 1, "crash", 0);
    (void)device_failed(device, 2, "crash", 0);
    device_succeeded(device);
    assert_false(device_failed(device, 3, "crash", 0));
    assert_false(device_failed(device, 4, "crash", 0));
    assert_true(device_failed(device, 5, "crash", 0));
}

static void a_quarantined_device_is_tried_again_on_probation(void **state)
{
    struct devices *devices = *state;
    struct device *device = &devices->device[0];
    struct digest pair = about("a");

    assert_true(device_add_control(device, &pair, &in_order, 0));
    for (uint64_t job = 1; job <= 3; job++) {
        (void)device_failed(device, job, "crash", 0);
    }
    assert_false(devices_tick(devices, 59 * SECOND));
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    assert_true(devices_tick(devices, 60 * SECOND));
    assert_int_equal(device->state, DEVICE_READY);
    assert_true(
        device_needs_control(device, &pair, 60 * SECOND)); // although the last control is recent
    assert_true(device_failed(device, 4, "crash", 61 * SECOND)); // one more failure is enough
}

static void a_lost_device_stays_out(void **state)
{
    struct devices *devices = *state;

    device_lose(&devices->device[0], true, "does not die");
    device_found(&devices->device[0]);
    assert_false(devices_tick(devices, 1000000 * SECOND));
    assert_int_equal(devices->device[0].state, DEVICE_LOST);
    assert_string_equal(device_why(&devices->device[0]), "does not die");
}

static struct device *gpu_of(struct devices *devices)
{
    add_gpu(devices, 0, "big");
    return devices_find(devices, "cuda0");
}

static void a_gpu_that_fails_is_probed_and_rests_when_it_fails_again(void **state)
{
    struct devices *devices = *state;
    struct device *device = gpu_of(devices);
    uint64_t job = 1;

    for (; job < 3; job++) {
        assert_false(device_failed(device, job, "crash", 0));
    }
    assert_null(devices_to_probe(devices));
    assert_true(device_failed(device, job++, "it crashed", 0));
    assert_int_equal(device->state, DEVICE_SUSPECT);
    assert_non_null(strstr(device_why(device), "it crashed"));
    assert_ptr_equal(devices_to_probe(devices), device);
    device_probe_begins(device);
    assert_int_equal(device->state, DEVICE_PROBING);
    assert_null(devices_to_probe(devices));
    device_probe_ends(device, NULL, SECOND);
    assert_int_equal(device->state, DEVICE_READY);
    for (size_t i = 0; i < 2; i++) {
        assert_false(device_failed(device, job++, "crash", SECOND));
    }
    assert_true(device_failed(device, job++, "crash",
                              SECOND)); // it has passed a probe for the same reason before
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    assert_true(devices_tick(devices, 61 * SECOND));
    assert_int_equal(device->state, DEVICE_SUSPECT); // it has to pass a probe first
    device_probe_begins(device);
    device_probe_ends(device, "the GPU computes wrong values", 62 * SECOND);
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    assert_string_equal(device_why(device), "the GPU computes wrong values");
    assert_false(
        devices_tick(devices, (62 + 119) * SECOND)); // the second quarantine is twice as long
    assert_true(devices_tick(devices, (62 + 120) * SECOND));
    device_probe_begins(device);
    device_probe_ends(device, NULL, 200 * SECOND);
    assert_int_equal(device->state, DEVICE_READY);
    device_succeeded(device);
    assert_int_equal(device->quarantines, 0);
}

static void a_throttle_reason_passes_five_seconds_after_it_was_seen_last(void **state)
{
    struct devices *devices = *state;
    struct device *device = gpu_of(devices);

    device_hold(device, 7, 0);
    device_throttle(device, "too hot", SECOND);
    assert_int_equal(device->state, DEVICE_SUSPECT); // the job on it goes on
    assert_int_equal(device->job, 7);
    (void)device_release(device, 2 * SECOND);
    assert_null(devices_idle(devices, device->device_class, 0));
    assert_null(devices_to_probe(devices));
    device_throttle(device, "still too hot", 3 * SECOND);
    assert_string_equal(device_why(device), "still too hot");
    assert_false(devices_tick(devices, 7 * SECOND));
    assert_true(devices_tick(devices, 8 * SECOND));
    assert_ptr_equal(devices_idle(devices, device->device_class, 0), device);
    assert_null(device_why(device));
    // A long run was disturbed although the throttle reason has passed.
    device_hold(device, 8, 10 * SECOND);
    device_throttle(device, "hot again", 11 * SECOND);
    assert_true(devices_tick(devices, 20 * SECOND));
    assert_string_equal(device->throttle_reason, "");
    assert_true(device_was_disturbed(device));
    assert_string_equal(device->disturbance, "hot again");
}

static void a_lost_gpu_comes_back_through_a_probe(void **state)
{
    struct devices *devices = *state;
    struct device *device = gpu_of(devices);

    device_found(device); // has no effect, because it was not lost
    assert_int_equal(device->state, DEVICE_READY);
    device_lose(device, false, "off the bus");
    assert_int_equal(device->state, DEVICE_LOST);
    assert_false(devices_tick(devices, 1000 * SECOND));
    device_found(device);
    assert_ptr_equal(devices_to_probe(devices), device);
}

static void draining_hides_nothing(void **state)
{
    struct devices *devices = *state;
    struct device *device = gpu_of(devices);

    device_hold(device, 7, 0);
    device_drain(device, "new fans");
    assert_int_equal(device->state, DEVICE_DRAINING);
    assert_int_equal(device->job, 7);
    (void)device_release(device, SECOND);
    assert_null(devices_idle(devices, device->device_class, 0));
    assert_string_equal(device_why(device), "new fans");
    device_quarantine(device, "ECC", SECOND);
    assert_int_equal(device->state, DEVICE_QUARANTINED);
    device_undrain(device);
    assert_int_equal(device->state, DEVICE_QUARANTINED); // the quarantine has a reason of its own
    device_drain(&devices->device[0], NULL);
    assert_int_equal(devices->device[0].state, DEVICE_DRAINING);
    device_undrain(&devices->device[0]);
    assert_int_equal(devices->device[0].state, DEVICE_READY); // a core needs no probe
    device_undrain(&devices->device[0]);
    assert_int_equal(devices->device[0].state, DEVICE_READY);
}

static void quarantines_get_longer_up_to_a_limit(void **state)
{
    struct devices *devices = *state;
    struct device *device = gpu_of(devices);
    uint64_t rest = 60 * SECOND, now = 0;

    for (unsigned i = 0; i < 10; i++) {
        device_quarantine(device, "rows wait", now);
        device_quarantine(device, "rows still wait", now + SECOND); // during the same quarantine
        assert_false(devices_tick(devices, now + rest - 1));
        now += rest;
        assert_true(devices_tick(devices, now));
        rest = i < 6 ? 2 * rest : rest;
    }
    assert_int_equal(rest, 64 * 60 * SECOND);
}

static void readings_are_told_with_their_age(void **state)
{
    struct devices *devices = *state;
    struct device *device = gpu_of(devices);
    struct fact *fact = xcalloc(1, sizeof(*fact));
    size_t count;
    struct fact *copy = device_readings(device, 0, &count);

    assert_int_equal(count, 0);
    free(copy);
    *fact = (struct fact){.name = xstrdup("power_w"), .value = 80};
    device_take_readings(device, fact, 1, SECOND);
    copy = device_readings(device, 3 * SECOND, &count);
    assert_int_equal(count, 2);
    assert_string_equal(copy[0].name, "power_w");
    assert_float_equal(copy[0].value, 80, 0);
    assert_string_equal(copy[1].name, "read_seconds_ago");
    assert_float_equal(copy[1].value, 2, 1e-9);
    for (size_t i = 0; i < count; i++) {
        message_clear(&fact_message, &copy[i]);
    }
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(devices_come_from_the_probe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(equal_gpus_share_a_class, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_problem_finds_the_class_that_runs_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_least_held_idle_device_is_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_counts_as_held_from_when_the_process_has_its_plan,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_device_that_is_starting_takes_no_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failing_fast_attracts_no_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_job_that_fails_often_is_not_the_devices_fault, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(three_different_jobs_in_a_row_quarantine_the_device, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_guilty_jobs_failure_is_forgiven, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_forgiven_when_nothing_works, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_success_in_between_forgives, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_quarantined_device_is_tried_again_on_probation, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_lost_device_stays_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_gpu_that_fails_is_probed_and_rests_when_it_fails_again,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_throttle_reason_passes_five_seconds_after_it_was_seen_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_lost_gpu_comes_back_through_a_probe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(draining_hides_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(quarantines_get_longer_up_to_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readings_are_told_with_their_age, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
