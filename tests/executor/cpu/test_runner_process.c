// What renewing leaves behind: nothing of the last child in the next one, and nothing on the
// machine.
#include "tests/executor/cpu/runner_scene.h"
#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>

// ---- state ----

static void check_state(const struct fixture *fixture, bool off)
{
    struct scene scene;

    start_scene(fixture, &scene, off);
    volatile unsigned char *last =
        (volatile unsigned char *)scene.runner.control + sysconf(_SC_PAGESIZE) - 1;
    for (int child = 0; child < 3; child++) {
        assert_int_equal(*last, 0); // of the page that the child can write to
        *last = 1;
        assert_int_equal(act(&scene, ACT_STATE, LIMIT_NS, NULL), LAUNCH_DONE);
        for (size_t place = 0; place < ACTS_PLACES; place++) {
            assert_int_equal(answers(&scene)[place], 0);
        }
        assert_int_equal(act(&scene, ACT_STATE, LIMIT_NS, NULL), LAUNCH_DONE);
        for (size_t place = 0; place < ACTS_PLACES; place++) {
            assert_int_equal(answers(&scene)[place], 1);
        }
        renew(&scene.runner);
    }
    close_scene(&scene);
}

static void nothing_survives_renewing(void **state)
{
    both(state, check_state);
}

static void check_page_tables(const struct fixture *fixture, bool off)
{
    struct scene scene;

    if (!off) {
        return; // getrusage is refused
    }
    start_scene(fixture, &scene, off);
    for (int child = 0; child < 2; child++) {
        assert_int_equal(act(&scene, ACT_FAULTS, LIMIT_NS, NULL), LAUNCH_DONE);
        assert_true(answers(&scene)[0] < ACTS_PAGES / 2); // there are some for code and stack
        renew(&scene.runner);
    }
    assert_int_equal(act(&scene, ACT_DESCRIPTORS, LIMIT_NS, NULL), LAUNCH_DONE);
    assert_int_equal(answers(&scene)[0], 7);
    close_scene(&scene);
}

static void child_has_its_page_tables_and_no_descriptors(void **state)
{
    both(state, check_page_tables);
}

// ---- what is left ----

static size_t count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    size_t count = 0;

    while (dir && readdir(dir)) {
        count++;
    }
    if (dir) { // without /proc nothing is counted
        closedir(dir);
    }
    return count;
}

// Returns the pages that a process has for itself, not those that it shares.
static long private_pages(pid_t pid)
{
    char *path = xasprintf("/proc/%d/statm", pid);
    FILE *file = fopen(path, "r");
    long size = 0, resident = 0, shared = 0;

    free(path);
    if (file) {
        assert_int_equal(fscanf(file, "%ld %ld %ld", &size, &resident, &shared), 3);
        fclose(file);
    }
    return resident - shared;
}

static void check_renewals(const struct fixture *fixture, bool off)
{
    struct scene scene;

    start_scene(fixture, &scene, off);
    for (int i = 0; i < 10; i++) {
        expect_good_child(&scene);
    }
    size_t descriptors = count_descriptors();
    long pages = private_pages(scene.runner.pid), own = private_pages(getpid());
    for (int i = 0; i < (FIXTURE_SANITIZED ? 100 : 1000); i++) {
        expect_good_child(&scene);
        assert_true(waitpid(-scene.runner.group, NULL, WNOHANG) == 0); // no other has ended
    }
    assert_int_equal(count_descriptors(), descriptors);
    assert_true(private_pages(scene.runner.pid) <= pages + 16);
    assert_true(private_pages(getpid()) <= own + 64);
    close_scene(&scene);
}

static void a_thousand_renewals_leave_nothing(void **state)
{
    both(state, check_renewals);
}

// Has a child of the runner work, in a process that is then killed. All processes below it become
// this one's, which waits for their end.
static void check_killed(const struct fixture *fixture, bool off)
{
    int pair[2];
    char byte = 0;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct scene scene;
        start_scene(fixture, &scene, off);
        (void)!write(pair[1], &byte, 1);
        (void)act(&scene, ACT_WORK_FOR_EVER, 600 * NS_PER_S, NULL);
        _exit(1);
    }
    close(pair[1]);
    assert_int_equal(read(pair[0], &byte, 1), 1);
    close(pair[0]);
    assert_int_equal(kill(pid, SIGKILL), 0);
    (void)alarm(60); // ends the test if something goes on
    int ended = 0;
    while (waitpid(-1, NULL, 0) > 0) {
        ended++;
    }
    (void)alarm(0);
    assert_int_equal(errno, ECHILD);
    assert_int_equal(ended, off ? 4 : 5); // with zygote, idle process, clean parent and child
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0);
}

static void nothing_outlives_the_harness(void **state)
{
    both(state, check_killed);
}

static void check_ordinary_user(const struct fixture *fixture, bool off)
{
    struct scene scene;

    start_scene(fixture, &scene, off);
    expect_good_child(&scene);
    expect_death(&scene, ACT_SEGV, VERDICT_CRASH, "SIGSEGV");
    close_scene(&scene);
}

static void an_ordinary_user_has_the_same(void **state)
{
    if (geteuid() != 0) {
        both(state, check_ordinary_user);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct fixture fixture = *(const struct fixture *)*state, *user = &fixture;
        void *user_state = user;
        if (setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 ||
            setresuid(65534, 65534, 65534) != 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) {
            _exit(2);
        }
        struct probe_outcome probe; // an ordinary user may have no sandbox here
        struct err err = ERR_INIT;
        if (probe_run(&fixture.context, &probe, &err) != 0) {
            _exit(3);
        }
        fixture.no_sandbox = probe.sandbox ? NULL : probe.reason;
        both(&user_state, check_ordinary_user);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_survives_renewing),
        cmocka_unit_test(child_has_its_page_tables_and_no_descriptors),
        cmocka_unit_test(a_thousand_renewals_leave_nothing),
        cmocka_unit_test(nothing_outlives_the_harness),
        cmocka_unit_test(an_ordinary_user_has_the_same),
    };

    return cmocka_run_group_tests(tests, object_setup, fixture_teardown);
}
