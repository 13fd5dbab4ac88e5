#include "tests/support/program.h"
#include "common/file.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "test support: %s: %s\n", what, strerror(errno));
    abort();
}

char *program_path(const char *name)
{
    const char *bin = getenv("KCAST_BIN");

    return xasprintf("%s/%s", bin ? bin : "build/debug/bin", name);
}

char *program_support_path(const char *name)
{
    const char *build = getenv("KCAST_BUILD");

    return xasprintf("%s/tests/support/%s", build ? build : "build/debug", name);
}

void program_init(struct program *program)
{
    *program = (struct program){.pid_fd = -1, .notify_fd = -1};
    struct err err = ERR_INIT;
    if (file_make_temp_dir(&program->dir, "kcast-test", &err) != 0) {
        fail(err.text);
    }
    program->log_path = xasprintf("%s/stderr", program->dir);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", program->dir);
    program->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (program->notify_fd < 0 ||
        bind(program->notify_fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        fail("notify socket");
    }
}

static char **make_environment(const struct program *program, const char *const *extra)
{
    size_t count = 0;

    while (environ[count]) {
        count++;
    }
    for (size_t i = 0; extra && extra[i]; i++) {
        count++;
    }
    char **out = xcalloc(count + 2, sizeof(char *));
    size_t used = 0;
    out[used++] = xasprintf("NOTIFY_SOCKET=%s/notify", program->dir);
    for (size_t i = 0; extra && extra[i]; i++) {
        out[used++] = xstrdup(extra[i]);
    }
    for (char **variable = environ; *variable; variable++) {
        if (strncmp(*variable, "NOTIFY_SOCKET=", 14) != 0) {
            out[used++] = xstrdup(*variable);
        }
    }
    return out;
}

static void forget_notes(struct program *program)
{
    char text[4096];

    while (recv(program->notify_fd, text, sizeof(text), MSG_DONTWAIT) > 0) {
    }
    free(program->url);
    free(program->status);
    program->url = NULL;
    program->status = NULL;
    program->stopping = false;
}

void program_start(struct program *program, const char *const *argv, const char *const *environment)
{
    char **variables = make_environment(program, environment);
    char *output = xasprintf("%s/stdout", program->dir);

    forget_notes(program);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, program->log_path,
                                     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    int rc = posix_spawn(&program->pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
                         variables);
    posix_spawn_file_actions_destroy(&actions);
    free(output);
    for (char **variable = variables; *variable; variable++) {
        free(*variable);
    }
    free(variables);
    if (rc != 0) {
        errno = rc;
        fail(argv[0]);
    }
    program->pid_fd = (int)syscall(SYS_pidfd_open, program->pid, 0);
    if (program->pid_fd < 0) {
        fail("pidfd_open");
    }
}

static void take_note(struct program *program, char *text)
{
    char *save = NULL;
    bool ready = false;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "STATUS=", 7) == 0) {
            free(program->status);
            program->status = xstrdup(line + 7);
        }
        ready = ready || strcmp(line, "READY=1") == 0;
        program->stopping = program->stopping || strcmp(line, "STOPPING=1") == 0;
    }
    if (ready) {
        const char *url = program->status ? strstr(program->status, "tcp://") : NULL;

        url = url || !program->status ? url : strstr(program->status, "tls://");
        free(program->url);
        program->url = xstrdup(url ? url : "");
    }
}

bool program_read_note(struct program *program)
{
    struct pollfd fds[] = {{.fd = program->notify_fd, .events = POLLIN},
                           {.fd = program->pid_fd, .events = POLLIN}};

    if (poll(fds, 2, PROGRAM_LIMIT_MS) <= 0) {
        fail("no word from the program");
    }
    if (!(fds[0].revents & POLLIN)) {
        return false;
    }
    char text[4096];
    ssize_t len = recv(program->notify_fd, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    take_note(program, text);
    return true;
}

bool program_wait_ready(struct program *program)
{
    while (!program->url && program_read_note(program)) {
    }
    return program->url;
}

int program_wait(struct program *program)
{
    struct pollfd fd = {.fd = program->pid_fd, .events = POLLIN};

    if (program->pid == 0) {
        return program->exit_code;
    }
    if (poll(&fd, 1, PROGRAM_LIMIT_MS) <= 0) {
        fail("it does not end");
    }
    int status = 0;
    if (waitpid(program->pid, &status, 0) != program->pid) {
        fail("waitpid");
    }
    close(program->pid_fd);
    program->pid_fd = -1;
    program->pid = 0;
    program->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return program->exit_code;
}

static int signal_and_wait(struct program *program, int number)
{
    if (program->pid > 0) {
        (void)kill(program->pid, number);
    }
    return program_wait(program);
}

int program_stop(struct program *program)
{
    return signal_and_wait(program, SIGTERM);
}

int program_kill(struct program *program)
{
    return signal_and_wait(program, SIGKILL);
}

static char *read_all(const char *path)
{
    struct bytes text = {0};

    if (file_read(&text, path, (size_t)64 << 20, NULL) != 0) {
        return xstrdup("");
    }
    return (char *)text.data; // NUL-terminated
}

char *program_log(const struct program *program)
{
    return read_all(program->log_path);
}

char *program_output(const struct program *program)
{
    char *path = xasprintf("%s/stdout", program->dir);
    char *text = read_all(path);

    free(path);
    return text;
}

void program_release(struct program *program)
{
    if (program->pid > 0) {
        (void)program_kill(program);
    }
    close(program->notify_fd);
    // What a killed daemon's executors were just writing may make the folder non-empty again, until
    // they are gone too.
    for (int tries = 0; file_remove_tree(program->dir, NULL) != 0; tries++) {
        if (tries == 1000) {
            fail(program->dir);
        }
        sched_yield();
    }
    free(program->dir);
    free(program->log_path);
    free(program->url);
    free(program->status);
    *program = (struct program){.pid_fd = -1, .notify_fd = -1};
}

bool program_alive(pid_t pid)
{
    char *path = xasprintf("/proc/%d/stat", (int)pid);
    struct bytes text = {0};
    const char *state;
    bool alive = false;

    if (file_read(&text, path, 4096, NULL) == 0) {
        state = strrchr((char *)text.data, ')');
        alive = state && state[1] == ' ' && state[2] != 'Z' && state[2] != 'X';
    }
    bytes_clear(&text);
    free(path);
    return alive;
}

size_t program_children(pid_t parent, pid_t *pids, size_t max)
{
    char *path = xasprintf("/proc/%d/task/%d/children", (int)parent, (int)parent);
    struct bytes text = {0};
    size_t count = 0;

    if (file_read(&text, path, 65536, NULL) == 0) {
        const char *at = (char *)text.data;
        char *end;

        for (long pid = strtol(at, &end, 10); end != at && count < max;
             pid = strtol(at, &end, 10)) {
            pids[count++] = (pid_t)pid;
            at = end;
        }
    }
    bytes_clear(&text);
    free(path);
    return count;
}
