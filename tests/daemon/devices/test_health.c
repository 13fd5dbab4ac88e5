// What readings of a GPU mean, and how NVML (a fake library) is read.
#include "common/file.h"
#include "common/mem.h"
#include "daemon/devices/health.h"
#include "daemon/run/process_tree.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct nvml_state reading(enum nvml_reading which, double value)
{
    struct nvml_state state = {.lost = false};

    state.valid[which] = true;
    state.value[which] = value;
    return state;
}

static enum health_level level(const struct nvml_state *now, const struct nvml_state *before)
{
    struct health health;

    health_assess(&health, now, before, 0);
    assert_int_equal(health.level == HEALTH_OK, health.reason[0] == '\0');
    return health.level;
}

static void a_gpu_that_tells_nothing_is_well(void **state)
{
    (void)state;
    struct nvml_state nothing = {.lost = false};
    assert_int_equal(level(&nothing, NULL), HEALTH_OK);
    assert_int_equal(level(&nothing, &nothing), HEALTH_OK);
    nothing.lost = true;
    assert_int_equal(level(&nothing, NULL), HEALTH_LOST);
}

static void new_memory_errors_are_a_sickness_and_old_ones_are_not(void **state)
{
    struct nvml_state two = reading(NVML_ECC, 2), three = reading(NVML_ECC, 3);
    struct nvml_state rows = reading(NVML_REMAP, 1);

    (void)state;
    assert_int_equal(level(&two, NULL), HEALTH_OK);
    assert_int_equal(level(&two, &two), HEALTH_OK);
    assert_int_equal(level(&three, &two), HEALTH_FAULTY);
    assert_int_equal(level(&rows, &rows), HEALTH_FAULTY);
}

static void brakes_hinder_and_a_power_cap_does_not(void **state)
{
    static const unsigned brake[] = {0x8, 0x20, 0x40, 0x80};
    struct nvml_state state_now = reading(NVML_THROTTLE, 0x4 | 0x1 | 0x2);

    (void)state;
    assert_int_equal(level(&state_now, NULL), HEALTH_OK);
    for (size_t i = 0; i < ARRAY_LEN(brake); i++) {
        state_now = reading(NVML_THROTTLE, brake[i]);
        assert_int_equal(level(&state_now, NULL), HEALTH_THROTTLED);
    }
    state_now = reading(NVML_TEMPERATURE, 89);
    state_now.valid[NVML_SLOWDOWN] = true;
    state_now.value[NVML_SLOWDOWN] = 90;
    assert_int_equal(level(&state_now, NULL), HEALTH_OK);
    state_now.value[NVML_TEMPERATURE] = 90;
    assert_int_equal(level(&state_now, NULL), HEALTH_THROTTLED);
}

// Events of the driver that say something about the hardware, and events that a program causes.
static void every_known_event_is_judged(void **state)
{
    static const uint64_t program[] = {13, 31, 43, 45};
    static const uint64_t sick[] = {46, 48, 62, 63, 64, 74, 92, 94, 95, 119, 120};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(program); i++) {
        assert_int_equal(health_of_xid(program[i]), HEALTH_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(sick); i++) {
        assert_int_equal(health_of_xid(sick[i]), HEALTH_FAULTY);
    }
    assert_int_equal(health_of_xid(79), HEALTH_LOST);
}

static void events_blame_the_gpu_or_the_program(void **state)
{
    (void)state;
    struct nvml_state now = {.xid = {31, 43}, .xid_count = 2};
    struct health health;
    health_assess(&health, &now, NULL, 0);
    assert_int_equal(health.level, HEALTH_OK);
    assert_int_equal(health.program_xid, 43);
    now.xid[1] = 48;
    health_assess(&health, &now, NULL, 4711);
    assert_int_equal(health.level, HEALTH_FAULTY); // the worst of the findings
    assert_non_null(strstr(health.reason, "Xid 48"));
    now.xid[0] = 79;
    assert_int_equal(level(&now, NULL), HEALTH_LOST);
    assert_int_equal(health_of_xid(999), HEALTH_OK);
    now = (struct nvml_state){.lost = false};
    health_assess(&health, &now, NULL, 4711);
    assert_int_equal(health.level, HEALTH_THROTTLED);
    assert_non_null(strstr(health.reason, "4711"));
}

static char path[] = "/tmp/kcast-test-health.XXXXXX";

static void write_state(const char *text)
{
    struct err err = ERR_INIT;

    assert_int_equal(file_replace(path, text, strlen(text), false, &err), 0);
}

#define FIRST "GPU-fa4e0000-0000-4000-8000-000000000000"
#define SECOND "GPU-fa4e0000-0000-4000-8000-000000000001"

static void nvml_is_read_by_uuid(void **state)
{
    (void)state;
    write_state("count=2\nGPU1.temperature=91\nGPU1.throttle=0x48\nGPU1.ecc=2\nGPU1.power=120500\n"
                "GPU1.process=4711:1024,12:1\nGPU0.without=ecc,power\nGPU0.sm_clock=1200\n");
    const char *uuids[] = {SECOND, FIRST};
    struct nvml *nvml;
    struct err err = ERR_INIT;
    assert_int_equal(nvml_open(&nvml, uuids, 2, &err), 0);
    struct nvml_state read[2];
    nvml_read(nvml, read);
    assert_float_equal(read[0].value[NVML_TEMPERATURE], 91, 0);
    assert_float_equal(read[0].value[NVML_THROTTLE], 0x48, 0);
    assert_float_equal(read[0].value[NVML_ECC], 2, 0);
    assert_float_equal(read[0].value[NVML_POWER], 120.5, 1e-9);
    assert_float_equal(read[0].value[NVML_PROCESSES], 2, 0);
    assert_int_equal(read[0].process_count, 2);
    assert_int_equal(read[0].process[0], 4711);
    assert_false(read[1].valid[NVML_ECC]);
    assert_false(read[1].valid[NVML_POWER]);
    assert_float_equal(read[1].value[NVML_SM_CLOCK], 1200, 0);
    assert_float_equal(read[1].value[NVML_MEM_CLOCK], 3201, 0);
    for (enum nvml_reading i = 0; i < NVML_READING_COUNT; i++) {
        assert_true(strlen(nvml_reading_name(i)) > 3);
        assert_true(i == NVML_ECC || i == NVML_POWER || read[1].valid[i]);
    }
    nvml_close(nvml);
}

static void events_come_once_and_a_lost_gpu_comes_back(void **state)
{
    (void)state;
    write_state("count=2\n");
    const char *uuids[] = {FIRST, SECOND};
    struct nvml *nvml;
    struct err err = ERR_INIT;
    assert_int_equal(nvml_open(&nvml, uuids, 2, &err), 0);
    struct nvml_state read[2];
    nvml_read(nvml, read);
    assert_int_equal(read[0].xid_count + read[1].xid_count, 0);
    write_state("count=2\nGPU1.xid=31,48\n");
    nvml_read(nvml, read);
    assert_int_equal(read[0].xid_count, 0);
    assert_int_equal(read[1].xid_count, 2);
    assert_int_equal(read[1].xid[1], 48);
    nvml_read(nvml, read);
    assert_int_equal(read[1].xid_count, 0);
    write_state("count=2\nGPU0.lost=1\n");
    nvml_read(nvml, read);
    assert_true(read[0].lost);
    assert_false(read[1].lost);
    write_state("count=2\n");
    nvml_read(nvml, read);
    assert_false(read[0].lost);
    assert_true(read[0].valid[NVML_TEMPERATURE]);
    nvml_close(nvml);
}

// While the driver is not loaded all GPUs are lost for that reason. A GPU that was lost before is
// found again too.
static void a_lost_gpu_outlives_its_driver(void **state)
{
    (void)state;
    write_state("count=2\n");
    const char *uuids[] = {FIRST, SECOND};
    struct nvml *nvml;
    struct err err = ERR_INIT;
    assert_int_equal(nvml_open(&nvml, uuids, 2, &err), 0);
    write_state("count=2\nGPU0.lost=1\nGPU1.lost=1\n");
    struct nvml_state read[2];
    nvml_read(nvml, read);
    assert_true(read[0].lost && read[1].lost);
    assert_false(read[0].gone || read[1].gone);
    write_state("gone=1\n");
    for (int i = 0; i < 3; i++) {
        nvml_read(nvml, read);
        assert_true(read[0].lost && read[1].lost);
        assert_true(read[0].gone && read[1].gone);
    }
    write_state("count=2\n");
    nvml_read(nvml, read);
    assert_false(read[0].lost || read[1].lost);
    assert_true(read[1].valid[NVML_TEMPERATURE]);
    nvml_close(nvml);
}

static void what_cannot_be_opened_says_why(void **state)
{
    (void)state;
    write_state("count=1\n");
    const char *uuids[] = {"GPU-0"};
    struct nvml *nvml;
    struct err err = ERR_INIT;
    assert_int_equal(nvml_open(&nvml, uuids, 1, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "GPU-0"));
    err_clear(&err);
    write_state("fail=9\n");
    assert_int_equal(nvml_open(&nvml, uuids, 1, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "nvmlInit"));
}

static void children_are_no_strangers(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        pause();
        _exit(0);
    }
    assert_true(child > 0);
    assert_false(process_tree_is_foreign(child, getpid()));
    assert_false(process_tree_is_foreign(getpid(), getpid()));
    assert_true(process_tree_is_foreign(getppid(), getpid()));
    assert_true(process_tree_is_foreign(child, child + 1));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(process_tree_is_foreign(child, 1)); // the process has ended
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_that_tells_nothing_is_well),
        cmocka_unit_test(new_memory_errors_are_a_sickness_and_old_ones_are_not),
        cmocka_unit_test(brakes_hinder_and_a_power_cap_does_not),
        cmocka_unit_test(every_known_event_is_judged),
        cmocka_unit_test(events_blame_the_gpu_or_the_program),
        cmocka_unit_test(nvml_is_read_by_uuid),
        cmocka_unit_test(events_come_once_and_a_lost_gpu_comes_back),
        cmocka_unit_test(a_lost_gpu_outlives_its_driver),
        cmocka_unit_test(what_cannot_be_opened_says_why),
        cmocka_unit_test(children_are_no_strangers),
    };
    int fd = mkstemp(path), failed;

    close(fd);
    setenv("KCAST_FAKE_NVML", path, 1);
    gpu_fake_use("");
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
