// A whole measurement on the fake GPU, in the test's process, with an oracle process: y = a x,
// whose candidates are kernels of the fake (tests/support/fake_gpu/fake.h). Only the executor's own
// kernels need a compiler. For the tests that need it, so it is a header only.
#ifndef TESTS_EXECUTOR_GPU_GPU_TRIAL_FIXTURE_H
#define TESTS_EXECUTOR_GPU_GPU_TRIAL_FIXTURE_H

#include "executor/gpu/compile/toolkit.h"
#include "executor/gpu/harness.h"
#include "executor/gpu/measure.h"
#include "proto/verdict.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_object.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRIAL_PROBLEM(check)                                                                       \
    "{\"name\": \"p\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","      \
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"    \
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\":"        \
    "[\"n\"], \"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"            \
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"            \
    "\"tolerance\": 4}], \"cases\": {\"check\": [" check "],"                                      \
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}]},"                        \
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}"
#define TRIAL_CHECK "{\"n\": 300, \"a\": 2}"
#define TRIAL_LAUNCH(kernel)                                                                       \
    "//@ launch " kernel " grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n"
#define TRIAL_SIZES " 8 8 4 4"
#define TRIAL_REFERENCE "//@ launch fk_ref_scale grid=(1) block=(256) args=(x, y, y_scale, n, a)\n"

struct trial {
    struct gpu gpu;
    struct oracle oracle;
    struct recorder *recorder; // for candidates that run unsealed; NULL: none do
    bool open;
    struct measure_plan plan; // of the next run, which sets the candidate
    struct measure_outcome outcome;
    struct err err;
};

static inline struct bytes trial_text(const char *from)
{
    return bytes_copy(from, strlen(from));
}

// A candidate with one launch. The name of the kernel tells the fake GPU what it does.
static inline struct bytes trial_kernel(const char *name)
{
    char *source =
        xasprintf("//@ launch %s grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n", name);
    char *kernels = xasprintf("%s" TRIAL_SIZES, name);
    struct bytes object = gpu_object(source, kernels);

    free(source);
    free(kernels);
    return object;
}

static inline void trial_replace(struct bytes *to, struct bytes taken)
{
    bytes_clear(to);
    *to = taken;
}

static inline void close_gpu(struct trial *trial)
{
    if (trial->open) {
        oracle_stop(&trial->oracle);
        gpu_close(&trial->gpu);
        trial->open = false;
    }
}

// Opens oracle and GPU in the same order as executor/gpu/serve.c.
static inline int trial_open(struct trial *trial, const char *settings)
{
    close_gpu(trial);
    gpu_fake_set(settings);
    trial->err = (struct err)ERR_INIT;
    trial->open = true;
    int rc = oracle_start(&trial->oracle, "0", &trial->err);
    if (rc == 0) {
        rc = gpu_open(&trial->gpu, "0", &trial->err);
    }
    return rc == 0 ? oracle_ready(&trial->oracle, &trial->err) : rc;
}

static inline void trial_must_open(struct trial *trial, const char *settings)
{
    if (trial_open(trial, settings) != 0) {
        fail_msg("%s", trial->err.text);
    }
}

static inline int trial_set_up(void **state)
{
    struct trial *trial = calloc(1, sizeof(*trial));
    struct measure_plan *plan = &trial->plan;

    message_init(&measure_plan_message, plan);
    plan->problem = trial_text(TRIAL_PROBLEM(TRIAL_CHECK));
    plan->reference = gpu_object(TRIAL_REFERENCE, "fk_ref_scale 8 8 8 4 8");
    plan->baseline = trial_kernel("fk_scale");
    plan->seed = 5;
    plan->max_seconds = 1e6; // so that the clock of this machine never ends a paired timing
    plan->launch_seconds = 10;
    message_init(&measure_outcome_message, &trial->outcome);
    *state = trial;
    return 0;
}

static inline int trial_tear_down(void **state)
{
    struct trial *trial = *state;

    close_gpu(trial);
    message_clear(&measure_outcome_message, &trial->outcome);
    message_clear(&measure_plan_message, &trial->plan);
    free(trial);
    return 0;
}

static inline int trial_run(struct trial *trial, struct bytes candidate_taken)
{
    struct gpu_harness harness = {
        .gpu = &trial->gpu, .oracle = &trial->oracle, .recorder = trial->recorder};

    trial_replace(&trial->plan.candidate, candidate_taken);
    trial->err = (struct err)ERR_INIT;
    struct measure_outcome outcome;
    int rc = measure_run(&measure_gpu, &harness, &trial->plan, &outcome, &trial->err);
    if (rc == 0) {
        message_clear(&measure_outcome_message, &trial->outcome);
        trial->outcome = outcome;
    }
    return rc;
}

static inline const struct result *trial_result(struct trial *trial, struct bytes candidate_taken)
{
    if (trial_run(trial, candidate_taken) != 0) {
        fail_msg("%s", trial->err.text);
    }
    return trial->outcome.result;
}

// Expects a verdict, and its reason to contain the words. With "" there must be no reason.
static inline void trial_becomes(struct trial *trial, struct bytes candidate_taken,
                                 enum verdict verdict, const char *words, bool retire)
{
    const struct result *result = trial_result(trial, candidate_taken);
    const char *reason = result->reason ? result->reason : "";

    if (result->verdict != verdict || (words[0] == '\0') != (reason[0] == '\0') ||
        !strstr(reason, words) || trial->outcome.retire != retire) {
        fail_msg("%s%s: %s; expected %s: %s", verdict_name(result->verdict),
                 trial->outcome.retire ? ", retired" : "", reason, verdict_name(verdict), words);
    }
}

// Expects an error, because a failure that is not the candidate's has no outcome.
static inline void trial_fails(struct trial *trial, struct bytes candidate_taken, const char *words)
{
    int status = trial_run(trial, candidate_taken);

    if (status == 0 || !strstr(trial->err.text, words)) {
        fail_msg("%s; expected: %s", status == 0 ? "no error" : trial->err.text, words);
    }
}

static inline int trial_find_compiler(void **state)
{
    (void)state;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        printf("skipped because %s\n", err.text);
        exit(0);
    }
    toolkit_release(&toolkit);
    gpu_fake_use("");
    return 0;
}

#endif
