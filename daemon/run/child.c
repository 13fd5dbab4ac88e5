// Theory of operation. The child gets a session of its own (so one kill reaches its process group),
// three socket pairs, a small environment and no other descriptor (everything else is CLOEXEC).
// Three things have to happen before it is over: the process has been reaped, stdout is at its end,
// stderr is at its end. Then the handles are closed, and the last close callback tells the owner.
//
//   RUNNING      --limit, child_terminate-->     TERMINATING (has had SIGTERM)
//   TERMINATING  --grace-->                      KILLED (has had SIGKILL)
//   RUNNING      --child_kill-->                 KILLED
//   KILLED       --STUCK_MS-->                   told as stuck
//   any          --process reaped-->             DRAINING (the pipes get DRAIN_MS to end)
//
// What the child leaves behind: its process group is killed when it has gone. A descendant that has
// left the group is handed to this process by the kernel (orphans.h); whatever child we have that
// is not in the list is such an orphan and is killed. kcast-exec itself never orphans a process
// while it lives. Where there are control groups the child enters one of its own (--cgroup) before
// it has any descendant, and what is left in it is killed when the child has gone.
//
// A stuck child (uninterruptible in the kernel) is told once and then forgotten by its owner; its
// handles stay until it is gone or the program ends.
#include "daemon/run/child.h"
#include "daemon/run/environment.h"
#include "daemon/run/orphans.h"
#include "daemon/run/tail.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#define DRAIN_MS 1000
#define STUCK_MS 10000
#define READ_CHUNK 65536

struct children {
    uv_loop_t *loop;
    char *path;
    struct cgroups *cgroups; // NULL: none
    struct child *live;      // list
    size_t count;
    char **environment;
    char chunk[READ_CHUNK]; // shared by all reads: a read is consumed before the next one
};

enum child_state { CHILD_RUNNING, CHILD_TERMINATING, CHILD_KILLED, CHILD_DRAINING };

struct child {
    struct children *children;
    struct child *prev;
    struct child *next;
    enum child_state state;
    char *mode;
    char *argument;        // NULL: none
    struct cgroup *cgroup; // NULL: none
    uint64_t grace_ms;
    void (*on_output)(void *owner, const char *data, size_t len);
    void (*on_end)(void *owner, const struct child_end *end); // NULL once called
    void *owner;
    uv_process_t process;
    uv_pipe_t input;
    uv_pipe_t output;
    uv_pipe_t errors;
    uv_timer_t timer;
    const char *limit; // what to say when the timer fires
    uv_write_t write;
    char head[CHILD_HEAD_MAX]; // being written
    struct bytes body;         // being written
    bool writing;
    bool last_write;  // stdin ends with it
    struct tail tail; // of stderr
    bool reaped;      // the exit status is there
    bool output_ended;
    bool errors_ended;
    bool closing;
    int open_handles;
    int64_t exit_status;
    int term_signal;
    struct child_end end; // being filled
};

int children_create(struct children **ret, uv_loop_t *loop, const char *path,
                    struct cgroups *cgroups, struct err *err)
{
    if (access(path, X_OK) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: kcast-exec cannot be run", path);
    }
    int rc = orphans_adopt(err);
    if (rc != 0) {
        return rc;
    }
    struct children *children;
    children = xcalloc(1, sizeof(*children));
    children->loop = loop;
    children->path = xstrdup(path);
    children->cgroups = cgroups;
    children->environment = environment_create();
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

// The group as well as the process: between fork and setsid there is no group yet.
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

// What went wrong first is what is told.
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

static void close_handle(uv_handle_t *handle)
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
    close_handle((uv_handle_t *)&child->process);
    close_handle((uv_handle_t *)&child->input);
    close_handle((uv_handle_t *)&child->output);
    close_handle((uv_handle_t *)&child->errors);
    close_handle((uv_handle_t *)&child->timer);
}

// Goes on when the process and both of its outputs are at their end.
static void maybe_finish(struct child *child, bool drained)
{
    struct child_end *end = &child->end;

    if (!child->reaped || child->closing ||
        (!drained && !(child->output_ended && child->errors_ended))) {
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
        child->end.reason[0] = '\0'; // whatever it was: this is worse
        (void)snprintf(what, sizeof(what), "(process %d) does not die", child->process.pid);
        blame(child, what);
        tell(child);
        return;
    case CHILD_DRAINING:
        maybe_finish(child, true);
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

    // The group may outlive its leader; its number cannot be taken by others while it has members.
    (void)kill(-process->pid, SIGKILL);
    if (child->cgroup) {
        cgroup_kill(child->cgroup);
    }
    child->reaped = true;
    child->exit_status = status;
    child->term_signal = term_signal;
    child->state = CHILD_DRAINING;
    (void)uv_timer_start(&child->timer, on_timer, DRAIN_MS, 0);
    maybe_finish(child, false);
}

// --- pipes

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct child *child = handle->data;

    (void)suggested;
    *buf = uv_buf_init(child->children->chunk, READ_CHUNK);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct child *child = stream->data;

    if (count > 0 && child->on_end) {
        child->on_output(child->owner, buf->base, (size_t)count);
    }
    // One that has been killed has nothing more to say, and its output may be without end.
    if (count < 0 || child->state == CHILD_KILLED) {
        child->output_ended = true;
        (void)uv_read_stop(stream);
        maybe_finish(child, false);
    }
}

static void on_errors(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct child *child = stream->data;

    if (count < 0) {
        child->errors_ended = true;
        (void)uv_read_stop(stream);
        maybe_finish(child, false);
        return;
    }
    tail_add(&child->tail, buf->base, (size_t)count);
}

// A child that does not read what it is given is found out by what it answers.
static void on_written(uv_write_t *write, int status)
{
    struct child *child = write->data;

    (void)status;
    child->writing = false;
    bytes_clear(&child->body);
    if (child->last_write && !child->closing) {
        close_handle((uv_handle_t *)&child->input);
    }
}

void child_write(struct child *child, const void *head, size_t head_len, struct bytes *body_taken,
                 bool last)
{
    bytes_clear(&child->body);
    child->body = *body_taken;
    *body_taken = (struct bytes){0};
    child->last_write = last;
    memcpy(child->head, head, head_len);
    uv_buf_t buf[2];
    buf[0] = uv_buf_init(child->head, (unsigned)head_len);
    buf[1] = uv_buf_init((char *)child->body.data, (unsigned)child->body.len);
    if (head_len + child->body.len > 0 && !uv_is_closing((uv_handle_t *)&child->input)) {
        child->writing = uv_write(&child->write, (uv_stream_t *)&child->input, buf, ARRAY_LEN(buf),
                                  on_written) == 0;
    }
    if (last && !child->writing) {
        close_handle((uv_handle_t *)&child->input);
    }
}

bool child_is_writing(const struct child *child)
{
    return child->writing;
}

void child_close_input(struct child *child)
{
    close_handle((uv_handle_t *)&child->input);
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
        // Fails only for a loop without memory; the handle is initialised all the same.
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
        free_child(child); // without the limits that it should have nothing is started
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
    (void)uv_read_start((uv_stream_t *)&child->output, on_alloc, on_output);
    (void)uv_read_start((uv_stream_t *)&child->errors, on_alloc, on_errors);
    *ret = child;
    return 0;
}
