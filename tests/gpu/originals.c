// The parts of tests/gpu/originals.py that are the executor's: recording candidates, and replaying
// a recording outside a measurement.
//   originals gpu
//     prints "UUID TARGET L2-BYTES MULTIPROCESSORS NAME" of GPU 0.
//   originals check PROBLEM SOURCE
//     says of problem.json and a candidate whether they can be recorded: the problem is read, and
//     the source has host code.
//   originals record UUID TARGET L2-BYTES MULTIPROCESSORS PYTHON SECONDS
//     reads lines "PROBLEM<tab>SOURCE<tab>OBJECT" and has each source recorded for the benchmark
//     cases by one recorder, as kcast-exec does. Prints "recorded OBJECT BYTES SECONDS" and writes
//     the packed cuda_object to OBJECT, or prints "refused OBJECT VERDICT: SENTENCE" and writes the
//     log to OBJECT.log, or prints "failed OBJECT SENTENCE". SECONDS are of processor time, each.
//   originals replay UUID PROBLEM OBJECT FOLDER SEED
//     writes inputs to FOLDER and prints "ready KERNELS FILLS COPIES IMAGE-BYTES"; then it reads
//     lines. "run": runs the launches once, writes the outputs to FOLDER and prints "ran".
//     "time N": times N runs, and prints "timed" with their times in nanoseconds.
// An error ends it with a sentence on stderr and exit code 1.
#include "common/file.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include "executor/gpu/record/record.h"
#include "problem/candidate_form.h"
#include "proto/verdict.h"
#include "tests/gpu/original_replay.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4096
#define OBJECT_MAX ((size_t)128 << 20) // as the daemon has it
#define COMPILER_MEMORY ((uint64_t)8 << 30)
#define WALL_FACTOR 10
#define TIMES_MAX 10000

static int fail(const struct err *err)
{
    fprintf(stderr, "originals: %s\n", err->text);
    return 1;
}

// ---- gpu, check ----

static int print_gpu(struct err *err)
{
    char reason[ERR_TEXT_MAX];
    struct driver driver;
    struct gpu gpu;

    if (gpu_count(&driver, reason) == 0) {
        return err_set(err, ERR_NOT_FOUND, "%s", reason);
    }
    int rc = gpu_describe(&gpu, &driver, 0, err);
    if (rc == 0) {
        printf("%s %s %zu %d %s\n", gpu.uuid, gpu.target, gpu.l2_bytes, gpu.multiprocessors,
               gpu.name);
    }
    return rc;
}

static int check(const char *problem_path, const char *source_path, struct err *err)
{
    struct bytes problem = {.data = NULL}, source = {.data = NULL};
    struct problem *read = NULL;
    int rc = file_read(&problem, problem_path, PROBLEM_JSON_MAX, err);

    if (rc == 0) {
        rc = file_read(&source, source_path, PROBLEM_SOURCE_MAX, err);
    }
    if (rc == 0) {
        rc = problem_parse(&read, (const char *)problem.data, problem.len, problem_path, err);
    }
    if (rc == 0 && candidate_form((const char *)source.data, source.len) == FORM_SEALED) {
        rc = err_set(err, ERR_INVALID, "%s would be taken for a sealed source", source_path);
    }
    problem_free(read);
    bytes_clear(&problem);
    bytes_clear(&source);
    return rc;
}

// ---- record ----

struct session {
    struct recorder recorder;
    struct compile_plan plan; // but for problem and source, borrowed
    struct fact fact[2];
};

static void say_refused(const char *object, const struct compiled *compiled)
{
    char *path = xasprintf("%s.log", object);
    struct err err = ERR_INIT;

    if (compiled->log &&
        file_replace(path, compiled->log, strlen(compiled->log), false, &err) != 0) {
        fprintf(stderr, "originals: %s\n", err.text);
    }
    printf("refused %s %s: %s\n", object, verdict_name(compiled->verdict),
           compiled->reason ? compiled->reason : "");
    free(path);
}

// Where a machine has no sandbox, kcast-exec records without one; so does this, and says so.
static int record(struct session *s, struct compile_outcome *ret, struct err *err)
{
    struct err why = ERR_INIT;
    int rc = record_cuda(&s->plan, &s->recorder, NULL, ret, &why);

    if (rc == ERR_UNSUPPORTED && !s->plan.sandbox_off) {
        fprintf(stderr, "originals: %s; trying without a sandbox\n", why.text);
        s->plan.sandbox_off = true;
        return record_cuda(&s->plan, &s->recorder, NULL, ret, err);
    }
    *err = why;
    return rc;
}

static int record_one(struct session *s, const char *problem, const char *source,
                      const char *object, struct err *err)
{
    struct compile_outcome outcome;

    message_init(&compile_outcome_message, &outcome);
    int rc = file_read(&s->plan.problem, problem, PROBLEM_JSON_MAX, err);
    if (rc == 0) {
        rc = file_read(&s->plan.source, source, PROBLEM_SOURCE_MAX, err);
    }
    if (rc == 0) {
        rc = record(s, &outcome, err);
    }
    if (rc == 0 && outcome.object.len == 0) {
        say_refused(object, outcome.compiled);
    } else if (rc == 0) {
        rc = file_replace(object, outcome.object.data, outcome.object.len, false, err);
        if (rc == 0) {
            printf("recorded %s %zu %.2f\n", object, outcome.object.len, outcome.compiled->seconds);
        }
    }
    if (rc == 0) {
        message_clear(&compile_outcome_message, &outcome);
    }
    bytes_clear(&s->plan.problem);
    bytes_clear(&s->plan.source);
    return rc;
}

static int record_all(char **argument, struct err *err)
{
    struct session s = {.recorder = RECORDER_INIT};
    char line[LINE_MAX_BYTES];
    uint64_t l2, multiprocessors;
    double seconds;

    if (parse_u64(&l2, argument[2], 0, UINT64_MAX, "L2-BYTES", err) < 0 ||
        parse_u64(&multiprocessors, argument[3], 1, 100000, "MULTIPROCESSORS", err) < 0 ||
        parse_f64(&seconds, argument[5], 0.1, 3600, "SECONDS", err) < 0) {
        return err->code;
    }
    message_init(&compile_plan_message, &s.plan);
    s.fact[0] = (struct fact){.name = "l2_bytes", .value = (double)l2};
    s.fact[1] = (struct fact){.name = "multiprocessors", .value = (double)multiprocessors};
    s.plan.device = argument[0];
    s.plan.target = argument[1];
    s.plan.python = argument[4];
    s.plan.facts = s.fact;
    s.plan.facts_count = ARRAY_LEN(s.fact);
    s.plan.role = COMPILE_BASELINE; // which is recorded for the benchmark cases alone
    s.plan.max_seconds = seconds;
    s.plan.wall_seconds = WALL_FACTOR * seconds;
    s.plan.max_memory = COMPILER_MEMORY;
    s.plan.max_output = OBJECT_MAX;
    while (fgets(line, sizeof(line), stdin)) {
        char *rest = line;
        const char *problem = strsep(&rest, "\t"), *source = strsep(&rest, "\t");
        const char *object = strsep(&rest, "\n");
        struct err why = ERR_INIT;

        if (!object) {
            return err_set(err, ERR_INVALID,
                           "a line does not name a problem, a source and an "
                           "object");
        }
        if (record_one(&s, problem, source, object, &why) != 0) {
            printf("failed %s %s\n", object, why.text);
        }
        (void)fflush(stdout);
    }
    recorder_stop(&s.recorder);
    return 0;
}

// ---- replay ----

static void say_ready(const struct original_replay *r)
{
    const struct cuda_recording *recording = r->program->object.recording;
    size_t count[3] = {0}, bytes = 0;

    for (size_t i = 0; i < r->program->launch_count; i++) {
        count[r->program->launch[i].work]++;
    }
    for (size_t i = 0; i < recording->images_count; i++) {
        bytes += recording->images[i].data.len;
    }
    printf("ready %zu %zu %zu %zu\n", count[WORK_KERNEL], count[WORK_FILL], count[WORK_COPY],
           bytes);
}

static int time_runs(struct original_replay *r, const char *number, struct err *err)
{
    static double ns[TIMES_MAX];
    uint64_t count;
    int rc = parse_u64(&count, number, 1, TIMES_MAX, "N", err);

    if (rc == 0) {
        rc = original_replay_time(r, count, ns, err);
    }
    if (rc != 0) {
        return rc;
    }
    printf("timed");
    for (size_t i = 0; i < count; i++) {
        printf(" %.0f", ns[i]);
    }
    printf("\n");
    return 0;
}

static int obey(struct original_replay *r, char *line, const char *folder, struct err *err)
{
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "time ", 5) == 0) {
        return time_runs(r, line + 5, err);
    }
    if (strcmp(line, "run") != 0) {
        return err_set(err, ERR_USAGE, "there is no command %s", line);
    }
    int rc = original_replay_run(r, folder, err);
    if (rc == 0) {
        printf("ran\n");
    }
    return rc;
}

static int replay(char **argument, struct err *err)
{
    struct bytes problem = {.data = NULL}, object = {.data = NULL};
    struct original_replay r = {.problem = NULL};
    const char *folder = argument[3];
    char line[LINE_MAX_BYTES];
    uint64_t seed;
    int rc = parse_u64(&seed, argument[4], 0, UINT64_MAX, "SEED", err);

    if (rc == 0) {
        rc = file_read(&problem, argument[1], PROBLEM_JSON_MAX, err);
    }
    if (rc == 0) {
        rc = file_read(&object, argument[2], OBJECT_MAX, err);
    }
    if (rc == 0) {
        rc = original_replay_open(&r, argument[0], &problem, &object, seed, err);
    }
    if (rc == 0) {
        rc = original_replay_write_inputs(&r, folder, err);
    }
    if (rc == 0) {
        say_ready(&r);
        (void)fflush(stdout);
    }
    while (rc == 0 && fgets(line, sizeof(line), stdin)) {
        rc = obey(&r, line, folder, err);
        (void)fflush(stdout);
    }
    original_replay_close(&r);
    bytes_clear(&problem);
    bytes_clear(&object);
    return rc;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int arguments;
    } mode[] = {{"gpu", 0}, {"check", 2}, {"record", 6}, {"replay", 5}};
    struct err err = ERR_INIT;
    size_t i = 0;

    while (i < ARRAY_LEN(mode) && (argc < 2 || strcmp(argv[1], mode[i].name) != 0)) {
        i++;
    }
    if (i == ARRAY_LEN(mode) || argc != mode[i].arguments + 2) {
        fprintf(stderr, "usage: originals gpu | check PROBLEM SOURCE | record … | replay …; the "
                        "head of tests/gpu/originals.c has the arguments\n");
        return 2;
    }
    char **argument = argv + 2;
    int rc = i == 0   ? print_gpu(&err)
             : i == 1 ? check(argument[0], argument[1], &err)
             : i == 2 ? record_all(argument, &err)
                      : replay(argument, &err);
    return rc != 0 ? fail(&err) : 0;
}
