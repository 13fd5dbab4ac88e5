// Whole files. Every descriptor is CLOEXEC, every loop survives EINTR, short transfers and
// descriptors that do not block.
//
// Replacing: the data go to a temporary name in the same folder, then rename(2) puts them in place,
// so readers see the old or the new file and never a part. The temporary name ends in the thread's
// number (the pid in the main thread): two threads that store the same object do not write into
// each other's file. A durable replace syncs the file before and the folder after the rename; when
// only the last step fails the new file is in place and the error says so.
//
// Removing: descends by openat with O_NOFOLLOW, so a link that appears in the tree is removed and
// never followed; refuses other file systems; goes on after an error, to remove as much as
// possible, and returns the first one.
#include "common/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READ_FIRST ((size_t)16 << 10)
#define TREE_DEPTH_MAX 128
#define LOCK_TRIES 500 // 10 ms each, while the holder's process is gone

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
        ssize_t n;

        // One byte beyond the limit shows that there is more; one is for the NUL.
        size = size < limit + 2 ? size : limit + 2;
        unsigned char *moved = realloc(data, size);
        if (!moved) {
            rc = err_set_errno(err, ERR_SYSTEM, ENOMEM, "%s: %zu bytes", what, size);
            goto out;
        }
        data = moved;
        while (len < size - 1) {
            n = read(fd, data + len, size - 1 - len);
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

static int read_regular(struct bytes *ret, const char *path, size_t limit, bool private,
                        struct err *err)
{
    // O_NONBLOCK so that opening a FIFO does not wait for a writer.
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
        rc = err_set(err, ERR_SYSTEM, "%s: not a regular file", path);
        goto out;
    }
    if (private && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        rc = err_set(err, ERR_DENIED, "%s can be read by others; chmod 600 it, for it is secret",
                     path);
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
    return read_regular(ret, path, limit, false, err);
}

int file_read_private(struct bytes *ret, const char *path, size_t limit, struct err *err)
{
    return read_regular(ret, path, limit, true, err);
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

// The folder part of path, malloc'd: "." when there is none.
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

    // Some file systems cannot sync a folder and say EINVAL; there is nothing more to be had from
    // them.
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

    // What a crashed process of the same number left; O_EXCL then makes sure that no link is
    // followed.
    (void)unlink(temp);
    int fd = -1;
    fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc;
    if (fd < 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be created", temp);
        goto out;
    }
    made = true;
    rc = file_write_fd(fd, data, len, temp, err);
    if (rc != 0) {
        goto out;
    }
    if (durable && fsync(fd) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be synced", temp);
        goto out;
    }
    // NFS and quotas report some failures only here; EINTR still closes on Linux.
    rc = close(fd);
    fd = -1;
    if (rc != 0 && errno != EINTR) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be closed", temp);
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

static int make_dir(const char *path, struct err *err)
{
    if (mkdir(path, 0700) == 0) {
        return 0;
    }
    struct stat info;
    if (errno != EEXIST) {
        // EROFS and EACCES may be answered for a folder that exists as well.
        int saved_errno = errno;

        if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            return 0;
        }
        return err_set_errno(err, ERR_SYSTEM, saved_errno, "%s: cannot be created", path);
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return err_set(err, ERR_SYSTEM, "%s: exists and is not a folder", path);
    }
    return 0;
}

int file_make_dirs(const char *path, struct err *err)
{
    if (path[0] == '\0') {
        return err_set(err, ERR_INVALID, "a folder needs a name");
    }
    char *copy = xstrdup(path);
    int rc = 0;
    for (char *p = copy + 1; rc == 0 && *p != '\0'; p++) {
        if (*p == '/' && p[-1] != '/') {
            *p = '\0';
            rc = make_dir(copy, err);
            *p = '/';
        }
    }
    if (rc == 0) {
        rc = make_dir(copy, err);
    }
    free(copy);
    return rc;
}

// What the holder of a lock wrote, as a number; 0 when it has not written yet.
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

// A process that was killed may have a child that has not come to its exec, and so still has the
// descriptor, for a moment.
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
    char text[16];
    int len;

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
    len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    rc = file_write_fd(fd, text, (size_t)len, path, err);
    if (rc != 0) {
        goto out;
    }
    *ret_fd = fd;
    fd = -1;
out:
    close_fd(fd);
    return rc;
}

bool file_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

static int remove_at(int parent, const char *name, dev_t device, int depth, const char *root,
                     struct err *err);

// Removes what is in the folder dir_fd, which it closes.
static int remove_content(int dir_fd, dev_t device, int depth, const char *root, struct err *err)
{
    DIR *dir = fdopendir(dir_fd);
    int first = 0;

    if (!dir) {
        first = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be listed", root);
        close_fd(dir_fd);
        return first;
    }
    struct dirent *entry;
    for (;;) {
        errno = 0;
        entry = readdir(dir);
        if (!entry) {
            break;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int rc = remove_at(dirfd(dir), entry->d_name, device, depth, root, err);
        first = first ? first : rc;
    }
    if (errno != 0 && first == 0) {
        first = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be listed", root);
    }
    closedir(dir);
    return first;
}

static int remove_at(int parent, const char *name, dev_t device, int depth, const char *root,
                     struct err *err)
{
    struct stat info;

    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "%s: %s", root, name);
    }
    if (!S_ISDIR(info.st_mode)) {
        if (unlinkat(parent, name, 0) != 0 && errno != ENOENT) {
            return err_set_errno(err, ERR_SYSTEM, errno, "%s: %s cannot be removed", root, name);
        }
        return 0;
    }
    if (info.st_dev != device) {
        return err_set(err, ERR_SYSTEM, "%s: %s is another file system", root, name);
    }
    if (depth >= TREE_DEPTH_MAX) {
        return err_set(err, ERR_LIMIT, "%s: more than %d folders deep", root, TREE_DEPTH_MAX);
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: %s cannot be opened", root, name);
    }
    int rc = remove_content(fd, device, depth + 1, root, err);
    if (rc == 0 && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: %s cannot be removed", root, name);
    }
    return rc;
}

int file_remove_tree(const char *path, struct err *err)
{
    struct stat info;

    if (lstat(path, &info) != 0) {
        return errno == ENOENT ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    }
    return remove_at(AT_FDCWD, path, info.st_dev, 0, path, err);
}

int file_make_temp_dir(char **ret, const char *prefix, struct err *err)
{
    const char *base = getenv("TMPDIR");

    char *path = xasprintf("%s/%s.XXXXXX", base && base[0] ? base : "/tmp", prefix);
    if (!mkdtemp(path)) {
        int rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be created", path);

        free(path);
        return rc;
    }
    *ret = path;
    return 0;
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
