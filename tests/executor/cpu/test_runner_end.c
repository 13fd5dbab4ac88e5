// How the processes of a runner may end, and whose fault that is.
#include "tests/executor/cpu/runner_scene.h"
#include <signal.h>

// ---- deaths ----

static void check_deaths(const struct fixture *fixture, bool off)
{
    struct scene scene;

    start_scene(fixture, &scene, off);
    expect_death(&scene, ACT_SEGV, VERDICT_CRASH, "SIGSEGV");
    expect_death(&scene, ACT_EXIT, VERDICT_CRASH, "exit status 7");
    expect_death(&scene, ACT_ABORT, VERDICT_CRASH, "called abort");
    expect_death(&scene, ACT_FORGE_SETUP, VERDICT_CRASH, "exit status 1");
    if (!off) {
        expect_death(&scene, ACT_STOP_PARENT, VERDICT_REJECTED, "called tgkill");
        expect_death(&scene, ACT_REMOVE_MEMORY, VERDICT_REJECTED, "called madvise");
        expect_death(&scene, ACT_FORK, VERDICT_REJECTED, "called clone");
        expect_death(&scene, ACT_MEMBARRIER, VERDICT_REJECTED, "called membarrier");
    }
    close_scene(&scene);
}

static void death_of_a_child_is_the_candidates_and_the_next_child_is_sound(void **state)
{
    both(state, check_deaths);
}

static void check_clean_parent(const struct fixture *fixture, bool off)
{
    struct scene scene;
    uint32_t verdict;

    start_scene(fixture, &scene, off);
    assert_int_equal(kill(scene.runner.pid, SIGKILL), 0);
    assert_int_equal(act(&scene, ACT_ANSWER, LIMIT_NS, NULL), LAUNCH_DONE); // the child lives on
    assert_int_equal(runner_process_renew(&scene.runner, LIMIT_NS), LAUNCH_DIED);
    assert_int_equal(scene.runner.fault, RUNNER_FAULT_SETUP);
    char *text = runner_process_describe(&scene.runner, &verdict);
    assert_non_null(strstr(text, "cannot be set up"));
    free(text);
    assert_int_equal(runner_process_renew(&scene.runner, LIMIT_NS), LAUNCH_DIED);
    close_scene(&scene);
}

static void without_a_clean_parent_there_is_no_fresh_child(void **state)
{
    both(state, check_clean_parent);
}

// ---- loading ----

struct load {
    int constructor; // 0: the object is no object
    enum launch_outcome outcome;
    const char *sentence;
    bool confined; // needs the sandbox
};

static void check_loads(const struct fixture *fixture, bool off)
{
    static const struct load load[] = {
        {0, LAUNCH_DIED, "cannot be loaded: ", false},
        {ACTS_LOAD_FORGES, LAUNCH_DIED, "cannot be loaded: ", false},
        {ACTS_LOAD_CALLS_SOCKET, LAUNCH_DIED, "called socket", true},
        {ACTS_LOAD_SEGV, LAUNCH_DIED, "SIGSEGV", false},
        {ACTS_LOAD_ABORTS, LAUNCH_DIED, "abort", false},
        {ACTS_LOAD_EXITS, LAUNCH_DIED, "exit status 0", false},
        {ACTS_LOAD_HANGS, LAUNCH_TIMEOUT, "", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(load); i++) {
        struct bytes object = load[i].constructor ? compile_acts(load[i].constructor)
                                                  : bytes_copy("not an object", 13);
        struct scene scene;
        uint32_t verdict;

        open_scene(fixture, &scene, off);
        start_runner(&scene, &scene.runner, 2, &object);
        uint64_t limit = load[i].outcome == LAUNCH_TIMEOUT ? SHORT_NS : LIMIT_NS;
        if (!load[i].confined || !off) {
            assert_int_equal(runner_process_ready(&scene.runner, limit), load[i].outcome);
            char *text = runner_process_describe(&scene.runner, &verdict);
            if (load[i].outcome == LAUNCH_DIED &&
                (scene.runner.fault != RUNNER_FAULT_LOAD || verdict != VERDICT_REJECTED ||
                 !strstr(text, load[i].sentence))) {
                fail_msg("%s, expected \"%s\"", text, load[i].sentence);
            }
            free(text);
            assert_int_equal(runner_process_renew(&scene.runner, LIMIT_NS), LAUNCH_DIED);
        }
        close_scene(&scene);
        bytes_clear(&object);
    }
}

static void death_while_loading_is_the_objects(void **state)
{
    both(state, check_loads);
}

static void runners_find_no_files_of_each_other(void **state)
{
    const struct fixture *fixture = *state;
    struct runner_process other;
    struct scene scene;

    fixture_need_sandbox(fixture);
    struct bytes object = compile_acts(ACTS_LOAD_LEAVES_FILES);
    open_scene(fixture, &scene, false);
    start_runner(&scene, &other, 0, &object);
    assert_int_equal(runner_process_ready(&other, LIMIT_NS), LAUNCH_DONE);
    start_runner(&scene, &scene.runner, 1, &object);
    assert_int_equal(runner_process_ready(&scene.runner, LIMIT_NS), LAUNCH_DONE);
    expect_good_child(&scene);
    assert_int_equal(answers(&scene)[1], 0); // what its constructor could open
    runner_process_release(&other);
    close_scene(&scene);
    bytes_clear(&object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(death_of_a_child_is_the_candidates_and_the_next_child_is_sound),
        cmocka_unit_test(without_a_clean_parent_there_is_no_fresh_child),
        cmocka_unit_test(death_while_loading_is_the_objects),
        cmocka_unit_test(runners_find_no_files_of_each_other),
    };

    return cmocka_run_group_tests(tests, object_setup, fixture_teardown);
}
