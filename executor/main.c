// kcast-exec: compiles, measures and probes. Its first argument names the mode. This is the only
// file that knows both executor/cpu/ and executor/gpu/: the mode picks one of them.
#include "common/file.h"
#include "common/options.h"
#include "common/options/nearest.h"
#include "common/printable.h"
#include "common/version.h"
#include "common/wrap.h"
#include "executor/cpu/child.h"
#include "executor/cpu/compile.h"
#include "executor/cpu/harness.h"
#include "executor/cpu/measure.h"
#include "executor/cpu/probe.h"
#include "executor/give_way.h"
#include "executor/gpu/compile/serve.h"
#include "executor/gpu/probe.h"
#include "executor/gpu/record/serve.h"
#include "executor/gpu/serve.h"
#include "executor/sandbox/cgroup.h"
#include "proto/messages.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

// Room for three objects of 128 MiB and the problem.
#define PLAN_MAX ((size_t)416 << 20)

struct exec_options {
    char *cgroup;
    bool help, version;
};

static const struct option_row option_table[] = {
    {.name = "cgroup",
     .type = OPTION_TEXT,
     .offset = offsetof(struct exec_options, cgroup),
     .argument = "DIR",
     .help = "move into this control group (version 2) before anything else"},
    {.name = "help",
     .letter = 'h',
     .type = OPTION_FLAG,
     .offset = offsetof(struct exec_options, help),
     .help = "show this help"},
    {.name = "version",
     .type = OPTION_FLAG,
     .offset = offsetof(struct exec_options, version),
     .help = "show the version"},
    {.name = NULL},
};

static void print_help(void)
{
    static const struct {
        const char *mode, *help;
    } rows[] = {
        {"compile", "compile one C source in the compile jail"},
        {"measure", "verify and time one C candidate against the baseline"},
        {"probe", "try the sandbox and say what this machine can do; reads nothing"},
        {"cuda-compile", "serve: compile sealed CUDA sources in the compile jail"},
        {"cuda-record PYTHON",
         "serve: record what sources with host code launch, by this interpreter with PyTorch"},
        {"cuda-measure GPU",
         "serve: verify and time sealed candidates on the GPU with this uuid or number"},
        {"cuda-probe", "say which GPUs there are and what they can do; reads nothing"},
        {"cuda-health GPU", "say whether this GPU still works; reads nothing"},
    };
    size_t width = wrap_width(stdout);
    wrap_print(stdout, "usage: kcast-exec [OPTION…] MODE [GPU | PYTHON]\n\n"
                       "Started by kcastd. A plan comes on stdin, an outcome goes to stdout, both "
                       "packed; modes that serve do so until stdin ends, in frames of four bytes "
                       "of length and the message.\n\nmodes:\n");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char left[32];
        (void)snprintf(left, sizeof(left), "  %s", rows[i].mode);
        wrap_print_columns(stdout, left, 20, rows[i].help, width);
    }
    wrap_print(stdout, "\noptions:\n");
    options_print(option_table, stdout);
    options_print_exit_codes(stdout);
}

static int read_plan(const struct message *message, void *plan, struct err *err)
{
    struct bytes bytes;
    int rc = file_read_fd(&bytes, STDIN_FILENO, PLAN_MAX, "the plan on stdin", err);

    if (rc == 0) {
        rc = message_read(message, plan, bytes.data, bytes.len, err);
        bytes_clear(&bytes);
    }
    return rc;
}

static int write_outcome(const struct message *message, void *outcome, struct err *err)
{
    struct strbuf packed = STRBUF_INIT;
    int rc = message_pack(message, outcome, &packed, err);

    if (rc == 0) {
        rc = file_write_fd(STDOUT_FILENO, packed.data, packed.len, "the outcome", err);
    }
    strbuf_release(&packed);
    message_clear(message, outcome);
    return rc;
}

// ---- modes of a core ----

static int run_compile(struct zygote *zygote, struct err *err)
{
    struct compile_plan plan;
    struct compile_outcome outcome;
    int rc = read_plan(&compile_plan_message, &plan, err);

    if (rc == 0) {
        rc = compile_run(&plan, zygote, &outcome, err);
        message_clear(&compile_plan_message, &plan);
    }
    return rc == 0 ? write_outcome(&compile_outcome_message, &outcome, err) : rc;
}

static int run_measure(struct zygote *zygote, struct err *err)
{
    struct harness harness = {.zygote = zygote};
    struct measure_plan plan;
    struct measure_outcome outcome;
    int rc = read_plan(&measure_plan_message, &plan, err);

    if (rc == 0) {
        rc = measure_run(&measure_cpu, &harness, &plan, &outcome, err);
        message_clear(&measure_plan_message, &plan);
    }
    return rc == 0 ? write_outcome(&measure_outcome_message, &outcome, err) : rc;
}

// Forks the zygote before the plan is read, so that neither the zygote nor any runner ever holds
// the plan's seed.
static int with_zygote(unsigned needs, int (*run)(struct zygote *zygote, struct err *err),
                       struct err *err)
{
    struct child_context context;
    int rc = child_context_init(&context, needs, err);

    if (rc != 0) {
        return rc;
    }
    struct zygote zygote = {.socket = -1};
    rc = zygote_create(&zygote, child_main, &context, err);
    if (rc == 0) {
        rc = run(&zygote, err);
    }
    zygote_release(&zygote);
    child_context_release(&context);
    return rc;
}

static int mode_compile(const char *unused, struct err *err)
{
    (void)unused;
    return with_zygote(CHILD_NEEDS_JAIL, run_compile, err);
}

static int mode_measure(const char *unused, struct err *err)
{
    (void)unused;
    return with_zygote(CHILD_NEEDS_RUNNER, run_measure, err);
}

static int mode_probe(const char *unused, struct err *err)
{
    struct child_context context;
    int rc = child_context_init(&context, CHILD_NEEDS_JAIL | CHILD_NEEDS_RUNNER, err);

    (void)unused;
    if (rc != 0) {
        return rc;
    }
    struct probe_outcome outcome;
    rc = probe_run(&context, &outcome, err);
    if (rc == 0) {
        rc = write_outcome(&probe_outcome_message, &outcome, err);
    }
    child_context_release(&context);
    return rc;
}

// ---- modes of GPUs ----

static int mode_cuda_compile(const char *unused, struct err *err)
{
    (void)unused;
    give_way();
    return serve_cuda_compile(err);
}

static int mode_cuda_record(const char *python, struct err *err)
{
    give_way();
    return serve_cuda_record(python, err);
}

static int mode_cuda_probe(const char *unused, struct err *err)
{
    struct cuda_probe_outcome outcome;
    int rc = probe_cuda(&outcome, err);

    (void)unused;
    return rc == 0 ? write_outcome(&cuda_probe_outcome_message, &outcome, err) : rc;
}

static int mode_cuda_health(const char *gpu, struct err *err)
{
    struct empty outcome = {.unused = false};
    int rc = probe_health(gpu, err);

    return rc == 0 ? write_outcome(&empty_message, &outcome, err) : rc;
}

// ---- picking one ----

static const struct mode {
    const char *name;
    const char *argument; // what follows the mode, in words; NULL: nothing
    int (*run)(const char *argument, struct err *err);
} modes[] = {
    {"compile", NULL, mode_compile},
    {"measure", NULL, mode_measure},
    {"probe", NULL, mode_probe},
    {"cuda-compile", NULL, mode_cuda_compile},
    {"cuda-record", "an interpreter: its path or its name", mode_cuda_record},
    {"cuda-measure", "a GPU: its uuid or its number", serve_cuda},
    {"cuda-probe", NULL, mode_cuda_probe},
    {"cuda-health", "a GPU: its uuid or its number", mode_cuda_health},
};

static int run_mode(char *const *args, size_t count, struct err *err)
{
    const struct mode *mode = NULL;

    for (size_t i = 0; i < ARRAY_LEN(modes) && !mode; i++) {
        mode = strcmp(args[0], modes[i].name) == 0 ? &modes[i] : NULL;
    }
    if (!mode) {
        struct nearest nearest = {.word = args[0], .len = strlen(args[0])};
        for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
            nearest_try(&nearest, modes[i].name);
        }
        return err_set(err, ERR_USAGE, "unknown mode '%.100s'; %s%s%s", args[0],
                       nearest.best ? "did you mean " : "--help lists them",
                       nearest.best ? nearest.best : "", nearest.best ? "?" : "");
    }
    if (!mode->argument && count > 1) {
        return err_set(err, ERR_USAGE, "%s takes no further argument", args[0]);
    }
    if (mode->argument && count != 2) {
        return err_set(err, ERR_USAGE, "%s needs %s", args[0], mode->argument);
    }
    return mode->run(mode->argument ? args[1] : NULL, err);
}

int main(int argc, char **argv)
{
    struct exec_options options = {.help = false};
    struct err err = ERR_INIT;
    int rc = options_defaults(option_table, &options, &err);

    // When the daemon is killed, nothing keeps running on its devices' cores: this process dies
    // with the daemon, and its children die with it.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_IGN);
    char **args = NULL;
    size_t count = 0;
    if (rc == 0) {
        rc = options_parse(option_table, &options, argc, argv, &args, &count, &err);
    }
    if (rc == 0 && options.help) {
        print_help();
        rc = file_flush_stdout(&err);
    } else if (rc == 0 && options.version) {
        printable_printf(stdout, "kcast-exec %s\n", KCAST_VERSION);
        rc = file_flush_stdout(&err);
    } else if (rc == 0 && count == 0) {
        rc = err_set(&err, ERR_USAGE, "a mode is needed; see --help");
    } else if (rc == 0) {
        rc = options.cgroup ? cgroup_enter(options.cgroup, &err) : 0;
        rc = rc == 0 ? run_mode(args, count, &err) : rc;
    }
    if (rc != 0) {
        printable_printf(stderr, "kcast-exec: %s\n", err.text);
    }
    free(args);
    options_release(option_table, &options);
    return rc == 0 ? EXIT_OK : err_exit(err.code);
}
