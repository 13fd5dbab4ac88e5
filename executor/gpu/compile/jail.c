// Design note. The jail's filter refuses socket calls: inside, the socket is read and written. Request and answer lie in memory that parent, warm process and its children share; the
// socket says when. The parent writes a request and sends a byte; the warm process forks; the child
// compiles, writes the answer and ends; the warm process reaps it, kills whatever else lives in its pid
// namespace, and sends how the child ended.
//
// A request is text: file name, target, name expressions, source. An answer: lengths, then log, PTX,
// cubin, disassembly. The last is added when all else is there; a disassembler that fails, hangs or floods
// costs its text and nothing else.
#include "executor/gpu/compile/jail.h"
#include "common/clock.h"
#include "executor/gpu/compile/disassemble.h"
#include "executor/gpu/compile/sass.h"
#include "executor/sandbox/control.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_BYTES ((size_t)96 << 20)
#define REQUEST_BYTES ((size_t)16 << 20)
#define SYMBOL_MAX 4096
#define ROLE_CUDA_JAIL 100 // beside enum child_role
#define WARM_SECONDS 30
#define GRACE_SECONDS 5 // for the warm process to notice that its child is too slow
#define JAIL_FILES 256
#define JAIL_PROCESSES 64
#define SASS_SECONDS 3.0        // for the disassembler
#define SASS_SPARE_SECONDS 0.25 // that must be left of the compilation's when it has ended

struct jail_spec {
    uint32_t role;
    char nvrtc[256], nvdisasm[256]; // paths in the toolkit; nvdisasm "": none
};

struct jail_request {
    uint64_t source_len;
    uint64_t memory;
    double seconds;
    uint32_t name_count;
    uint32_t disassemble;
    char file[80];
    char target[32];
    char name[NVRTC_NAMES_MAX][256];
    char source[];
};

struct jail_answer {
    int32_t error; // of NVRTC itself
    uint32_t compiled;
    uint64_t log_len, ptx_len, cubin_len, sass_len;
    char error_text[512];
    char symbol[NVRTC_NAMES_MAX][SYMBOL_MAX];
    unsigned char data[];
};

// What the warm process says: when it is ready, and after each compilation.
struct jail_word {
    int32_t status; // wait status of the child
    uint32_t timed_out;
    char text[256]; // why it cannot be set up; "" when it can
};

#define ANSWER_ROOM (MEMORY_BYTES - REQUEST_BYTES - sizeof(struct jail_answer))

// What the warm process works with.
struct jail_tools {
    struct nvrtc *nvrtc;
    struct disassembler disassembler; // program NULL: none
    unsigned char *memory;
};

static struct jail_answer *answer_of(unsigned char *memory)
{
    return (struct jail_answer *)(memory + REQUEST_BYTES);
}

// ---- the child that compiles ----

static void put_answer(struct jail_answer *answer, const struct nvrtc_output *output)
{
    size_t log = output->log ? strlen(output->log) : 0;
    size_t ptx = output->ptx ? strlen(output->ptx) : 0;

    log = log < 1 << 20 ? log : 1 << 20;
    if (log + ptx + output->cubin.len > ANSWER_ROOM) {
        answer->error = 1;
        (void)snprintf(answer->error_text, sizeof(answer->error_text), "its code is too large");
        return;
    }
    answer->compiled = output->compiled;
    answer->log_len = log;
    answer->ptx_len = ptx;
    answer->cubin_len = output->cubin.len;
    if (log > 0) {
        memcpy(answer->data, output->log, log);
    }
    if (ptx > 0) {
        memcpy(answer->data + log, output->ptx, ptx);
    }
    if (output->cubin.len > 0) {
        memcpy(answer->data + log + ptx, output->cubin.data, output->cubin.len);
    }
    for (size_t i = 0; i < NVRTC_NAMES_MAX; i++) {
        if (output->symbol[i]) {
            (void)snprintf(answer->symbol[i], SYMBOL_MAX, "%s", output->symbol[i]);
        }
    }
}

static void add_sass(const struct disassembler *disassembler, struct jail_answer *answer,
                     const struct bytes *cubin, double seconds)
{
    size_t used = answer->log_len + answer->ptx_len + answer->cubin_len, len;
    size_t room = ANSWER_ROOM - used < SASS_TEXT_MAX ? ANSWER_ROOM - used : SASS_TEXT_MAX;

    if (disassemble(disassembler, cubin, fmin(seconds - SASS_SPARE_SECONDS, SASS_SECONDS),
                    (char *)answer->data + used, room, &len)) {
        answer->sass_len = len;
    }
}

static void compile_one(const struct jail_tools *tools)
{
    uint64_t start_ns = clock_now_ns(&clock_system);
    struct jail_request *request = (struct jail_request *)tools->memory;
    struct jail_answer *answer = answer_of(tools->memory);
    const char *names[NVRTC_NAMES_MAX];
    struct nvrtc_input input = {.source = request->source,
                                .file = request->file,
                                .target = request->target,
                                .name = names,
                                .name_count = request->name_count};
    struct sandbox_limits limits = {.address_space = request->memory,
                                    .cpu_seconds = (uint64_t)ceil(request->seconds) + 1};

    for (size_t i = 0; i < request->name_count; i++) {
        names[i] = request->name[i];
    }
    if (SANDBOX_SANITIZED) {
        limits.address_space = 0;
    }
    memset(answer, 0, sizeof(*answer));
    struct nvrtc_output output = {.compiled = false};
    struct err err = ERR_INIT;
    if (sandbox_limit(&limits, &err) != 0 ||
        nvrtc_compile(tools->nvrtc, &input, &output, &err) != 0) {
        answer->error = 1;
        (void)snprintf(answer->error_text, sizeof(answer->error_text), "%.500s", err.text);
    } else {
        put_answer(answer, &output);
        if (answer->compiled && request->disassemble && tools->disassembler.program) {
            add_sass(&tools->disassembler, answer, &output.cubin,
                     request->seconds - clock_seconds(clock_now_ns(&clock_system) - start_ns));
        }
    }
    _exit(0);
}

// ---- the warm process ----

static void await_child(pid_t pid, double seconds, struct jail_word *word)
{
    uint64_t end = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), status = 0;

    while (waitpid(pid, &status, WNOHANG) != pid) {
        struct pollfd ended = {.fd = fd, .events = POLLIN};
        uint64_t now = clock_now_ns(&clock_system);
        int left_ms = now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0;

        if (left_ms == 0) {
            word->timed_out = 1;
            (void)kill(pid, SIGKILL);
            left_ms = 1000;
        }
        (void)poll(&ended, 1, fd >= 0 || left_ms < 2 ? left_ms : 2);
    }
    if (fd >= 0) {
        close(fd);
    }
    word->status = status;
}

static void serve(const struct jail_tools *tools, int socket, bool alone)
{
    char byte;

    while (read(socket, &byte, 1) == 1) {
        const struct jail_request *request = (const struct jail_request *)tools->memory;
        double seconds = request->seconds;
        pid_t pid = fork();

        if (pid == 0) {
            compile_one(tools);
        }
        struct jail_word word = {.status = -1};
        if (pid > 0) {
            await_child(pid, seconds, &word);
        }
        if (alone) { // process 1 of a pid namespace of our own: nobody else is left
            (void)kill(-1, SIGKILL);
            while (waitpid(-1, NULL, WNOHANG) > 0) {
            }
        }
        (void)unlink(tools->disassembler.file);
        if (write(socket, &word, sizeof(word)) != sizeof(word)) {
            return;
        }
    }
}

static int confine(const struct zygote_child *child, const struct sandbox_filter *filter,
                   struct err *err)
{
    struct sandbox_limits limits = {
        .processes = child->sandbox->off || !child->sandbox->user_namespace ? 0 : JAIL_PROCESSES,
        .files = JAIL_FILES,
    };
    int rc = sandbox_drop(child->sandbox, child->alive_fd, err);

    if (rc != 0) {
        return rc;
    }
    sandbox_close_files(child->fd, child->fd_count);
    rc = sandbox_limit(&limits, err);
    return rc == 0 && !child->sandbox->off ? sandbox_filter_load(filter, err) : rc;
}

// Inside, the toolkit is at another place.
static void toolkit_inside(const struct zygote_child *child, const struct jail_spec *spec,
                           struct toolkit *ret)
{
    const char *root = child->sandbox->off ? child->sandbox->toolkit : SANDBOX_TOOLKIT;

    *ret = (struct toolkit){.root = xstrdup(root),
                            .nvrtc = xasprintf("%s/%s", root, spec->nvrtc),
                            .include = xasprintf("%s/include", root)};
    if (spec->nvdisasm[0] != '\0') {
        ret->nvdisasm = xasprintf("%s/%s", root, spec->nvdisasm);
    }
}

static int warm_up(struct nvrtc *nvrtc, struct err *err)
{
    static const char *const name[] = {"warm"};
    struct nvrtc_input input = {.source = "#include <cuda_fp16.h>\n"
                                          "extern \"C\" __global__ void warm(__half *x)\n"
                                          "{ x[threadIdx.x] = __hadd(x[0], x[1]); }\n",
                                .file = "warm.cu",
                                .target = "sm_90",
                                .name = name,
                                .name_count = 1};
    struct nvrtc_output output;
    int rc = nvrtc_compile(nvrtc, &input, &output, err);

    if (rc == 0) {
        if (!output.compiled) {
            rc = err_set(err, ERR_VERSION, "NVRTC does not compile a small kernel: %.300s",
                         output.log);
        }
        nvrtc_output_release(&output);
    }
    return rc;
}

int cuda_jail_child(const struct zygote_child *child)
{
    struct jail_spec spec;

    if (child->spec_len != sizeof(spec) || child->fd_count != 2) {
        return 1;
    }
    memcpy(&spec, child->spec, sizeof(spec));
    (void)signal(SIGCHLD, SIG_DFL);
    struct jail_tools tools = {.nvrtc = NULL};
    tools.memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, child->fd[1], 0);
    if (tools.memory == MAP_FAILED) {
        return 1;
    }
    struct toolkit toolkit;
    toolkit_inside(child, &spec, &toolkit);
    tools.disassembler.program = toolkit.nvdisasm;
    tools.disassembler.file = child->sandbox->off ? xasprintf("/tmp/kcast-%d.cubin", getpid())
                                                  : SANDBOX_DIR "/candidate.cubin";
    struct err err = ERR_INIT;
    int rc = confine(child, child->context, &err);
    if (rc == 0) {
        rc = nvrtc_open(&tools.nvrtc, &toolkit, &err);
    }
    if (rc == 0) {
        rc = warm_up(tools.nvrtc, &err);
    }
    struct jail_word word = {.status = 0};
    (void)snprintf(word.text, sizeof(word.text), "%.250s", err.text);
    if (write(child->fd[0], &word, sizeof(word)) == sizeof(word) && rc == 0) {
        serve(&tools, child->fd[0], !child->sandbox->off);
    }
    return rc == 0 ? 0 : 1;
}

// ---- the parent ----

void cuda_jail_init(struct cuda_jail *jail, struct zygote *zygote, struct toolkit *toolkit_take,
                    bool sandbox_off)
{
    *jail = (struct cuda_jail){.zygote = zygote,
                               .toolkit = *toolkit_take,
                               .sandbox_off = sandbox_off,
                               .socket = -1,
                               .memory_fd = -1};
    *toolkit_take = (struct toolkit){.root = NULL};
}

static void stop(struct cuda_jail *jail)
{
    if (jail->socket >= 0) {
        close(jail->socket);
    }
    if (jail->pid > 0) {
        (void)kill(jail->pid, SIGKILL);
        while (waitpid(jail->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (jail->memory) {
        munmap(jail->memory, MEMORY_BYTES);
    }
    if (jail->memory_fd >= 0) {
        close(jail->memory_fd);
    }
    jail->pid = 0;
    jail->memory = NULL;
    jail->socket = jail->memory_fd = -1;
}

void cuda_jail_release(struct cuda_jail *jail)
{
    stop(jail);
    toolkit_release(&jail->toolkit);
}

static int make_memory(struct cuda_jail *jail, struct err *err)
{
    jail->memory_fd = memfd_create("nvrtc", MFD_CLOEXEC);
    if (jail->memory_fd < 0 || ftruncate(jail->memory_fd, (off_t)MEMORY_BYTES) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for the compile jail");
    }
    jail->memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, jail->memory_fd, 0);
    if (jail->memory == MAP_FAILED) {
        jail->memory = NULL;
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

// Waits for a word of the warm process. *ret_got is false when it has gone or says nothing in time.
static void await_word(struct cuda_jail *jail, double seconds, struct jail_word *word,
                       bool *ret_got)
{
    uint64_t end = clock_now_ns(&clock_system) + (uint64_t)(seconds * 1e9);
    struct pollfd fd = {.fd = jail->socket, .events = POLLIN};

    *ret_got = false;
    for (;;) {
        uint64_t now = clock_now_ns(&clock_system);
        int left_ms = now < end ? (int)((end - now) / NS_PER_MS) + 1 : 0;
        int n = poll(&fd, 1, left_ms);

        if (n == 1) {
            *ret_got = recv(jail->socket, word, sizeof(*word), 0) == sizeof(*word);
            return;
        }
        if (n == 0 || errno != EINTR) {
            return;
        }
    }
}

// Where in the toolkit a path lies; false when outside.
static bool path_inside(const struct toolkit *toolkit, const char *path, char out[static 256])
{
    size_t len = strlen(toolkit->root);

    return strncmp(path, toolkit->root, len) == 0 && path[len] == '/' &&
           snprintf(out, 256, "%s", path + len + 1) < 256;
}

static int spawn(struct cuda_jail *jail, struct err *err)
{
    struct jail_spec spec = {.role = ROLE_CUDA_JAIL};
    int pair[2], rc;

    if (!path_inside(&jail->toolkit, jail->toolkit.nvrtc, spec.nvrtc)) {
        return err_set(err, ERR_INVALID, "%s lies outside its toolkit %s", jail->toolkit.nvrtc,
                       jail->toolkit.root);
    }
    if (!jail->toolkit.nvdisasm ||
        !path_inside(&jail->toolkit, jail->toolkit.nvdisasm, spec.nvdisasm)) {
        spec.nvdisasm[0] = '\0';
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a socket for the compile jail");
    }
    rc = zygote_spawn(jail->zygote, &spec, sizeof(spec), (int[]){pair[1], jail->memory_fd}, 2,
                      &jail->pid, err);
    close(pair[1]);
    jail->socket = pair[0];
    return rc;
}

int cuda_jail_warm(struct cuda_jail *jail, struct err *err)
{
    struct jail_word word;
    bool got = false;

    if (jail->pid > 0) {
        return 0;
    }
    int rc = enter(jail, err);
    if (rc != 0) {
        goto out;
    }
    rc = make_memory(jail, err);
    if (rc != 0) {
        goto out;
    }
    rc = spawn(jail, err);
    if (rc != 0) {
        goto out;
    }
    await_word(jail, WARM_SECONDS, &word, &got);
    word.text[sizeof(word.text) - 1] = '\0';
    if (!got || word.text[0] != '\0') {
        rc = err_set(err, ERR_SANDBOX, "the CUDA compile jail cannot be set up: %s",
                     got ? word.text : "its process ends or does not answer");
    }
out:
    if (rc != 0) {
        stop(jail);
    }
    return rc;
}

static int put_request(struct cuda_jail *jail, const struct nvrtc_input *input,
                       const struct cuda_jail_limits *limits, struct err *err)
{
    struct jail_request *request = (struct jail_request *)jail->memory;
    size_t len = strlen(input->source);

    if (len >= REQUEST_BYTES - sizeof(*request)) {
        return err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", input->file,
                       REQUEST_BYTES - sizeof(*request));
    }
    memset(request, 0, sizeof(*request));
    memset(answer_of(jail->memory), 0, sizeof(struct jail_answer));
    request->source_len = len;
    request->memory = limits->memory;
    request->seconds = limits->seconds;
    request->name_count = (uint32_t)input->name_count;
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

static int take_answer(struct cuda_jail *jail, const struct nvrtc_input *input,
                       struct nvrtc_output *ret, struct err *err)
{
    struct jail_answer *shared = answer_of(jail->memory);
    size_t log = shared->log_len, ptx = shared->ptx_len, cubin = shared->cubin_len;
    size_t sass = shared->sass_len;

    if (log > ANSWER_ROOM || ptx > ANSWER_ROOM || cubin > ANSWER_ROOM || sass > SASS_TEXT_MAX ||
        log + ptx + cubin + sass > ANSWER_ROOM) {
        return err_set(err, ERR_PROTOCOL, "the compile jail's answer makes no sense");
    }
    char text[512];
    if (shared->error != 0) {
        memcpy(text, shared->error_text, sizeof(text));
        text[sizeof(text) - 1] = '\0';
        return err_set(err, ERR_SYSTEM, "%s: %s", input->file, text);
    }
    *ret = (struct nvrtc_output){.compiled = shared->compiled != 0};
    ret->log = copy_text(shared->data, log);
    if (ret->compiled) {
        ret->ptx = copy_text(shared->data + log, ptx);
        ret->cubin = (struct bytes){.data = xmalloc(cubin + 1), .len = cubin};
        memcpy(ret->cubin.data, shared->data + log + ptx, cubin);
        ret->sass = sass > 0 ? copy_text(shared->data + log + ptx + cubin, sass) : NULL;
        for (size_t i = 0; i < input->name_count; i++) {
            shared->symbol[i][SYMBOL_MAX - 1] = '\0';
            ret->symbol[i] = xstrdup(shared->symbol[i]);
        }
    }
    return 0;
}

int cuda_jail_compile(struct cuda_jail *jail, const struct nvrtc_input *input,
                      const struct cuda_jail_limits *limits, enum cuda_jail_end *ret_end,
                      struct nvrtc_output *ret, struct err *err)
{
    int rc = cuda_jail_warm(jail, err);

    if (rc == 0) {
        rc = put_request(jail, input, limits, err);
    }
    if (rc != 0) {
        return rc;
    }
    struct jail_word word = {.status = -1};
    char byte = 1;
    bool got = false;
    if (send(jail->socket, &byte, 1, MSG_NOSIGNAL) == 1) {
        await_word(jail, limits->seconds + GRACE_SECONDS, &word, &got);
    }
    if (!got) { // the warm process is broken or stuck: the next compilation has another
        stop(jail);
        *ret_end = CUDA_JAIL_DIED;
        return 0;
    }
    *ret_end = word.timed_out                                            ? CUDA_JAIL_TIMEOUT
               : WIFEXITED(word.status) && WEXITSTATUS(word.status) == 0 ? CUDA_JAIL_DONE
                                                                         : CUDA_JAIL_DIED;
    return *ret_end == CUDA_JAIL_DONE ? take_answer(jail, input, ret, err) : 0;
}
