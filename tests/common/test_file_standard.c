// What a program finds at 0, 1 and 2 when whoever started it has closed them.
#include "common/file.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs `check` in a process of its own, whose exit status it returns.
static int in_child(int (*check)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(check());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int check_closed(void)
{
    char byte = 'x';
    (void)close(STDIN_FILENO);
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    file_open_standard();
    if (open("/dev/zero", O_RDONLY) <= STDERR_FILENO) {
        return 1;
    }
    if (read(STDIN_FILENO, &byte, 1) != -1 || errno != EBADF) {
        return 2;
    }
    if (write(STDOUT_FILENO, &byte, 1) != -1 || errno != EBADF) {
        return 3;
    }
    return write(STDERR_FILENO, &byte, 1) != -1 || errno != EBADF ? 4 : 0;
}

static void closed_files_are_filled_and_still_fail(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_closed), 0);
}

static int check_open(void)
{
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) != STDOUT_FILENO) {
        return 1;
    }
    (void)close(STDIN_FILENO);
    file_open_standard();
    char byte = 0;
    return write(STDOUT_FILENO, "y", 1) == 1 && read(ends[0], &byte, 1) == 1 && byte == 'y' ? 0 : 2;
}

static void open_files_stay_as_they_are(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_open), 0);
}

static int check_full(void)
{
    struct err err = ERR_INIT;
    int full = open("/dev/full", O_WRONLY);
    if (full < 0 || dup2(full, STDOUT_FILENO) != STDOUT_FILENO) {
        return 1;
    }
    if (file_flush_stdout(&err) != 0) { // there is nothing to write
        return 2;
    }
    (void)printf("lost");
    if (file_flush_stdout(&err) != ERR_NO_SPACE || !strstr(err.text, "cannot write the output")) {
        return 3;
    }
    // What was not written stays told, although there is nothing more to write.
    return file_flush_stdout(NULL) == 0 ? 4 : 0;
}

static void what_stdout_does_not_take_is_told(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_full), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_files_are_filled_and_still_fail),
        cmocka_unit_test(open_files_stay_as_they_are),
        cmocka_unit_test(what_stdout_does_not_take_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
