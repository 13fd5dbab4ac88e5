// First the sandbox is tried: a small kernel is compiled in a jail and run in a runner, and
// children in both try what must be impossible. Then the machine is described: class, toolchain,
// peak rates.
#include "executor/cpu/probe.h"
#include "common/clock.h"
#include "executor/cpu/compile.h"
#include "executor/cpu/confinement_check.h"
#include "executor/cpu/machine.h"
#include "executor/cpu/runner_process.h"
#include "executor/fact_list.h"
#include "executor/sandbox/process.h"
#include "proto/verdict.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP_LIMIT_NS (20 * NS_PER_S) // for the compilation, for loading, and for the launch
#define PROBE_MEMORY ((uint64_t)4 << 30)
#define PROBE_OUTPUT ((uint64_t)8 << 20)

static const char header[] = "#include <stdint.h>\nvoid probe(float *x);\n";
static const char glue[] =
    "void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar);\n"
    "void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar)\n"
    "{ (void)integer; (void)scalar; probe(pointer[0]); }\n";
static const char source[] = "void probe(float *x) { *x += 1; }\n";

// ---- what must be impossible ----

static int read_outcome(const struct check_outcome *outcome, const char *where, struct err *err)
{
    if (outcome->setup[0] != '\0') {
        return err_set(err, ERR_SANDBOX, "the %s cannot be set up: %.255s", where, outcome->setup);
    }
    if (!outcome->finished) {
        return err_set(err, ERR_SANDBOX, "the checks in the %s ended unexpectedly", where);
    }
    for (enum check check = 0; check < CHECK_COUNT; check++) {
        if (outcome->possible[check]) {
            return err_set(err, ERR_SANDBOX, "in the %s one can %s", where, check_text(check));
        }
    }
    return 0;
}

static int run_checks(struct zygote *zygote, enum child_role role, const char *where,
                      struct err *err)
{
    struct check_spec spec = {.role = role};
    struct check_outcome *outcome = MAP_FAILED;
    int fd = memfd_create("checks", MFD_CLOEXEC), rc;

    if (fd >= 0 && ftruncate(fd, sizeof(*outcome)) == 0) {
        outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    pid_t pid;
    if (outcome == MAP_FAILED) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "memory for the checks");
    } else {
        rc = zygote_spawn(zygote, &spec, sizeof(spec), &fd, 1, &pid, err);
    }
    if (rc == 0) {
        process_reap(pid, NULL);
        rc = read_outcome(outcome, where, err);
    }
    if (outcome != MAP_FAILED) {
        munmap(outcome, sizeof(*outcome));
    }
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

// ---- what must work ----

static int compile_small(struct zygote *zygote, bool sandbox_off, struct compile_outcome *outcome,
                         struct err *err)
{
    struct compile_plan plan = {.source = bytes_copy(source, strlen(source)),
                                .header = (char *)(uintptr_t)header,
                                .glue = (char *)(uintptr_t)glue,
                                .max_seconds = clock_seconds(STEP_LIMIT_NS),
                                .wall_seconds = clock_seconds(STEP_LIMIT_NS),
                                .max_memory = PROBE_MEMORY,
                                .max_output = PROBE_OUTPUT,
                                .sandbox_off = sandbox_off};
    int rc = compile_run(&plan, zygote, outcome, err);

    bytes_clear(&plan.source);
    if (rc == 0 && outcome->compiled->verdict != VERDICT_NONE) {
        rc = err_set(err, ERR_SANDBOX, "gcc does not work: %.512s", outcome->compiled->reason);
        message_clear(&compile_outcome_message, outcome);
    }
    return rc;
}

static int run_small(struct zygote *zygote, const struct bytes *object, struct err *err)
{
    static const int64_t no_integer[PROBLEM_PARAM_MAX];
    static const double no_scalar[PROBLEM_PARAM_MAX];
    struct runner_process runner = {.name = "runner", .output = -1, .pointer_count = 1};
    struct buffer buffer;
    float value = 1;
    int rc = buffer_create(&buffer, sizeof(value), false, err);

    if (rc != 0) {
        goto out;
    }
    buffer_place(&buffer, sizeof(value), 0, 1);
    memcpy(buffer_tensor(&buffer), &value, sizeof(value));
    runner.pointer[0] = (struct runner_pointer){.buffer = &buffer, .writable = true};
    rc = runner_process_start(&runner, zygote, object, PROBE_MEMORY, 60, 1, 0, false, err);
    if (rc != 0) {
        goto out;
    }
    if (runner_process_ready(&runner, STEP_LIMIT_NS) != LAUNCH_DONE ||
        runner_process_renew(&runner, STEP_LIMIT_NS) != LAUNCH_DONE ||
        runner_process_launch(&runner, CONTROL_CALL, no_integer, no_scalar, STEP_LIMIT_NS, NULL) !=
            LAUNCH_DONE) {
        uint32_t ignored;
        char *sentence = runner_process_describe(&runner, &ignored);
        rc = err_set(err, ERR_SANDBOX, "a small kernel does not run: %.512s", sentence);
        free(sentence);
        goto out;
    }
    memcpy(&value, buffer_tensor(&buffer), sizeof(value));
    rc = value == 2 ? 0 : err_set(err, ERR_SANDBOX, "a small kernel gives a wrong result");
out:
    runner_process_release(&runner);
    buffer_release(&buffer);
    return rc;
}

static int try_sandbox(const struct child_context *context, struct compile_outcome *compiled,
                       struct err *err)
{
    struct zygote jail = {.socket = -1}, runner = {.socket = -1};
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .scratch = PROBE_OUTPUT};
    int rc = zygote_create(&jail, child_main, context, err);

    if (rc != 0) {
        goto out;
    }
    rc = zygote_create(&runner, child_main, context, err);
    if (rc != 0) {
        goto out;
    }
    rc = compile_small(&jail, false, compiled, err);
    if (rc != 0) {
        goto out;
    }
    rc = run_checks(&jail, CHILD_CHECK_JAIL, "compile jail", err);
    if (rc != 0) {
        goto out;
    }
    rc = zygote_enter(&runner, &sandbox, err);
    if (rc != 0) {
        goto out;
    }
    rc = run_checks(&runner, CHILD_CHECK_RUNNER, "runner", err);
    if (rc != 0) {
        goto out;
    }
    rc = run_small(&runner, &compiled->object, err);
out:
    zygote_release(&jail);
    zygote_release(&runner);
    return rc;
}

// Compiles without a sandbox when it does not work, to learn the toolchain's version.
static void compile_outside(const struct child_context *context, struct compile_outcome *compiled)
{
    struct zygote zygote = {.socket = -1};
    struct err ignored = ERR_INIT;

    if (!compiled->compiled && zygote_create(&zygote, child_main, context, &ignored) == 0 &&
        compile_small(&zygote, true, compiled, &ignored) != 0) {
        *compiled = (struct compile_outcome){.compiled = NULL};
    }
    zygote_release(&zygote);
}

// ---- facts ----

// Turns the text, in place, into lower-case letters and digits with single dashes for everything
// else.
static void make_slug(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++) {
        if (isalnum((unsigned char)*in)) {
            *out++ = (char)tolower((unsigned char)*in);
        } else if (out > text && out[-1] != '-') {
            *out++ = '-';
        }
    }
    while (out > text && out[-1] == '-') {
        out--;
    }
    *out = '\0';
}

static void add_facts(struct probe_outcome *outcome)
{
    const struct {
        const char *name;
        double value;
    } fact[] = {
        {"cores", (double)sysconf(_SC_NPROCESSORS_ONLN)},
        {"l1_bytes", (double)machine_cache_bytes(1)},
        {"l2_bytes", (double)machine_cache_bytes(2)},
        {"l3_bytes", (double)machine_cache_bytes(3)},
        {"memory_bytes", (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE)},
        {"peak_flops", machine_peak_flops()},
        {"peak_bytes", machine_peak_bytes()},
    };

    for (size_t i = 0; i < ARRAY_LEN(fact); i++) {
        fact_list_add(&outcome->facts, &outcome->facts_count, fact[i].name, fact[i].value);
    }
}

int probe_run(const struct child_context *context, struct probe_outcome *ret, struct err *err)
{
    (void)err;
    struct compile_outcome compiled = {.compiled = NULL};
    struct probe_outcome outcome = {.sandbox = false};
    struct err reason = ERR_INIT;
    outcome.sandbox = try_sandbox(context, &compiled, &reason) == 0;
    if (!outcome.sandbox) {
        outcome.reason = xstrdup(reason.text);
    }
    compile_outside(context, &compiled);
    char model[64];
    machine_model(model, sizeof(model));
    make_slug(model);
    outcome.toolchain =
        xstrdup(compiled.compiled && compiled.compiled->toolchain ? compiled.compiled->toolchain
                                                                  : "gcc unknown");
    char *compiler = xstrdup(outcome.toolchain);
    for (char *blank = strchr(compiler, ' '); blank; blank = strchr(blank, ' ')) {
        *blank = '-';
    }
    outcome.device_class = xasprintf("cpu/%s/%s/%s", model, machine_isa(), compiler);
    free(compiler);
    add_facts(&outcome);
    message_clear(&compile_outcome_message, &compiled);
    *ret = outcome;
    return 0;
}
