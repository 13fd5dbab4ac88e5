// Waiting for children with and without a time limit.
#include "executor/sandbox/process.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_S 60.0 // longer than any test takes

static pid_t child_that_exits(int code)
{
    pid_t pid = fork();

    if (pid == 0) {
        _exit(code);
    }
    return pid;
}

static void a_child_that_ends_is_reaped(void **state)
{
    pid_t pid = child_that_exits(7);

    (void)state;
    int status = -1;
    assert_true(process_wait(pid, LONG_S, &status));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
}

static void a_child_that_stays_is_still_there(void **state)
{
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    int status = -1;
    assert_false(process_wait(pid, 0, &status));
    assert_int_equal(status, -1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    process_reap(pid, &status);
    assert_true(WIFSIGNALED(status));
}

// A child that uses a hundredth of a second of processor time, however long that takes.
static void the_processor_time_of_children_is_counted(void **state)
{
    double before = process_children_seconds();
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        struct timespec used;

        do {
            (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        } while (used.tv_sec == 0 && used.tv_nsec < 10000000);
        _exit(0);
    }
    process_reap(pid, NULL);
    assert_true(process_children_seconds() - before > 0.009);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_that_ends_is_reaped),
        cmocka_unit_test(a_child_that_stays_is_still_there),
        cmocka_unit_test(the_processor_time_of_children_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
