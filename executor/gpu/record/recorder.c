// Design note. The script and the library that is loaded before everything else are carried in this
// program, and given to the interpreter as memory files that nobody can change any more. A request
// is a byte on the control socket with three descriptors. To record, they are a file with the
// request, the turn of making a context (turn.h), and a pipe. The pipe ends when everything that
// held it has ended, and then the status comes on the socket.
#include "executor/gpu/record/recorder.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strbuf.h"
#include "executor/gpu/record/interpreter.h"
#include "executor/gpu/record/turn.h"
#include "executor/sandbox/process.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_SECONDS 120                 // importing PyTorch takes 2 to 10 seconds
#define STATUS_SECONDS 20                 // for the status when the pipe has ended
#define SCRATCH_BYTES ((uint64_t)4 << 30) // that may be written, in memory
#define BEGAN 0xc0 // before a reply: candidate code may have run (executor/recorder/begin.py)

__asm__(".section .rodata\n"
        ".balign 16\n"
        "recorder_script:\n"
        ".incbin \"" RECORDER_SCRIPT_FILE "\"\n"
        "recorder_script_end:\n"
        ".balign 16\n"
        "recorder_library:\n"
        ".incbin \"" RECORDER_LIBRARY_FILE "\"\n"
        "recorder_library_end:\n"
        ".byte 0\n"
        ".previous\n");
extern const char recorder_script[], recorder_script_end[];
extern const char recorder_library[], recorder_library_end[];

// What the child is told. Its descriptor 0 is the control socket, 1 the library, 2 the script.
struct recorder_spec {
    char python[RECORDER_PATH_MAX];
    char folder[RECORDER_PATH_MAX]; // working directory without a sandbox
};

enum { CONTROL_FD = 3, LIBRARY_FD, SCRIPT_FD };

// ---- in the child ----

static int confine(const struct zygote_child *child, const char *folder, struct err *err)
{
    struct sandbox_limits limits = sandbox_jail_limits(child->sandbox);
    const struct sandbox_filter *filter = child->context;
    int rc = child->sandbox->off ? 0 : sandbox_own_proc(err);

    if (rc != 0) {
        return rc;
    }
    rc = sandbox_drop(child->sandbox, child->alive_fd, err);
    if (rc != 0) {
        return rc;
    }
    if (chdir(child->sandbox->off ? folder : SANDBOX_DIR) != 0) {
        return err_set_errno(err, ERR_SANDBOX, errno, "the recorder's working directory");
    }
    rc = sandbox_limit(&limits, err);
    return rc == 0 && !child->sandbox->off ? sandbox_filter_load(filter, err) : rc;
}

// The first bytes of a message on the control socket; record.py has the same. Text may follow.
struct __attribute__((packed)) control_status {
    int status;
    double cpu_seconds;
};

static int give_up(int control, const struct err *why)
{
    char message[sizeof(struct control_status) + ERR_TEXT_MAX];
    struct control_status status = {.status = -1};
    size_t len = strlen(why->text);

    memcpy(message, &status, sizeof(status));
    memcpy(message + sizeof(status), why->text, len);
    (void)!write(control, message, sizeof(status) + len);
    return 1;
}

static int recorder_child(const struct zygote_child *child)
{
    struct recorder_spec spec;
    char path[RECORDER_PATH_MAX + 64], home[RECORDER_PATH_MAX + 64];
    char temporary[RECORDER_PATH_MAX + 64], triton[RECORDER_PATH_MAX + 64];
    char inductor[RECORDER_PATH_MAX + 64], extensions[RECORDER_PATH_MAX + 64];
    struct err err = ERR_INIT;

    if (child->spec_len != sizeof(spec) || child->fd_count != 3) {
        return 1;
    }
    memcpy(&spec, child->spec, sizeof(spec));
    (void)signal(SIGCHLD, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    int kept[3];
    for (int i = 0; i < 3; i++) { // to numbers above those that they get
        kept[i] = fcntl(child->fd[i], F_DUPFD, 16);
    }
    if (confine(child, spec.folder, &err) != 0) {
        return give_up(kept[0], &err);
    }
    for (int i = 0; i < 3; i++) {
        (void)dup2(kept[i], CONTROL_FD + i);
    }
    sandbox_close_files((int[]){CONTROL_FD, LIBRARY_FD, SCRIPT_FD}, 3);
    const char *slash = strrchr(spec.python, '/');
    const char *folder = child->sandbox->off ? spec.folder : SANDBOX_DIR;
    snprintf(path, sizeof(path), "PATH=%.*s:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin",
             (int)(slash ? slash - spec.python : 0), spec.python);
    snprintf(home, sizeof(home), "HOME=%s", folder);
    snprintf(temporary, sizeof(temporary), "TMPDIR=%s", folder);
    snprintf(triton, sizeof(triton), "TRITON_CACHE_DIR=%s/triton", folder);
    snprintf(inductor, sizeof(inductor), "TORCHINDUCTOR_CACHE_DIR=%s/inductor", folder);
    snprintf(extensions, sizeof(extensions), "TORCH_EXTENSIONS_DIR=%s/extensions", folder);
    char *const environment[] = {path,
                                 home,
                                 temporary,
                                 triton,
                                 inductor,
                                 extensions,
                                 "USER=sandbox",
                                 "LOGNAME=sandbox",
                                 "LANG=C.UTF-8",
                                 "OMP_NUM_THREADS=1",
                                 "MAX_JOBS=2",
                                 "TORCHINDUCTOR_COMPILE_THREADS=1",
                                 "CUDA_CACHE_DISABLE=1",
                                 "LD_PRELOAD=" RECORDER_LIBRARY,
                                 NULL};
    char *const arguments[] = {spec.python, "-I", "-B", "/proc/self/fd/5", "3", NULL};
    execve(spec.python, arguments, environment);
    (void)err_set_errno(&err, ERR_SYSTEM, errno, "starting %s", spec.python);
    return give_up(CONTROL_FD, &err);
}

// ---- starting it ----

static int sealed_file(const char *name, const char *begin, const char *end, struct err *err)
{
    size_t len = (size_t)(end - begin), done = 0;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    while (fd >= 0 && done < len) {
        ssize_t n = write(fd, begin + done, len - done);

        if (n <= 0) {
            break;
        }
        done += (size_t)n;
    }
    if (fd < 0 || done < len ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        int failed = errno;

        if (fd >= 0) {
            close(fd);
        }
        return err_set_errno(err, ERR_SYSTEM, failed, "memory for the recorder");
    }
    return fd;
}

static int spawn(struct recorder *recorder, struct err *err)
{
    struct recorder_spec spec = {.python = ""};
    int pair[2], rc = 0;

    snprintf(spec.python, sizeof(spec.python), "%s", recorder->python);
    snprintf(spec.folder, sizeof(spec.folder), "%s", recorder->folder);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a socket for the recorder");
    }
    recorder->control = pair[0];
    int library = sealed_file("recorder.so", recorder_library, recorder_library_end, err);
    int script = library >= 0 ? sealed_file("record.py", recorder_script, recorder_script_end, err)
                              : library;
    rc = script < 0 ? script
                    : zygote_spawn(&recorder->zygote, &spec, sizeof(spec),
                                   (int[]){pair[1], library, script}, 3, &recorder->pid, err);
    close(pair[1]);
    if (library >= 0) {
        close(library);
    }
    if (script >= 0) {
        close(script);
    }
    return rc;
}

// Waits until the socket has a message. Returns the length of its text, negative when none came.
static ssize_t await_status(const struct recorder *recorder, double seconds,
                            struct control_status *ret, char text[static 512])
{
    char message[1024];
    uint64_t end = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    struct pollfd fd = {.fd = recorder->control, .events = POLLIN};
    int n = -1;

    do {
        uint64_t now = clock_now_ns(&clock_system);

        n = poll(&fd, 1, now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0);
    } while (n < 0 && errno == EINTR);
    ssize_t len = n == 1 ? recv(recorder->control, message, sizeof(message), 0) : -1;
    if (len < (ssize_t)sizeof(*ret)) {
        return -1;
    }
    memcpy(ret, message, sizeof(*ret));
    snprintf(text, 512, "%.*s", (int)(len - (ssize_t)sizeof(*ret)), message + sizeof(*ret));
    return len - (ssize_t)sizeof(*ret);
}

static int make_zygote(struct recorder *recorder, struct err *err)
{
    int rc = 0;

    if (!recorder->filter.program) {
        rc = sandbox_filter_build(&recorder->filter, STAGE_RECORD, err);
    }
    return rc == 0 ? zygote_create(&recorder->zygote, recorder_child, &recorder->filter, err) : rc;
}

int recorder_fork(struct recorder *recorder, struct err *err)
{
    int rc = make_zygote(recorder, err);

    if (rc != 0) {
        recorder_stop(recorder);
    }
    return rc;
}

static int make_folder(struct recorder *recorder, struct err *err)
{
    char *folder;
    int rc = file_make_temp_dir(&folder, "kcast-record", err);

    if (rc != 0) {
        return rc;
    }
    if (strlen(folder) < sizeof(recorder->folder)) {
        memcpy(recorder->folder, folder, strlen(folder) + 1);
    } else {
        rc = err_set(err, ERR_SYSTEM,
                     "%s is too long for a recorder's folder; give kcastd a shorter --state",
                     folder);
        (void)rmdir(folder);
    }
    free(folder);
    return rc;
}

static int enter_sandbox(struct recorder *recorder, struct err *err)
{
    struct sandbox sandbox = {
        .kind = SANDBOX_RECORDER, .off = recorder->sandbox_off, .scratch = SCRATCH_BYTES};
    int rc = interpreter_find(recorder->python, &sandbox, err);

    if (rc != 0) {
        return rc;
    }
    if (recorder->sandbox_off && (rc = make_folder(recorder, err)) != 0) {
        return rc;
    }
    recorder->entered = true;
    return zygote_enter(&recorder->zygote, &sandbox, err);
}

static void end_process(struct recorder *recorder)
{
    if (recorder->control >= 0) {
        close(recorder->control);
    }
    if (recorder->pid > 0) {
        (void)kill(recorder->pid, SIGKILL);
        process_reap(recorder->pid, NULL);
    }
    recorder->pid = 0;
    recorder->starting = false;
    recorder->control = -1;
}

void recorder_stop(struct recorder *recorder)
{
    end_process(recorder);
    zygote_release(&recorder->zygote);
    if (recorder->folder[0] != '\0') {
        (void)rmdir(recorder->folder); // which is empty between two requests
    }
    sandbox_filter_release(&recorder->filter);
    *recorder = (struct recorder)RECORDER_INIT;
}

int recorder_begin(struct recorder *recorder, const char *python, bool sandbox_off, struct err *err)
{
    if (recorder->pid > 0 && recorder->sandbox_off == sandbox_off) {
        return 0;
    }
    if (recorder->entered || recorder->zygote.socket < 0) {
        recorder_stop(recorder); // what an earlier process has left goes with its sandbox
    }
    recorder->sandbox_off = sandbox_off;
    if (strlen(python) >= sizeof(recorder->python)) {
        return err_set(err, ERR_LIMIT, "the interpreter's path is too long");
    }
    snprintf(recorder->python, sizeof(recorder->python), "%s", python);
    int rc = recorder->zygote.socket < 0 ? make_zygote(recorder, err) : 0;
    if (rc == 0) {
        rc = enter_sandbox(recorder, err);
    }
    if (rc == 0) {
        rc = spawn(recorder, err);
    }
    if (rc != 0) {
        recorder_stop(recorder);
    }
    recorder->starting = rc == 0;
    return rc;
}

int recorder_start(struct recorder *recorder, const char *python, bool sandbox_off, struct err *err)
{
    struct control_status status = {.status = -1};
    char text[512] = "its process ends or does not answer";
    int rc = recorder_begin(recorder, python, sandbox_off, err);

    if (rc != 0 || !recorder->starting) {
        return rc;
    }
    recorder->starting = false;
    if (await_status(recorder, START_SECONDS, &status, text) >= 0 && status.status == 0) {
        return 0;
    }
    rc = err_set(err, ERR_UNSUPPORTED, "%s does not record: %s", recorder->python, text);
    recorder_stop(recorder);
    return rc;
}

// ---- one request ----

// fd: of fd_count descriptors the first is set here, to a file with the request.
static int send_request(const struct recorder *recorder, const struct bytes *request, int *fd,
                        size_t fd_count, struct err *err)
{
    int file = memfd_create("request", MFD_CLOEXEC);
    size_t done = 0;
    int rc = 0;

    while (file >= 0 && done < request->len) {
        ssize_t n = write(file, request->data + done, request->len - done);

        if (n <= 0) {
            break;
        }
        done += (size_t)n;
    }
    fd[0] = file;
    if (file < 0 || done < request->len || lseek(file, 0, SEEK_SET) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "memory for a request to the recorder");
    } else if (fd_message_send(recorder->control, "x", 1, fd, fd_count) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "talking to the recorder");
    }
    if (file >= 0) {
        close(file);
    }
    return rc;
}

// Reads until nobody can write any more.
static enum recorder_end read_reply(int pipe_end, double seconds, struct strbuf *out)
{
    uint64_t end = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    struct pollfd fd = {.fd = pipe_end, .events = POLLIN};
    char buf[65536];

    for (;;) {
        uint64_t now = clock_now_ns(&clock_system);
        int n = now < end ? poll(&fd, 1, (int)((end - now) / NS_PER_MS) + 1) : 0;

        if (n == 0) {
            return RECORDER_TIMEOUT;
        }
        if (n < 0) {
            continue; // a signal
        }
        ssize_t got = read(pipe_end, buf, sizeof(buf));
        if (got <= 0) {
            return out->truncated ? RECORDER_LARGE : RECORDER_DONE;
        }
        strbuf_add(out, buf, (size_t)got);
    }
}

int recorder_ask(struct recorder *recorder, const struct bytes *request, const char *device,
                 double seconds, size_t most, struct recorder_report *ret_report, struct bytes *ret,
                 struct err *err)
{
    int pipe_end[2];

    if (pipe2(pipe_end, O_CLOEXEC) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a pipe for the recorder");
    }
    int turn = turn_open(device, err);
    int rc = turn;
    if (turn >= 0) {
        rc = send_request(recorder, request, (int[]){-1, turn, pipe_end[1]}, 3, err);
        close(turn);
    }
    close(pipe_end[1]);
    if (rc != 0) {
        close(pipe_end[0]);
        end_process(recorder);
        return rc;
    }
    struct strbuf reply;
    strbuf_init(&reply, most);
    struct control_status status = {.status = -1};
    char text[512];
    *ret_report = (struct recorder_report){.end = read_reply(pipe_end[0], seconds, &reply)};
    close(pipe_end[0]);
    if (ret_report->end == RECORDER_TIMEOUT ||
        await_status(recorder, STATUS_SECONDS, &status, text) < 0) {
        end_process(recorder);
    }
    ret_report->status = status.status;
    ret_report->cpu_seconds = status.cpu_seconds;
    size_t before = reply.len > 0 && (unsigned char)reply.data[0] == BEGAN ? 1 : 0;
    ret_report->began = before > 0;
    if (ret_report->end == RECORDER_DONE && reply.len == before) {
        ret_report->end = RECORDER_DIED;
    } else if (ret_report->end == RECORDER_DONE) {
        *ret = bytes_copy(reply.data + before, reply.len - before);
    }
    strbuf_release(&reply);
    return 0;
}

// ---- a candidate that runs ----

int recorder_begin_unsealed(struct recorder *recorder, const struct bytes *request, int memory,
                            int *ret_socket, struct err *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a socket for a candidate");
    }
    int rc = send_request(recorder, request, (int[]){-1, pair[1], memory}, 3, err);
    close(pair[1]);
    if (rc != 0) {
        close(pair[0]);
        end_process(recorder);
        return rc;
    }
    *ret_socket = pair[0];
    return 0;
}

bool recorder_end_unsealed(struct recorder *recorder, double seconds, struct recorder_report *ret)
{
    struct control_status status = {.status = -1};
    char text[512];
    bool ended = await_status(recorder, seconds, &status, text) >= 0;

    if (!ended) {
        end_process(recorder);
    }
    *ret = (struct recorder_report){.end = ended ? RECORDER_DIED : RECORDER_TIMEOUT,
                                    .began = true,
                                    .status = status.status,
                                    .cpu_seconds = status.cpu_seconds};
    return ended;
}
