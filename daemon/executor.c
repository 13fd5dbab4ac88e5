// Theory of operation. The child gets a session of its own (so one kill reaches its process group),
// three socket pairs, a small environment and no other descriptor (everything else is CLOEXEC).
// Three things have to happen before an executor is over: the process has been reaped, stdout is at
// its end, stderr is at its end. Then the handles are closed, and the last close callback reports
// to the owner.
//
//   RUNNING      --deadline, executor_stop-->    TERMINATING (has had SIGTERM)
//   TERMINATING  --grace-->                      KILLED (has had SIGKILL)
//   RUNNING      --stdout over its limit-->      KILLED
//   KILLED       --STUCK_MS-->                   reported as stuck
//   any          --process reaped-->             DRAINING (the pipes get DRAIN_MS to end)
//
// What the child leaves behind: its process group is killed when it has gone. A descendant that has
// left the group is handed to this process by the kernel (orphans.h); whatever child we have that
// is no live executor is such an orphan and is killed. kcast-exec itself never orphans a process
// while it lives. Where there are control groups the child enters one of its own (--cgroup) before
// it has any descendant, and what is left in it is killed when the child has gone.
//
// A stuck child (uninterruptible in the kernel) is reported once and then forgotten by its owner;
// its handles stay until it is gone or the program ends.
#include "daemon/executor.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "daemon/orphans.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#define DRAIN_MS 1000
#define STUCK_MS 10000
#define TAIL_MAX 4096 // bytes of stderr that are looked at
#define READ_CHUNK 65536
#define ENVIRONMENT_MAX 64 // variables passed on

struct executor_pool {
    uv_loop_t *loop;
    char *path;
    struct cgroups *cgroups; // NULL: none
    struct executor *live;   // list
    size_t count;
    char *environment[ENVIRONMENT_MAX + 1]; // NULL-terminated
    char chunk[READ_CHUNK]; // shared by all reads: a read is consumed before the next one
};

enum executor_state { EXECUTOR_RUNNING, EXECUTOR_TERMINATING, EXECUTOR_KILLED, EXECUTOR_DRAINING };

struct executor {
    struct executor_pool *pool;
    struct executor *prev;
    struct executor *next;
    enum executor_state state;
    char *mode;
    struct cgroup *cgroup; // NULL: none
    uint64_t grace_ms;
    void (*on_end)(void *owner, struct executor_end *end); // NULL once called
    void *owner;
    uv_process_t process;
    uv_pipe_t input;
    uv_pipe_t output;
    uv_pipe_t errors;
    uv_timer_t timer;
    uv_write_t write;
    struct bytes plan;    // being written
    struct strbuf report; // stdout
    char tail[TAIL_MAX];  // the last of stderr, a ring
    size_t tail_len;      // bytes ever written to it
    uint64_t started_ns;
    bool reaped; // the exit status is there
    bool output_ended;
    bool errors_ended;
    bool closing;
    int open_handles;
    int64_t exit_status;
    int term_signal;
    struct executor_end end; // being filled
};

// Variables that kcast-exec and its sanitizers need; nothing else of this process's environment
// reaches it.
static bool passes_on(const char *variable)
{
    static const char *const name[] = {"PATH=",         "TMPDIR=",       "KCAST_",
                                       "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=",
                                       "TSAN_OPTIONS="};

    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        if (strncmp(variable, name[i], strlen(name[i])) == 0) {
            return true;
        }
    }
    return false;
}

int executor_pool_create(struct executor_pool **ret, uv_loop_t *loop, const char *path,
                         struct cgroups *cgroups, struct err *err)
{
    struct executor_pool *pool;
    size_t count = 0;
    int rc;

    if (access(path, X_OK) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s: kcast-exec cannot be run", path);
    }
    rc = orphans_adopt(err);
    if (rc != 0) {
        return rc;
    }
    pool = xcalloc(1, sizeof(*pool));
    pool->loop = loop;
    pool->path = xstrdup(path);
    pool->cgroups = cgroups;
    for (char **variable = environ; *variable && count < ENVIRONMENT_MAX - 1; variable++) {
        if (passes_on(*variable)) {
            pool->environment[count++] = xstrdup(*variable);
        }
    }
    pool->environment[count] = xstrdup("LC_ALL=C");
    *ret = pool;
    return 0;
}

void executor_pool_free(struct executor_pool *pool)
{
    if (!pool) {
        return;
    }
    for (char **variable = pool->environment; *variable; variable++) {
        free(*variable);
    }
    free(pool->path);
    free(pool);
}

size_t executor_pool_count(const struct executor_pool *pool)
{
    return pool->count;
}

// The group as well as the process: between fork and setsid there is no group yet.
static void signal_child(const struct executor *executor, int number)
{
    if (!executor->reaped) {
        (void)kill(-executor->process.pid, number);
        (void)kill(executor->process.pid, number);
    }
}

void executor_pool_kill(struct executor_pool *pool)
{
    struct executor *executor;

    DL_FOREACH (pool->live, executor) {
        signal_child(executor, SIGKILL);
    }
}

static bool is_live(void *owner, pid_t pid)
{
    const struct executor_pool *pool = owner;
    const struct executor *executor;

    DL_FOREACH (pool->live, executor) {
        if (executor->process.pid == pid) {
            return true;
        }
    }
    return false;
}

void executor_pool_sweep(struct executor_pool *pool)
{
    orphans_sweep(is_live, pool);
    cgroups_sweep(pool->cgroups);
}

static void report(struct executor *executor)
{
    void (*on_end)(void *, struct executor_end *) = executor->on_end;

    if (on_end) {
        executor->on_end = NULL;
        executor->end.seconds = clock_seconds(clock_now_ns(&clock_system) - executor->started_ns);
        on_end(executor->owner, &executor->end);
        bytes_clear(&executor->end.report);
    }
}

// The last non-empty line of stderr, as text for a reason.
static void last_line(const struct executor *executor, char out[static 256])
{
    size_t have = executor->tail_len < TAIL_MAX ? executor->tail_len : TAIL_MAX;
    size_t from = executor->tail_len - have;
    size_t len = 0;

    for (size_t i = 0; i < have; i++) {
        char c = executor->tail[(from + i) % TAIL_MAX];

        if (c == '\n') {
            // A line feed starts a new line only if something follows.
            if (i + 1 < have && executor->tail[(from + i + 1) % TAIL_MAX] != '\n') {
                len = 0;
            }
        } else if (len < 255) {
            out[len++] = c >= 0x20 && c < 0x7F ? c : '?';
        }
    }
    out[len] = '\0';
}

static void set_reason(struct executor *executor)
{
    struct executor_end *end = &executor->end;
    char line[256];
    char how[128];

    if (end->reason[0] != '\0') {
        return; // what went wrong first
    }
    if (executor->cgroup && cgroup_out_of_memory(executor->cgroup)) {
        (void)snprintf(how, sizeof(how), "ran out of the memory that its control group may use");
    } else if (executor->term_signal != 0) {
        (void)snprintf(how, sizeof(how), "was ended by signal %d (%s)", executor->term_signal,
                       strsignal(executor->term_signal));
    } else {
        (void)snprintf(how, sizeof(how), "ended with exit code %lld",
                       (long long)executor->exit_status);
    }
    last_line(executor, line);
    (void)snprintf(end->reason, sizeof(end->reason), "kcast-exec %s %s%s%s", executor->mode, how,
                   line[0] ? ": " : "", line);
}

static void free_executor(struct executor *executor)
{
    bytes_clear(&executor->plan);
    strbuf_release(&executor->report);
    free(executor->mode);
    free(executor);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct executor *executor = handle->data;

    if (--executor->open_handles > 0) {
        return;
    }
    DL_DELETE(executor->pool->live, executor);
    executor->pool->count--;
    cgroup_end(executor->cgroup);
    executor_pool_sweep(executor->pool);
    report(executor);
    free_executor(executor);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_handle_closed);
    }
}

static void close_all(struct executor *executor)
{
    if (executor->closing) {
        return;
    }
    executor->closing = true;
    close_handle((uv_handle_t *)&executor->process);
    close_handle((uv_handle_t *)&executor->input);
    close_handle((uv_handle_t *)&executor->output);
    close_handle((uv_handle_t *)&executor->errors);
    close_handle((uv_handle_t *)&executor->timer);
}

// Goes on when the process and both of its outputs are at their end.
static void maybe_finish(struct executor *executor, bool drained)
{
    struct executor_end *end = &executor->end;

    if (!executor->reaped || executor->closing ||
        (!drained && !(executor->output_ended && executor->errors_ended))) {
        return;
    }
    if (!executor->output_ended && end->reason[0] == '\0') {
        (void)snprintf(end->reason, sizeof(end->reason),
                       "kcast-exec %s ended, but something else holds its output open",
                       executor->mode);
    }
    end->ok = end->reason[0] == '\0' && !end->stopped && executor->exit_status == 0 &&
              executor->term_signal == 0;
    if (end->ok) {
        end->report = strbuf_detach_bytes(&executor->report);
    } else {
        set_reason(executor);
    }
    close_all(executor);
}

static void on_timer(uv_timer_t *timer)
{
    struct executor *executor = timer->data;
    struct executor_end *end = &executor->end;

    switch (executor->state) {
    case EXECUTOR_RUNNING:
        (void)snprintf(end->reason, sizeof(end->reason),
                       "kcast-exec %s did not end within its deadline", executor->mode);
        executor->state = EXECUTOR_TERMINATING;
        signal_child(executor, SIGTERM);
        (void)uv_timer_start(timer, on_timer, executor->grace_ms, 0);
        return;
    case EXECUTOR_TERMINATING:
        executor->state = EXECUTOR_KILLED;
        signal_child(executor, SIGKILL);
        (void)uv_timer_start(timer, on_timer, STUCK_MS, 0);
        return;
    case EXECUTOR_KILLED:
        end->stuck = true;
        (void)snprintf(end->reason, sizeof(end->reason), "kcast-exec %s (process %d) does not die",
                       executor->mode, executor->process.pid);
        report(executor);
        return;
    case EXECUTOR_DRAINING:
        maybe_finish(executor, true);
        return;
    }
}

static void kill_now(struct executor *executor)
{
    if (executor->state == EXECUTOR_RUNNING || executor->state == EXECUTOR_TERMINATING) {
        executor->state = EXECUTOR_KILLED;
        signal_child(executor, SIGKILL);
        (void)uv_timer_start(&executor->timer, on_timer, STUCK_MS, 0);
    }
}

static void on_exit_status(uv_process_t *process, int64_t status, int term_signal)
{
    struct executor *executor = process->data;

    // The group may outlive its leader; its number cannot be taken by others while it has members.
    (void)kill(-process->pid, SIGKILL);
    if (executor->cgroup) {
        cgroup_kill(executor->cgroup);
    }
    executor->reaped = true;
    executor->exit_status = status;
    executor->term_signal = term_signal;
    executor->state = EXECUTOR_DRAINING;
    (void)uv_timer_start(&executor->timer, on_timer, DRAIN_MS, 0);
    maybe_finish(executor, false);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct executor *executor = handle->data;

    (void)suggested;
    *buf = uv_buf_init(executor->pool->chunk, READ_CHUNK);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct executor *executor = stream->data;
    struct executor_end *end = &executor->end;

    if (count < 0) {
        executor->output_ended = true;
        (void)uv_read_stop(stream);
        maybe_finish(executor, false);
        return;
    }
    strbuf_add(&executor->report, buf->base, (size_t)count);
    if (executor->report.truncated) {
        if (end->reason[0] == '\0') {
            (void)snprintf(end->reason, sizeof(end->reason),
                           "kcast-exec %s printed more than the %zu bytes a report may have",
                           executor->mode, executor->report.max);
        }
        executor->output_ended = true;
        (void)uv_read_stop(stream);
        kill_now(executor);
        maybe_finish(executor, false);
    }
}

static void on_errors(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct executor *executor = stream->data;

    if (count < 0) {
        executor->errors_ended = true;
        (void)uv_read_stop(stream);
        maybe_finish(executor, false);
        return;
    }
    for (ssize_t i = 0; i < count; i++) {
        executor->tail[executor->tail_len++ % TAIL_MAX] = buf->base[i];
    }
}

// A child that does not read its plan is found out by what it reports.
static void on_written(uv_write_t *write, int status)
{
    struct executor *executor = write->data;

    (void)status;
    if (!executor->closing) {
        close_handle((uv_handle_t *)&executor->input);
    }
}

static int spawn(struct executor *executor, struct err *err)
{
    struct executor_pool *pool = executor->pool;
    char *group = executor->cgroup ? xasprintf("--cgroup=%s", cgroup_dir(executor->cgroup)) : NULL;
    char *args[] = {pool->path, executor->mode, group, NULL};
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
         .data.stream = (uv_stream_t *)&executor->input},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&executor->output},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
         .data.stream = (uv_stream_t *)&executor->errors},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_status,
        .file = pool->path,
        .args = args,
        .env = pool->environment,
        .cwd = "/",
        .flags = UV_PROCESS_DETACHED,
        .stdio_count = 3,
        .stdio = stdio,
    };
    int rc = uv_spawn(pool->loop, &executor->process, &options);

    free(group);
    return rc == 0
               ? 0
               : err_set(err, ERR_SYSTEM, "%s: cannot be started: %s", pool->path, uv_strerror(rc));
}

static int init_handles(struct executor *executor, struct err *err)
{
    uv_loop_t *loop = executor->pool->loop;
    uv_pipe_t *pipe[] = {&executor->input, &executor->output, &executor->errors};

    for (size_t i = 0; i < ARRAY_LEN(pipe); i++) {
        // Fails only for a loop without memory; the handle is initialised all the same.
        if (uv_pipe_init(loop, pipe[i], 0) != 0) {
            return err_set(err, ERR_SYSTEM, "a pipe cannot be made");
        }
        pipe[i]->data = executor;
    }
    if (uv_timer_init(loop, &executor->timer) != 0) {
        return err_set(err, ERR_SYSTEM, "a timer cannot be made");
    }
    executor->timer.data = executor;
    executor->process.data = executor;
    executor->write.data = executor;
    executor->open_handles = 5;
    return 0;
}

static struct executor *new_executor(struct executor_pool *pool,
                                     const struct executor_config *config, struct bytes *plan_taken)
{
    struct executor *executor = xcalloc(1, sizeof(*executor));

    executor->pool = pool;
    executor->mode = xstrdup(config->mode);
    executor->grace_ms = config->grace_ms;
    executor->on_end = config->on_end;
    executor->owner = config->owner;
    executor->plan = *plan_taken;
    *plan_taken = (struct bytes){0};
    executor->started_ns = clock_now_ns(&clock_system);
    strbuf_init(&executor->report, config->report_max);
    return executor;
}

int executor_start(struct executor **ret, struct executor_pool *pool,
                   const struct executor_config *config, struct bytes *plan_taken, struct err *err)
{
    struct executor *executor = new_executor(pool, config, plan_taken);
    uv_buf_t buf = uv_buf_init((char *)executor->plan.data, (unsigned)executor->plan.len);
    int rc = 0;

    if (pool->cgroups) {
        rc = cgroup_create(&executor->cgroup, pool->cgroups, &config->limits, err);
    }
    if (rc != 0) {
        free_executor(executor); // without the limits that it should have nothing is started
        return rc;
    }
    rc = init_handles(executor, err);
    if (rc != 0) {
        abort(); // libuv cannot fail here on Linux
    }
    DL_APPEND(pool->live, executor);
    pool->count++;
    rc = spawn(executor, err);
    if (rc != 0) {
        executor->on_end = NULL;
        close_all(executor);
        return rc;
    }
    (void)uv_read_start((uv_stream_t *)&executor->output, on_alloc, on_output);
    (void)uv_read_start((uv_stream_t *)&executor->errors, on_alloc, on_errors);
    (void)uv_timer_start(&executor->timer, on_timer, config->deadline_ms, 0);
    if (buf.len == 0 ||
        uv_write(&executor->write, (uv_stream_t *)&executor->input, &buf, 1, on_written) != 0) {
        close_handle((uv_handle_t *)&executor->input);
    }
    *ret = executor;
    return 0;
}

void executor_stop(struct executor *executor)
{
    if (executor->state == EXECUTOR_RUNNING) {
        executor->end.stopped = true;
        (void)snprintf(executor->end.reason, sizeof(executor->end.reason),
                       "kcast-exec %s was stopped", executor->mode);
        executor->state = EXECUTOR_TERMINATING;
        signal_child(executor, SIGTERM);
        (void)uv_timer_start(&executor->timer, on_timer, executor->grace_ms, 0);
    }
}
