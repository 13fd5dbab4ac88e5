// Files whose names users have given. Replacing one by rename(2), as everywhere else, would turn a
// symbolic link or /dev/null into a regular file.
#include "common/file.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_into(const char *path, const void *data, size_t len, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be opened", path);
    }
    int rc = file_write_fd(fd, data, len, path, err);
    if (close(fd) != 0 && errno != EINTR && rc == 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be closed", path);
    }
    return rc;
}

int file_write_named(const char *path, const void *data, size_t len, bool durable, struct err *err)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        return lstat(path, &info) == 0
                   ? err_set(err, ERR_NOT_FOUND,
                             "%s: it is a symbolic link to a file that is not there", path)
                   : file_replace(path, data, len, durable, err);
    }
    if (!S_ISREG(info.st_mode)) {
        return write_into(path, data, len, err);
    }
    char *real = realpath(path, NULL);
    int rc = real ? file_replace(real, data, len, durable, err)
                  : err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    free(real);
    return rc;
}

int file_check_output(const char *path, const char *input, struct err *err)
{
    struct stat to, from;

    return stat(path, &to) == 0 && stat(input, &from) == 0 && to.st_dev == from.st_dev &&
                   to.st_ino == from.st_ino
               ? err_set(err, ERR_USAGE, "%s is the file that is read; write to another one", path)
               : 0;
}
