// Runs of kcast-exec: where outcomes are read, and what happens when the host starts nothing.
#include "daemon/run/executors.h"
#include "proto/messages.h"
#include "tests/support/daemon/executor_runs.h"
#include "tests/support/descriptors.h"
#include "tests/support/program.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

// A run that counts how often and on which thread its outcome is read.
struct reading {
    struct executor_run run; // first, because runs_on_end gets it as owner
    pthread_t loop_thread;
    atomic_uint here, elsewhere;
    bool last; // what count_reading returns
};

static bool count_reading(void *owner, const struct bytes *outcome)
{
    struct reading *reading = owner;

    assert_true(outcome->len > 0);
    if (pthread_equal(pthread_self(), reading->loop_thread)) {
        reading->here++;
    } else {
        reading->elsewhere++;
    }
    return reading->last;
}

static struct executor_config compile_config(bool stays)
{
    return (struct executor_config){
        .mode = stays ? "cuda-compile" : "compile",
        .keep = stays ? "" : NULL,
        .outcome_max = (size_t)8 << 20,
        .deadline_ms = PROGRAM_LIMIT_MS,
        .grace_ms = PROGRAM_LIMIT_MS,
        .read = count_reading,
        .on_end = runs_on_end,
    };
}

static void start_reading(struct runs_fixture *f, struct reading *reading, bool stays, bool last,
                          const char *source)
{
    struct executor_config config = compile_config(stays);

    *reading = (struct reading){.run = {.fixture = f}, .loop_thread = pthread_self(), .last = last};
    struct compile_plan plan;
    message_init(&compile_plan_message, &plan);
    plan.source = (struct bytes){(unsigned char *)(uintptr_t)source, strlen(source)};
    plan.header = plan.glue = plan.name = (char *)(uintptr_t) "x";
    plan.language = stays ? (char *)(uintptr_t) "cuda" : NULL;
    plan.max_seconds = plan.wall_seconds = 1;
    plan.max_memory = plan.max_output = 1;
    struct bytes packed = runs_pack(&compile_plan_message, &plan);
    config.owner = reading;
    f->pending++;
    struct err err = ERR_INIT;
    if (executor_start(&reading->run.executor, f->executors, &config, &packed, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void an_outcome_is_read_once_and_a_long_one_beside_the_loop(void **state)
{
    struct runs_fixture *f = *state;

    runs_open_executors(f);
    for (unsigned i = 0; i < 8; i++) {
        bool stays = (i & 1) != 0;
        bool last = (i & 2) != 0;
        bool is_long = (i & 4) != 0;
        struct reading reading;

        start_reading(f, &reading, stays, last, is_long ? "//! pad 1\n" : "int a;\n");
        runs_wait_for(f);
        if (!reading.run.end.ok) {
            fail_msg("%s", reading.run.end.reason);
        }
        assert_int_equal(reading.run.end.outcome.len > EXECUTOR_READ_HERE, is_long);
        assert_int_equal(reading.here, is_long ? 0 : 1);
        assert_int_equal(reading.elsewhere, is_long ? 1 : 0);
        assert_int_equal(executors_count(f->executors), stays && !last ? 1 : 0);
        bytes_clear(&reading.run.end.outcome);
        if (stays && !last) { // so that the next one has a new process
            executors_kill(f->executors);
            while (executors_count(f->executors) > 0) {
                (void)uv_run(&f->loop, UV_RUN_ONCE);
            }
        }
    }
}

// Whether the outcome or the signal comes first, the run ends once, and nothing of it is left.
static void a_run_that_is_read_can_be_stopped(void **state)
{
    struct runs_fixture *f = *state;

    runs_open_executors(f);
    for (unsigned i = 0; i < 2; i++) {
        struct reading reading;

        start_reading(f, &reading, i == 1, false, "//! pad 4\n");
        while (f->pending > 0 && reading.elsewhere == 0) {
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        }
        if (f->pending > 0) {
            executor_stop(reading.run.executor);
            executor_stop(reading.run.executor);
        }
        runs_wait_for(f);
        assert_int_equal(reading.here + reading.elsewhere, 1);
        bytes_clear(&reading.run.end.outcome);
    }
}

static void expect_no_start(struct runs_fixture *f, struct executor_config config, unsigned held)
{
    struct bytes plan = runs_plan_of("", config.keep);
    struct rlimit old = descriptors_take();
    struct executor *executor = NULL;
    struct err err = ERR_INIT;
    int rc = executor_start(&executor, f->executors, &config, &plan, &err);

    descriptors_give_back(&old);
    assert_int_not_equal(rc, 0);
    assert_null(executor);
    assert_null(plan.data);
    assert_non_null(strstr(err.text, "too many open files"));
    assert_int_equal(executors_held(f->executors), held);
}

static void tick(struct runs_fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        executors_tick(f->executors);
    }
}

static void starts_that_fail_are_spread_out(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config config = runs_cuda_config("search");
    struct executor_config alone = config;

    runs_open_executors(f);
    alone.mode = "measure";
    alone.argument = alone.keep = NULL;
    assert_int_equal(executors_held(f->executors), 0);
    expect_no_start(f, config, 1);
    expect_no_start(f, alone, 1); // a failure during the wait is the same one
    unsigned longest = 1;
    for (; longest < 64; longest *= 2) {
        tick(f, longest);
        assert_int_equal(executors_held(f->executors), 0);
        expect_no_start(f, longest % 3 == 1 ? alone : config, 2 * longest);
    }
    tick(f, 64);
    expect_no_start(f, config, 64); // the wait gets no longer
    tick(f, 63);
    assert_int_equal(executors_held(f->executors), 1);
    tick(f, 1);
    (void)runs_pid_of(f, config, 0); // starting works again
    assert_int_equal(executors_held(f->executors), 0);
    config.fresh = true;
    expect_no_start(f, config, 1);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, runs_set_up, runs_tear_down)
    const struct CMUnitTest tests[] = {
        WITH(an_outcome_is_read_once_and_a_long_one_beside_the_loop),
        WITH(a_run_that_is_read_can_be_stopped),
        WITH(starts_that_fail_are_spread_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
