#include "executor/cpu/runner_process.h"
#include "common/clock.h"
#include "executor/sandbox/process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_child(int number)
{
    (void)number;
}

// Pins a process to one core.
static bool pin(pid_t pid, size_t core)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(pid, sizeof(one), &one) == 0;
}

int runner_process_prepare_harness(uint64_t core, const struct zygote *zygote, struct err *err)
{
    struct sigaction action = {.sa_handler = on_child}; // without SA_RESTART waits end with EINTR
    cpu_set_t allowed;

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGCHLD, &action, NULL);
    if (core < CPU_SETSIZE && pin(0, core) && pin(zygote->pid, core)) {
        return 0;
    }
    for (size_t cpu = 0;
         core == 0 && cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
         cpu++) {
        if (CPU_ISSET(cpu, &allowed) && pin(0, cpu) && pin(zygote->pid, cpu)) {
            return 0;
        }
    }
    return err_set(err, ERR_SYSTEM, "cannot run on core %llu", (unsigned long long)core);
}

// ---- start ----

static int make_control(struct runner_process *runner, struct err *err)
{
    runner->control_fd = memfd_create("control", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (runner->control_fd < 0 || ftruncate(runner->control_fd, sizeof(struct control)) != 0 ||
        fcntl(runner->control_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory of the control page");
    }
    runner->control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED,
                           runner->control_fd, 0);
    if (runner->control == MAP_FAILED) {
        runner->control = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "mapping the control page");
    }
    return 0;
}

static int make_object(const struct bytes *object, int *ret, struct err *err)
{
    size_t at = 0;
    int fd = memfd_create("object", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    while (fd >= 0 && at < object->len) {
        ssize_t n = write(fd, object->data + at, object->len - at);
        if (n <= 0) {
            close(fd);
            fd = -1;
        } else {
            at += (size_t)n;
        }
    }
    if (fd < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory of an object");
    }
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
    *ret = fd;
    return 0;
}

// The harness's end is told which process sent a message.
static int make_socket(int ret_pair[2], struct err *err)
{
    int on = 1;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_pair) != 0 ||
        setsockopt(ret_pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "socket to a runner");
    }
    return 0;
}

int runner_process_start(struct runner_process *runner, struct zygote *zygote,
                         const struct bytes *object, uint64_t max_memory, uint64_t cpu_seconds,
                         uint64_t nonce_key, uint32_t index, bool preload, struct err *err)
{
    struct runner_spec spec = {.role = CHILD_RUNNER,
                               .object_size = object->len,
                               .max_memory = max_memory,
                               .cpu_seconds = cpu_seconds,
                               .index = index,
                               .preload_vector_math = preload,
                               .map_count = runner->pointer_count};
    int fd[RUNNER_FIRST_MAP + CONTROL_POINTER_MAX], object_fd = -1;
    int pipe_end[2] = {-1, -1}, pair[2] = {-1, -1};

    runner->output = -1;
    runner->socket = 0;
    runner->nonce_key = nonce_key;
    int rc = make_control(runner, err);
    if (rc != 0) {
        goto out;
    }
    rc = make_object(object, &object_fd, err);
    if (rc != 0) {
        goto out;
    }
    if (pipe2(pipe_end, O_CLOEXEC | O_NONBLOCK) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "pipe for a runner's output");
        goto out;
    }
    rc = make_socket(pair, err);
    if (rc != 0) {
        goto out;
    }
    fd[RUNNER_CONTROL] = runner->control_fd;
    fd[RUNNER_OBJECT] = object_fd;
    fd[RUNNER_OUTPUT] = pipe_end[1];
    fd[RUNNER_SOCKET] = pair[1];
    for (uint32_t i = 0; i < runner->pointer_count; i++) {
        fd[RUNNER_FIRST_MAP + i] = runner->pointer[i].buffer->fd;
        spec.map[i] = (struct runner_map){.size = runner->pointer[i].buffer->size,
                                          .writable = runner->pointer[i].writable};
    }
    rc = zygote_spawn_group(zygote, &spec, sizeof(spec), fd,
                            RUNNER_FIRST_MAP + runner->pointer_count, &runner->group, &runner->pid,
                            err);
    if (rc != 0) {
        goto out;
    }
    if (clock_getcpuclockid(runner->pid, &runner->pid_clock) != 0) {
        rc = err_set(err, ERR_SYSTEM, "the %s's processor clock cannot be read", runner->name);
    }
out:
    runner->output = pipe_end[0];
    runner->socket = pair[0] > 0 ? pair[0] : 0;
    if (pair[1] >= 0) {
        close(pair[1]);
    }
    if (pipe_end[1] >= 0) {
        close(pipe_end[1]);
    }
    if (object_fd >= 0) {
        close(object_fd);
    }
    return rc;
}

// ---- messages ----

static enum launch_outcome fail(struct runner_process *runner, enum runner_fault fault,
                                const char *text)
{
    runner->fault = fault;
    snprintf(runner->text, sizeof(runner->text), "%s", text);
    runner_printable(runner->text);
    return LAUNCH_DIED;
}

// Takes one message, if there is one. *ret_sender is the process that sent it.
static bool receive(struct runner_process *runner, struct runner_message *ret, pid_t *ret_sender)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec piece = {.iov_base = ret, .iov_len = sizeof(*ret)};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};

    if (recvmsg(runner->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) !=
        (ssize_t)sizeof(*ret)) {
        return false;
    }
    ret->text[RUNNER_TEXT_MAX - 1] = '\0';
    *ret_sender = 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_CREDENTIALS) {
        struct ucred sender;
        memcpy(&sender, CMSG_DATA(header), sizeof(sender));
        *ret_sender = sender.pid;
    }
    return true;
}

// Waits for a message. The clean parent's end is noticed after its last message has been taken.
static enum launch_outcome await_message(struct runner_process *runner,
                                         const struct runner_deadline *deadline,
                                         struct runner_message *ret, pid_t *ret_sender)
{
    for (;;) {
        bool ended =
            runner->pid == 0 || waitpid(runner->pid, &runner->status, WNOHANG) == runner->pid;
        uint64_t left = runner_deadline_left(deadline);
        struct pollfd wanted = {.fd = runner->socket, .events = POLLIN};
        struct timespec wait = {.tv_nsec = (long)left};

        runner->pid = ended ? 0 : runner->pid;
        if (receive(runner, ret, ret_sender)) {
            return LAUNCH_DONE;
        }
        if (ended) {
            return LAUNCH_DIED;
        }
        if (left == 0) {
            return LAUNCH_TIMEOUT;
        }
        (void)ppoll(&wanted, 1, &wait, NULL);
    }
}

enum launch_outcome runner_process_ready(struct runner_process *runner, uint64_t limit_ns)
{
    struct runner_deadline deadline = runner_deadline_begin(runner->pid_clock, limit_ns);
    struct runner_message message;
    pid_t sender;

    if (runner->pid == 0) {
        return LAUNCH_DIED;
    }
    while (!runner->loaded) {
        enum launch_outcome outcome = await_message(runner, &deadline, &message, &sender);

        if (outcome == LAUNCH_TIMEOUT) {
            runner_process_kill(runner);
            return outcome;
        }
        if (outcome == LAUNCH_DIED) {
            return fail(runner, runner->confined ? RUNNER_FAULT_LOAD : RUNNER_FAULT_SETUP,
                        "its first process ended unexpectedly");
        }
        if (message.kind == MESSAGE_LOADED && runner->confined) {
            runner->loaded = true;
        } else if (message.kind == MESSAGE_CONFINED && !runner->confined) {
            runner->confined = true;
        } else if (!runner->confined) {
            return fail(runner, RUNNER_FAULT_SETUP, message.text);
        } else {
            // Whatever it says: the object's code may have been running.
            runner->load_trap = message.kind;
            runner->load_call = message.value;
            return fail(runner, RUNNER_FAULT_LOAD, message.text);
        }
    }
    return LAUNCH_DONE;
}

// ---- renewing ----

// Opens the scheduler's counts of the child and of this process. /proc may belong to another pid
// namespace than this process, and then has other processes under these numbers.
static void open_delays(struct runner_process *runner)
{
    const pid_t pid[2] = {runner->child, getpid()};
    char self[32] = "";
    ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

    for (size_t i = 0; i < 2 && n > 0 && strtol(self, NULL, 10) == pid[1]; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/schedstat", pid[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        runner->delay_fd[i] = fd > 0 ? fd : 0;
    }
}

// Takes the child that has reported itself, if it is one.
static bool adopt(struct runner_process *runner, const struct runner_message *message, pid_t sender)
{
    int status;

    if (message->kind != MESSAGE_CHILD || sender <= 0 || sender == runner->pid ||
        waitpid(sender, &status, WNOHANG) != 0 ||
        clock_getcpuclockid(sender, &runner->clock) != 0) {
        return false;
    }
    runner->child = sender;
    open_delays(runner);
    return true;
}

// Ends the runner, of which no process can be renewed. Whatever made it fail, it was not the
// object's code: none has run in a child that has not begun to serve.
static enum launch_outcome fail_renew(struct runner_process *runner, enum launch_outcome outcome,
                                      const char *text)
{
    runner_process_kill(runner);
    (void)fail(runner, RUNNER_FAULT_SETUP, text);
    return outcome == LAUNCH_TIMEOUT ? outcome : LAUNCH_DIED;
}

enum launch_outcome runner_process_renew(struct runner_process *runner, uint64_t limit_ns)
{
    runner_end_child(runner);
    if (runner->pid == 0 || !runner->loaded) {
        return LAUNCH_DIED;
    }
    memset((unsigned char *)runner->control, 0, (size_t)sysconf(_SC_PAGESIZE)); // all of the page
    struct runner_request request = {.hello = runner_next_nonce(runner)};
    struct runner_deadline deadline = runner_deadline_begin(runner->pid_clock, limit_ns);
    struct runner_message message;
    pid_t sender;
    if (send(runner->socket, &request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        (ssize_t)sizeof(request)) {
        return fail_renew(runner, LAUNCH_DIED, "its clean process does not listen");
    }
    enum launch_outcome outcome = await_message(runner, &deadline, &message, &sender);
    if (outcome != LAUNCH_DONE) {
        return fail_renew(runner, outcome, "a fresh process did not start");
    }
    if (!adopt(runner, &message, sender)) {
        return fail_renew(runner, LAUNCH_DIED,
                          message.text[0] ? message.text : "a fresh process did not start");
    }
    outcome = runner_await_parked(runner, request.hello, limit_ns);
    if (outcome != LAUNCH_DONE) {
        bool unfiltered =
            WIFEXITED(runner->status) && WEXITSTATUS(runner->status) == RUNNER_EXIT_UNFILTERED;
        return fail_renew(runner, outcome,
                          unfiltered ? "a fresh process cannot be confined"
                                     : "a fresh process did not get ready");
    }
    runner->fault = RUNNER_FAULT_NONE;
    runner->mark_ns = runner_process_clock_ns(runner);
    return LAUNCH_DONE;
}

// ---- end ----

void runner_process_kill(struct runner_process *runner)
{
    runner_end_child(runner);
    if (runner->group != 0) {
        process_end_group(runner->group);
    }
    runner->group = runner->pid = 0;
}

void runner_process_release(struct runner_process *runner)
{
    runner_process_kill(runner);
    if (runner->control) {
        munmap(runner->control, sizeof(struct control));
        close(runner->control_fd);
    }
    if (runner->output > 0) {
        close(runner->output);
    }
    if (runner->socket > 0) {
        close(runner->socket);
    }
    *runner = (struct runner_process){.output = -1};
}
