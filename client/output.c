#include "client/output.h"

#include "client/show.h"
#include "common/file.h"
#include "common/printable.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
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

int output_page(const char *path, const void *data, size_t len, bool quiet, struct err *err)
{
    if (strcmp(path, "-") == 0) {
        return output_write(data, len, err);
    }
    int rc = file_write_named(path, data, len, false, err);
    if (rc == 0 && !quiet) {
        printable_printf(stderr, "kcast: wrote %s\n", path);
    }
    return rc;
}

bool output_is_closed(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    // poll(2) sets POLLERR for the writing end of a pipe that nobody reads.
    return ferror(stdout) && poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

static void end_by_signal(void)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)raise(SIGPIPE);
    _exit(128 + SIGPIPE); // when the signal is blocked
}

bool output_wants_json(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            return true;
        }
    }
    return false;
}

int output_end(const char *program, bool json, int exit_code, struct err *err)
{
    if (err->code != ERR_NONE && json) {
        show_print(json_pack("{s:o}", "error", show_error(err)));
    }
    int flushed = output_flush() ? 0 : errno;
    if (output_is_closed()) {
        end_by_signal();
    }
    if (err->code == ERR_NONE && flushed != 0) {
        exit_code = err_exit(err_set_errno(err, ERR_SYSTEM, flushed, "cannot write the output"));
    }
    if (err->code != ERR_NONE) {
        printable_printf(stderr, "%s: %s\n", program, err->text);
    }
    return exit_code;
}
