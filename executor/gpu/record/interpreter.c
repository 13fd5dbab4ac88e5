#include "executor/gpu/record/interpreter.h"
#include "common/strbuf.h"
#include "executor/sandbox/interpreter.h"
#include "executor/sandbox/process.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDERS_SECONDS 20

// Runs the interpreter outside of the sandbox to learn which folders are its own, and which program
// it is. It is the administrator's, and runs nothing of a candidate's.
static int read_folders(const char *python, struct strbuf *out, struct err *err)
{
    static const char script[] =
        "import os, sys\n"
        "print(os.path.realpath(sys.executable)); print(sys.executable)\n"
        "print('\\n'.join(dict.fromkeys([sys.prefix, sys.base_prefix] + sys.path)))\n";
    int pipe_end[2], status = -1;
    char buf[4096];
    ssize_t n;

    if (pipe2(pipe_end, O_CLOEXEC) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a pipe for %s", python);
    }
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);

        (void)dup2(null, STDIN_FILENO);
        (void)dup2(pipe_end[1], STDOUT_FILENO);
        (void)dup2(null, STDERR_FILENO);
        execlp(python, python, "-I", "-B", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(pipe_end[1]);
    while (pid > 0 && (n = read(pipe_end[0], buf, sizeof(buf))) > 0) {
        strbuf_add(out, buf, (size_t)n);
    }
    close(pipe_end[0]);
    if (pid > 0 && !process_wait(pid, FOLDERS_SECONDS, &status)) {
        (void)kill(pid, SIGKILL);
        process_reap(pid, &status);
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : err_set(err, ERR_UNSUPPORTED,
                         "%s cannot be started; name an interpreter with PyTorch by --python",
                         python);
}

static bool is_inside(const char *path, const char *folder)
{
    size_t len = strlen(folder);

    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

// Adds a folder that the sandbox would not have otherwise.
static void add_folder(struct sandbox *sandbox, const char *path)
{
    char real[PATH_MAX];
    const char *both[] = {path, realpath(path, real) ? real : path};

    for (size_t k = 0; k < 2; k++) {
        bool known = both[k][0] != '/' || strlen(both[k]) >= SANDBOX_FOLDER_BYTES ||
                     is_inside(both[k], "/usr") || strcmp(both[k], "/") == 0;
        size_t i = 0;

        while (i < SANDBOX_FOLDERS_MAX && sandbox->folder[i][0] != '\0') {
            known = known || is_inside(both[k], sandbox->folder[i]);
            i++;
        }
        if (!known && i < SANDBOX_FOLDERS_MAX && access(both[k], F_OK) == 0) {
            snprintf(sandbox->folder[i], SANDBOX_FOLDER_BYTES, "%s", both[k]);
        }
    }
}

static void add_folder_of(struct sandbox *sandbox, const char *file)
{
    char folder[PATH_MAX];

    snprintf(folder, sizeof(folder), "%s", file);
    char *slash = strrchr(folder, '/');
    if (slash) {
        *slash = '\0';
        add_folder(sandbox, folder);
    }
}

int interpreter_find(char python[static RECORDER_PATH_MAX], struct sandbox *sandbox,
                     struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = read_folders(python, &text, err);

    if (rc != 0) {
        goto out;
    }
    char *rest = text.data;
    const char *real = strsep(&rest, "\n"), *executable = strsep(&rest, "\n");
    if (!executable || executable[0] != '/' || strlen(executable) >= RECORDER_PATH_MAX) {
        rc = err_set(err, ERR_UNSUPPORTED, "%s does not say which program it is", python);
        goto out;
    }
    if (!sandbox->off && !interpreter_is_reachable(real)) {
        rc = err_set(err, ERR_UNSUPPORTED, "%s is in a folder closed to others (chmod o+x)", real);
        goto out;
    }
    snprintf(python, RECORDER_PATH_MAX, "%s", executable);
    const char *line;
    while ((line = strsep(&rest, "\n"))) {
        add_folder(sandbox, line);
    }
    add_folder_of(sandbox, real);
    add_folder_of(sandbox, executable);
out:
    strbuf_release(&text);
    return rc;
}
