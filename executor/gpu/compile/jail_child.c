// Design note. The compile server and the children that it forks, all inside the jail. A child
// compiles, then disassembles if it was asked to and time is left. The disassembly is written
// behind everything else, so a disassembler that fails, hangs or prints too much costs only its own
// text.
#include "common/clock.h"
#include "common/file.h"
#include "executor/compile_result.h"
#include "executor/gpu/compile/assembler.h"
#include "executor/gpu/compile/cubin_text.h"
#include "executor/gpu/compile/disassemble.h"
#include "executor/gpu/compile/jail.h"
#include "executor/gpu/compile/jail_wire.h"
#include "executor/gpu/compile/sass.h"
#include "executor/sandbox/process.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SASS_SECONDS 30.0 // limit of the disassembler, which needs half a second of a processor
#define SASS_SPARE_SECONDS 0.25 // must be left of the compilation's wall time when it ends

struct jail_tools {
    struct nvrtc *nvrtc;
    struct assembler *assembler; // NULL: there is none
    struct disassembler disassembler;
    unsigned char *memory; // shared with the parent
    int words;             // becomes the stderr of the child
};

#define LOG_KEPT ((size_t)1 << 20) // bytes of a log that the parent gets

// ---- the child that compiles ----

static void put_answer(struct jail_answer *answer, const struct nvrtc_output *output)
{
    size_t log = output->log ? strlen(output->log) : 0;
    size_t ptx = output->ptx ? strlen(output->ptx) : 0;

    if (output->log) {
        log = compile_result_fold(output->log, log, LOG_KEPT);
    }
    if (log + ptx + output->cubin.len > JAIL_ANSWER_ROOM) {
        answer->too_large = 1;
        return;
    }
    memcpy(answer->result, output->result, sizeof(answer->result));
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
            (void)snprintf(answer->symbol[i], JAIL_SYMBOL_MAX, "%s", output->symbol[i]);
        }
    }
}

static void add_sass(const struct disassembler *disassembler, struct jail_answer *answer,
                     const struct bytes *cubin, double seconds)
{
    size_t used = answer->log_len + answer->ptx_len + answer->cubin_len, len;
    size_t room = JAIL_ANSWER_ROOM - used < SASS_TEXT_MAX ? JAIL_ANSWER_ROOM - used : SASS_TEXT_MAX;

    if (disassemble(disassembler, cubin, fmin(seconds - SASS_SPARE_SECONDS, SASS_SECONDS),
                    (char *)answer->data + used, room, &len)) {
        answer->sass_len = len;
    }
}

static int compile_form(const struct jail_tools *tools, const struct nvrtc_input *input,
                        struct nvrtc_output *ret, struct err *err)
{
    switch (input->form) {
    case FORM_PTX:
        return tools->assembler
                   ? assembler_assemble(tools->assembler, input, ret, err)
                   : err_set(err, ERR_UNSUPPORTED, "libnvJitLink.so cannot be loaded in the jail");
    case FORM_CUBIN:
        cubin_text_unpack(input, ret);
        return 0;
    default:
        return nvrtc_compile(tools->nvrtc, input, ret, err);
    }
}

static void compile_one(const struct jail_tools *tools)
{
    uint64_t start_ns = clock_now_ns(&clock_system);
    struct jail_request *request = (struct jail_request *)tools->memory;
    struct jail_answer *answer = jail_answer_of(tools->memory);
    const char *names[NVRTC_NAMES_MAX];
    struct nvrtc_input input = {.form = (enum candidate_form)request->form,
                                .source = request->source,
                                .file = request->file,
                                .target = request->target,
                                .name = names,
                                .name_count = request->name_count};
    struct sandbox_limits limits = {.address_space = request->memory,
                                    .cpu_seconds = (uint64_t)ceil(request->cpu_seconds)};

    for (size_t i = 0; i < request->name_count; i++) {
        names[i] = request->name[i];
    }
    if (SANDBOX_SANITIZED) {
        limits.address_space = 0;
    }
    memset(answer, 0, sizeof(*answer));
    (void)dup2(tools->words, STDERR_FILENO);
    struct nvrtc_output output = {.compiled = false};
    struct err err = ERR_INIT;
    if (sandbox_limit(&limits, &err) != 0 || compile_form(tools, &input, &output, &err) != 0) {
        answer->error = 1;
        (void)snprintf(answer->error_text, sizeof(answer->error_text), "%.500s", err.text);
    } else {
        put_answer(answer, &output);
        if (answer->compiled && request->disassemble && tools->disassembler.program) {
            add_sass(&tools->disassembler, answer, &output.cubin,
                     request->wall_seconds - clock_seconds(clock_now_ns(&clock_system) - start_ns));
        }
    }
    _exit(0);
}

// ---- the compile server ----

static void await_child(pid_t pid, double seconds, struct jail_status *status)
{
    if (!process_wait(pid, seconds, &status->status)) {
        status->timed_out = 1;
        (void)kill(pid, SIGKILL);
        process_reap(pid, &status->status);
    }
}

// alone: the server is process 1 of a pid namespace.
static void serve(const struct jail_tools *tools, int socket, bool alone)
{
    char byte;

    while (read(socket, &byte, 1) == 1) {
        const struct jail_request *request = (const struct jail_request *)tools->memory;
        double seconds = request->wall_seconds, used = process_children_seconds();
        pid_t pid = fork();

        if (pid == 0) {
            if (!alone) { // there is no namespace with which it would end
                (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            }
            compile_one(tools);
        }
        struct jail_status status = {.status = -1};
        if (pid > 0) {
            await_child(pid, seconds, &status);
            status.cpu_seconds = process_children_seconds() - used;
        }
        if (alone) { // kills what the child has left running
            (void)kill(-1, SIGKILL);
            while (waitpid(-1, NULL, WNOHANG) > 0) {
            }
        }
        (void)unlink(tools->disassembler.file);
        if (write(socket, &status, sizeof(status)) != sizeof(status)) {
            return;
        }
    }
}

static int confine(const struct zygote_child *child, const struct sandbox_filter *filter,
                   struct err *err)
{
    struct sandbox_limits limits = sandbox_jail_limits(child->sandbox);
    int rc = sandbox_drop(child->sandbox, child->alive_fd, err);

    if (rc != 0) {
        return rc;
    }
    sandbox_close_files(child->fd, child->fd_count);
    rc = sandbox_limit(&limits, err);
    return rc == 0 && !child->sandbox->off ? sandbox_filter_load(filter, err) : rc;
}

// Inside the sandbox the toolkit has another path.
static void toolkit_inside(const struct zygote_child *child, const struct jail_spec *spec,
                           struct toolkit *ret)
{
    const char *root = child->sandbox->off ? child->sandbox->toolkit : SANDBOX_TOOLKIT;

    *ret = (struct toolkit){.root = xstrdup(root),
                            .nvrtc = xasprintf("%s/%s", root, spec->nvrtc),
                            .include = xasprintf("%s/include", root)};
    if (spec->nvjitlink[0] != '\0') {
        ret->nvjitlink = xasprintf("%s/%s", root, spec->nvjitlink);
    }
    if (spec->nvdisasm[0] != '\0') {
        ret->nvdisasm = xasprintf("%s/%s", root, spec->nvdisasm);
    }
}

// Compiles a small source, so that the compiler has loaded what it needs before the first child.
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

// An assembler that cannot be loaded costs PTX alone, and is said when there is some.
static int set_up(const struct zygote_child *child, const struct toolkit *toolkit,
                  struct jail_tools *tools, struct err *err)
{
    int rc = confine(child, child->context, err);
    struct err ignored = ERR_INIT;

    if (rc != 0) {
        return rc;
    }
    if (toolkit->nvjitlink && assembler_open(&tools->assembler, toolkit, &ignored) != 0) {
        tools->assembler = NULL;
    }
    rc = nvrtc_open(&tools->nvrtc, toolkit, err);
    return rc == 0 ? warm_up(tools->nvrtc, err) : rc;
}

int cuda_jail_child(const struct zygote_child *child)
{
    struct jail_spec spec;

    if (child->spec_len != sizeof(spec) || child->fd_count != 3) {
        return 1;
    }
    memcpy(&spec, child->spec, sizeof(spec));
    (void)signal(SIGCHLD, SIG_DFL);
    struct jail_tools tools = {.words = child->fd[2]};
    tools.memory =
        mmap(NULL, JAIL_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, child->fd[1], 0);
    if (tools.memory == MAP_FAILED) {
        return 1;
    }
    struct toolkit toolkit;
    toolkit_inside(child, &spec, &toolkit);
    tools.disassembler.program = toolkit.nvdisasm;
    tools.disassembler.file = child->sandbox->off
                                  ? xasprintf("%s/kcast-%d.cubin", file_temp_folder(), getpid())
                                  : xasprintf(SANDBOX_DIR "/candidate%u.cubin", spec.number);
    struct err err = ERR_INIT;
    int rc = set_up(child, &toolkit, &tools, &err);
    struct jail_status status = {.status = 0};
    (void)snprintf(status.text, sizeof(status.text), "%.250s", err.text);
    if (write(child->fd[0], &status, sizeof(status)) == sizeof(status) && rc == 0) {
        serve(&tools, child->fd[0], !child->sandbox->off);
    }
    return rc == 0 ? 0 : 1;
}
