#include "daemon/run/process_tree.h"
#include "common/mem.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 64
#define FIRST_NAMESPACE "pid:[4026531836]" // of the host: the kernel's PROC_PID_INIT_INO

bool process_tree_knows_pids(void)
{
    char name[64];
    ssize_t len = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);

    if (len <= 0) {
        return false;
    }
    name[len] = '\0';
    return strcmp(name, FIRST_NAMESPACE) == 0;
}

// Returns 0 when the process has ended or is the first one.
static pid_t parent_of(pid_t pid)
{
    char path[32], stat[512];

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t len = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    if (len <= 0) {
        return 0;
    }
    stat[len] = '\0';
    // The text is "pid (name) state ppid …", and the name may contain anything.
    const char *at = strrchr(stat, ')');
    return at && strlen(at) > 4 ? (pid_t)strtol(at + 4, NULL, 10) : 0;
}

bool process_tree_is_foreign(pid_t pid, pid_t ancestor)
{
    pid_t at = pid;

    if (parent_of(pid) == 0) {
        return false;
    }
    for (unsigned depth = 0; at > 0 && depth < DEPTH_MAX; depth++) {
        if (at == ancestor) {
            return false;
        }
        at = parent_of(at);
    }
    return true;
}
