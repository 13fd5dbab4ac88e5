// Control groups of the kernel, where this process may make one: limits, kcast-exec inside, and
// that ending a group ends what is in it.
#include "daemon/run/executors.h"
#include "tests/support/daemon/cgroup_fixture.h"
#include "tests/support/program.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

static bool enter(const char *dir)
{
    char *path = xasprintf("%s/cgroup.procs", dir);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "0", 1) == 1;

    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return done;
}

// Makes a delegated group below our own; fixture->dir stays NULL, and says so, where it cannot.
static int set_up_real(void **state)
{
    struct cgroup_fixture *fixture = xcalloc(1, sizeof(*fixture));

    *state = fixture;
    if (cgroup_find_own(&fixture->home, "/proc/self", &fixture->err) != 0) {
        printf("skipped because %s\n", fixture->err.text);
        return 0;
    }
    fixture->dir = xasprintf("%s/kcast-test-%d", fixture->home, (int)getpid());
    if (mkdir(fixture->dir, 0755) == 0 &&
        (setxattr(fixture->dir, "user.delegate", "1", 1, 0) == 0 ||
         setxattr(fixture->dir, "trusted.delegate", "1", 1, 0) == 0) &&
        enter(fixture->dir)) {
        return 0;
    }
    printf("skipped because no control group can be made and entered in %s: %s\n", fixture->home,
           strerror(errno));
    (void)rmdir(fixture->dir);
    free(fixture->dir);
    fixture->dir = NULL;
    return 0;
}

static void remove_group(const char *dir)
{
    while (rmdir(dir) != 0) {
        assert_true(errno == EBUSY || errno == ENOENT);
        if (errno == ENOENT) {
            return;
        }
        sched_yield(); // what was killed has not ended yet
    }
}

static int tear_down_real(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroups_free(fixture->cgroups);
    if (fixture->dir) {
        char *leaf = xasprintf("%s/kcastd", fixture->dir);

        assert_true(enter(fixture->home));
        remove_group(leaf);
        remove_group(fixture->dir);
        free(leaf);
    }
    free(fixture->dir);
    free(fixture->home);
    free(fixture);
    return 0;
}

static void need_real(const struct cgroup_fixture *fixture)
{
    if (!fixture->dir) {
        skip();
    }
}

// The group of a process, malloc'd.
static char *group_of(pid_t pid)
{
    char *proc = xasprintf("/proc/%d", (int)pid);
    char *dir = NULL;

    if (cgroup_find_own(&dir, proc, NULL) != 0) {
        dir = xstrdup("");
    }
    free(proc);
    return dir;
}

static void expect_in(pid_t pid, const char *dir)
{
    char *group = group_of(pid);

    assert_string_equal(group, dir);
    free(group);
}

static void until_removed(struct cgroup_fixture *fixture, const char *name)
{
    while (cgroup_is_there(fixture, name)) {
        cgroups_sweep(fixture->cgroups);
        sched_yield();
    }
}

static void the_daemon_moves_into_its_leaf(void **state)
{
    struct cgroup_fixture *fixture = *state;

    need_real(fixture);
    cgroup_take_over(fixture);
    char *leaf = xasprintf("%s/kcastd", fixture->dir);
    expect_in(getpid(), leaf);
    free(leaf);
}

// A child in the group that has a child of its own, in another session; both wait for ever. Returns
// once both are there.
static pid_t start_tree(const char *dir, pid_t *ret_grandchild)
{
    int pipe_fd[2];

    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pid_t grandchild = enter(dir) ? fork() : -1;

        if (grandchild == 0) {
            (void)setsid();
        } else if (write(pipe_fd[1], &grandchild, sizeof(grandchild)) < 0 || grandchild < 0) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    assert_int_equal(read(pipe_fd[0], ret_grandchild, sizeof(*ret_grandchild)),
                     sizeof(*ret_grandchild));
    assert_true(*ret_grandchild > 0);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    return child;
}

static void expect_killed(pid_t child, pid_t grandchild)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (program_alive(grandchild)) {
        sched_yield();
    }
}

static void need_kill(const struct cgroup_fixture *fixture)
{
    if (!cgroup_is_there(fixture, "cgroup.kill")) {
        printf("skipped because this kernel has no cgroup.kill\n");
        skip();
    }
}

static void ending_a_group_kills_a_tree_of_processes(void **state)
{
    struct cgroup_fixture *fixture = *state;

    need_real(fixture);
    need_kill(fixture);
    cgroup_take_over(fixture);
    struct cgroup *cgroup = cgroup_new_cgroup(fixture);
    pid_t grandchild;
    pid_t child = start_tree(cgroup_dir(cgroup), &grandchild);
    expect_in(child, cgroup_dir(cgroup));
    expect_in(grandchild, cgroup_dir(cgroup));
    cgroup_end(cgroup);
    expect_killed(child, grandchild);
    until_removed(fixture, "exec-1");
}

static void leftovers_are_killed_with_all_that_is_in_them(void **state)
{
    struct cgroup_fixture *fixture = *state;

    need_real(fixture);
    need_kill(fixture);
    cgroup_make_dir(fixture, "exec-5");
    char *left = xasprintf("%s/exec-5", fixture->dir);
    pid_t grandchild;
    pid_t child = start_tree(left, &grandchild);
    cgroup_take_over(fixture);
    expect_killed(child, grandchild);
    until_removed(fixture, "exec-5");
    free(left);
}

// kcast-exec in the group, before its plan has come: it and its zygote are there.
static void kcast_exec_enters_before_it_has_children(void **state)
{
    struct cgroup_fixture *fixture = *state;
    char *exec = program_path("kcast-exec");

    need_real(fixture);
    cgroup_take_over(fixture);
    struct cgroup *cgroup = cgroup_new_cgroup(fixture);
    char *option = xasprintf("--cgroup=%s", cgroup_dir(cgroup));
    int stdin_fd[2];
    assert_int_equal(pipe2(stdin_fd, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(stdin_fd[0], STDIN_FILENO);
        (void)execl(exec, exec, "measure", option, (char *)NULL);
        _exit(127);
    }
    pid_t zygote;
    while (program_children(pid, &zygote, 1) == 0) {
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); // it has not ended
        sched_yield();
    }
    expect_in(pid, cgroup_dir(cgroup));
    expect_in(zygote, cgroup_dir(cgroup));
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    cgroup_end(cgroup);
    until_removed(fixture, "exec-1");
    close(stdin_fd[0]);
    close(stdin_fd[1]);
    free(option);
    free(exec);
}

struct outcome {
    bool ended;
    bool ok;
    char reason[EXECUTOR_REASON_MAX];
};

static void on_end(void *owner, struct executor_end *end)
{
    struct outcome *outcome = owner;

    outcome->ended = true;
    outcome->ok = end->ok;
    (void)snprintf(outcome->reason, sizeof(outcome->reason), "%s", end->reason);
}

// An executor of the pool has a group while it runs, and afterwards there is none.
static void run_probe(struct cgroup_fixture *fixture, struct outcome *outcome)
{
    char *exec = program_path("kcast-exec");
    struct executor_config config = {.mode = "probe",
                                     .outcome_max = (size_t)1 << 20,
                                     .deadline_ms = PROGRAM_LIMIT_MS,
                                     .grace_ms = 100,
                                     .limits = {.memory = (uint64_t)4 << 30, .processes = 64},
                                     .on_end = on_end,
                                     .owner = outcome};
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    struct executors *pool = NULL;
    assert_int_equal(executors_create(&pool, &loop, exec, NULL, fixture->cgroups, &fixture->err),
                     0);
    struct executor *executor;
    struct bytes nothing = {0};
    assert_int_equal(executor_start(&executor, pool, &config, &nothing, &fixture->err), 0);
    assert_true(cgroup_is_there(fixture, "exec-1"));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(outcome->ended);
    until_removed(fixture, "exec-1");
    executors_free(pool);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(exec);
}

static void an_executor_runs_in_a_group_that_goes_with_it(void **state)
{
    struct cgroup_fixture *fixture = *state;

    need_real(fixture);
    cgroup_take_over(fixture);
    struct outcome outcome = {0};
    run_probe(fixture, &outcome);
    assert_string_equal(outcome.reason, "");
    assert_true(outcome.ok);
}

static void a_group_that_cannot_be_entered_is_the_reason(void **state)
{
    struct cgroup_fixture *fixture = *state;

    cgroup_imitate(fixture, ""); // kcast-exec takes no plain folder for a group
    cgroup_take_over(fixture);
    struct outcome outcome = {0};
    run_probe(fixture, &outcome);
    assert_false(outcome.ok);
    if (!strstr(outcome.reason, "exit code 3") ||
        !strstr(outcome.reason, "no control group of version 2")) {
        fail_msg("%s", outcome.reason);
    }
}

int main(void)
{
#define PLAIN(test) cmocka_unit_test_setup_teardown(test, cgroup_set_up, cgroup_tear_down)
#define REAL(test) cmocka_unit_test_setup_teardown(test, set_up_real, tear_down_real)
    const struct CMUnitTest tests[] = {
        PLAIN(a_group_that_cannot_be_entered_is_the_reason),
        REAL(the_daemon_moves_into_its_leaf),
        REAL(ending_a_group_kills_a_tree_of_processes),
        REAL(leftovers_are_killed_with_all_that_is_in_them),
        REAL(kcast_exec_enters_before_it_has_children),
        REAL(an_executor_runs_in_a_group_that_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
