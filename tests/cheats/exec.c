#include "tests/cheats/exec.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "tests/support/program.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTCOME_MAX ((size_t)64 << 20)
#define STDERR_MAX 500

struct run {
    pid_t pid;
    int input, output; // our ends of its stdin and stdout
    int errors;        // a file that is its stderr
};

static int start(struct run *run, const char *mode, struct err *err)
{
    int in[2], out[2];
    char *path = program_path("kcast-exec");

    run->errors = memfd_create("stderr", MFD_CLOEXEC);
    if (run->errors < 0 || pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "pipes for kcast-exec");
    }
    run->pid = fork();
    if (run->pid == 0) {
        (void)dup2(in[0], STDIN_FILENO);
        (void)dup2(out[1], STDOUT_FILENO);
        (void)dup2(run->errors, STDERR_FILENO);
        execl(path, path, mode, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    free(path);
    run->input = in[1];
    run->output = out[0];
    return run->pid > 0 ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "starting kcast-exec");
}

// Reads until the end of the output, or until nothing has come for EXEC_SECONDS_MAX.
static bool read_all(int fd, struct strbuf *out)
{
    char chunk[65536];
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    for (;;) {
        int ready = poll(&wait, 1, EXEC_SECONDS_MAX * 1000);
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t n = ready > 0 ? read(fd, chunk, sizeof(chunk)) : -1;
        if (n <= 0) {
            return n == 0;
        }
        strbuf_add(out, chunk, (size_t)n);
    }
}

// Waits for the end of the process. Returns whether it was a success; *said gets what it wrote.
static bool finish(struct run *run, char said[static STDERR_MAX])
{
    int status = 0;
    pid_t pid;

    close(run->output);
    do {
        pid = waitpid(run->pid, &status, 0);
    } while (pid < 0 && errno == EINTR);
    ssize_t n = pread(run->errors, said, STDERR_MAX - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    close(run->errors);
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int exec_run(const char *mode, const struct message *plan_message, const void *plan,
             const struct message *answer_message, void *outcome, struct err *err)
{
    struct strbuf packed = STRBUF_INIT, answer;
    struct run run = {.pid = -1};

    strbuf_init(&answer, OUTCOME_MAX);
    int rc = plan_message ? message_pack(plan_message, plan, &packed, err) : 0;
    if (rc != 0) {
        goto out;
    }
    rc = start(&run, mode, err);
    if (rc != 0) {
        goto out;
    }
    // A process that does not take its plan says why on stderr.
    (void)!file_write_fd(run.input, strbuf_text(&packed), packed.len, "the plan", NULL);
    close(run.input);
    bool whole = read_all(run.output, &answer);
    if (!whole) {
        (void)kill(run.pid, SIGKILL);
    }
    char said[STDERR_MAX];
    if (!finish(&run, said) || !whole) {
        rc = err_set(err, ERR_SYSTEM, "kcast-exec %s gave no outcome: %s", mode,
                     whole ? said : "it did not answer in time");
        goto out;
    }
    rc = message_read(answer_message, outcome, answer.data, answer.len, err);
out:
    strbuf_release(&packed);
    strbuf_release(&answer);
    return rc;
}

bool exec_has_sandbox(char **ret_reason)
{
    struct probe_outcome probe;
    struct err err = ERR_INIT;

    if (exec_run("probe", NULL, NULL, &probe_outcome_message, &probe, &err) != 0) {
        *ret_reason = xstrdup(err.text);
        return false;
    }
    bool works = probe.sandbox;
    *ret_reason = works ? NULL : xstrdup(probe.reason ? probe.reason : "unknown");
    message_clear(&probe_outcome_message, &probe);
    return works;
}
