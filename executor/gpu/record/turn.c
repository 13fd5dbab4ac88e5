#include "executor/gpu/record/turn.h"
#include "common/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int turn_open(const char *device, struct err *err)
{
    char *path = xasprintf("%s/kcast-context-%u-%s", file_temp_folder(), (unsigned)geteuid(),
                           device ? device : "0");
    int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int failed = errno;

    if (fd < 0) {
        fd = err_set_errno(err, ERR_SYSTEM, failed, "%s: cannot be opened", path);
    }
    free(path);
    return fd;
}
