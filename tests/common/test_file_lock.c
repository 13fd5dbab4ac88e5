#include "tests/common/file_fixture.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

static void second_lock_is_busy_and_names_the_holder(void **state)
{
    char *path = in(state, "lock");
    char *expected = xasprintf("process %d", (int)getpid());
    int fd = -1;

    assert_int_equal(file_lock(&fd, path, NULL), 0);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    struct err err = ERR_INIT;
    int other = -1;
    assert_int_equal(file_lock(&other, path, &err), ERR_BUSY);
    assert_int_equal(other, -1);
    assert_non_null(strstr(err.text, expected));
    close(fd);
    assert_int_equal(file_lock(&other, path, NULL), 0);
    close(other);
    free(path);
    free(expected);
}

static void lock_dies_with_its_process(void **state)
{
    char *path = in(state, "lock");
    pid_t pid = fork();

    assert_true(pid >= 0);
    int fd = -1;
    if (pid == 0) {
        _exit(file_lock(&fd, path, NULL) == 0 ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(file_lock(&fd, path, NULL), 0);
    close(fd);
    free(path);
}

// The process takes the lock, forks a child that shares the descriptor, and exits. The child keeps
// the descriptor until somebody opens the file, as a child does that has not reached its exec yet.
static void lock_of_a_dead_process_is_waited_for(void **state)
{
    char *path = in(state, "lock");
    pid_t pid = fork();

    assert_true(pid >= 0);
    int fd = -1;
    if (pid == 0) {
        int opened = inotify_init1(IN_CLOEXEC);

        if (file_lock(&fd, path, NULL) != 0 || inotify_add_watch(opened, path, IN_OPEN) < 0) {
            _exit(1);
        }
        char event[4096];
        if (fork() == 0) {
            _exit(read(opened, event, sizeof(event)) > 0 ? 0 : 1);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(file_lock(&fd, path, NULL), 0);
    close(fd);
    free(path);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(second_lock_is_busy_and_names_the_holder),
        WITH_DIR(lock_dies_with_its_process),
        WITH_DIR(lock_of_a_dead_process_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
