// Part of common/file.h: what a program finds at the descriptors 0, 1 and 2.
#include "common/file.h"

#include "common/exit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void file_open_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        // open(2) takes the lowest free number, which is fd: those below it are open by now.
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
            _exit(EXIT_SYSTEM);
        }
    }
}

int file_flush_stdout(struct err *err)
{
    bool failed = ferror(stdout); // an earlier printf() has failed, whose reason is not known
    errno = 0;
    if (fflush(stdout) == 0 && !failed) {
        return 0;
    }
    return err_set_errno(err, ERR_SYSTEM, errno != 0 ? errno : EIO, "cannot write the output");
}
