#include "client/output.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

// The errno of the first failure, which stdout itself remembers as a mere flag.
static int failure;

bool output_flush(void)
{
    bool failed = ferror(stdout);
    errno = 0;
    if (fflush(stdout) == 0 && !failed) {
        return true;
    }
    if (failure == 0) {
        failure = errno != 0 ? errno : EIO; // printf() failed, and its reason is not known any more
    }
    errno = failure;
    return false;
}

int output_write(const void *data, size_t len, struct err *err)
{
    errno = 0;
    if (fwrite(data, 1, len, stdout) < len && failure == 0) {
        failure = errno;
    }
    return output_flush() ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "cannot write the output");
}

bool output_is_closed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    // poll(2) sets POLLERR for the writing end of a pipe that nobody reads.
    return ferror(stdout) && poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

void output_end_by_signal(void)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
    _exit(128 + SIGPIPE); // when the signal is blocked
}
