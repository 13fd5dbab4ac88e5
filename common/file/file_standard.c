// Part of common/file.h: what a program finds at the descriptors 0, 1 and 2.
#include "common/file.h"

#include "common/exit.h"
#include <errno.h>
#include <fcntl.h>
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
