#include "daemon/run/orphans.h"
#include "common/clock.h"
#include "common/log.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int orphans_adopt(struct err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "cannot become the reaper of orphans");
    }
    return 0;
}

static bool is_nobody(void *owner, pid_t pid)
{
    (void)owner;
    (void)pid;
    return false;
}

void orphans_end(unsigned ms)
{
    uint64_t end = clock_now_ns(&clock_system) + ms * NS_PER_MS;

    while (waitpid(-1, NULL, WNOHANG) >= 0 && clock_now_ns(&clock_system) < end) {
        orphans_sweep(is_nobody, NULL); // their children are ours from then on
        (void)poll(NULL, 0, 1);
    }
}

void orphans_sweep(bool (*is_known)(void *owner, pid_t pid), void *owner)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file) {
        return; // a kernel without CONFIG_PROC_CHILDREN: killing the group has to suffice
    }
    int pid;
    while (fscanf(file, "%d", &pid) == 1) {
        if (pid > 0 && !is_known(owner, pid)) {
            (void)kill(pid, SIGKILL);
            if (waitpid(pid, NULL, WNOHANG) == pid) {
                log_event(LOG_NOTICE, "orphan-reaped pid=%d", pid);
            }
        }
    }
    (void)fclose(file);
}
