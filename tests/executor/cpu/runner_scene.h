// Shared by the tests of runners: a runner with an object that tries everything
// (tests/data/exec/runner/acts.c), with the sandbox and without.
#ifndef TESTS_EXECUTOR_CPU_RUNNER_SCENE_H
#define TESTS_EXECUTOR_CPU_RUNNER_SCENE_H

#include "common/clock.h"
#include "tests/data/exec/runner/acts.h"
#include "tests/executor/fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS (20 * NS_PER_S)
#define SHORT_NS (100 * NS_PER_MS) // limit of a launch that is expected to exceed it
#define MEMORY ((uint64_t)1 << 30)

// What most tests need: a zygote and one runner with a writable and a read-only tensor.
struct scene {
    struct zygote zygote;
    struct buffer out, in;
    struct runner_process runner;
};

static inline struct bytes compile_acts(int constructor)
{
    static const char *const root_variable = "KCAST_ROOT";
    const char *root = getenv(root_variable) ? getenv(root_variable) : ".";
    char *source = xasprintf("%s/tests/data/exec/runner/acts.c", root);
    char *include = xasprintf("-I%s", root);
    char *define = xasprintf("-D%s=%d", constructor ? "ACTS_CONSTRUCTOR" : "NONE", constructor);
    char path[] = "/tmp/kcast-acts.XXXXXX";
    struct bytes object;
    struct err err = ERR_INIT;

    close(mkstemp(path));
    pid_t pid = fork();
    if (pid == 0) {
        execlp("gcc", "gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-shared",
               "-nostartfiles", include, define, "-o", path, source, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(file_read(&object, path, 1 << 20, &err), 0);
    unlink(path);
    free(source);
    free(include);
    free(define);
    return object;
}

static inline int object_setup(void **state)
{
    if (fixture_setup(state) != 0) {
        return -1;
    }
    struct fixture *fixture = *state;
    bytes_clear(&fixture->baseline);
    fixture->baseline = compile_acts(0);
    return 0;
}

static inline void open_scene(const struct fixture *fixture, struct scene *scene, bool off)
{
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .off = off, .scratch = 1 << 20};
    struct err err = ERR_INIT;

    *scene = (struct scene){.zygote.socket = -1, .runner.output = -1};
    if (zygote_create(&scene->zygote, child_main, &fixture->context, &err) != 0 ||
        runner_process_prepare_harness(0, &scene->zygote, &err) != 0 ||
        zygote_enter(&scene->zygote, &sandbox, &err) != 0 ||
        buffer_create(&scene->out, ACTS_PAGES * 4096, false, &err) != 0 ||
        buffer_create(&scene->in, ACTS_PAGES * 4096, true, &err) != 0) {
        fail_msg("%s", err.text);
    }
    buffer_place(&scene->out, ACTS_PAGES * 4096, 0, 1);
    buffer_place(&scene->in, ACTS_PAGES * 4096, 0, 2);
}

static inline void start_runner(struct scene *scene, struct runner_process *runner, uint32_t index,
                                const struct bytes *object)
{
    struct err err = ERR_INIT;

    *runner = (struct runner_process){.name = "candidate", .output = -1, .pointer_count = 2};
    runner->pointer[0] = (struct runner_pointer){.buffer = &scene->out, .writable = true};
    runner->pointer[1] = (struct runner_pointer){.buffer = &scene->in};
    if (runner_process_start(runner, &scene->zygote, object, MEMORY, 600, 99, index, false, &err) !=
        0) {
        fail_msg("%s", err.text);
    }
}

static inline void renew(struct runner_process *runner)
{
    if (runner_process_renew(runner, LIMIT_NS) != LAUNCH_DONE) {
        uint32_t verdict;
        fail_msg("%s", runner_process_describe(runner, &verdict));
    }
    assert_true(runner->child > 0 && runner->child != runner->pid);
}

static inline void start_scene(const struct fixture *fixture, struct scene *scene, bool off)
{
    open_scene(fixture, scene, off);
    start_runner(scene, &scene->runner, 0, &fixture->baseline);
    assert_int_equal(runner_process_ready(&scene->runner, LIMIT_NS), LAUNCH_DONE);
    renew(&scene->runner);
}

static inline void close_scene(struct scene *scene)
{
    runner_process_release(&scene->runner);
    buffer_release(&scene->out);
    buffer_release(&scene->in);
    zygote_release(&scene->zygote);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static inline int64_t *answers(struct scene *scene)
{
    return (int64_t *)(void *)buffer_tensor(&scene->out);
}

static inline enum launch_outcome act(struct scene *scene, enum act what, uint64_t limit_ns,
                                      struct launch_time *time)
{
    int64_t integer[PROBLEM_PARAM_MAX] = {what};
    double scalar[PROBLEM_PARAM_MAX] = {0};

    memset(answers(scene), 0, ACTS_PLACES * sizeof(int64_t));
    return runner_process_launch(&scene->runner, CONTROL_CALL, integer, scalar, limit_ns, time);
}

// Whatever the child did before, a fresh one computes.
static inline void expect_good_child(struct scene *scene)
{
    renew(&scene->runner);
    assert_int_equal(act(scene, ACT_ANSWER, LIMIT_NS, NULL), LAUNCH_DONE);
    assert_int_equal(answers(scene)[0], 42);
    assert_true(runner_process_still(&scene->runner));
}

static inline void expect_death(struct scene *scene, enum act what, uint32_t verdict,
                                const char *sentence)
{
    uint32_t got;

    renew(&scene->runner);
    assert_int_equal(act(scene, what, LIMIT_NS, NULL), LAUNCH_DIED);
    char *text = runner_process_describe(&scene->runner, &got);
    if (got != verdict || !strstr(text, sentence) || scene->runner.fault != RUNNER_FAULT_CHILD) {
        fail_msg("%s (%s), expected \"%s\"", text, verdict_name(got), sentence);
    }
    free(text);
    assert_int_equal(act(scene, ACT_ANSWER, LIMIT_NS, NULL), LAUNCH_DIED); // there is no child
    assert_true(runner_process_still(&scene->runner));
    expect_good_child(scene);
}

static inline void expect_timeout(struct scene *scene, enum act what, bool returned)
{
    renew(&scene->runner);
    assert_int_equal(act(scene, what, SHORT_NS, NULL), LAUNCH_TIMEOUT);
    assert_int_equal(scene->runner.returned, returned);
    assert_int_equal(scene->runner.child, 0);
    expect_good_child(scene);
}

// Runs the test with the sandbox, where there is one, and without.
static inline void both(void **state, void (*test)(const struct fixture *fixture, bool off))
{
    const struct fixture *fixture = *state;

    if (!fixture->no_sandbox) {
        test(fixture, false);
    }
    test(fixture, true);
}

#endif
