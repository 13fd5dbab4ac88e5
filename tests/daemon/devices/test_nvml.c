// The readings of GPUs, from a library whose GPUs are the lines of a file.
#include "common/file.h"
#include "daemon/devices/nvml.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UUID_0 "GPU-fa4e0000-0000-4000-8000-000000000000"
#define UUID_1 "GPU-fa4e0000-0000-4000-8000-000000000001"

static char *dir;
static char *path;
static const char *const uuids[] = {UUID_1, UUID_0}; // not in the driver's order

static void write_state(const char *text)
{
    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
}

static int set_up_all(void **state)
{
    (void)state;
    assert_int_equal(file_make_temp_dir(&dir, "kcast-nvml", NULL), 0);
    path = xasprintf("%s/gpus", dir);
    assert_int_equal(setenv("KCAST_FAKE_NVML", path, 1), 0);
    gpu_fake_use("");
    return 0;
}

static int tear_down_all(void **state)
{
    (void)state;
    assert_int_equal(file_remove_tree(dir, NULL), 0);
    free(path);
    free(dir);
    return 0;
}

static struct nvml *open_two(const char *text)
{
    struct nvml *nvml = NULL;
    struct err err = ERR_INIT;

    write_state(text);
    if (nvml_open(&nvml, uuids, 2, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return nvml;
}

static void assert_reading(const struct nvml_state *state, enum nvml_reading reading, double value)
{
    if (!state->valid[reading] || state->value[reading] < value || state->value[reading] > value) {
        fail_msg("%s: %g, valid %d", nvml_reading_name(reading), state->value[reading],
                 state->valid[reading]);
    }
}

static void readings_are_in_the_units_of_their_names(void **state)
{
    struct nvml *nvml =
        open_two("count=2\nGPU0.temperature=45\nGPU0.slowdown=88\nGPU0.power=120500\n"
                 "GPU0.power_limit=650000\nGPU0.sm_clock=1500\nGPU0.mem_clock=2600\n"
                 "GPU0.throttle=0x44\nGPU0.ecc=5000000000\nGPU0.remap=1\nGPU1.temperature=60\n");
    struct nvml_state now[2];

    (void)state;
    memset(now, 0xff, sizeof(now)); // nothing of before is left
    nvml_read(nvml, now);
    const struct nvml_state *first = &now[1]; // in the order of the UUIDs
    assert_reading(first, NVML_TEMPERATURE, 45);
    assert_reading(first, NVML_SLOWDOWN, 88);
    assert_reading(first, NVML_POWER, 120.5);
    assert_reading(first, NVML_POWER_LIMIT, 650);
    assert_reading(first, NVML_SM_CLOCK, 1500);
    assert_reading(first, NVML_MEM_CLOCK, 2600);
    assert_reading(first, NVML_THROTTLE, NVML_THROTTLE_HW_THERMAL | NVML_THROTTLE_POWER_CAP);
    assert_reading(first, NVML_ECC, 5e9);
    assert_reading(first, NVML_REMAP, 1);
    assert_reading(first, NVML_PROCESSES, 0);
    assert_reading(&now[0], NVML_TEMPERATURE, 60);
    assert_reading(&now[0], NVML_ECC, 0);
    assert_false(now[0].lost || now[0].gone || now[1].lost || now[1].gone);
    assert_int_equal(now[0].xid_count + now[1].xid_count, 0);
    nvml_close(nvml);
}

static void a_reading_that_is_not_supported_is_absent_and_not_zero(void **state)
{
    struct nvml *nvml = open_two("count=2\nGPU0.without=ecc,remap,throttle\nGPU0.temperature=50\n");
    struct nvml_state now[2];

    (void)state;
    nvml_read(nvml, now);
    assert_false(now[1].valid[NVML_ECC]);
    assert_false(now[1].valid[NVML_REMAP]);
    assert_false(now[1].valid[NVML_THROTTLE]);
    assert_reading(&now[1], NVML_TEMPERATURE, 50);
    assert_false(now[1].lost);
    assert_reading(&now[0], NVML_ECC, 0); // the other one has it
    nvml_close(nvml);
}

static void processes_are_listed_and_more_than_fit_are_counted(void **state)
{
    struct nvml *nvml = open_two("count=2\nGPU0.process=4711:1024,4712:5\n");
    char text[1024] = "count=2\nGPU0.process=";
    struct nvml_state now[2];

    (void)state;
    nvml_read(nvml, now);
    assert_reading(&now[1], NVML_PROCESSES, 2);
    assert_int_equal(now[1].process_count, 2);
    assert_int_equal(now[1].process[0], 4711);
    assert_int_equal(now[1].process[1], 4712);
    assert_int_equal(now[0].process_count, 0);
    for (int i = 0; i < NVML_PROCESSES_MAX + 3; i++) {
        size_t len = strlen(text);

        (void)snprintf(text + len, sizeof(text) - len, "%d,", i + 1);
    }
    write_state(text);
    nvml_read(nvml, now);
    assert_reading(&now[1], NVML_PROCESSES, NVML_PROCESSES_MAX + 3);
    assert_true(now[1].process_count <= NVML_PROCESSES_MAX);
    nvml_close(nvml);
}

static void events_are_given_once_to_the_gpu_that_has_them(void **state)
{
    struct nvml *nvml = open_two("count=2\n");
    struct nvml_state now[2];

    (void)state;
    nvml_read(nvml, now);
    assert_int_equal(now[1].xid_count, 0);
    write_state("count=2\nGPU0.xid=31,79\nGPU1.xid=48\n");
    nvml_read(nvml, now);
    assert_int_equal(now[1].xid_count, 2);
    assert_int_equal(now[1].xid[0], 31);
    assert_int_equal(now[1].xid[1], 79);
    assert_int_equal(now[0].xid_count, 1);
    assert_int_equal(now[0].xid[0], 48);
    nvml_read(nvml, now);
    assert_int_equal(now[0].xid_count + now[1].xid_count, 0);
    nvml_close(nvml);
}

static void a_storm_of_events_keeps_the_first_ones(void **state)
{
    struct nvml *nvml = open_two("count=2\n");
    struct nvml_state now[2];

    (void)state;
    write_state("count=2\nGPU0.xid=1,2,3,4,5,6,7,8,9,10,11,12\n");
    nvml_read(nvml, now);
    assert_int_equal(now[1].xid_count, NVML_XIDS_MAX);
    assert_int_equal(now[1].xid[0], 1);
    assert_int_equal(now[1].xid[NVML_XIDS_MAX - 1], NVML_XIDS_MAX);
    nvml_close(nvml);
}

static void a_lost_gpu_does_not_hide_the_other_and_can_come_back(void **state)
{
    struct nvml *nvml = open_two("count=2\n");
    struct nvml_state now[2];

    (void)state;
    write_state("count=2\nGPU0.lost=1\n");
    nvml_read(nvml, now);
    assert_true(now[1].lost);
    assert_false(now[1].gone);
    assert_false(now[1].valid[NVML_TEMPERATURE]);
    assert_false(now[0].lost);
    assert_true(now[0].valid[NVML_TEMPERATURE]);
    write_state("count=2\n");
    nvml_read(nvml, now);
    assert_false(now[1].lost);
    assert_true(now[1].valid[NVML_TEMPERATURE]);
    write_state("count=2\nGPU0.xid=79\n"); // and its events are told again
    nvml_read(nvml, now);
    assert_int_equal(now[1].xid_count, 1);
    nvml_close(nvml);
}

static void without_a_driver_all_gpus_are_gone_until_it_is_back(void **state)
{
    struct nvml *nvml = open_two("count=2\nGPU0.xid=13\n");
    struct nvml_state now[2];

    (void)state;
    write_state("count=2\ngone=1\n");
    for (int round = 0; round < 3; round++) {
        nvml_read(nvml, now);
        assert_true(now[0].lost && now[0].gone);
        assert_true(now[1].lost && now[1].gone);
        assert_int_equal(now[0].xid_count + now[1].xid_count, 0);
    }
    write_state("count=2\nGPU0.temperature=33\n");
    nvml_read(nvml, now);
    assert_false(now[0].lost || now[0].gone || now[1].lost || now[1].gone);
    assert_reading(&now[1], NVML_TEMPERATURE, 33);
    nvml_close(nvml);
}

static void a_gpu_that_is_not_there_is_named(void **state)
{
    struct nvml *nvml = NULL;
    struct err err = ERR_INIT;

    (void)state;
    write_state("count=1\n");
    assert_int_equal(nvml_open(&nvml, uuids, 2, &err), ERR_SYSTEM);
    assert_null(nvml);
    assert_non_null(strstr(err.text, UUID_1));
    assert_non_null(strstr(err.text, "Not Found"));
}

static void a_library_that_does_not_begin_is_an_error_with_its_reason(void **state)
{
    struct nvml *nvml = NULL;
    struct err err = ERR_INIT;

    (void)state;
    write_state("fail=9\n");
    assert_int_equal(nvml_open(&nvml, uuids, 2, &err), ERR_SYSTEM);
    assert_null(nvml);
    assert_string_equal(err.text, "nvmlInit: Driver Not Loaded");
    nvml_close(NULL);
}

static void no_gpu_at_all_can_be_opened_and_read(void **state)
{
    struct nvml_state now = {.process_count = 7};
    struct nvml *nvml = NULL;

    (void)state;
    write_state("count=0\n");
    assert_int_equal(nvml_open(&nvml, uuids, 0, NULL), 0);
    nvml_read(nvml, &now);
    assert_int_equal(now.process_count, 7); // nothing is written
    nvml_close(nvml);
}

static void each_reading_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (enum nvml_reading i = 0; i < NVML_READING_COUNT; i++) {
        for (enum nvml_reading j = 0; j < i; j++) {
            assert_string_not_equal(nvml_reading_name(i), nvml_reading_name(j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_are_in_the_units_of_their_names),
        cmocka_unit_test(a_reading_that_is_not_supported_is_absent_and_not_zero),
        cmocka_unit_test(processes_are_listed_and_more_than_fit_are_counted),
        cmocka_unit_test(events_are_given_once_to_the_gpu_that_has_them),
        cmocka_unit_test(a_storm_of_events_keeps_the_first_ones),
        cmocka_unit_test(a_lost_gpu_does_not_hide_the_other_and_can_come_back),
        cmocka_unit_test(without_a_driver_all_gpus_are_gone_until_it_is_back),
        cmocka_unit_test(a_gpu_that_is_not_there_is_named),
        cmocka_unit_test(a_library_that_does_not_begin_is_an_error_with_its_reason),
        cmocka_unit_test(no_gpu_at_all_can_be_opened_and_read),
        cmocka_unit_test(each_reading_has_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, set_up_all, tear_down_all);
}
