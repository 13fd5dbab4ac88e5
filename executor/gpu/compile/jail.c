// Design note. A compile server is started when it is first needed and after it has failed. When
// it does not answer in time, the compilation has run out of wall time; when its socket closes, the
// compilation counts as one that the compiler did not survive. In either case it is killed, and the
// next compilation starts another server. The answer lies in memory that the jail can still write
// to, so lengths are copied before they are checked and used.
#include "executor/gpu/compile/jail.h"
#include "common/clock.h"
#include "executor/gpu/compile/jail_wire.h"
#include "executor/gpu/compile/sass.h"
#include "executor/sandbox/process.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_SECONDS 30 // limit of the server's start, which includes a compilation
#define GRACE_SECONDS 5  // for the server to notice that its child takes too long

// What comes of waiting for the server: it has sent a message, has gone, or has sent nothing in
// time.
enum server_state { SERVER_ANSWERED, SERVER_GONE, SERVER_LATE };

void cuda_jail_init(struct cuda_jail *jail, struct zygote *zygote, struct toolkit *toolkit_take,
                    bool sandbox_off)
{
    *jail =
        (struct cuda_jail){.zygote = zygote, .toolkit = *toolkit_take, .sandbox_off = sandbox_off};
    *toolkit_take = (struct toolkit){.root = NULL};
}

static void stop(struct cuda_jail_server *server)
{
    if (!server->made) {
        return;
    }
    if (server->socket >= 0) {
        close(server->socket);
    }
    if (server->pid > 0) {
        (void)kill(server->pid, SIGKILL);
        process_reap(server->pid, NULL);
    }
    if (server->memory) {
        munmap(server->memory, JAIL_MEMORY_BYTES);
    }
    if (server->memory_fd >= 0) {
        close(server->memory_fd);
    }
    if (server->words_fd >= 0) {
        close(server->words_fd);
    }
    *server = (struct cuda_jail_server){.made = false};
}

void cuda_jail_abandon(struct cuda_jail *jail)
{
    for (size_t i = 0; i < CUDA_JAIL_SERVERS; i++) {
        if (jail->server[i].busy) {
            stop(&jail->server[i]);
        }
    }
}

void cuda_jail_release(struct cuda_jail *jail)
{
    for (size_t i = 0; i < CUDA_JAIL_SERVERS; i++) {
        stop(&jail->server[i]);
    }
    toolkit_release(&jail->toolkit);
}

static int make_memory(struct cuda_jail_server *server, struct err *err)
{
    *server = (struct cuda_jail_server){.made = true,
                                        .socket = -1,
                                        .memory_fd = memfd_create("nvrtc", MFD_CLOEXEC),
                                        .words_fd = -1};
    if (server->memory_fd < 0 || ftruncate(server->memory_fd, (off_t)JAIL_MEMORY_BYTES) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for the compile jail");
    }
    server->words_fd = memfd_create("words", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (server->words_fd < 0 || ftruncate(server->words_fd, CUDA_JAIL_WORDS_MAX) != 0 ||
        fcntl(server->words_fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for the compiler's words");
    }
    server->memory =
        mmap(NULL, JAIL_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, server->memory_fd, 0);
    if (server->memory == MAP_FAILED) {
        server->memory = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for the compile jail");
    }
    return 0;
}

static int enter(struct cuda_jail *jail, struct err *err)
{
    struct sandbox sandbox = {
        .kind = SANDBOX_JAIL, .off = jail->sandbox_off, .scratch = (uint64_t)64 << 20};

    if (jail->entered) {
        return 0;
    }
    (void)snprintf(sandbox.toolkit, sizeof(sandbox.toolkit), "%s", jail->toolkit.root);
    int rc = zygote_enter(jail->zygote, &sandbox, err);
    jail->entered = rc == 0;
    return rc;
}

// Waits for a message of the server.
static enum server_state await_status(const struct cuda_jail_server *server, double seconds,
                                      struct jail_status *ret)
{
    uint64_t end = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    struct pollfd fd = {.fd = server->socket, .events = POLLIN};

    for (;;) {
        uint64_t now = clock_now_ns(&clock_system);
        int left_ms = now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0;
        int n = poll(&fd, 1, left_ms);

        if (n == 1) {
            return recv(server->socket, ret, sizeof(*ret), 0) == sizeof(*ret) ? SERVER_ANSWERED
                                                                              : SERVER_GONE;
        }
        if (n == 0 || errno != EINTR) {
            return SERVER_LATE;
        }
    }
}

// Makes a path relative to the toolkit. Returns false when it lies outside.
static bool path_inside(const struct toolkit *toolkit, const char *path, char out[static 256])
{
    size_t len = strlen(toolkit->root);

    return strncmp(path, toolkit->root, len) == 0 && path[len] == '/' &&
           snprintf(out, 256, "%s", path + len + 1) < 256;
}

static int spawn(struct cuda_jail *jail, size_t number, struct err *err)
{
    struct cuda_jail_server *server = &jail->server[number];
    struct jail_spec spec = {.number = (uint32_t)number};
    int pair[2], rc;

    if (!path_inside(&jail->toolkit, jail->toolkit.nvrtc, spec.nvrtc)) {
        return err_set(err, ERR_INVALID, "%s lies outside its toolkit %s", jail->toolkit.nvrtc,
                       jail->toolkit.root);
    }
    if (!jail->toolkit.nvdisasm ||
        !path_inside(&jail->toolkit, jail->toolkit.nvdisasm, spec.nvdisasm)) {
        spec.nvdisasm[0] = '\0';
    }
    if (!jail->toolkit.nvjitlink ||
        !path_inside(&jail->toolkit, jail->toolkit.nvjitlink, spec.nvjitlink)) {
        spec.nvjitlink[0] = '\0';
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a socket for the compile jail");
    }
    rc = zygote_spawn(jail->zygote, &spec, sizeof(spec),
                      (int[]){pair[1], server->memory_fd, server->words_fd}, 3, &server->pid, err);
    close(pair[1]);
    server->socket = pair[0];
    return rc;
}

// Begins to start a server unless it is running.
static int launch(struct cuda_jail *jail, size_t number, struct err *err)
{
    struct cuda_jail_server *server = &jail->server[number];

    if (server->pid > 0) {
        return 0;
    }
    int rc = enter(jail, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_memory(server, err);
    if (rc == 0) {
        rc = spawn(jail, number, err);
    }
    if (rc != 0) {
        stop(server);
    }
    server->starting = rc == 0;
    return rc;
}

// Waits until it can compile.
static int be_ready(struct cuda_jail_server *server, struct err *err)
{
    struct jail_status status = {.text = ""};

    if (!server->starting) {
        return 0;
    }
    server->starting = false;
    bool got = await_status(server, START_SECONDS, &status) == SERVER_ANSWERED;
    status.text[sizeof(status.text) - 1] = '\0';
    if (got && status.text[0] == '\0') {
        return 0;
    }
    stop(server);
    return err_set(err, ERR_SANDBOX, "the CUDA compile jail cannot be set up: %s",
                   got ? status.text : "its process ends or does not answer");
}

static int start(struct cuda_jail *jail, size_t number, struct err *err)
{
    int rc = launch(jail, number, err);

    return rc == 0 ? be_ready(&jail->server[number], err) : rc;
}

int cuda_jail_start(struct cuda_jail *jail, struct err *err)
{
    return start(jail, 0, err);
}

int cuda_jail_widen(struct cuda_jail *jail, size_t count, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && i < CUDA_JAIL_SERVERS && rc == 0; i++) {
        rc = launch(jail, i, err);
    }
    return rc;
}

static int put_request(const struct cuda_jail_server *server, const struct nvrtc_input *input,
                       const struct cuda_jail_limits *limits, struct err *err)
{
    struct jail_request *request = (struct jail_request *)server->memory;
    size_t len = strlen(input->source);

    if (len >= JAIL_REQUEST_BYTES - sizeof(*request)) {
        return err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", input->file,
                       JAIL_REQUEST_BYTES - sizeof(*request));
    }
    memset(request, 0, sizeof(*request));
    memset(jail_answer_of(server->memory), 0, sizeof(struct jail_answer));
    request->source_len = len;
    request->memory = limits->memory;
    request->cpu_seconds = limits->cpu_seconds;
    request->wall_seconds = limits->wall_seconds;
    request->name_count = (uint32_t)input->name_count;
    request->form = input->form;
    request->disassemble = limits->disassemble;
    (void)snprintf(request->file, sizeof(request->file), "%s", input->file);
    (void)snprintf(request->target, sizeof(request->target), "%s", input->target);
    for (size_t i = 0; i < input->name_count; i++) {
        (void)snprintf(request->name[i], sizeof(request->name[i]), "%s", input->name[i]);
    }
    memcpy(request->source, input->source, len + 1);
    return 0;
}

static char *copy_text(const unsigned char *from, size_t len)
{
    char *text = xmalloc(len + 1);

    memcpy(text, from, len);
    text[len] = '\0';
    return text;
}

static int take_answer(const struct cuda_jail_server *server, struct nvrtc_output *ret,
                       struct err *err)
{
    struct jail_answer *shared = jail_answer_of(server->memory);
    size_t log = shared->log_len, ptx = shared->ptx_len, cubin = shared->cubin_len;
    size_t sass = shared->sass_len;

    if (log > JAIL_ANSWER_ROOM || ptx > JAIL_ANSWER_ROOM || cubin > JAIL_ANSWER_ROOM ||
        sass > SASS_TEXT_MAX || log + ptx + cubin + sass > JAIL_ANSWER_ROOM) {
        return err_set(err, ERR_PROTOCOL, "the compile jail's answer makes no sense");
    }
    char text[512];
    if (shared->error != 0) {
        memcpy(text, shared->error_text, sizeof(text));
        text[sizeof(text) - 1] = '\0';
        return err_set(err, ERR_SYSTEM, "%s: %s", server->file, text);
    }
    *ret = (struct nvrtc_output){.compiled = shared->compiled != 0};
    memcpy(ret->result, shared->result, sizeof(ret->result));
    ret->result[sizeof(ret->result) - 1] = '\0';
    ret->log = copy_text(shared->data, log);
    if (ret->compiled) {
        ret->ptx = ptx > 0 ? copy_text(shared->data + log, ptx) : NULL;
        ret->cubin = (struct bytes){.data = xmalloc(cubin + 1), .len = cubin};
        memcpy(ret->cubin.data, shared->data + log + ptx, cubin);
        ret->sass = sass > 0 ? copy_text(shared->data + log + ptx + cubin, sass) : NULL;
        for (size_t i = 0; i < server->name_count; i++) {
            shared->symbol[i][JAIL_SYMBOL_MAX - 1] = '\0';
            ret->symbol[i] = xstrdup(shared->symbol[i]);
        }
    }
    return 0;
}

// Empties the file of words. The compile server and its children share its position.
static int clear_words(const struct cuda_jail_server *server, struct err *err)
{
    static const char nothing[CUDA_JAIL_WORDS_MAX];

    if (pwrite(server->words_fd, nothing, sizeof(nothing), 0) != (ssize_t)sizeof(nothing) ||
        lseek(server->words_fd, 0, SEEK_SET) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "emptying the compiler's words");
    }
    return 0;
}

static void take_words(const struct cuda_jail_server *server,
                       char words[static CUDA_JAIL_WORDS_MAX + 1])
{
    ssize_t n = pread(server->words_fd, words, CUDA_JAIL_WORDS_MAX, 0);

    words[n > 0 ? n : 0] = '\0';
}

int cuda_jail_begin(struct cuda_jail *jail, size_t number, const struct nvrtc_input *input,
                    const struct cuda_jail_limits *limits, struct err *err)
{
    struct cuda_jail_server *server = &jail->server[number];
    int rc = start(jail, number, err);

    if (rc != 0) {
        return rc;
    }
    if (input->form == FORM_PTX && !jail->toolkit.nvjitlink) {
        return err_set(err, ERR_UNSUPPORTED,
                       "this host assembles no PTX: %s has no libnvJitLink.so; install NVIDIA's "
                       "package libnvjitlink there",
                       jail->toolkit.root);
    }
    rc = put_request(server, input, limits, err);
    if (rc != 0) {
        return rc;
    }
    rc = clear_words(server, err);
    if (rc != 0) {
        return rc;
    }
    char byte = 1;
    (void)!send(server->socket, &byte, 1, MSG_NOSIGNAL); // to one that has gone: seen at the end
    server->busy = true;
    server->file = input->file;
    server->wall_seconds = limits->wall_seconds;
    server->name_count = input->name_count;
    return 0;
}

int cuda_jail_end(struct cuda_jail *jail, size_t number, struct cuda_jail_report *ret_report,
                  struct nvrtc_output *ret, struct err *err)
{
    struct cuda_jail_server *server = &jail->server[number];
    struct jail_status status = {.status = -1};
    enum server_state state = await_status(server, server->wall_seconds + GRACE_SECONDS, &status);

    server->busy = false;
    ret_report->status = status.status;
    ret_report->cpu_seconds = status.cpu_seconds;
    take_words(server, ret_report->words);
    if (state != SERVER_ANSWERED) {
        stop(server);
        ret_report->end = state == SERVER_LATE ? CUDA_JAIL_TIMEOUT : CUDA_JAIL_LOST;
        return 0;
    }
    bool ended_well = WIFEXITED(status.status) && WEXITSTATUS(status.status) == 0;
    ret_report->end = status.timed_out                            ? CUDA_JAIL_TIMEOUT
                      : !ended_well                               ? CUDA_JAIL_DIED
                      : jail_answer_of(server->memory)->too_large ? CUDA_JAIL_TOO_LARGE
                                                                  : CUDA_JAIL_DONE;
    return ret_report->end == CUDA_JAIL_DONE ? take_answer(server, ret, err) : 0;
}
