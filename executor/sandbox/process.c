#include "executor/sandbox/process.h"
#include "common/clock.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// Milliseconds between two waitpid calls where the process has no descriptor to poll: before Linux
// 5.3, and where a filter refuses pidfd_open.
#define STEP_MS 1

bool process_wait(pid_t pid, double seconds, int *ret_status)
{
    uint64_t end = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    bool ended = true;

    while (waitpid(pid, ret_status, WNOHANG) == 0) {
        struct pollfd end_of = {.fd = fd, .events = POLLIN};
        uint64_t now = clock_now_ns(&clock_system);
        int left_ms = now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0;

        if (left_ms == 0) {
            ended = false;
            break;
        }
        (void)poll(&end_of, 1, fd >= 0 || left_ms < STEP_MS ? left_ms : STEP_MS);
    }
    if (fd >= 0) {
        close(fd);
    }
    return ended;
}

void process_reap(pid_t pid, int *ret_status)
{
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR) {
    }
}

void process_end_group(pid_t group)
{
    (void)kill(-group, SIGKILL);
    while (waitpid(-group, NULL, 0) > 0 || errno == EINTR) {
    }
}

double process_children_seconds(void)
{
    struct rusage used;

    return getrusage(RUSAGE_CHILDREN, &used) != 0
               ? 0
               : (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6 +
                     (double)used.ru_stime.tv_sec + (double)used.ru_stime.tv_usec * 1e-6;
}
