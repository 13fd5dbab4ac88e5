// Design note. The program runs with a pipe as its stdout and no other descriptor of this process.
// Whatever goes wrong, it is killed and reaped before disassemble returns.
#include "executor/gpu/compile/disassemble.h"
#include "common/clock.h"
#include "executor/sandbox/process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static bool put_file(const char *path, const struct bytes *cubin)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    size_t done = 0;

    while (fd >= 0 && done < cubin->len) {
        ssize_t n = write(fd, cubin->data + done, cubin->len - done);

        if (n <= 0 && errno != EINTR) {
            break;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return fd >= 0 && close(fd) == 0 && done == cubin->len;
}

// Starts the program with `out` as its stdout.
static bool start(const struct disassembler *disassembler, int out, pid_t *ret_pid)
{
    // -c: code only; -ndf: no analysis of the control flow.
    const char *const argv[] = {disassembler->program, "-c", "-ndf", disassembler->file, NULL};
    char *const environment[] = {(char[]){"LC_ALL=C"}, NULL};
    posix_spawn_file_actions_t actions;

    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    bool ok =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_addclosefrom_np(&actions, 3) == 0 &&
        posix_spawn(ret_pid, disassembler->program, &actions, NULL, (char *const *)(uintptr_t)argv,
                    environment) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return ok;
}

static int left_ms(uint64_t end_ns)
{
    uint64_t now = clock_now_ns(&clock_system);

    return now < end_ns ? (int)((end_ns - now) / NS_PER_MS) + 1 : 0;
}

// Reads to the end of the stream. Returns false when that comes too late or the text does not fit.
static bool read_text(int fd, uint64_t end_ns, char *text, size_t room, size_t *ret_len)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    size_t len = 0;

    while (len < room) {
        int left = left_ms(end_ns);

        if (left == 0 || (poll(&ready, 1, left) < 0 && errno != EINTR)) {
            return false;
        }
        if (ready.revents == 0) {
            continue;
        }
        ssize_t n = read(fd, text + len, room - len);
        if (n == 0) {
            *ret_len = len;
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        len += n > 0 ? (size_t)n : 0;
        ready.revents = 0;
    }
    return false;
}

// Reaps the program, which is killed at end_ns. Returns whether it has succeeded before.
static bool await_end(pid_t pid, uint64_t end_ns)
{
    int status = -1;

    if (!process_wait(pid, left_ms(end_ns) / 1e3, &status)) {
        (void)kill(pid, SIGKILL);
        process_reap(pid, &status);
        return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool disassemble(const struct disassembler *disassembler, const struct bytes *cubin, double seconds,
                 char *text, size_t room, size_t *ret_len)
{
    int pipes[2];

    if (seconds <= 0 || !put_file(disassembler->file, cubin) || pipe2(pipes, O_CLOEXEC) != 0) {
        return false;
    }
    uint64_t end_ns = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    pid_t pid;
    bool ok = start(disassembler, pipes[1], &pid);
    close(pipes[1]);
    size_t len = 0;
    if (ok) {
        ok = read_text(pipes[0], end_ns, text, room, &len);
        ok = await_end(pid, ok ? end_ns : 0) && ok;
    }
    close(pipes[0]);
    if (ok) {
        *ret_len = len;
    }
    return ok;
}
