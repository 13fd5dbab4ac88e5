// Streams of the fake driver: what is on several overlaps, unless one waits for another.
#include "executor/gpu/driver.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct driver cuda;
static cu_stream first, second;
static cu_event begin, end, mark;
static cu_module module;

#define OK(call) assert_int_equal(cuda.call, CU_OK)

static int open_gpu(void **state)
{
    cu_context context;
    struct err err = ERR_INIT;

    (void)state;
    gpu_fake_use("noise=0");
    assert_int_equal(driver_load(&cuda, &err), 0);
    OK(init(0));
    OK(context_retain(&context, 0));
    OK(context_set(context));
    OK(stream_create(&first, CU_STREAM_NON_BLOCKING));
    OK(stream_create(&second, CU_STREAM_NON_BLOCKING));
    OK(event_create(&begin, CU_EVENT_DEFAULT));
    OK(event_create(&end, CU_EVENT_DEFAULT));
    OK(event_create(&mark, CU_EVENT_WITHOUT_TIME));
    OK(module_load(&module, "fake:idle fk_copy_hang"));
    return 0;
}

static int close_gpu(void **state)
{
    (void)state;
    OK(context_release(0));
    return 0;
}

static void launch(cu_stream stream, const char *name)
{
    struct cu_launch how = {.grid = {4, 1, 1}, .block = {256, 1, 1}, .stream = stream};
    cu_function function;

    OK(module_function(&function, module, name));
    OK(launch(&how, function, (void *[]){NULL}, NULL));
}

// A kernel on each stream. The second stream waits for what `mark` is when this is: 0: nothing; 1:
// the begin; 2: the first kernel. Returns the time of both.
static double time_both_us(int waits, bool joined)
{
    float ms;

    OK(event_record(begin, first));
    OK(event_record(mark, first));
    if (waits == 1) {
        OK(stream_wait(second, mark, 0));
    }
    launch(first, "idle");
    OK(event_record(mark, first));
    if (waits == 2) {
        OK(stream_wait(second, mark, 0));
    }
    launch(second, "idle");
    if (joined) {
        OK(event_record(mark, second));
        OK(stream_wait(first, mark, 0));
    }
    OK(event_record(end, first));
    OK(event_elapsed(&ms, begin, end));
    return (double)ms * 1e3;
}

static void streams_overlap_unless_they_wait(void **state)
{
    (void)state;
    double both = time_both_us(1, true); // of 20 us each, and what events take
    assert_true(both > 20 && both < 30);
    both = time_both_us(2, true);
    assert_true(both > 40 && both < 50);
}

static void what_nobody_waits_for_is_not_in_the_time(void **state)
{
    (void)state;
    launch(first, "idle"); // the second stream has had less, and so is in the past
    double both = time_both_us(0, true);
    assert_true(both > 20 && both < 30);
    for (int i = 0; i < 10; i++) { // which is much to do before what comes next
        launch(second, "idle");
    }
    both = time_both_us(1, false);
    assert_true(both > 20 && both < 30);
    both = time_both_us(1, true);
    assert_true(both > 60);
}

static void an_event_that_is_not_recorded_is_not_waited_for(void **state)
{
    (void)state;
    OK(stream_wait(second, mark, 0));
    OK(event_record(end, second));
    OK(event_query(end));
    assert_int_not_equal(cuda.stream_wait(second, mark, 1), CU_OK);
}

static void a_hang_reaches_the_streams_that_wait_for_it(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0) { // only the end of its process can end the hang
        launch(second, "fk_copy_hang");
        OK(event_record(mark, second));
        assert_int_equal(cuda.event_query(mark), CU_NOT_READY);
        OK(event_record(end, first));
        OK(event_query(end)); // another stream goes on
        OK(stream_wait(first, mark, 0));
        OK(event_record(end, first));
        assert_int_equal(cuda.event_query(end), CU_NOT_READY);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_gpu, close_gpu)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(streams_overlap_unless_they_wait),
        TEST(what_nobody_waits_for_is_not_in_the_time),
        TEST(an_event_that_is_not_recorded_is_not_waited_for),
        TEST(a_hang_reaches_the_streams_that_wait_for_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
