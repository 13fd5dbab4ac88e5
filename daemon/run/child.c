// Design note. The child gets a session of its own, so that one kill reaches its process group. It
// also gets three socket pairs, a small environment and no other descriptor, because every other
// one is close-on-exec. Three things have to happen before it is over: the process has been reaped,
// stdout is at its end, and stderr is at its end. Then the handles are closed, and the last close
// callback tells the owner.
//
//   RUNNING      --limit, child_terminate-->     TERMINATING (SIGTERM was sent)
//   TERMINATING  --grace period-->               KILLED (SIGKILL was sent)
//   RUNNING      --child_kill-->                 KILLED
//   KILLED       --STUCK_MS-->                   told as stuck
//   any          --process reaped-->             DRAINING (the pipes get DRAIN_MS to end)
//
// Descendants. The process group is killed when the child has ended. The kernel hands a descendant
// that has left the group to this process (orphans.h): a child process of ours that is not in the
// list is such an orphan and is killed. kcast-exec itself never orphans a process while it lives.
// With control groups the child enters a group of its own (--cgroup) before it has any descendant,
// and whatever is left in the group is killed when the child has ended.
//
// A child that is stuck (uninterruptible in the kernel) is told once, and its owner forgets it. Its
// handles stay open until it is gone or the program ends.
#include "daemon/run/child.h"
#include "daemon/run/child_inside.h"
#include "daemon/run/environment.h"
#include "daemon/run/orphans.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#define DRAIN_MS 1000  // from the process's end until its pipes no longer matter
#define STUCK_MS 10000 // from SIGKILL until the process counts as stuck

int children_create(struct children **ret, uv_loop_t *loop, const char *path, const char *scratch,
                    struct cgroups *cgroups, struct err *err)
{
    if (access(path, X_OK) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: kcast-exec cannot be run", path);
    }
    int rc = orphans_adopt(err);
    if (rc != 0) {
        return rc;
    }
    struct children *children = xcalloc(1, sizeof(*children));
    children->loop = loop;
    children->path = xstrdup(path);
    children->cgroups = cgroups;
    children->environment = environment_create(scratch);
    *ret = children;
    return 0;
}

void children_free(struct children *children)
{
    if (children) {
        environment_free(children->environment);
        free(children->path);
        free(children);
    }
}

size_t children_count(const struct children *children)
{
    return children->count;
}

// Signals the process group, and the process itself because the group does not exist between fork
// and setsid.
static void signal_child(const struct child *child, int number)
{
    if (!child->reaped) {
        (void)kill(-child->process.pid, number);
        (void)kill(child->process.pid, number);
    }
}

void children_kill(struct children *children)
{
    struct child *child;

    DL_FOREACH (children->live, child) {
        signal_child(child, SIGKILL);
    }
}

static bool is_live(void *owner, pid_t pid)
{
    const struct children *children = owner;
    const struct child *child;

    DL_FOREACH (children->live, child) {
        if (child->process.pid == pid) {
            return true;
        }
    }
    return false;
}

void children_sweep(struct children *children)
{
    orphans_sweep(is_live, children);
    cgroups_sweep(children->cgroups);
}

// --- the end

static void tell(struct child *child)
{
    void (*on_end)(void *, const struct child_end *) = child->on_end;

    if (on_end) {
        child->on_end = NULL;
        on_end(child->owner, &child->end);
    }
}

// Sets the reason of the end. The first thing that went wrong is the one that is told.
static void blame(struct child *child, const char *what)
{
    struct child_end *end = &child->end;

    if (end->reason[0] == '\0') {
        (void)snprintf(end->reason, sizeof(end->reason), "kcast-exec %s %s", child->mode, what);
    }
}

static void blame_exit(struct child *child)
{
    char line[TAIL_LINE_MAX];

    tail_last_line(&child->tail, line);
    char how[512];
    if (child->cgroup && cgroup_out_of_memory(child->cgroup)) {
        (void)snprintf(how, sizeof(how), "ran out of the memory that its control group may use");
    } else if (child->term_signal != 0) {
        (void)snprintf(how, sizeof(how), "was ended by signal %d (%s)", child->term_signal,
                       strsignal(child->term_signal));
    } else {
        (void)snprintf(how, sizeof(how), "ended with exit code %lld",
                       (long long)child->exit_status);
    }
    if (line[0]) {
        (void)snprintf(how + strlen(how), sizeof(how) - strlen(how), ": %s", line);
    }
    blame(child, how);
}

static void free_child(struct child *child)
{
    bytes_clear(&child->body);
    free(child->mode);
    free(child->argument);
    free(child);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;

    if (--child->open_handles > 0) {
        return;
    }
    DL_DELETE(child->children->live, child);
    child->children->count--;
    cgroup_end(child->cgroup);
    children_sweep(child->children);
    tell(child);
    free_child(child);
}

void child_close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_handle_closed);
    }
}

static void close_all(struct child *child)
{
    if (child->closing) {
        return;
    }
    child->closing = true;
    child_close_handle((uv_handle_t *)&child->process);
    child_close_handle((uv_handle_t *)&child->input);
    child_close_handle((uv_handle_t *)&child->output);
    child_close_handle((uv_handle_t *)&child->errors);
    child_close_handle((uv_handle_t *)&child->timer);
}

// The process has ended, and its outputs have too, or have had DRAIN_MS for that.
static void finish(struct child *child)
{
    struct child_end *end = &child->end;

    if (child->closing) {
        return;
    }
    if (!child->output_ended) {
        blame(child, "ended, but something else holds its output open");
    }
    end->ok = end->reason[0] == '\0' && child->exit_status == 0 && child->term_signal == 0;
    if (!end->ok) {
        blame_exit(child);
    }
    close_all(child);
}

void child_maybe_finish(struct child *child)
{
    if (child->reaped && child->output_ended && child->errors_ended) {
        finish(child);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct child *child = timer->data;
    char what[64];

    switch (child->state) {
    case CHILD_RUNNING:
        child_terminate(child, child->limit);
        return;
    case CHILD_TERMINATING:
        child_kill(child, "did not end");
        return;
    case CHILD_KILLED:
        child->end.stuck = true;
        child->end.reason[0] = '\0'; // this is worse than any earlier reason
        (void)snprintf(what, sizeof(what), "(process %d) does not die", child->process.pid);
        blame(child, what);
        tell(child);
        return;
    case CHILD_DRAINING:
        finish(child);
        return;
    }
}

void child_limit(struct child *child, uint64_t ms, const char *what)
{
    if (child->state != CHILD_RUNNING) {
        return;
    }
    child->limit = what;
    if (ms > 0) {
        (void)uv_timer_start(&child->timer, on_timer, ms, 0);
    } else {
        (void)uv_timer_stop(&child->timer);
    }
}

void child_terminate(struct child *child, const char *what)
{
    if (child->state == CHILD_RUNNING) {
        blame(child, what);
        child->state = CHILD_TERMINATING;
        signal_child(child, SIGTERM);
        (void)uv_timer_start(&child->timer, on_timer, child->grace_ms, 0);
    }
}

void child_kill(struct child *child, const char *what)
{
    if (child->state == CHILD_RUNNING || child->state == CHILD_TERMINATING) {
        blame(child, what);
        child->state = CHILD_KILLED;
        signal_child(child, SIGKILL);
        (void)uv_timer_start(&child->timer, on_timer, STUCK_MS, 0);
    }
}

bool child_is_ending(const struct child *child)
{
    return child->state != CHILD_RUNNING;
}

static void on_exit_status(uv_process_t *process, int64_t status, int term_signal)
{
    struct child *child = process->data;

    // The group may outlive its leader. Its number is not given to others while it has members.
    (void)kill(-process->pid, SIGKILL);
    if (child->cgroup) {
        cgroup_kill(child->cgroup);
    }
    child->reaped = true;
    child->exit_status = status;
    child->term_signal = term_signal;
    child->state = CHILD_DRAINING;
    (void)uv_timer_start(&child->timer, on_timer, DRAIN_MS, 0);
    child_maybe_finish(child);
}

// --- the start

static int spawn(struct child *child, struct err *err)
{
    struct children *children = child->children;
    char *group = child->cgroup ? xasprintf("--cgroup=%s", cgroup_dir(child->cgroup)) : NULL;
    char *args[5] = {children->path, child->mode};
    size_t count = 2;
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&child->input},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->output},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&child->errors},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_status,
        .file = children->path,
        .args = args,
        .env = children->environment,
        .cwd = "/",
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = 3,
        .stdio = stdio,
    };

    if (child->argument) {
        args[count++] = child->argument;
    }
    args[count] = group;
    int rc = uv_spawn(children->loop, &child->process, &options);
    free(group);
    return rc == 0 ? 0
                   : err_set(err, ERR_SYSTEM, "%s: cannot be started: %s", children->path,
                             uv_strerror(rc));
}

static int init_handles(struct child *child, struct err *err)
{
    uv_loop_t *loop = child->children->loop;
    uv_pipe_t *pipe[] = {&child->input, &child->output, &child->errors};

    for (size_t i = 0; i < ARRAY_LEN(pipe); i++) {
        // libuv fails here only when it has no memory; the handle is initialised all the same.
        if (uv_pipe_init(loop, pipe[i], 0) != 0) {
            return err_set(err, ERR_SYSTEM, "a pipe cannot be made");
        }
        pipe[i]->data = child;
    }
    if (uv_timer_init(loop, &child->timer) != 0) {
        return err_set(err, ERR_SYSTEM, "a timer cannot be made");
    }
    child->timer.data = child;
    child->process.data = child;
    child->write.data = child;
    child->open_handles = 5;
    return 0;
}

static struct child *new_child(struct children *children, const struct child_config *config)
{
    struct child *child = xcalloc(1, sizeof(*child));

    child->children = children;
    child->mode = xstrdup(config->mode);
    child->argument = config->argument ? xstrdup(config->argument) : NULL;
    child->grace_ms = config->grace_ms;
    child->on_output = config->on_output;
    child->on_end = config->on_end;
    child->owner = config->owner;
    return child;
}

int child_start(struct child **ret, struct children *children, const struct child_config *config,
                struct err *err)
{
    struct child *child = new_child(children, config);
    int rc = 0;

    if (children->cgroups) {
        rc = cgroup_create(&child->cgroup, children->cgroups, &config->limits, err);
    }
    if (rc != 0) {
        free_child(child); // nothing is started without its limits
        return rc;
    }
    if (init_handles(child, err) != 0) {
        abort(); // libuv cannot fail here on Linux
    }
    DL_APPEND(children->live, child);
    children->count++;
    rc = spawn(child, err);
    if (rc != 0) {
        child->on_end = NULL;
        close_all(child);
        return rc;
    }
    child_read_pipes(child);
    *ret = child;
    return 0;
}
