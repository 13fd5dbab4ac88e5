// Reading and writing whole files. Every descriptor is opened CLOEXEC. Every loop handles EINTR,
// short transfers and descriptors that do not block.
//
// Replacing a file: the data go to a temporary name in the same folder, then rename(2) puts the new
// file in place. A reader sees the old file or the new one and never a part. The temporary name
// ends in the number of the calling thread (the pid in the main thread): two threads that store the
// same object do not write into each other's file. A durable replacement syncs the file before the
// rename and the folder after it. When only that last step fails, the new file is in place and the
// error says so.
#include "common/file.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_FIRST ((size_t)16 << 10)

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void wait_for(int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};

    (void)poll(&poll_fd, 1, -1);
}

int file_read_fd(struct bytes *ret, int fd, size_t limit, const char *what, struct err *err)
{
    if (limit > SIZE_MAX / 4) {
        limit = SIZE_MAX / 4;
    }
    size_t size = READ_FIRST;
    unsigned char *data = NULL;
    size_t len = 0;
    int rc;
    for (;;) {
        // Room for one byte beyond the limit, which shows that there is more, and for the NUL.
        size = size < limit + 2 ? size : limit + 2;
        unsigned char *moved = realloc(data, size);
        if (!moved) {
            rc = err_set_errno(err, ERR_SYSTEM, ENOMEM, "%s: %zu bytes", what, size);
            goto out;
        }
        data = moved;
        while (len < size - 1) {
            ssize_t n = read(fd, data + len, size - 1 - len);
            if (n > 0) {
                len += (size_t)n;
            } else if (n == 0) {
                goto at_end;
            } else if (errno == EAGAIN) {
                wait_for(fd, POLLIN);
            } else if (errno != EINTR) {
                rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be read", what);
                goto out;
            }
        }
        if (len > limit) {
            rc = err_set(err, ERR_LIMIT, "%s: longer than the %zu bytes allowed", what, limit);
            goto out;
        }
        size *= 2;
    }
at_end:
    if (len > limit) {
        rc = err_set(err, ERR_LIMIT, "%s: longer than the %zu bytes allowed", what, limit);
        goto out;
    }
    data[len] = '\0';
    *ret = (struct bytes){.data = data, .len = len};
    data = NULL;
    rc = 0;
out:
    free(data);
    return rc;
}

enum secrecy { NO_SECRET, SECRET_OF_ANYBODY, SECRET_OF_OURS };

// Refuses a secret that others could know or have written. A file of root is as good as our own,
// because root could change our own too.
static int check_secrecy(const struct stat *info, enum secrecy secrecy, const char *path,
                         struct err *err)
{
    if (secrecy == NO_SECRET) {
        return 0;
    }
    if ((info->st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return err_set(err, ERR_DENIED,
                       "%s can be read or written by others (mode %03o); chmod 600 it, for it is "
                       "secret",
                       path, (unsigned)info->st_mode & 0777);
    }
    if (secrecy == SECRET_OF_OURS && info->st_uid != 0 && info->st_uid != geteuid()) {
        return err_set(err, ERR_DENIED,
                       "%s belongs to user %u, who could read and change it, and this program runs "
                       "as user %u; chown it to that user and chmod 600 it, for it is secret",
                       path, (unsigned)info->st_uid, (unsigned)geteuid());
    }
    return 0;
}

static int read_regular(struct bytes *ret, const char *path, size_t limit, enum secrecy secrecy,
                        struct err *err)
{
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return err_set_errno(err, errno == ENOENT || errno == ENOTDIR ? ERR_NOT_FOUND : ERR_SYSTEM,
                             errno, "%s: cannot be opened", path);
    }
    struct stat info;
    int rc;
    if (fstat(fd, &info) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
        goto out;
    }
    if (!S_ISREG(info.st_mode)) {
        rc = err_set(err, ERR_INVALID, "%s: not a regular file", path);
        goto out;
    }
    rc = check_secrecy(&info, secrecy, path, err);
    if (rc != 0) {
        goto out;
    }
    if (info.st_size > 0 && (uint64_t)info.st_size > limit) {
        rc = err_set(err, ERR_LIMIT, "%s: has %lld bytes, at most %zu are allowed", path,
                     (long long)info.st_size, limit);
        goto out;
    }
    rc = file_read_fd(ret, fd, limit, path, err);
out:
    close_fd(fd);
    return rc;
}

int file_read(struct bytes *ret, const char *path, size_t limit, struct err *err)
{
    return read_regular(ret, path, limit, NO_SECRET, err);
}

int file_read_private(struct bytes *ret, const char *path, size_t limit, struct err *err)
{
    return read_regular(ret, path, limit, SECRET_OF_OURS, err);
}

int file_read_private_of_anybody(struct bytes *ret, const char *path, size_t limit, struct err *err)
{
    return read_regular(ret, path, limit, SECRET_OF_ANYBODY, err);
}

void file_wipe(struct bytes *secret)
{
    if (secret->data) {
        explicit_bzero(secret->data, secret->len);
    }
    bytes_clear(secret);
}

int file_write_fd(int fd, const void *data, size_t len, const char *what, struct err *err)
{
    const unsigned char *cursor = data;

    while (len > 0) {
        ssize_t n = write(fd, cursor, len);

        if (n >= 0) {
            cursor += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            wait_for(fd, POLLOUT);
        } else if (errno != EINTR) {
            return err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be written", what);
        }
    }
    return 0;
}

// The folder part of path, "." when there is none. The caller frees it.
static char *dir_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash) {
        return xstrdup(".");
    }
    return xstrndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static int sync_dir_of(const char *path, struct err *err)
{
    char *dir = dir_name(path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = 0;

    // EINVAL means that the file system cannot sync a folder at all: nothing more can be done then.
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL)) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: replaced, but its folder cannot be synced",
                           path);
    }
    close_fd(fd);
    free(dir);
    return rc;
}

int file_replace(const char *path, const void *data, size_t len, bool durable, struct err *err)
{
    char *temp = xasprintf("%s.tmp.%d", path, (int)gettid());
    int rc = file_replace_through(path, temp, data, len, durable, err);

    free(temp);
    return rc;
}

int file_replace_through(const char *path, const char *temp, const void *data, size_t len,
                         bool durable, struct err *err)
{
    bool made = false;

    // Removes what a crashed process with the same number left. O_EXCL then makes sure that open
    // follows no symbolic link.
    (void)unlink(temp);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc;
    if (fd < 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be created", path);
        goto out;
    }
    made = true;
    rc = file_write_fd(fd, data, len, path, err);
    if (rc != 0) {
        goto out;
    }
    if (durable && fsync(fd) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be synced", path);
        goto out;
    }
    // NFS and quotas report some failures only at close. After EINTR Linux has closed all the same.
    rc = close(fd);
    fd = -1;
    if (rc != 0 && errno != EINTR) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be closed", path);
        goto out;
    }
    if (rename(temp, path) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be replaced", path);
        goto out;
    }
    made = false;
    rc = durable ? sync_dir_of(path, err) : 0;
out:
    close_fd(fd);
    if (made) {
        (void)unlink(temp);
    }
    return rc;
}

bool file_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

const char *file_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

int file_own_dir(char **ret, struct err *err)
{
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len < 0 || (size_t)len >= sizeof(path) - 1) {
        return err_set_errno(err, ERR_SYSTEM, len < 0 ? errno : ENAMETOOLONG,
                             "/proc/self/exe: the program's own path");
    }
    path[len] = '\0';
    *ret = dir_name(path);
    return 0;
}

int file_own_program(char **ret, const char *name, struct err *err)
{
    static const char *const place[] = {"", "/../libexec/kernelcast"};
    char *dir = NULL, *path = NULL;
    int rc = file_own_dir(&dir, err);

    for (size_t i = 0; i < ARRAY_LEN(place) && rc == 0 && !path; i++) {
        path = xasprintf("%s%s/%s", dir, place[i], name);
        if (!file_exists(path)) {
            free(path);
            path = NULL;
        }
    }
    if (rc == 0 && !path) {
        rc =
            err_set(err, ERR_NOT_FOUND,
                    "%s is neither in %s nor in %s/../libexec/kernelcast; install kernelcast whole",
                    name, dir, dir);
    }
    free(dir);
    if (rc == 0) {
        *ret = path;
    }
    return rc;
}
