// What a child leaves behind comes to this process and is ended by it.
#include "daemon/run/orphans.h"
#include "tests/daemon/run/processes.h"
#include <errno.h>
#include <stdio.h>

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(orphans_adopt(NULL), 0);
    return 0;
}

struct known {
    pid_t pid;
    unsigned asked;
};

static bool is_known(void *owner, pid_t pid)
{
    struct known *known = owner;

    known->asked++;
    return pid == known->pid;
}

static bool kernel_lists_children(void)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    return access(path, R_OK) == 0;
}

// Blocks until the process is dead but not reaped, and returns the signal that ended it, else 0.
static int wait_for_death(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};

    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    return info.si_code == CLD_KILLED ? info.si_status : 0;
}

static void an_orphan_in_a_session_of_its_own_is_killed_and_reaped(void **state)
{
    struct known nobody = {.pid = 0};
    pid_t between;

    (void)state;
    if (!kernel_lists_children()) {
        skip();
    }
    struct process orphan = process_start(2, false, "between", &between);
    assert_int_equal(waitpid(between, NULL, 0), between); // from now on it is ours
    orphans_sweep(is_known, &nobody);
    assert_int_equal(nobody.asked, 1);
    if (kill(orphan.pid, 0) == 0) { // it was not gone yet, and a later sweep reaps it
        assert_int_equal(wait_for_death(orphan.pid), SIGKILL);
        orphans_sweep(is_known, &nobody);
    }
    assert_int_equal(kill(orphan.pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    close(orphan.release);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_child_that_is_known_is_left_alone(void **state)
{
    struct process child = process_start(1, true, "child", NULL);
    struct known known = {.pid = child.pid};

    (void)state;
    if (!kernel_lists_children()) {
        (void)process_end(&child, child.pid);
        skip();
    }
    orphans_sweep(is_known, &known);
    orphans_sweep(is_known, &known);
    assert_int_equal(known.asked, 2);
    int status = process_end(&child, child.pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), PROCESS_EXIT);
}

static void only_the_stranger_among_several_is_killed(void **state)
{
    struct process mine = process_start(1, true, "mine", NULL);
    struct process other = process_start(1, true, "other", NULL);
    struct known known = {.pid = mine.pid};

    (void)state;
    if (!kernel_lists_children()) {
        (void)process_end(&mine, mine.pid);
        (void)process_end(&other, other.pid);
        skip();
    }
    orphans_sweep(is_known, &known);
    assert_int_equal(known.asked, 2);
    if (kill(other.pid, 0) == 0) {
        assert_int_equal(wait_for_death(other.pid), SIGKILL);
        orphans_sweep(is_known, &known);
    }
    assert_int_equal(kill(other.pid, 0), -1);
    close(other.release);
    assert_int_equal(WEXITSTATUS(process_end(&mine, mine.pid)), PROCESS_EXIT);
}

static void at_the_end_the_children_of_orphans_die_too(void **state)
{
    pid_t between;

    (void)state;
    if (!kernel_lists_children()) {
        skip();
    }
    struct process last = process_start(2, true, "between", &between);
    orphans_end(60000);
    assert_int_equal(kill(last.pid, 0), -1);
    assert_int_equal(errno, ESRCH);
    close(last.release);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void nothing_is_asked_where_there_are_no_children(void **state)
{
    struct known known = {.pid = 0};

    (void)state;
    orphans_sweep(is_known, &known);
    assert_int_equal(known.asked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_orphan_in_a_session_of_its_own_is_killed_and_reaped),
        cmocka_unit_test(a_child_that_is_known_is_left_alone),
        cmocka_unit_test(only_the_stranger_among_several_is_killed),
        cmocka_unit_test(at_the_end_the_children_of_orphans_die_too),
        cmocka_unit_test(nothing_is_asked_where_there_are_no_children),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
