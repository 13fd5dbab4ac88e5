// What a launch is charged, whatever the candidate writes to the words of its control page and
// wherever it waits.
#include "tests/executor/cpu/runner_scene.h"
#include "tests/support/until.h"
#include <signal.h>
#include <sys/prctl.h>

// ---- the clock ----

static void check_charges(const struct fixture *fixture, bool off)
{
    struct scene scene;
    struct launch_time time, after;

    start_scene(fixture, &scene, off);
    assert_int_equal(act(&scene, ACT_WORK, LIMIT_NS, &time), LAUNCH_DONE);
    assert_true(time.cpu >= ACTS_WORK_NS);
    assert_true(time.wall >= time.cpu * 0.9);
    // It says "done" first. The launch lasts until it really is.
    assert_int_equal(act(&scene, ACT_WORK_AFTER_DONE, LIMIT_NS, &after), LAUNCH_DONE);
    assert_true(after.cpu >= ACTS_WORK_NS);
    assert_true(runner_process_still(&scene.runner));
    uint64_t before = runner_process_clock_ns(&scene.runner);
    int64_t none[PROBLEM_PARAM_MAX] = {0};
    double no_scalar[PROBLEM_PARAM_MAX] = {0};
    assert_int_equal(
        runner_process_launch(&scene.runner, CONTROL_NOTHING, none, no_scalar, LIMIT_NS, &time),
        LAUNCH_DONE);
    assert_true(time.cpu > 0 && time.cpu < ACTS_WORK_NS);
    assert_true(runner_process_clock_ns(&scene.runner) > before);
    close_scene(&scene);
}

static void everything_between_two_parkings_is_charged(void **state)
{
    both(state, check_charges);
}

// Keeps the core busy until it is killed.
static pid_t start_competitor(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        for (;;) {
        }
    }
    return pid;
}

static void check_wall(const struct fixture *fixture, bool off)
{
    struct scene scene;
    struct launch_time time;

    start_scene(fixture, &scene, off);
    if (scene.runner.delay_fd[0] > 0) {
        pid_t competitor = start_competitor();
        double ratio = 2;
        for (int i = 0; i < 5 && ratio > 1.3; i++) {
            assert_int_equal(act(&scene, ACT_WORK, LIMIT_NS, &time), LAUNCH_DONE);
            ratio = time.wall / time.cpu;
        }
        (void)kill(competitor, SIGKILL);
        assert_int_equal(waitpid(competitor, NULL, 0), competitor);
        assert_true(ratio < 1.3);
    }
    if (off) { // the filter refuses to sleep
        bool seen = false;
        // Waiting for the core that had begun before a launch is taken off its wall time, too.
        for (int i = 0; i < 5 && !seen; i++) {
            assert_int_equal(act(&scene, ACT_SLEEP_AND_RETURN, LIMIT_NS, &time), LAUNCH_DONE);
            seen = time.wall - time.cpu >= ACTS_WORK_NS * 0.5;
        }
        assert_true(seen);
    }
    close_scene(&scene);
}

static void wall_time_is_sleep_and_work_but_not_waiting_for_the_core(void **state)
{
    both(state, check_wall);
}

// ---- words ----

static void check_words(const struct fixture *fixture, bool off)
{
    struct scene scene;
    struct launch_time time;

    start_scene(fixture, &scene, off);
    expect_timeout(&scene, ACT_WORK_FOR_EVER, false);
    expect_timeout(&scene, ACT_WORK_FOR_EVER_AFTER_DONE, true);
    expect_timeout(&scene, ACT_SLEEP_ELSEWHERE, true);
    expect_timeout(&scene, ACT_SLEEP_ON_PARK, true);
    expect_timeout(&scene, ACT_SLEEP_UNDONE, false);
    // It waits on go with a value of its own, and is parked all the same.
    renew(&scene.runner);
    assert_int_equal(act(&scene, ACT_CHANGE_GO, LIMIT_NS, &time), LAUNCH_DONE);
    assert_true(runner_process_still(&scene.runner));
    assert_int_equal(act(&scene, ACT_ANSWER, LIMIT_NS, &time), LAUNCH_DONE);
    assert_int_equal(answers(&scene)[0], 42);
    // It launches itself. If "done" is still seen, the second launch is charged with the first.
    renew(&scene.runner);
    enum launch_outcome outcome = act(&scene, ACT_CHANGE_GO_AND_RETURN, SHORT_NS, &time);
    assert_true(outcome == LAUNCH_TIMEOUT ||
                (outcome == LAUNCH_DONE && time.cpu >= 2 * ACTS_WORK_NS));
    // It serves launches itself, without working: nothing is written.
    renew(&scene.runner);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(act(&scene, i == 0 ? ACT_SERVE_NOTHING : ACT_ANSWER, LIMIT_NS, &time),
                         LAUNCH_DONE);
        assert_int_equal(answers(&scene)[0], 0);
        assert_true(time.cpu > 0);
        assert_true(runner_process_still(&scene.runner));
    }
    close_scene(&scene);
}

static void forged_words_give_nothing(void **state)
{
    both(state, check_words);
}

static void clock_of_a_parked_child_that_wakes_itself_moves(void **state)
{
    const struct fixture *fixture = *state;
    struct scene scene;
    struct launch_time time;

    start_scene(fixture, &scene, true);
    do { // it wakes after a millisecond, and a busy machine has not parked it by then
        assert_int_equal(act(&scene, ACT_WAKE_ITSELF, LIMIT_NS, &time), LAUNCH_DONE);
    } while (time.cpu >= ACTS_WORK_NS);
    UNTIL(!runner_process_still(&scene.runner));
    // The next launch pays for it.
    assert_int_equal(act(&scene, ACT_ANSWER, LIMIT_NS, &time), LAUNCH_DONE);
    assert_true(time.cpu >= ACTS_WORK_NS);
    runner_process_release(&scene.runner);
    if (!fixture->no_sandbox) {
        close_scene(&scene);
        start_scene(fixture, &scene, false);
        expect_death(&scene, ACT_WAKE_ITSELF, VERDICT_REJECTED, "called futex");
    }
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_between_two_parkings_is_charged),
        cmocka_unit_test(wall_time_is_sleep_and_work_but_not_waiting_for_the_core),
        cmocka_unit_test(forged_words_give_nothing),
        cmocka_unit_test(clock_of_a_parked_child_that_wakes_itself_moves),
    };

    return cmocka_run_group_tests(tests, object_setup, fixture_teardown);
}
