// Children that do nothing until they are told to end.
#ifndef TESTS_DAEMON_RUN_PROCESSES_H
#define TESTS_DAEMON_RUN_PROCESSES_H

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PROCESS_EXIT 7 // status of a process that was told to end

struct process {
    pid_t pid;
    int release; // closing it ends the process, and the one below it
};

// What the child does: says its number, then waits for the end of the pipe.
static inline void process_wait(int tell, int hold)
{
    pid_t pid = getpid();
    char unused;

    if (write(tell, &pid, sizeof(pid)) != sizeof(pid)) {
        _exit(1);
    }
    _exit(read(hold, &unused, 1) == 0 ? PROCESS_EXIT : 1);
}

// Starts a child of this name. levels 2: the child starts another one, the process is that one, and
// what is between them has ended when stays is false. *ret_between is the one between.
static inline struct process process_start(int levels, bool stays, const char *name,
                                           pid_t *ret_between)
{
    int tell[2], hold[2];

    assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (int fd = STDERR_FILENO + 1; fd < 256; fd++) { // the pipes of other processes, too
            if (fd != tell[1] && fd != hold[0]) {
                close(fd);
            }
        }
        (void)prctl(PR_SET_NAME, name);
        pid_t below = levels > 1 ? fork() : 0;
        if (below == 0) {
            (void)setsid();
            process_wait(tell[1], hold[0]);
        }
        char unused;
        if (stays && read(hold[0], &unused, 1) == 0) {
            (void)waitpid(below, NULL, 0);
        }
        _exit(PROCESS_EXIT);
    }
    close(hold[0]);
    close(tell[1]);
    struct process process = {.release = hold[1]};
    assert_int_equal(read(tell[0], &process.pid, sizeof(process.pid)), sizeof(process.pid));
    close(tell[0]);
    if (ret_between) {
        *ret_between = child;
    }
    return process;
}

// Tells it to end and returns the wait status of this child of the test.
static inline int process_end(const struct process *process, pid_t child)
{
    int status;

    close(process->release);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

#endif
