// file_lock: an exclusive lock between processes, as flock(2) on a file that holds the holder's
// pid.
//
// The kernel drops the lock when the last copy of the descriptor is closed, so that a crash leaves
// no stale lock behind. The pid in the file serves messages, and tells whether a refusal is worth
// waiting for.
#include "common/file.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 500 // 10 ms apart

// The process id that the holder of the lock wrote into the file. 0 when it has not written yet.
static long read_pid(int fd)
{
    char text[16] = "";
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    long pid = 0;

    for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++) {
        pid = pid * 10 + (text[i] - '0');
    }
    return pid;
}

// Tries to take the lock. Waits only while the process that the file names no longer exists: a
// child that it had forked shares the descriptor, and so the lock, until the child's exec closes
// it.
static int wait_for_lock(int fd)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int rc = 0;

    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        do {
            rc = flock(fd, LOCK_EX | LOCK_NB);
        } while (rc != 0 && errno == EINTR);
        if (rc == 0 || errno != EWOULDBLOCK) {
            return rc;
        }
        long pid = read_pid(fd);
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) {
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    errno = EWOULDBLOCK;
    return rc;
}

int file_lock(int *ret_fd, const char *path, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be opened", path);
    }
    int rc = wait_for_lock(fd);
    if (rc != 0 && errno == EWOULDBLOCK) {
        long pid = read_pid(fd);

        rc = pid > 0 ? err_set(err, ERR_BUSY, "%s: locked by process %ld", path, pid)
                     : err_set(err, ERR_BUSY, "%s: locked by another process", path);
        goto out;
    }
    if (rc != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be locked", path);
        goto out;
    }
    if (ftruncate(fd, 0) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be emptied", path);
        goto out;
    }
    char text[16];
    int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    rc = file_write_fd(fd, text, (size_t)len, path, err);
    if (rc != 0) {
        goto out;
    }
    *ret_fd = fd;
    fd = -1;
out:
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}
