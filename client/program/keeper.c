// Design note. The keeper is forked and not executed, so it may only make calls that are safe in
// the child of a process with threads: no memory is allocated after fork. It is a child subreaper:
// processes whose parents end become its children, so that also those are found that have left the
// program's session.
#include "client/program/keeper.h"

#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIFE 3          // descriptors of the keeper
#define STATUS 4        // its report
#define SIGNALS 5       // a signalfd
#define PAUSE_MS 10     // between two looks for processes that do not end
#define LOOKS_MAX 500   // after so many the keeper gives up: such a process waits for the kernel
#define PLACES_MAX 6    // descriptors that are placed
#define NOT_STARTED 127 // what a shell says, too

struct pipes {
    int output[2], errors[2], status[2], life[2];
    int ready[2]; // ends when nobody of the new processes has our descriptors any more
};

// ---- in the keeper ----

static void reset_signals(void)
{
    struct sigaction plain;

    memset(&plain, 0, sizeof(plain));
    plain.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++) {
        (void)sigaction(number, &plain, NULL);
    }
}

static void close_from(unsigned first)
{
    if (syscall(SYS_close_range, first, ~0U, 0) != 0) {
        for (int fd = (int)first; fd < 4096; fd++) {
            (void)close(fd);
        }
    }
}

// Puts the descriptors at 0, 1, 2 …, through numbers that none of them has.
static void place(const int *fd, int count)
{
    int high[PLACES_MAX];

    for (int i = 0; i < count; i++) {
        high[i] = fcntl(fd[i], F_DUPFD, 16);
    }
    for (int i = 0; i < count; i++) {
        (void)dup2(high[i], i);
    }
    close_from((unsigned)count);
}

static void run_program(const char *command, int input, const struct pipes *pipes)
{
    const char *argument[] = {"sh", "-c", command, NULL};
    const int fd[] = {input, pipes->output[1], pipes->errors[1]};
    sigset_t none;

    place(fd, 3);
    (void)setpgid(0, 0);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execve("/bin/sh", (char *const *)(const void *)argument, environ);
    _exit(NOT_STARTED);
}

// Kills all children of the keeper, whose numbers the kernel lists.
static void kill_children(void)
{
    char text[4096];
    pid_t pid = 0;
    ssize_t len;
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

    while (fd >= 0 && (len = read(fd, text, sizeof(text))) > 0) {
        for (ssize_t i = 0; i < len; i++) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid > 0) {
                (void)kill(pid, SIGKILL);
                pid = 0;
            }
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}

// Collects processes that have ended. Returns whether any is left.
static bool collect(pid_t program, int *status, bool *ended)
{
    int one;
    pid_t pid;

    while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
        if (pid == program) {
            *status = one;
            *ended = true;
        }
    }
    return pid == 0;
}

// Waits for an event: a child's end, or the end of life. Returns whether life has ended.
static bool wait_event(int limit_ms)
{
    struct pollfd poll_on[] = {{.fd = SIGNALS, .events = POLLIN}, {.fd = LIFE, .events = POLLIN}};
    struct signalfd_siginfo info;

    (void)poll(poll_on, 2, limit_ms);
    if (poll_on[0].revents != 0) {
        (void)!read(SIGNALS, &info, sizeof(info));
    }
    return poll_on[1].revents != 0;
}

static void keep(pid_t program)
{
    int status = SIGKILL; // as if it were killed, should nobody know
    bool ended = false;
    int looks = 0;

    while (collect(program, &status, &ended) && !ended && !wait_event(-1)) {
    }
    do {
        (void)kill(-program, SIGKILL);
        kill_children();
    } while (collect(program, &status, &ended) && ++looks < LOOKS_MAX &&
             (poll(NULL, 0, PAUSE_MS), true));
    (void)!write(STATUS, &status, sizeof(status));
}

static void keeper(const char *command, int input, const struct pipes *pipes)
{
    sigset_t child;

    reset_signals();
    (void)setsid();
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    int signals = signalfd(-1, &child, SFD_NONBLOCK); // the caller has blocked all signals
    pid_t program = fork();
    if (program == 0) {
        run_program(command, input, pipes);
    }
    int null = open("/dev/null", O_RDWR);
    const int fd[PLACES_MAX] = {null, null, null, pipes->life[0], pipes->status[1], signals};

    place(fd, PLACES_MAX);
    if (program > 0) {
        keep(program);
    }
    _exit(0);
}

// ---- in the caller ----

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0) {
            close(pair[i]);
        }
    }
}

static int open_pipes(struct pipes *ret, struct err *err)
{
    int *pair[] = {ret->output, ret->errors, ret->status, ret->life, ret->ready};

    for (size_t i = 0; i < ARRAY_LEN(pair); i++) {
        pair[i][0] = pair[i][1] = -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(pair); i++) {
        if (pipe2(pair[i], O_CLOEXEC) != 0) {
            int rc = err_set_errno(err, ERR_SYSTEM, errno, "pipes for a program");
            for (size_t k = 0; k < ARRAY_LEN(pair); k++) {
                close_pair(pair[k]);
            }
            return rc;
        }
    }
    return 0;
}

int keeper_start(struct keeper *ret, const char *command, int input, struct err *err)
{
    struct pipes pipes;
    int rc = open_pipes(&pipes, err);

    if (rc != 0) {
        return rc;
    }
    // No handler of ours may run in the child.
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        keeper(command, input, &pipes);
    }
    int why = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        close_pair(pipes.output);
        close_pair(pipes.errors);
        close_pair(pipes.status);
        close_pair(pipes.life);
        close_pair(pipes.ready);
        return err_set_errno(err, ERR_SYSTEM, why, "a process for a program");
    }
    // Locks of ours are held until then.
    char none;
    close(pipes.ready[1]);
    while (read(pipes.ready[0], &none, 1) < 0 && errno == EINTR) {
    }
    close(pipes.ready[0]);
    *ret = (struct keeper){.pid = pid,
                           .output = pipes.output[0],
                           .errors = pipes.errors[0],
                           .status = pipes.status[0],
                           .life = pipes.life[1]};
    close(pipes.output[1]);
    close(pipes.errors[1]);
    close(pipes.status[1]);
    close(pipes.life[0]);
    return 0;
}
