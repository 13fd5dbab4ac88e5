// Runs of kcast-exec, in processes of their own and in processes that stay.
#include "daemon/run/executors.h"
#include "tests/support/daemon/executor_runs.h"
#include "tests/support/program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void one_plan_has_a_process_of_its_own(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config config = runs_cuda_config(NULL);

    runs_open_executors(f);
    config.mode = "measure";
    config.argument = NULL;
    struct executor_run run;
    runs_ask(f, &run, config, "int x;\n");
    assert_true(run.end.ok);
    assert_true(run.end.outcome.len > 0);
    bytes_clear(&run.end.outcome);
    assert_int_equal(executors_count(f->executors), 0);
    runs_expect_lost(f, config, "//! run-exit 3\n", "exit code 3: the reason is on the last line");
    config.deadline_ms = 20;
    runs_expect_lost(f, config, "//! run-deaf\n", "deadline");
}

static void a_process_that_stays_answers_its_group(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config other = runs_cuda_config("other");

    runs_open_executors(f);
    int pid = runs_pid_of(f, runs_cuda_config("search"), 0);
    assert_int_equal(executors_count(f->executors), 1);
    assert_int_equal(runs_pid_of(f, runs_cuda_config("search"), 1), pid);
    assert_int_equal(runs_pid_of(f, runs_cuda_config("search"), 2), pid);
    assert_int_not_equal(runs_pid_of(f, other, 0), pid);
    assert_int_equal(runs_pid_of(f, runs_cuda_config("search"), 3), pid);
}

static void what_must_be_fresh_gets_a_new_process_that_stays(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config fresh = runs_cuda_config("search");
    int pid, second;

    runs_open_executors(f);
    fresh.fresh = true;
    pid = runs_pid_of(f, runs_cuda_config("search"), 0);
    second = runs_pid_of(f, fresh, 0);
    assert_int_not_equal(second, pid);
    assert_int_equal(runs_pid_of(f, runs_cuda_config("search"), 1), second);
    while (program_alive(pid)) { // a group keeps only one idle process
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

static void unused_processes_are_used_first_and_replaced(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config config = runs_cuda_config("search");

    runs_open_executors(f);
    executors_prestart(f->executors, &config, 1, NULL, NULL);
    runs_until_started(f, "cuda-measure", 1);
    (void)runs_pid_of(f, config, 0);
    runs_until_started(f, "cuda-measure", 2); // the next unused one
    (void)runs_pid_of(f, runs_cuda_config("other"), 0);
    runs_until_started(f, "cuda-measure", 3);
    assert_int_equal(executors_count(f->executors), 3);
    assert_int_equal(runs_starts(f, "cuda-measure"), 3);
}

static void processes_for_all_count_as_unused_themselves(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config config = runs_cuda_config("");

    runs_open_executors(f);
    executors_prestart(f->executors, &config, 2, NULL, NULL);
    runs_until_started(f, "cuda-measure", 2);
    (void)runs_pid_of(f, config, 0);
    (void)runs_pid_of(f, config, 1);
    executors_tick(f->executors);
    assert_int_equal(executors_count(f->executors), 2);
}

static void the_group_used_longest_ago_makes_room(void **state)
{
    static const char *const search[] = {"a", "b", "c", "d", "e"};
    struct runs_fixture *f = *state;

    runs_open_executors(f);
    int pid[5];
    for (size_t i = 0; i < 4; i++) {
        pid[i] = runs_pid_of(f, runs_cuda_config(search[i]), 0);
    }
    assert_int_equal(runs_pid_of(f, runs_cuda_config("a"), 1), pid[0]);
    pid[4] = runs_pid_of(f, runs_cuda_config("e"), 0);
    while (program_alive(pid[1])) { // the process of group b leaves
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(runs_pid_of(f, runs_cuda_config("a"), 2), pid[0]);
    assert_int_equal(runs_pid_of(f, runs_cuda_config("e"), 1), pid[4]);
    assert_int_equal(runs_pid_of(f, runs_cuda_config("c"), 1), pid[2]);
    assert_int_not_equal(runs_pid_of(f, runs_cuda_config("b"), 0), pid[1]);
}

static void a_run_that_goes_wrong_takes_its_process_along(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config brief = runs_cuda_config("search");

    runs_open_executors(f);
    int pid = runs_pid_of(f, brief, 0);
    runs_expect_lost(f, brief, "//! run-exit 9\n", "exit code 9: the reason is on the last line");
    assert_int_equal(executors_count(f->executors), 0);
    assert_false(program_alive(pid));
    runs_expect_lost(f, brief, "//! run-crash\n", "signal 11");
    runs_expect_lost(f, brief, "//! run-garbage\n", "bytes an outcome may have");
    runs_expect_lost(f, brief, "//! run-flood\n", "bytes an outcome may have");
    runs_expect_lost(f, brief, "//! run-empty\n", "ended without an outcome");
    brief.deadline_ms = 50;
    runs_expect_lost(f, brief, "//! run-hang\n", "did not answer within its deadline");
    runs_expect_lost(f, brief, "//! run-deaf\n", "did not answer within its deadline");
    brief.deadline_ms = PROGRAM_LIMIT_MS;
    (void)runs_pid_of(f, brief, 0);
}

static void a_process_that_talks_unasked_is_ended(void **state)
{
    struct runs_fixture *f = *state;

    runs_open_executors(f);
    struct executor_run run;
    runs_ask(f, &run, runs_cuda_config("search"), "//! run-late\n");
    if (run.end.ok) { // the kernel decides whether both came at once
        bytes_clear(&run.end.outcome);
    } else {
        assert_non_null(strstr(run.end.reason, "went on after its outcome"));
    }
    while (executors_count(f->executors) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    (void)runs_pid_of(f, runs_cuda_config("search"), 0);
}

static void a_retired_process_is_gone_before_its_outcome_is_told(void **state)
{
    struct runs_fixture *f = *state;

    runs_open_executors(f);
    struct executor_run run;
    runs_ask(f, &run, runs_cuda_config("search"), "//! tell\n//! retire\n");
    int pid = 0;
    unsigned answered;
    runs_teller(&run, &pid, &answered);
    assert_false(program_alive(pid));
    runs_ask(f, &run, runs_cuda_config("search"), "//! tell\n//! retire-deaf\n");
    runs_teller(&run, &pid, &answered);
    assert_int_equal(answered, 0);
    assert_false(program_alive(pid));
    assert_int_equal(executors_count(f->executors), 0);
}

static void stopping_a_run_ends_its_process(void **state)
{
    struct runs_fixture *f = *state;

    runs_open_executors(f);
    (void)runs_pid_of(f, runs_cuda_config("search"), 0);
    struct executor_run run;
    runs_begin(f, &run, runs_cuda_config("search"), "//! run-hang\n");
    executor_stop(run.executor);
    executor_stop(run.executor);
    assert_false(run.ended);
    runs_wait_for(f);
    assert_true(run.end.stopped);
    assert_false(run.end.ok);
    assert_int_equal(executors_count(f->executors), 0);
}

static void one_that_does_not_start_is_a_lost_run(void **state)
{
    struct runs_fixture *f = *state;

    (void)setenv("KCAST_FAKE_START", "crash", 1);
    runs_open_executors(f);
    runs_expect_lost(f, runs_cuda_config("search"), "int x;\n",
                     "exit code 9: fake-exec: it does not start");
}

static void one_that_begins_with_anything_else_is_killed(void **state)
{
    struct runs_fixture *f = *state;

    (void)setenv("KCAST_FAKE_START", "garbage", 1);
    runs_open_executors(f);
    runs_expect_lost(f, runs_cuda_config("search"), "int x;\n",
                     "did not begin with an empty frame");
}

static void an_unused_process_that_does_not_start_is_tried_again_later(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config config = runs_cuda_config("search");
    char *start = xasprintf("once %s/started", f->dir);

    (void)setenv("KCAST_FAKE_START", start, 1);
    runs_open_executors(f);
    executors_prestart(f->executors, &config, 1, NULL, NULL);
    while (executors_count(f->executors) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    executors_tick(f->executors);
    assert_int_equal(executors_count(f->executors), 0); // not at once
    assert_int_equal(runs_starts(f, "cuda-measure"), 1);
    while (executors_count(f->executors) == 0) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        executors_tick(f->executors);
    }
    (void)runs_pid_of(f, config, 0);
    free(start);
}

static void when_stopped_nothing_stays(void **state)
{
    struct runs_fixture *f = *state;
    struct executor_config config = runs_cuda_config("search");

    runs_open_executors(f);
    executors_prestart(f->executors, &config, 2, NULL, NULL);
    struct executor_run run;
    runs_begin(f, &run, config, "//! tell\n");
    executors_stop(f->executors);
    runs_wait_for(f);
    assert_true(run.end.ok);
    bytes_clear(&run.end.outcome);
    while (executors_count(f->executors) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, runs_set_up, runs_tear_down)
    const struct CMUnitTest tests[] = {
        WITH(one_plan_has_a_process_of_its_own),
        WITH(a_process_that_stays_answers_its_group),
        WITH(what_must_be_fresh_gets_a_new_process_that_stays),
        WITH(unused_processes_are_used_first_and_replaced),
        WITH(processes_for_all_count_as_unused_themselves),
        WITH(the_group_used_longest_ago_makes_room),
        WITH(a_run_that_goes_wrong_takes_its_process_along),
        WITH(a_process_that_talks_unasked_is_ended),
        WITH(a_retired_process_is_gone_before_its_outcome_is_told),
        WITH(stopping_a_run_ends_its_process),
        WITH(one_that_does_not_start_is_a_lost_run),
        WITH(one_that_begins_with_anything_else_is_killed),
        WITH(an_unused_process_that_does_not_start_is_tried_again_later),
        WITH(when_stopped_nothing_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
