#include "executor/gpu/record/turn.h"
#include "common/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// Whether the file is one that only this user can have locked.
static bool is_own(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

int turn_open(const char *device, struct err *err)
{
    char *path = xasprintf("%s/kcast-context-%u-%s", file_temp_folder(), (unsigned)geteuid(),
                           device ? device : "0");
    int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

    free(path);
    if (fd >= 0 && !is_own(fd)) {
        close(fd);
        fd = -1;
    }
    fd = fd < 0 ? memfd_create("turn", MFD_CLOEXEC) : fd;
    return fd < 0 ? err_set_errno(err, ERR_SYSTEM, errno, "memory for a turn") : fd;
}
