// Control groups: what is taken over and what is not, in a tree of plain files; then in a real
// group, where this process may make one: limits, kcast-exec inside, and that ending a group ends
// what is in it.
#include "common/file.h"
#include "daemon/run/executors.h"
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

struct fixture {
    char *dir;  // the group that is, or is not, delegated
    char *home; // real: the group that the test runs in
    struct cgroups *cgroups;
    struct err err;
};

// --- plain files

static void write_text(const struct fixture *fixture, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

static void expect_text(const char *dir, const char *name, const char *expected)
{
    char *path = xasprintf("%s/%s", dir, name);
    struct bytes text = {0};

    assert_int_equal(file_read(&text, path, 4096, NULL), 0);
    assert_string_equal((char *)text.data, expected);
    bytes_clear(&text);
    free(path);
}

static void make_dir(const struct fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);

    assert_int_equal(mkdir(path, 0755), 0);
    free(path);
}

static bool is_there(const struct fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);
    bool there = file_exists(path);

    free(path);
    return there;
}

static void remove_file(const struct fixture *fixture, const char *name)
{
    char *path = xasprintf("%s/%s", fixture->dir, name);

    assert_int_equal(unlink(path), 0);
    free(path);
}

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    assert_int_equal(file_make_temp_dir(&fixture->dir, "kcast-cgroup", &fixture->err), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    cgroups_free(fixture->cgroups);
    assert_int_equal(file_remove_tree(fixture->dir, NULL), 0);
    free(fixture->dir);
    free(fixture);
    return 0;
}

static void mark(const struct fixture *fixture)
{
    if (setxattr(fixture->dir, "user.delegate", "1", 1, 0) != 0 &&
        setxattr(fixture->dir, "trusted.delegate", "1", 1, 0) != 0) {
        printf("skipped because %s takes no extended attributes: %s\n", fixture->dir,
               strerror(errno));
        skip();
    }
}

// What a delegated group looks like. The kernel makes the files of a new group; here they are there
// before.
static void imitate(const struct fixture *fixture, const char *controllers)
{
    mark(fixture);
    write_text(fixture, "cgroup.procs", "");
    write_text(fixture, "cgroup.controllers", controllers);
    write_text(fixture, "cgroup.subtree_control", "");
    make_dir(fixture, "kcastd");
    write_text(fixture, "kcastd/cgroup.procs", "");
}

static void take_over(struct fixture *fixture)
{
    if (cgroups_create(&fixture->cgroups, fixture->dir, &fixture->err) != 0) {
        fail_msg("%s", fixture->err.text);
    }
}

static void expect_refused(struct fixture *fixture, int code, const char *text)
{
    struct cgroups *cgroups = NULL;

    assert_int_equal(cgroups_create(&cgroups, fixture->dir, &fixture->err), code);
    assert_null(cgroups);
    if (!strstr(fixture->err.text, text) || !strstr(fixture->err.text, fixture->dir)) {
        fail_msg("%s", fixture->err.text);
    }
}

// --- where this process is

static char *find(struct fixture *fixture, const char *groups, const char *mounts)
{
    write_text(fixture, "cgroup", groups);
    write_text(fixture, "mountinfo", mounts);
    err_clear(&fixture->err);
    char *dir = NULL;
    if (cgroup_find_own(&dir, fixture->dir, &fixture->err) != 0) {
        assert_null(dir);
        assert_int_equal(fixture->err.code, ERR_NOT_FOUND);
    }
    return dir;
}

#define MOUNT(root, point, type) "31 23 0:28 " root " " point " rw shared:9 - " type " none rw\n"

static void the_own_group_is_found_in_every_kind_of_hierarchy(void **state)
{
    static const struct {
        const char *groups;
        const char *mounts;
        const char *dir; // NULL: none
    } host[] = {
        {"0::/system.slice/kcastd.service\n", MOUNT("/", "/sys/fs/cgroup", "cgroup2"),
         "/sys/fs/cgroup/system.slice/kcastd.service"},
        {"4:memory:/other\n0::/\n",
         MOUNT("/", "/sys/fs/cgroup", "tmpfs") MOUNT("/", "/sys/fs/cgroup/memory", "cgroup")
             MOUNT("/", "/sys/fs/cgroup/unified", "cgroup2"),
         "/sys/fs/cgroup/unified"},
        {"0::/box/a\n", MOUNT("/box", "/sys/fs/cgroup", "cgroup2"), "/sys/fs/cgroup/a"},
        {"0::/box\n", MOUNT("/box", "/sys/fs/cgroup", "cgroup2"), "/sys/fs/cgroup"},
        {"0::/boxes\n", MOUNT("/box", "/wrong", "cgroup2") MOUNT("/", "/sys/fs/cgroup", "cgroup2"),
         "/sys/fs/cgroup/boxes"},
        {"0::/boxes\n", MOUNT("/box", "/sys/fs/cgroup", "cgroup2"), NULL},
        {"0::/../outside\n", MOUNT("/", "/sys/fs/cgroup", "cgroup2"), NULL},
        {"0::/a\n", MOUNT("/", "/sys/fs/cgroup/memory", "cgroup"), NULL},
        {"0::/a\n", "cut off - cgroup2 none rw\n", NULL},
        {"4:memory:/other\n", MOUNT("/", "/sys/fs/cgroup", "cgroup2"), NULL},
        {"", "", NULL},
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_LEN(host); i++) {
        char *dir = find(fixture, host[i].groups, host[i].mounts);

        if (host[i].dir) {
            assert_non_null(dir);
            assert_string_equal(dir, host[i].dir);
        } else {
            assert_null(dir);
        }
        free(dir);
    }
}

// --- taking over

static void a_group_without_the_mark_is_left_alone(void **state)
{
    struct fixture *fixture = *state;

    write_text(fixture, "cgroup.procs", "");
    expect_refused(fixture, ERR_DENIED, "is not delegated: neither user.delegate");
    assert_false(is_there(fixture, "kcastd"));
    expect_text(fixture->dir, "cgroup.procs", "");
}

static void a_group_that_is_gone_is_named(void **state)
{
    struct fixture *fixture = *state;

    assert_int_equal(rmdir(fixture->dir), 0);
    expect_refused(fixture, ERR_SYSTEM, "No such file");
    assert_int_equal(mkdir(fixture->dir, 0700), 0);
}

static void a_delegated_group_is_entered_and_its_controllers_handed_on(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "cpuset cpu io memory hugetlb pids rdma\n");
    take_over(fixture);
    expect_text(fixture->dir, "kcastd/cgroup.procs", "0");
    expect_text(fixture->dir, "cgroup.subtree_control", "+memory +pids");
    expect_text(fixture->dir, "cgroup.procs", ""); // it did not go back
    assert_string_equal(cgroups_controllers(fixture->cgroups), "memory pids");
    assert_string_equal(cgroups_dir(fixture->cgroups), fixture->dir);
}

static void controllers_that_are_not_there_are_not_asked_for(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "hugetlb memory.low pids\n");
    take_over(fixture);
    expect_text(fixture->dir, "cgroup.subtree_control", "+pids");
    assert_string_equal(cgroups_controllers(fixture->cgroups), "pids");
}

static void without_controllers_nothing_is_handed_on(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "hugetlb\n");
    take_over(fixture);
    expect_text(fixture->dir, "cgroup.subtree_control", "");
    assert_string_equal(cgroups_controllers(fixture->cgroups), "none");
}

static void a_group_that_refuses_controllers_is_left_again(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "memory\n");
    remove_file(fixture, "cgroup.subtree_control");
    expect_refused(fixture, ERR_SYSTEM, "controllers cannot be handed on");
    expect_text(fixture->dir, "cgroup.procs", "0");
}

static void a_second_daemon_is_told_that_the_group_is_in_use(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "memory\n");
    take_over(fixture);
    expect_refused(fixture, ERR_BUSY, "another kcastd");
    cgroups_free(fixture->cgroups);
    fixture->cgroups = NULL;
    err_clear(&fixture->err);
    take_over(fixture);
}

static void leftovers_of_a_killed_daemon_are_killed_and_removed(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "");
    make_dir(fixture, "exec-3");
    make_dir(fixture, "exec-12");
    write_text(fixture, "exec-12/cgroup.kill", "");
    make_dir(fixture, "exec-");
    make_dir(fixture, "exec-4x");
    make_dir(fixture, "execute");
    take_over(fixture);
    assert_false(is_there(fixture, "exec-3"));
    expect_text(fixture->dir, "exec-12/cgroup.kill", "1");
    assert_true(is_there(fixture, "exec-12")); // not empty yet
    assert_true(is_there(fixture, "exec-"));
    assert_true(is_there(fixture, "exec-4x"));
    assert_true(is_there(fixture, "execute"));
    remove_file(fixture, "exec-12/cgroup.kill");
    cgroups_sweep(fixture->cgroups);
    assert_false(is_there(fixture, "exec-12"));
}

// --- children

static void limits_are_written_where_there_are_files_for_them(void **state)
{
    static const struct cgroup_limits all = {.memory = (uint64_t)8 << 30, .processes = 64};
    static const struct cgroup_limits none = {0};
    struct fixture *fixture = *state;

    assert_int_equal(cgroup_limit(fixture->dir, &all, &fixture->err), 0);
    assert_false(is_there(fixture, "memory.max")); // none was made
    write_text(fixture, "memory.max", "");
    write_text(fixture, "pids.max", "");
    assert_int_equal(cgroup_limit(fixture->dir, &none, &fixture->err), 0);
    expect_text(fixture->dir, "memory.max", "");
    expect_text(fixture->dir, "pids.max", "");
    write_text(fixture, "memory.swap.max", "");
    write_text(fixture, "memory.oom.group", "");
    assert_int_equal(cgroup_limit(fixture->dir, &all, &fixture->err), 0);
    expect_text(fixture->dir, "memory.max", "8589934592");
    expect_text(fixture->dir, "memory.swap.max", "0");
    expect_text(fixture->dir, "memory.oom.group", "1");
    expect_text(fixture->dir, "pids.max", "64");
    remove_file(fixture, "pids.max");
    make_dir(fixture, "pids.max");
    assert_int_equal(cgroup_limit(fixture->dir, &all, &fixture->err), ERR_SYSTEM);
    assert_non_null(strstr(fixture->err.text, "pids.max"));
}

static struct cgroup *new_cgroup(struct fixture *fixture)
{
    static const struct cgroup_limits limits = {.memory = (uint64_t)4 << 30, .processes = 64};
    struct cgroup *cgroup = NULL;

    if (cgroup_create(&cgroup, fixture->cgroups, &limits, &fixture->err) != 0) {
        fail_msg("%s", fixture->err.text);
    }
    return cgroup;
}

static void every_child_gets_a_group_of_a_new_number(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "");
    make_dir(fixture, "exec-7");
    take_over(fixture);
    struct cgroup *cgroup = new_cgroup(fixture);
    assert_string_equal(strrchr(cgroup_dir(cgroup), '/'), "/exec-8");
    assert_true(is_there(fixture, "exec-8"));
    cgroup_end(cgroup);
    assert_false(is_there(fixture, "exec-8"));
    make_dir(fixture, "exec-9"); // somebody meddles
    assert_int_equal(
        cgroup_create(&cgroup, fixture->cgroups, &(struct cgroup_limits){0}, &fixture->err),
        ERR_SYSTEM);
    assert_non_null(strstr(fixture->err.text, "exec-9"));
}

static void a_group_that_is_not_empty_yet_is_removed_by_a_sweep(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "");
    take_over(fixture);
    struct cgroup *cgroup = new_cgroup(fixture);
    write_text(fixture, "exec-1/cgroup.kill", "");
    cgroup_end(cgroup);
    expect_text(fixture->dir, "exec-1/cgroup.kill", "1");
    cgroups_sweep(fixture->cgroups);
    assert_true(is_there(fixture, "exec-1"));
    remove_file(fixture, "exec-1/cgroup.kill");
    cgroups_sweep(fixture->cgroups);
    assert_false(is_there(fixture, "exec-1"));
}

static void a_kill_for_memory_is_seen(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, "");
    take_over(fixture);
    struct cgroup *cgroup = new_cgroup(fixture);
    assert_false(cgroup_out_of_memory(cgroup));
    write_text(fixture, "exec-1/memory.events", "low 0\nmax 9\noom 1\noom_kill 0\n");
    assert_false(cgroup_out_of_memory(cgroup));
    write_text(fixture, "exec-1/memory.events", "max 9\noom 1\noom_kill 2\noom_group_kill 1\n");
    assert_true(cgroup_out_of_memory(cgroup));
    cgroup_end(cgroup);
}

// --- real groups

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
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

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
        sched_yield(); // what was killed is on its way
    }
}

static int tear_down_real(void **state)
{
    struct fixture *fixture = *state;

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

static void need_real(const struct fixture *fixture)
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

static void until_removed(struct fixture *fixture, const char *name)
{
    while (is_there(fixture, name)) {
        cgroups_sweep(fixture->cgroups);
        sched_yield();
    }
}

static void the_daemon_moves_into_its_leaf(void **state)
{
    struct fixture *fixture = *state;

    need_real(fixture);
    take_over(fixture);
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

static void need_kill(const struct fixture *fixture)
{
    if (!is_there(fixture, "cgroup.kill")) {
        printf("skipped because this kernel has no cgroup.kill\n");
        skip();
    }
}

static void ending_a_group_kills_a_tree_of_processes(void **state)
{
    struct fixture *fixture = *state;

    need_real(fixture);
    need_kill(fixture);
    take_over(fixture);
    struct cgroup *cgroup = new_cgroup(fixture);
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
    struct fixture *fixture = *state;

    need_real(fixture);
    need_kill(fixture);
    make_dir(fixture, "exec-5");
    char *left = xasprintf("%s/exec-5", fixture->dir);
    pid_t grandchild;
    pid_t child = start_tree(left, &grandchild);
    take_over(fixture);
    expect_killed(child, grandchild);
    until_removed(fixture, "exec-5");
    free(left);
}

// --- kcast-exec

// kcast-exec in the group, before its plan has come: it and its zygote are there.
static void kcast_exec_enters_before_it_has_children(void **state)
{
    struct fixture *fixture = *state;
    char *exec = program_path("kcast-exec");

    need_real(fixture);
    take_over(fixture);
    struct cgroup *cgroup = new_cgroup(fixture);
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
static void run_probe(struct fixture *fixture, struct outcome *outcome)
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
    assert_int_equal(executors_create(&pool, &loop, exec, fixture->cgroups, &fixture->err), 0);
    struct executor *executor;
    struct bytes nothing = {0};
    assert_int_equal(executor_start(&executor, pool, &config, &nothing, &fixture->err), 0);
    assert_true(is_there(fixture, "exec-1"));
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(outcome->ended);
    until_removed(fixture, "exec-1");
    executors_free(pool);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(exec);
}

static void an_executor_runs_in_a_group_that_goes_with_it(void **state)
{
    struct fixture *fixture = *state;

    need_real(fixture);
    take_over(fixture);
    struct outcome outcome = {0};
    run_probe(fixture, &outcome);
    assert_string_equal(outcome.reason, "");
    assert_true(outcome.ok);
}

static void a_group_that_cannot_be_entered_is_the_reason(void **state)
{
    struct fixture *fixture = *state;

    imitate(fixture, ""); // kcast-exec takes no plain folder for a group
    take_over(fixture);
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
#define PLAIN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define REAL(test) cmocka_unit_test_setup_teardown(test, set_up_real, tear_down_real)
    const struct CMUnitTest tests[] = {
        PLAIN(the_own_group_is_found_in_every_kind_of_hierarchy),
        PLAIN(a_group_without_the_mark_is_left_alone),
        PLAIN(a_group_that_is_gone_is_named),
        PLAIN(a_delegated_group_is_entered_and_its_controllers_handed_on),
        PLAIN(controllers_that_are_not_there_are_not_asked_for),
        PLAIN(without_controllers_nothing_is_handed_on),
        PLAIN(a_group_that_refuses_controllers_is_left_again),
        PLAIN(a_second_daemon_is_told_that_the_group_is_in_use),
        PLAIN(leftovers_of_a_killed_daemon_are_killed_and_removed),
        PLAIN(limits_are_written_where_there_are_files_for_them),
        PLAIN(every_child_gets_a_group_of_a_new_number),
        PLAIN(a_group_that_is_not_empty_yet_is_removed_by_a_sweep),
        PLAIN(a_kill_for_memory_is_seen),
        PLAIN(a_group_that_cannot_be_entered_is_the_reason),
        REAL(the_daemon_moves_into_its_leaf),
        REAL(ending_a_group_kills_a_tree_of_processes),
        REAL(leftovers_are_killed_with_all_that_is_in_them),
        REAL(kcast_exec_enters_before_it_has_children),
        REAL(an_executor_runs_in_a_group_that_goes_with_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
