#include "executor/sandbox/zygote.h"
#include "executor/sandbox/process.h"
#include "executor/sandbox/root.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum request_op { REQUEST_ENTER = 1, REQUEST_SPAWN, REQUEST_SPAWN_GROUP };

struct request {
    enum request_op op;
    struct sandbox sandbox; // of REQUEST_ENTER
    size_t spec_len;        // of the others, as is the next
    unsigned char spec[ZYGOTE_SPEC_MAX];
};

enum reply_op { REPLY_MAP = 1, REPLY_DONE };

// Sent by the zygote. REPLY_MAP asks the parent to write id maps, and the zygote then waits for a
// struct map_result. REPLY_DONE ends the request.
struct reply {
    enum reply_op op;
    pid_t pid;   // in REPLY_MAP the zygote as /proc shows it; in REPLY_DONE the spawned child
    pid_t group; // in REPLY_DONE to REQUEST_SPAWN_GROUP, also after a failure; 0: there is none
    struct err err;
};

// Sent by the parent after it has written the maps, or failed to.
struct map_result {
    struct err err;
};

// ---- the zygote's side ----

static int ask_for_maps(void *context, pid_t pid, struct err *err)
{
    int socket = *(int *)context;
    struct reply question = {.op = REPLY_MAP, .pid = pid};
    struct map_result mapped;

    if (fd_message_send(socket, &question, sizeof(question), NULL, 0) != 0 ||
        fd_message_receive(socket, &mapped, sizeof(mapped), NULL, NULL) != sizeof(mapped)) {
        return err_set(err, ERR_SANDBOX, "the parent did not write the id maps");
    }
    return mapped.err.code == ERR_NONE ? 0 : err_set(err, mapped.err.code, "%s", mapped.err.text);
}

// Clones a process whose parent is this one's parent.
static pid_t clone_sibling(unsigned long flags)
{
    return (pid_t)syscall(SYS_clone, SANDBOX_FORK_FLAGS | flags, 0, 0, 0, 0);
}

// Calls exit_group directly, because a sanitizer's _exit makes calls that a confined process may
// not.
static void leave(int status)
{
    for (;;) {
        (void)syscall(SYS_exit_group, status);
    }
}

// Replaces stdin and stdout by /dev/null and closes the rest. The parent's stdin carries the plan
// and its stdout the outcome: neither may stay open in a child.
static void replace_parent_files(int socket)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
    } else {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
    }
    sandbox_close_files(&socket, 1);
}

// The first process of a pid namespace. It does nothing, and everything in the namespace ends with
// it: when kcast-exec has ended, or the zygote has been released.
static void idle(const struct zygote_child *child)
{
    struct pollfd parent = {.fd = child->alive_fd}; // POLLHUP is always asked for
    struct err ignored = ERR_INIT;

    if (sandbox_drop(child->sandbox, child->alive_fd, &ignored) != 0) {
        return;
    }
    sandbox_close_files(&child->alive_fd, 1);
    while (poll(&parent, 1, -1) <= 0) {
    }
}

// The pids of a group, written by its first process to the zygote.
struct group_report {
    pid_t pid; // the child
    struct err err;
};

// The first process of a group: makes the group and its pid namespace, clones what is to be in
// them, and ends. A process can make one namespace for its children, so that the zygote itself
// cannot do this more than once.
static void make_group(const struct zygote_child *child,
                       int (*child_main)(const struct zygote_child *), int report_fd)
{
    struct group_report report = {.pid = 0};
    int rc = 0;

    if (setpgid(0, 0) != 0) {
        rc = err_set_errno(&report.err, ERR_SANDBOX, errno, "a group for a sandboxed process");
    } else if (!child->sandbox->off) {
        if (unshare(CLONE_NEWPID) != 0) {
            rc = err_set_errno(&report.err, ERR_SANDBOX, errno, "a pid namespace");
        } else {
            pid_t first = clone_sibling(0);
            if (first == 0) {
                idle(child);
                leave(0);
            }
            if (first < 0) {
                rc = err_set_errno(&report.err, ERR_SANDBOX, errno,
                                   "cloning the first process of a pid namespace");
            }
        }
    }
    if (rc == 0) {
        report.pid = clone_sibling(0);
        if (report.pid == 0) {
            close(report_fd);
            leave(child_main(child));
        }
        if (report.pid < 0) {
            (void)err_set_errno(&report.err, ERR_SANDBOX, errno, "cloning a sandboxed process");
        }
    }
    (void)!write(report_fd, &report, sizeof(report));
    leave(0);
}

static int spawn_group(const struct zygote_child *child,
                       int (*child_main)(const struct zygote_child *), struct reply *reply,
                       struct err *err)
{
    int pipe_end[2];

    if (pipe2(pipe_end, O_CLOEXEC) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "a pipe for the sandbox");
    }
    reply->group = clone_sibling(0);
    if (reply->group == 0) {
        make_group(child, child_main, pipe_end[1]);
    }
    close(pipe_end[1]);
    struct group_report report;
    ssize_t n = -1;
    int rc = 0;
    if (reply->group < 0) {
        reply->group = 0;
        rc = err_set_errno(err, ERR_SANDBOX, errno, "cloning a sandboxed process");
        goto out;
    }
    n = read(pipe_end[0], &report, sizeof(report));
    if (n != (ssize_t)sizeof(report)) {
        rc = err_set(err, ERR_SANDBOX, "the first process of a sandbox ended unexpectedly");
    } else if (report.err.code != ERR_NONE) {
        rc = err_set(err, report.err.code, "%s", report.err.text);
    } else {
        reply->pid = report.pid;
    }
out:
    close(pipe_end[0]);
    return rc;
}

static int spawn(const struct zygote_child *child, int (*child_main)(const struct zygote_child *),
                 struct reply *reply, struct err *err)
{
    reply->pid = clone_sibling(child->sandbox->off ? 0 : CLONE_NEWPID);
    if (reply->pid == 0) {
        leave(child_main(child));
    }
    return reply->pid > 0 ? 0
                          : err_set_errno(err, ERR_SANDBOX, errno, "cloning a sandboxed process");
}

static void zygote_main(int socket, int (*child_main)(const struct zygote_child *),
                        const void *context)
{
    static struct request request;
    struct root_mapper mapper = {.map = ask_for_maps, .context = &socket};

    replace_parent_files(socket);
    struct sandbox sandbox = {.off = true};
    int fd[ZYGOTE_FD_MAX];
    size_t fd_count;
    for (;;) {
        ssize_t n = fd_message_receive(socket, &request, sizeof(request), fd, &fd_count);
        if (n != (ssize_t)sizeof(request)) {
            _exit(0);
        }
        struct reply reply = {.op = REPLY_DONE};
        if (request.op == REQUEST_ENTER) {
            sandbox = request.sandbox;
            (void)!root_enter(&sandbox, &mapper, &reply.err);
        } else {
            struct zygote_child child = {.sandbox = &sandbox,
                                         .spec = request.spec,
                                         .spec_len = request.spec_len,
                                         .fd = fd,
                                         .fd_count = fd_count,
                                         .alive_fd = socket,
                                         .context = context};
            (void)!(request.op == REQUEST_SPAWN_GROUP ? spawn_group : spawn)(&child, child_main,
                                                                             &reply, &reply.err);
        }
        for (size_t i = 0; i < fd_count; i++) {
            close(fd[i]);
        }
        if (fd_message_send(socket, &reply, sizeof(reply), NULL, 0) != 0) {
            _exit(0);
        }
    }
}

// ---- the parent's side ----

int zygote_create(struct zygote *zygote, int (*child_main)(const struct zygote_child *),
                  const void *context, struct err *err)
{
    pid_t parent = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "socketpair");
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        int failed = errno;
        close(pair[0]);
        close(pair[1]);
        return err_set_errno(err, ERR_SYSTEM, failed, "fork");
    }
    if (pid == 0) {
        close(pair[0]);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent) {
            _exit(0);
        }
        zygote_main(pair[1], child_main, context);
    }
    close(pair[1]);
    zygote->pid = pid;
    zygote->socket = pair[0];
    return 0;
}

static int exchange(struct zygote *zygote, const struct request *request, const int *fd,
                    size_t fd_count, struct reply *ret, struct err *err)
{
    if (fd_message_send(zygote->socket, request, sizeof(*request), fd, fd_count) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno,
                             "the sandbox's helper process does not listen");
    }
    for (;;) {
        if (fd_message_receive(zygote->socket, ret, sizeof(*ret), NULL, NULL) !=
            (ssize_t)sizeof(*ret)) {
            return err_set(err, ERR_SANDBOX, "the sandbox's helper process ended unexpectedly");
        }
        if (ret->op == REPLY_DONE) {
            return ret->err.code == ERR_NONE ? 0 : err_set(err, ret->err.code, "%s", ret->err.text);
        }
        struct map_result mapped = {.err = ERR_INIT};
        (void)!root_write_maps(ret->pid, &mapped.err);
        if (fd_message_send(zygote->socket, &mapped, sizeof(mapped), NULL, 0) != 0) {
            return err_set(err, ERR_SANDBOX, "the sandbox's helper process ended unexpectedly");
        }
    }
}

int zygote_enter(struct zygote *zygote, const struct sandbox *sandbox, struct err *err)
{
    struct request request = {.op = REQUEST_ENTER, .sandbox = *sandbox};
    struct reply reply;

    return exchange(zygote, &request, NULL, 0, &reply, err);
}

static int request_child(struct zygote *zygote, enum request_op op, const void *spec,
                         size_t spec_len, const int *fd, size_t fd_count, struct reply *ret,
                         struct err *err)
{
    struct request request = {.op = op, .spec_len = spec_len};

    if (spec_len > ZYGOTE_SPEC_MAX || fd_count > ZYGOTE_FD_MAX) {
        return err_set(err, ERR_LIMIT, "too much for one child");
    }
    memcpy(request.spec, spec, spec_len);
    return exchange(zygote, &request, fd, fd_count, ret, err);
}

int zygote_spawn(struct zygote *zygote, const void *spec, size_t spec_len, const int *fd,
                 size_t fd_count, pid_t *ret_pid, struct err *err)
{
    struct reply reply = {.pid = 0};
    int rc = request_child(zygote, REQUEST_SPAWN, spec, spec_len, fd, fd_count, &reply, err);

    if (rc == 0) {
        *ret_pid = reply.pid;
    }
    return rc;
}

int zygote_spawn_group(struct zygote *zygote, const void *spec, size_t spec_len, const int *fd,
                       size_t fd_count, pid_t *ret_group, pid_t *ret_pid, struct err *err)
{
    struct reply reply = {.group = 0};
    int rc = request_child(zygote, REQUEST_SPAWN_GROUP, spec, spec_len, fd, fd_count, &reply, err);

    if (rc == 0) {
        process_reap(reply.group, NULL); // the first process has done its work
        *ret_group = reply.group;
        *ret_pid = reply.pid;
    } else if (reply.group != 0) {
        process_end_group(reply.group);
    }
    return rc;
}

void zygote_release(struct zygote *zygote)
{
    if (zygote->pid > 0) {
        close(zygote->socket);
        (void)kill(zygote->pid, SIGKILL);
        process_reap(zygote->pid, NULL);
    }
    *zygote = (struct zygote){.socket = -1};
}
