#include "exec/probe.h"
#include "common/clock.h"
#include "contract/verdict.h"
#include "exec/arm.h"
#include "exec/check.h"
#include "exec/compile.h"
#include "exec/features.h"
#include "exec/machine.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP_LIMIT_NS (20 * NS_PER_S)
#define PROBE_MEMORY ((uint64_t)4 << 30)
#define PROBE_OUTPUT ((uint64_t)8 << 20)

static const char header[] = "#include <stdint.h>\nvoid probe(float *x);\n";
static const char glue[] =
    "void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar);\n"
    "void kcast_entry(void *const *pointer, const int64_t *integer, const double *scalar)\n"
    "{ (void)integer; (void)scalar; probe(pointer[0]); }\n";
static const char source[] = "void probe(float *x) { *x += 1; }\n";

// ---- negative checks ----

static int read_report(const struct check_report *report, const char *where, struct err *err)
{
    if (report->setup[0] != '\0') {
        return err_set(err, ERR_SANDBOX, "the %s cannot be set up: %.255s", where, report->setup);
    }
    if (!report->finished) {
        return err_set(err, ERR_SANDBOX, "the checks in the %s ended unexpectedly", where);
    }
    for (enum check check = 0; check < CHECK_COUNT; check++) {
        if (report->possible[check]) {
            return err_set(err, ERR_SANDBOX, "in the %s one can %s", where, check_text(check));
        }
    }
    return 0;
}

static int run_checks(struct nursery *nursery, enum child_role role, const char *where,
                      struct err *err)
{
    struct check_spec spec = {.role = role};
    struct check_report *report = MAP_FAILED;
    int fd = memfd_create("checks", MFD_CLOEXEC), status;
    pid_t pid;

    if (fd >= 0 && ftruncate(fd, sizeof(*report)) == 0) {
        report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (report == MAP_FAILED) {
        status = err_set_errno(err, ERR_SYSTEM, errno, "memory for the checks");
    } else {
        status = nursery_spawn(nursery, &spec, sizeof(spec), &fd, 1, &pid, err);
    }
    if (status == 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
        status = read_report(report, where, err);
    }
    if (report != MAP_FAILED) {
        munmap(report, sizeof(*report));
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

// ---- positive checks ----

static int compile_small(struct nursery *nursery, bool sandbox_off, struct compile_report *report,
                         struct err *err)
{
    struct compile_plan plan = {.source = bytes_copy(source, strlen(source)),
                                .header = (char *)(uintptr_t)header,
                                .glue = (char *)(uintptr_t)glue,
                                .max_seconds = clock_seconds(STEP_LIMIT_NS),
                                .max_memory = PROBE_MEMORY,
                                .max_output = PROBE_OUTPUT,
                                .sandbox_off = sandbox_off};
    int status = compile_run(&plan, nursery, report, err);

    bytes_clear(&plan.source);
    if (status == 0 && report->compiled->verdict != VERDICT_NONE) {
        status = err_set(err, ERR_SANDBOX, "gcc does not work: %.512s", report->compiled->reason);
        message_clear(&compile_report_message, report);
    }
    return status;
}

static int run_small(struct nursery *nursery, const struct bytes *object, struct err *err)
{
    static const int64_t no_integer[PROBLEM_PARAM_MAX];
    static const double no_scalar[PROBLEM_PARAM_MAX];
    struct arm arm = {.name = "runner", .output = -1, .pointer_count = 1};
    struct buffer buffer;
    float value = 1;
    int status = buffer_create(&buffer, sizeof(value), false, err);

    if (status == 0) {
        buffer_place(&buffer, sizeof(value), 1);
        memcpy(buffer_tensor(&buffer), &value, sizeof(value));
        arm.pointer[0] = (struct arm_pointer){.buffer = &buffer, .writable = true};
        status = arm_start(&arm, nursery, object, PROBE_MEMORY, 60, 1, 0, false, err);
    }
    if (status == 0 && (arm_ready(&arm, STEP_LIMIT_NS) != LAUNCH_DONE ||
                        arm_launch(&arm, CONTROL_CALL, no_integer, no_scalar, STEP_LIMIT_NS,
                                   NULL) != LAUNCH_DONE)) {
        uint32_t ignored;
        char *sentence = arm_describe(&arm, &ignored);
        status = err_set(err, ERR_SANDBOX, "a small kernel does not run: %.512s", sentence);
        free(sentence);
    }
    if (status == 0) {
        memcpy(&value, buffer_tensor(&buffer), sizeof(value));
        status = value == 2 ? 0 : err_set(err, ERR_SANDBOX, "a small kernel gives a wrong result");
    }
    arm_release(&arm);
    buffer_release(&buffer);
    return status;
}

static int try_sandbox(const struct child_context *context, struct compile_report *compiled,
                       struct err *err)
{
    struct nursery jail = {.socket = -1}, runner = {.socket = -1};
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .scratch = PROBE_OUTPUT};
    int status = nursery_create(&jail, child_main, context, err);

    if (status == 0) {
        status = nursery_create(&runner, child_main, context, err);
    }
    if (status == 0) {
        status = compile_small(&jail, false, compiled, err);
    }
    if (status == 0) {
        status = run_checks(&jail, CHILD_CHECK_JAIL, "compile jail", err);
    }
    if (status == 0) {
        status = nursery_enter(&runner, &sandbox, err);
    }
    if (status == 0) {
        status = run_checks(&runner, CHILD_CHECK_RUNNER, "runner", err);
    }
    if (status == 0) {
        status = run_small(&runner, &compiled->object, err);
    }
    nursery_release(&jail);
    nursery_release(&runner);
    return status;
}

// The toolchain's version where there is no sandbox.
static void compile_outside(const struct child_context *context, struct compile_report *compiled)
{
    struct nursery nursery = {.socket = -1};
    struct err ignored = ERR_INIT;

    if (compiled->compiled == NULL &&
        nursery_create(&nursery, child_main, context, &ignored) == 0 &&
        compile_small(&nursery, true, compiled, &ignored) != 0) {
        *compiled = (struct compile_report){.compiled = NULL};
    }
    nursery_release(&nursery);
}

// ---- facts ----

// Lower-case letters and digits, everything else as single dashes.
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

static void add_facts(struct probe_report *report)
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
        features_add(&report->facts, &report->facts_count, fact[i].name, fact[i].value);
    }
}

int probe_run(const struct child_context *context, struct probe_report *ret, struct err *err)
{
    struct compile_report compiled = {.compiled = NULL};
    struct probe_report report = {.sandbox = false};
    struct err reason = ERR_INIT;
    char model[64], *compiler;

    (void)err;
    report.sandbox = try_sandbox(context, &compiled, &reason) == 0;
    if (!report.sandbox) {
        report.reason = xstrdup(reason.text);
    }
    compile_outside(context, &compiled);
    machine_model(model, sizeof(model));
    make_slug(model);
    report.toolchain = xstrdup(compiled.compiled != NULL && compiled.compiled->toolchain != NULL
                                   ? compiled.compiled->toolchain
                                   : "gcc unknown");
    compiler = xstrdup(report.toolchain);
    for (char *blank = strchr(compiler, ' '); blank != NULL; blank = strchr(blank, ' ')) {
        *blank = '-';
    }
    report.device_class = xasprintf("cpu/%s/%s/%s", model, machine_isa(), compiler);
    free(compiler);
    add_facts(&report);
    message_clear(&compile_report_message, &compiled);
    *ret = report;
    return 0;
}
