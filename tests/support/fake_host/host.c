// A library to be loaded before all others (LD_PRELOAD), which makes a program see another wall
// clock and a full disk. What it sees is in two files of the folder $KCAST_FAKE_HOST, and may
// change at any time:
//
//   wall   seconds by which the wall clock is ahead of the real one
//   full   a path: files whose path begins so cannot be written (ENOSPC)
//
// A file that is missing changes nothing. No other clock is touched.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

// The text of one of the files; false when it is not there. By system calls, because this is what
// the functions below are made of.
static int read_file(const char *name, char *text, size_t size)
{
    const char *dir = getenv("KCAST_FAKE_HOST");
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", dir ? dir : "", name);
    int fd = dir ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return 0;
    }
    ssize_t len = syscall(SYS_read, fd, text, size - 1);
    (void)syscall(SYS_close, fd);
    text[len > 0 ? len : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return len > 0;
}

static long ahead_s(void)
{
    char text[32];

    return read_file("wall", text, sizeof(text)) ? strtol(text, NULL, 10) : 0;
}

SHOWN int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ret);

    if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        ret->tv_sec += ahead_s();
    }
    return rc;
}

SHOWN time_t time(time_t *ret)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret) {
        *ret = now.tv_sec;
    }
    return now.tv_sec;
}

SHOWN int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now = {0};

    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

static int is_full(int fd)
{
    char prefix[PATH_MAX];
    struct stat info;

    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) ||
        !read_file("full", prefix, sizeof(prefix))) {
        return 0;
    }
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    char path[PATH_MAX];
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

SHOWN ssize_t write(int fd, const void *data, size_t len)
{
    if (is_full(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_write, fd, data, len);
}

SHOWN ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
    if (is_full(fd)) {
        errno = ENOSPC;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, len, at);
}

SHOWN ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at)
{
    return pwrite(fd, data, len, at);
}
