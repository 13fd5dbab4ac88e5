// A compilation: start a jail and wait for it (executor/cpu/jail.h), then read back what it wrote.
// Nothing that comes out of the jail is trusted. The first reason against the source is its
// verdict: too slow, too large, gcc's own error, or an object with something that it may not have.
//
// What makes a source too slow is processor time, of which a host that stands still uses none. Each
// process has it as its limit, and the jail adds up what all of them have used. The wall time ends
// what waits for ever, and is the host's fault.
#include "executor/cpu/compile.h"
#include "common/clock.h"
#include "common/file.h"
#include "executor/compile_result.h"
#include "executor/cpu/diagnose.h"
#include "executor/cpu/features.h"
#include "executor/cpu/jail.h"
#include "executor/fact_list.h"
#include "executor/sandbox/elf.h"
#include "executor/sandbox/process.h"
#include "executor/sandbox/toolchain.h"
#include "problem/candidate_form.h"
#include "proto/verdict.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// Bytes of the jail's tmpfs: this many times max_output, at least SCRATCH_MIN.
#define SCRATCH_FACTOR 4
#define SCRATCH_MIN ((uint64_t)32 << 20)
// Seconds that the jail has, after the wall time, to kill everything and to report.
#define JAIL_GRACE 5.0

struct compilation {
    const struct compile_plan *plan;
    struct zygote *zygote;
    struct jail_spec spec;
    int fd[JAIL_FILE_COUNT];
    char *dir; // temporary directory, when the sandbox is off; owned
    struct jail_outcome outcome;
    bool silent; // the jail has not even reported that the wall time is over
    int status;  // wait status of the jail
    struct compiled *compiled;
};

// ---- the jail's files ----

static int make_file(int *ret, const void *data, size_t len, const char *what, struct err *err)
{
    *ret = memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*ret < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for the %s", what);
    }
    return len > 0 ? file_write_fd(*ret, data, len, what, err) : 0;
}

static int make_files(struct compilation *c, struct err *err)
{
    const struct compile_plan *plan = c->plan;
    int rc = make_file(&c->fd[JAIL_SOURCE], plan->source.data, plan->source.len, "source", err);

    if (rc == 0) {
        rc = make_file(&c->fd[JAIL_HEADER], plan->header, strlen(plan->header), "header", err);
    }
    if (rc == 0) {
        rc = make_file(&c->fd[JAIL_GLUE], plan->glue, strlen(plan->glue), "glue", err);
    }
    for (enum jail_file file = JAIL_LOG; file < JAIL_FILE_COUNT && rc == 0; file++) {
        rc = make_file(&c->fd[file], NULL, 0, "result", err);
    }
    return rc;
}

// Reads the first max bytes of a file that the jail wrote. A NUL follows them.
static int read_back(int fd, size_t max, struct bytes *ret, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0 || st.st_size < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "reading what the compile jail wrote");
    }
    size_t len = (uint64_t)st.st_size < max ? (size_t)st.st_size : max;
    void *data = NULL;
    if (mem_try_alloc(&data, len + 1, 1, max + 1, "the compile jail's output", err) != 0) {
        return err ? (int)err->code : ERR_LIMIT;
    }
    if (pread(fd, data, len, 0) != (ssize_t)len) {
        free(data);
        return err_set(err, ERR_SYSTEM, "what the compile jail wrote cannot be read back");
    }
    *ret = (struct bytes){.data = data, .len = len};
    return 0;
}

// ---- running the jail ----

// Takes the name if it is a harmless one for a C file, else "candidate.c".
static void set_name(struct jail_spec *spec, const char *name)
{
    size_t len = name ? strlen(name) : 0;
    bool fits = len > 2 && len < sizeof(spec->name) && strcmp(name + len - 2, ".c") == 0 &&
                name[0] != '-' && name[0] != '.' && strcmp(name, "glue.c") != 0;

    for (size_t i = 0; i < len && fits; i++) {
        fits =
            isalnum((unsigned char)name[i]) || name[i] == '_' || name[i] == '-' || name[i] == '.';
    }
    snprintf(spec->name, sizeof(spec->name), "%s", fits ? name : "candidate.c");
}

static int start(struct compilation *c, pid_t *ret_pid, struct err *err)
{
    const struct compile_plan *plan = c->plan;
    struct sandbox sandbox = {.kind = SANDBOX_JAIL, .off = plan->sandbox_off};
    int rc = make_files(c, err);

    sandbox.scratch = plan->max_output < UINT64_MAX / SCRATCH_FACTOR
                          ? plan->max_output * SCRATCH_FACTOR
                          : plan->max_output;
    sandbox.scratch = sandbox.scratch > SCRATCH_MIN ? sandbox.scratch : SCRATCH_MIN;
    if (rc == 0 && plan->sandbox_off) {
        rc = file_make_temp_dir(&c->dir, "kcast-compile", err);
    }
    if (rc == 0) {
        rc = zygote_enter(c->zygote, &sandbox, err);
    }
    if (rc != 0) {
        return rc;
    }
    c->spec.role = CHILD_JAIL;
    c->spec.max_memory = plan->max_memory;
    c->spec.max_output = plan->max_output;
    c->spec.cpu_seconds = (uint64_t)ceil(plan->max_seconds);
    c->spec.wall_seconds = plan->wall_seconds;
    snprintf(c->spec.flags, sizeof(c->spec.flags), "%s", plan->flags ? plan->flags : "");
    snprintf(c->spec.dir, sizeof(c->spec.dir), "%s", c->dir ? c->dir : "");
    set_name(&c->spec, plan->name);
    return zygote_spawn(c->zygote, &c->spec, sizeof(c->spec), c->fd, JAIL_FILE_COUNT, ret_pid, err);
}

// Kills the jail's first process, with which everything in its pid namespace dies. Without a
// sandbox there is no such namespace, and its session is killed.
static void kill_jail(const struct compilation *c, pid_t pid)
{
    if (c->plan->sandbox_off) {
        (void)kill(-pid, SIGKILL);
    }
    (void)kill(pid, SIGKILL);
}

static void await(struct compilation *c, pid_t pid)
{
    if (!process_wait(pid, c->plan->wall_seconds + JAIL_GRACE, &c->status)) {
        c->silent = true;
        kill_jail(c, pid);
        process_reap(pid, &c->status);
    }
    if (c->plan->sandbox_off) {
        (void)kill(-pid, SIGKILL); // processes that it has left behind
    }
}

// ---- the outcome ----

static int take_log(struct compilation *c, struct err *err)
{
    struct bytes log;
    int rc = read_back(c->fd[JAIL_LOG], c->plan->max_output, &log, err);

    if (rc != 0) {
        return rc;
    }
    log.len = compile_result_fold((char *)log.data, log.len, COMPILE_LOG_MAX);
    compile_result_clean((char *)log.data, log.len);
    if (log.len > 0) {
        c->compiled->log = (char *)log.data; // read_back has added a NUL
    } else {
        bytes_clear(&log);
    }
    return 0;
}

// Refuses the source when there is no object.
static void refuse_failure(struct compilation *c)
{
    const struct jail_outcome *outcome = &c->outcome;
    struct diagnose_limits limits = {.max_memory = c->plan->max_memory,
                                     .max_output = c->plan->max_output,
                                     .max_seconds = c->plan->max_seconds,
                                     .processes =
                                         c->plan->sandbox_off ? 0 : SANDBOX_JAIL_PROCESSES};

    if (outcome->cpu_seconds > c->plan->max_seconds) {
        compile_result_refuse_slow(c->compiled, c->plan);
    } else if (outcome->too_large) {
        compile_result_refuse_large(c->compiled, c->plan->max_output);
    } else if (!outcome->compiled) {
        compile_result_refuse(c->compiled, VERDICT_COMPILE_ERROR,
                              diagnose(c->compiled->log ? c->compiled->log : "", c->spec.name,
                                       &limits, outcome->compiler_status));
    }
}

// Refuses an object with something that it may not have. A damaged object is the source's fault,
// because assembler code in a source can make the assembler write anything.
static void refuse_object(struct compilation *c, const struct bytes *object,
                          struct elf_facts *facts)
{
    *facts = (struct elf_facts){0};
    struct err err = ERR_INIT;
    if (elf_inspect(object, facts, &err) != 0) {
        compile_result_refuse(c->compiled, VERDICT_REJECTED, xstrdup(err.text));
        return;
    }
    uint64_t memory = facts->bss_bytes + facts->data_bytes;
    if (facts->bss_bytes > COMPILE_STATIC_MAX || facts->data_bytes > COMPILE_STATIC_MAX ||
        memory > COMPILE_STATIC_MAX) {
        compile_result_refuse(
            c->compiled, VERDICT_COMPILE_ERROR,
            xasprintf("its static data takes %.1f GiB, more than the %llu GiB allowed",
                      (double)facts->bss_bytes / 0x1p30 + (double)facts->data_bytes / 0x1p30,
                      (unsigned long long)(COMPILE_STATIC_MAX >> 30)));
    }
    if (facts->runs_when_loaded) {
        compile_result_refuse(
            c->compiled, VERDICT_REJECTED,
            xstrdup("it runs code when it is loaded or unloaded (a constructor or destructor)"));
    }
    if (facts->has_ifunc) {
        compile_result_refuse(
            c->compiled, VERDICT_REJECTED,
            xstrdup("it chooses functions when it is loaded (ifunc or target_clones)"));
    }
    if (facts->needs[0] != '\0') {
        compile_result_clean(facts->needs, strlen(facts->needs));
        compile_result_refuse(c->compiled, VERDICT_REJECTED,
                              xasprintf("it needs the library %s", facts->needs));
    }
}

static int take_features(struct compilation *c, const struct bytes *object,
                         const struct elf_facts *facts, struct err *err)
{
    struct compiled *compiled = c->compiled;
    struct bytes listing;
    int rc = read_back(c->fd[JAIL_LISTING], JAIL_LISTING_MAX, &listing, err);

    if (rc != 0) {
        return rc;
    }
    double value[FEATURE_COUNT];
    features_read((const char *)listing.data, listing.len, value);
    bytes_clear(&listing);
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        fact_list_add(&compiled->features, &compiled->features_count, feature_name[i], value[i]);
    }
    fact_list_add(&compiled->features, &compiled->features_count, "code_bytes",
                  (double)facts->code_bytes);
    fact_list_add(&compiled->features, &compiled->features_count, "read_only_bytes",
                  (double)facts->read_only_bytes);
    fact_list_add(&compiled->features, &compiled->features_count, "data_bytes",
                  (double)facts->data_bytes);
    fact_list_add(&compiled->features, &compiled->features_count, "bss_bytes",
                  (double)facts->bss_bytes);
    fact_list_add(&compiled->features, &compiled->features_count, "object_bytes",
                  (double)object->len);
    fact_list_add(&compiled->features, &compiled->features_count, "source_bytes",
                  (double)c->plan->source.len);
    return 0;
}

// Reads what the jail reports about itself.
static int read_outcome(struct compilation *c, struct err *err)
{
    struct jail_outcome *outcome = &c->outcome;

    if (c->silent) {
        return err_set(err, ERR_TIMED_OUT,
                       "the compile jail gives no answer %g seconds after its wall time was over: "
                       "this host stands still; look at its disks and its load",
                       JAIL_GRACE);
    }
    if (pread(c->fd[JAIL_OUTCOME], outcome, sizeof(*outcome), 0) != sizeof(*outcome) ||
        !outcome->finished) {
        char *end = compile_result_end(c->status);
        int rc = err_set(err, ERR_SANDBOX, "the compile jail %s before it had reported", end);
        free(end);
        return rc;
    }
    outcome->setup[JAIL_TEXT_MAX - 1] = outcome->version[JAIL_TEXT_MAX - 1] = '\0';
    if (outcome->setup[0] != '\0') {
        return err_set(err, ERR_SANDBOX, "the compile jail cannot be set up: %s", outcome->setup);
    }
    return 0;
}

// Fails when gcc did not run, or not to its end, for a reason that is not the source's.
static int check_compiler(const struct compilation *c, struct err *err)
{
    const struct jail_outcome *outcome = &c->outcome;
    int status = outcome->compiler_status;

    if (outcome->timed_out) {
        return outcome->cpu_seconds > c->plan->max_seconds
                   ? 0
                   : compile_result_stalled(c->plan, outcome->cpu_seconds, err);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == JAIL_EXIT_NO_PROGRAM) {
        return err_set(err, ERR_SANDBOX,
                       "gcc cannot be started in the compile jail; install one in " TOOLCHAIN_PATH);
    }
    if (status == JAIL_NO_COMPILER ||
        (WIFEXITED(status) && WEXITSTATUS(status) >= JAIL_EXIT_NO_LIMITS)) {
        return err_set(err, ERR_SANDBOX, "gcc cannot be started in the compile jail: %.200s",
                       c->compiled->log ? c->compiled->log : "it gives no reason");
    }
    return 0;
}

static int take_object(struct compilation *c, struct bytes *ret, struct err *err)
{
    int rc = read_back(c->fd[JAIL_OBJECT], c->plan->max_output, ret, err);
    struct elf_facts facts;

    if (rc == 0) {
        refuse_object(c, ret, &facts);
        c->compiled->object = digest_of(ret->data, ret->len);
        rc = take_features(c, ret, &facts, err);
    }
    if (rc == 0 && c->compiled->verdict != VERDICT_NONE) {
        bytes_clear(ret);
    }
    return rc;
}

static int take_outcome(struct compilation *c, struct bytes *ret_object, struct err *err)
{
    int rc = read_outcome(c, err);

    if (rc != 0) {
        return rc;
    }
    rc = take_log(c, err);
    if (rc != 0) {
        return rc;
    }
    rc = check_compiler(c, err);
    if (rc != 0) {
        return rc;
    }
    refuse_failure(c);
    return c->compiled->verdict == VERDICT_NONE ? take_object(c, ret_object, err) : 0;
}

// What gcc says of a source in Python does not help: problems for cores take C alone.
static void name_language(const struct compilation *c)
{
    const struct bytes *source = &c->plan->source;

    if (c->compiled->verdict == VERDICT_COMPILE_ERROR &&
        candidate_form((const char *)source->data, source->len) == FORM_PYTHON) {
        free(c->compiled->reason);
        c->compiled->reason =
            xstrdup("it is Python, and this problem is for cores, whose candidates are in C; "
                    "Python runs for problems whose language is cuda");
    }
}

int compile_run(const struct compile_plan *plan, struct zygote *zygote, struct compile_outcome *ret,
                struct err *err)
{
    struct compilation c = {.plan = plan, .zygote = zygote};
    struct compile_outcome outcome = {.compiled = xcalloc(1, sizeof(*outcome.compiled))};
    uint64_t begin = clock_now_ns(&clock_system);

    for (size_t i = 0; i < JAIL_FILE_COUNT; i++) {
        c.fd[i] = -1;
    }
    c.compiled = outcome.compiled;
    pid_t pid;
    int rc = start(&c, &pid, err);
    if (rc == 0) {
        await(&c, pid);
        rc = take_outcome(&c, &outcome.object, err);
    }
    if (rc == 0) {
        name_language(&c);
        c.compiled->seconds = clock_seconds(clock_now_ns(&clock_system) - begin);
        c.compiled->toolchain =
            c.outcome.version[0] != '\0' ? xasprintf("gcc %s", c.outcome.version) : NULL;
        c.compiled->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
        *ret = outcome;
    } else {
        message_clear(&compile_outcome_message, &outcome);
    }
    for (size_t i = 0; i < JAIL_FILE_COUNT; i++) {
        if (c.fd[i] >= 0) {
            close(c.fd[i]);
        }
    }
    if (c.dir) {
        struct err ignored = ERR_INIT;
        (void)!file_remove_tree(c.dir, &ignored);
        free(c.dir);
    }
    return rc;
}
