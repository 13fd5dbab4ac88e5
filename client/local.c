// Private programs.
//
// A child gets NOTIFY_SOCKET, a datagram socket in a folder that only this user can enter. It also
// gets --parent-death, by which it asks the kernel to be killed when this process is gone; a child
// that finds itself orphaned before that request ends, too. Each child is a session of its own, so
// that Ctrl-C at the terminal reaches kcast alone, which then ends the children in order. Their
// output goes to a file in the state folder, whose last line explains a failed start.
//
// A child that ends although nobody asked it to is started again, at its address and with its
// state: what talks to it finds it back, and its ledger has the jobs.
//
// A kcast that is killed cannot remove its temporary folder. The next one does: the folder's name
// has the number of the process that made it. The folder is also the children's TMPDIR: a
// compilation without a sandbox that is killed leaves its files there.
#include "client/local.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/parent.h"
#include "common/strbuf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define START_MS 60000              // time until READY; the daemon probes its devices before that
#define STOP_MS 10000               // time from SIGTERM to SIGKILL
#define RESTARTS_MAX 3              // of a child that ends by itself
#define LOCAL_PREFIX "kcast-local-" // of temporary folders; the number of their process follows
#define LOG_TAIL_MAX ((size_t)4 << 20)

static const struct {
    const char *name;
    const char *folder; // name of its state folder
} programs[LOCAL_COUNT] = {
    [LOCAL_DAEMON] = {"kcastd", "daemon"},
    [LOCAL_WORKER] = {"kcast-worker", "worker"},
};

struct child {
    struct local *local;
    enum local_program program;
    unsigned restarts;
    uv_process_t *process; // NULL before it was started; freed by its close callback
    bool exited;
    int64_t status; // exit code, or the negative number of the signal
    char *url;      // its address; NULL until it is READY
    char *state;    // path of its state folder
    char *log;      // path of the file with its output
};

struct local {
    uv_loop_t *loop;
    char *folder; // temporary folder of the socket, and of the state unless --local-state was given
    char *state;  // folder that holds the children's state folders
    char *sandbox;
    char *socket_path;
    int socket;
    int lock;          // the folder, locked; -1: none
    uv_timer_t *timer; // freed by its close callback
    uv_poll_t *poll;   // on the socket; freed by its close callback
    bool timed_out;
    struct child child[LOCAL_COUNT];
    struct child *starting; // the child whose READY is waited for; NULL: none
    bool stopping;          // what ends now was asked to
    bool (*interrupted)(const void *owner);
    void (*warn)(const char *sentence);
    const void *owner;
};

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

static void on_timer(uv_timer_t *timer)
{
    struct local *local = timer->data;
    local->timed_out = true;
    uv_stop(timer->loop);
}

static void on_ended(uv_process_t *process, int64_t status, int signal_number);

// Reads a datagram with lines NAME=value. The url is in STATUS of the message that says READY.
static void on_notify(uv_poll_t *poll, int status, int events)
{
    struct local *local = poll->data;
    (void)events;
    char text[4096];
    ssize_t len = status < 0 ? -1 : recv(local->socket, text, sizeof(text) - 1, MSG_DONTWAIT);
    if (len <= 0 || !local->starting) {
        return;
    }
    text[len] = '\0';
    const char *url = strstr(text, "tcp://");
    if (strstr(text, "READY=1") && url && !local->starting->url) {
        local->starting->url = xstrndup(url, strcspn(url, " \r\n"));
    }
}

static int open_socket(struct local *local, struct err *err)
{
    local->socket_path = xasprintf("%s/notify", local->folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(local->socket_path) >= sizeof(address.sun_path)) {
        return err_set(err, ERR_SYSTEM, "%s is too long for a socket; set TMPDIR to a shorter path",
                       local->socket_path);
    }
    memcpy(address.sun_path, local->socket_path, strlen(local->socket_path) + 1);
    local->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (local->socket < 0 ||
        bind(local->socket, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "cannot listen on %s", local->socket_path);
    }
    local->poll = xcalloc(1, sizeof(*local->poll));
    uv_poll_init(local->loop, local->poll, local->socket);
    local->poll->data = local;
    uv_poll_start(local->poll, UV_READABLE, on_notify);
    uv_unref((uv_handle_t *)local->poll);
    return 0;
}

// Whether a process with this number runs.
static bool is_alive(long pid)
{
    return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

// Whether nobody holds the lock of a folder. The number of a process says nothing where another
// container has processes of its own in the same /tmp; the lock does.
static bool is_unlocked(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat what;
    bool free_now = fd >= 0 && fstat(fd, &what) == 0 && what.st_uid == geteuid() &&
                    flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return free_now;
}

// Removes what others have left behind that were killed: folders of this user whose process, whose
// number is in their name, has gone. Its children go with it, by --parent-death.
static void sweep(const char *parent)
{
    DIR *folder = opendir(parent);
    for (const struct dirent *entry = folder ? readdir(folder) : NULL; entry;
         entry = readdir(folder)) {
        size_t len = strlen(LOCAL_PREFIX);
        char *end = NULL;
        long pid = strncmp(entry->d_name, LOCAL_PREFIX, len) == 0
                       ? strtol(entry->d_name + len, &end, 10)
                       : 0;
        if (pid <= 0 || *end != '.' || is_alive(pid)) {
            continue;
        }
        char *path = xasprintf("%s/%s", parent, entry->d_name);
        if (is_unlocked(path)) {
            struct err ignored = ERR_INIT; // another process may be removing it as well
            int rc = file_remove_tree(path, &ignored);
            (void)rc;
        }
        free(path);
    }
    if (folder) {
        closedir(folder);
    }
}

static int make_folder(struct local *local, struct err *err)
{
    char *prefix = xasprintf(LOCAL_PREFIX "%ld", (long)getpid());
    sweep(file_temp_folder());
    int rc = file_make_temp_dir(&local->folder, prefix, err);
    if (rc == 0) { // held until this process ends, however it does
        local->lock = open(local->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)flock(local->lock, LOCK_SH | LOCK_NB);
    }
    free(prefix);
    return rc;
}

int local_create(struct local **ret, uv_loop_t *loop, const char *state, const char *sandbox,
                 bool (*interrupted)(const void *owner), void (*warn)(const char *sentence),
                 const void *owner, struct err *err)
{
    struct local *local = xcalloc(1, sizeof(*local));
    local->loop = loop;
    local->socket = local->lock = -1;
    local->interrupted = interrupted;
    local->warn = warn;
    local->owner = owner;
    local->sandbox = sandbox ? xstrdup(sandbox) : NULL;
    local->timer = xcalloc(1, sizeof(*local->timer));
    uv_timer_init(loop, local->timer);
    local->timer->data = local;
    int rc = make_folder(local, err);
    if (rc != 0) {
        goto out;
    }
    local->state = xstrdup(state ? state : local->folder);
    rc = file_make_dirs(local->state, err);
    if (rc != 0) {
        goto out;
    }
    rc = open_socket(local, err);
    if (rc != 0) {
        goto out;
    }
    *ret = local;
    local = NULL;
out:
    local_free(local);
    return rc;
}

// The environment of a child: that of this process with NOTIFY_SOCKET, TMPDIR and the number of
// this process. The caller frees the array and its first three elements.
static char **make_environment(const struct local *local)
{
    size_t count = 0, used = 0;
    while (environ[count]) {
        count++;
    }
    char **environment = xcalloc(count + 4, sizeof(*environment));
    environment[used++] = xasprintf("NOTIFY_SOCKET=%s", local->socket_path);
    environment[used++] = xasprintf("TMPDIR=%s", local->folder);
    environment[used++] = xasprintf(PARENT_VARIABLE "=%ld", (long)getpid());
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "NOTIFY_SOCKET=", 14) != 0 &&
            strncmp(environ[i], "TMPDIR=", 7) != 0 &&
            strncmp(environ[i], PARENT_VARIABLE "=", sizeof(PARENT_VARIABLE)) != 0) {
            environment[used++] = environ[i];
        }
    }
    return environment;
}

static int spawn(struct child *child, const char *path, int log_fd, struct err *err)
{
    const struct local *local = child->local;
    char *sandbox = local->sandbox && child->program == LOCAL_DAEMON
                        ? xasprintf("--sandbox=%s", local->sandbox)
                        : NULL;
    char *state = xasprintf("--state=%s", child->state);
    char *file = xstrdup(path);
    char *listen = xasprintf("--listen=%s", child->url ? child->url : "tcp://127.0.0.1:0");
    char parent_death[] = "--parent-death";
    char *argument[] = {file, listen, state, parent_death, sandbox, NULL};
    char **environment = make_environment(local);
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = log_fd},
        {.flags = UV_INHERIT_FD, .data.fd = log_fd},
    };
    uv_process_options_t options = {
        .file = file,
        .args = argument,
        .env = environment,
        .exit_cb = on_ended,
        .flags = UV_PROCESS_DETACHED,
        .stdio = stdio,
        .stdio_count = 3,
    };
    child->process = xcalloc(1, sizeof(*child->process));
    child->process->data = child;
    child->exited = false;
    int rc = uv_spawn(local->loop, child->process, &options);
    if (rc != 0) {
        uv_close((uv_handle_t *)child->process, free_handle);
        child->process = NULL;
        rc = err_set(err, ERR_SYSTEM, "cannot start %s: %s", path, uv_strerror(rc));
    }
    free(environment[0]);
    free(environment[1]);
    free(environment[2]);
    free(environment);
    free(sandbox);
    free(listen);
    free(state);
    free(file);
    return rc;
}

// Starts a child, whose output goes behind what its log has.
static int start(struct child *child, struct err *err)
{
    const char *name = programs[child->program].name;
    char *folder = NULL, *path = NULL;
    int log_fd = -1, rc = file_own_dir(&folder, err);
    if (rc != 0) {
        goto out;
    }
    path = xasprintf("%s/%s", folder, name);
    if (access(path, X_OK) != 0) {
        rc = err_set(err, ERR_UNREACHABLE, "--local needs %s, which is not there", path);
        goto out;
    }
    log_fd = open(child->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    rc = log_fd < 0 ? err_set_errno(err, ERR_SYSTEM, errno, "cannot write %s", child->log)
                    : spawn(child, path, log_fd, err);
out:
    if (log_fd >= 0) {
        close(log_fd);
    }
    free(folder);
    free(path);
    return rc;
}

// The last line that a child logged, malloc'd, for the sentence about its failure.
static char *last_line(const char *path)
{
    struct bytes log;
    if (file_read(&log, path, LOG_TAIL_MAX, NULL) != 0) {
        return xstrdup("it left no message");
    }
    char *text = (char *)log.data;
    size_t len = log.len;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == ' ')) {
        len--;
    }
    size_t start = len;
    while (start > 0 && text[start - 1] != '\n') {
        start--;
    }
    char *line = len == start ? xstrdup("it left no message") : xstrndup(text + start, len - start);
    bytes_clear(&log);
    return line;
}

static void start_again(struct child *child)
{
    const struct local *local = child->local;
    const char *name = programs[child->program].name;
    struct err err = ERR_INIT;
    char *line = last_line(child->log), *how;
    how = child->status < 0 ? xasprintf("was ended by signal %d", (int)-child->status)
                            : xasprintf("ended with exit code %d", (int)child->status);
    int rc = child->restarts == RESTARTS_MAX
                 ? err_set(&err, ERR_LIMIT, "it was %u times already", child->restarts)
                 : start(child, &err);
    child->restarts++;
    char *sentence =
        rc == 0 ? xasprintf("the private %s %s and is started again; it said last: %.500s", name,
                            how, line)
                : xasprintf("the private %s %s and is not started again (%s); it said last: %.500s",
                            name, how, err.text, line);
    local->warn(sentence);
    free(sentence);
    free(how);
    free(line);
}

static void on_ended(uv_process_t *process, int64_t status, int signal_number)
{
    struct child *child = process->data;
    child->exited = true;
    child->status = signal_number != 0 ? -signal_number : status;
    if (child->url && !child->local->stopping) {
        uv_close((uv_handle_t *)process, free_handle);
        child->process = NULL;
        start_again(child);
    }
}

static int await_ready(struct local *local, struct child *child, const char *name, struct err *err)
{
    local->starting = child;
    local->timed_out = false;
    uv_timer_start(local->timer, on_timer, START_MS, 0);
    while (!child->url && !child->exited && !local->timed_out &&
           !local->interrupted(local->owner)) {
        uv_run(local->loop, UV_RUN_ONCE);
    }
    uv_timer_stop(local->timer);
    local->starting = NULL;
    if (child->url) {
        return 0;
    }
    if (local->interrupted(local->owner)) {
        return err_set(err, ERR_STOPPED, "interrupted while %s was starting", name);
    }
    char *line = last_line(child->log);
    int rc =
        child->exited
            ? err_set(err, ERR_UNREACHABLE, "the private %s ended while it was starting: %.500s",
                      name, line)
            : err_set(err, ERR_TIMED_OUT, "the private %s did not get ready: %.500s", name, line);
    free(line);
    return rc;
}

int local_start(struct local *local, enum local_program program, const char **ret_url,
                struct err *err)
{
    struct child *child = &local->child[program];
    if (child->url) {
        *ret_url = child->url;
        return 0;
    }
    child->state = xasprintf("%s/%s", local->state, programs[program].folder);
    child->log = xasprintf("%s/%s.log", local->state, programs[program].name);
    child->local = local;
    child->program = program;
    int rc = file_make_dirs(child->state, err);
    if (rc == 0 && unlink(child->log) != 0 && errno != ENOENT) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "cannot write %s", child->log);
    }
    rc = rc == 0 ? start(child, err) : rc;
    rc = rc == 0 ? await_ready(local, child, programs[program].name, err) : rc;
    if (rc == 0) {
        *ret_url = child->url;
    }
    return rc;
}

// Ends the children that run. Both get the signal before either is waited for.
static void stop_children(struct local *local)
{
    const int signals[] = {SIGTERM, SIGKILL};
    local->stopping = true;
    for (size_t s = 0; s < ARRAY_LEN(signals); s++) {
        bool running = false;
        for (size_t i = 0; i < LOCAL_COUNT; i++) {
            if (local->child[i].process && !local->child[i].exited) {
                uv_process_kill(local->child[i].process, signals[s]);
                running = true;
            }
        }
        local->timed_out = !running;
        uv_timer_start(local->timer, on_timer, STOP_MS, 0);
        while (!local->timed_out && running) {
            uv_run(local->loop, UV_RUN_ONCE);
            running = false;
            for (size_t i = 0; i < LOCAL_COUNT; i++) {
                running = running || (local->child[i].process && !local->child[i].exited);
            }
        }
        uv_timer_stop(local->timer);
    }
}

void local_free(struct local *local)
{
    if (!local) {
        return;
    }
    stop_children(local);
    for (size_t i = 0; i < LOCAL_COUNT; i++) {
        if (local->child[i].process) {
            uv_close((uv_handle_t *)local->child[i].process, free_handle);
        }
        free(local->child[i].url);
        free(local->child[i].state);
        free(local->child[i].log);
    }
    if (local->poll) {
        uv_close((uv_handle_t *)local->poll, free_handle);
    }
    uv_close((uv_handle_t *)local->timer, free_handle);
    uv_run(local->loop, UV_RUN_NOWAIT); // the close callbacks, before the socket goes
    if (local->socket >= 0) {
        close(local->socket);
    }
    if (local->folder) {
        struct err ignored = ERR_INIT; // a temporary folder that stays is no failure
        if (file_remove_tree(local->folder, &ignored) != 0) {
            err_clear(&ignored);
        }
    }
    if (local->lock >= 0) {
        close(local->lock);
    }
    free(local->folder);
    free(local->state);
    free(local->sandbox);
    free(local->socket_path);
    free(local);
}
