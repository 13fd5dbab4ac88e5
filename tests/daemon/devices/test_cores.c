// Which cores become devices, and what is left for everything else. The numbers follow from the
// machine, so the tests compare them with its own mask, also with one that is made smaller.
#include "daemon/devices/cores.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static cpu_set_t all;

static int set_up(void **state)
{
    (void)state;
    return sched_getaffinity(0, sizeof(all), &all);
}

static int tear_down(void **state)
{
    (void)state;
    return sched_setaffinity(0, sizeof(all), &all);
}

static void allow(const cpu_set_t *mask)
{
    assert_int_equal(sched_setaffinity(0, sizeof(*mask), mask), 0);
}

// The first processor that may be used, alone.
static int allow_one(void)
{
    cpu_set_t one;
    int cpu = 0;

    while (!CPU_ISSET(cpu, &all)) {
        cpu++;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    allow(&one);
    return cpu;
}

static void check_plan(const struct cores *cores, size_t wanted)
{
    cpu_set_t seen;

    assert_int_equal(cores->device_count, wanted);
    assert_int_equal(cores->rest_count, CPU_COUNT(&cores->rest));
    assert_true(cores->rest_count > 0); // somebody has to run the daemon
    CPU_ZERO(&seen);
    for (size_t i = 0; i < wanted; i++) {
        int cpu = cores->device[i];

        assert_true(CPU_ISSET(cpu, &all));
        assert_false(CPU_ISSET(cpu, &seen));
        CPU_SET(cpu, &seen);
        assert_true(cores->exclusive || !CPU_ISSET(cpu, &cores->rest));
    }
    cpu_set_t allowed;
    CPU_AND(&allowed, &cores->rest, &all);
    assert_true(CPU_EQUAL(&allowed, &cores->rest));
    assert_true(!cores->exclusive || CPU_EQUAL(&cores->rest, &all));
}

static void every_possible_number_of_devices_leaves_processors_for_the_rest(void **state)
{
    size_t processors = (size_t)CPU_COUNT(&all);
    size_t max = processors < CORES_DEVICE_MAX ? processors : CORES_DEVICE_MAX;
    struct cores before = {.device_count = 0};

    (void)state;
    for (size_t wanted = 0; wanted <= max; wanted++) {
        struct cores cores;

        assert_int_equal(cores_plan(&cores, wanted, NULL), 0);
        check_plan(&cores, wanted);
        // One more device changes none of those before it.
        assert_memory_equal(cores.device, before.device,
                            before.device_count * sizeof(*cores.device));
        assert_int_equal(cores.exclusive, wanted == processors);
        before = cores;
    }
}

static void no_device_leaves_everything(void **state)
{
    struct cores cores;

    (void)state;
    assert_int_equal(cores_plan(&cores, 0, NULL), 0);
    assert_true(CPU_EQUAL(&cores.rest, &all));
    assert_false(cores.exclusive);
}

static void more_devices_than_processors_are_refused(void **state)
{
    struct err err = ERR_INIT;
    struct cores cores;

    (void)state;
    (void)allow_one();
    assert_int_equal(cores_plan(&cores, 2, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "cpu:2"));
    assert_non_null(strstr(err.text, "only 1 processors"));
    assert_int_equal(cores.device_count, 0);
    err = (struct err)ERR_INIT;
    assert_int_equal(cores_plan(&cores, CORES_DEVICE_MAX, &err), ERR_INVALID);
}

static void a_single_processor_is_shared_by_turns(void **state)
{
    static const size_t wanted[] = {1, CORES_AUTO};
    int cpu = allow_one();

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct cores cores;

        assert_int_equal(cores_plan(&cores, wanted[i], NULL), 0);
        assert_int_equal(cores.device_count, 1);
        assert_int_equal(cores.device[0], cpu);
        assert_true(cores.exclusive);
        assert_int_equal(cores.rest_count, 1);
        assert_true(CPU_ISSET(cpu, &cores.rest));
    }
}

static void the_automatic_number_is_between_one_and_four(void **state)
{
    struct cores cores, same;

    (void)state;
    assert_int_equal(cores_plan(&cores, CORES_AUTO, NULL), 0);
    assert_in_range(cores.device_count, 1, 4);
    check_plan(&cores, cores.device_count);
    assert_int_equal(cores_plan(&same, cores.device_count, NULL), 0);
    assert_memory_equal(same.device, cores.device, cores.device_count * sizeof(*cores.device));
    assert_true(CPU_EQUAL(&same.rest, &cores.rest));
}

static void settling_moves_this_thread_to_the_rest(void **state)
{
    struct cores cores;
    cpu_set_t now;

    (void)state;
    assert_int_equal(cores_plan(&cores, 1, NULL), 0);
    assert_int_equal(cores_settle(&cores, NULL), 0);
    assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
    assert_true(CPU_EQUAL(&now, &cores.rest));
}

static void an_empty_mask_cannot_be_settled_on(void **state)
{
    struct cores cores = {.device_count = 0};
    struct err err = ERR_INIT;

    (void)state;
    CPU_ZERO(&cores.rest);
    assert_int_equal(cores_settle(&cores, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "processor mask"));
}

static void compilers_leave_processors_to_gpus(void **state)
{
    static const struct {
        size_t rest, gpus, compiling;
    } cases[] = {{1, 0, 1},   {1, 1, 1},   {2, 0, 2},  {2, 1, 2}, {3, 1, 2},   {4, 1, 3},
                 {6, 1, 4},   {8, 0, 8},   {8, 1, 5},  {8, 2, 5}, {16, 1, 13}, {32, 2, 27},
                 {64, 4, 55}, {64, 8, 47}, {16, 8, 9}, {15, 8, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cores cores = {.rest_count = cases[i].rest};
        size_t found = cores_for_compiling(&cores, cases[i].gpus);
        if (found != cases[i].compiling) {
            fail_msg("%zu processors and %zu GPUs: %zu compile", cases[i].rest, cases[i].gpus,
                     found);
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_possible_number_of_devices_leaves_processors_for_the_rest),
        TEST(no_device_leaves_everything),
        TEST(more_devices_than_processors_are_refused),
        TEST(a_single_processor_is_shared_by_turns),
        TEST(the_automatic_number_is_between_one_and_four),
        TEST(settling_moves_this_thread_to_the_rest),
        TEST(an_empty_mask_cannot_be_settled_on),
        TEST(compilers_leave_processors_to_gpus),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
