// A whole measurement on the fake GPU, in the test's process, with an oracle process: y = a x, whose
// candidates are kernels of the fake (tests/support/fake_gpu/fake.h). Only the executor's own kernels
// need a compiler.
#ifndef TESTS_SUPPORT_GPU_TRIAL_H
#define TESTS_SUPPORT_GPU_TRIAL_H

#include "executor/gpu/harness.h"
#include "executor/gpu/measure.h"
#include "proto/verdict.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_object.h"

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
    bool open;
    struct measure_plan plan; // of the next run, which sets the candidate
    struct measure_outcome outcome;
    struct err err;
};

struct bytes trial_text(const char *from);
// A candidate with one launch. The name of the kernel tells the fake GPU what it does.
struct bytes trial_kernel(const char *name);
void trial_replace(struct bytes *to, struct bytes taken);

// The set-up and tear-down of a test: *state is a struct trial.
int trial_set_up(void **state);
int trial_tear_down(void **state);
// The set-up of the group: ends the program, as skipped, when there is no compiler.
int trial_find_compiler(void **state);

// Opens oracle and GPU, with these settings of the fake.
int trial_open(struct trial *trial, const char *settings);
void trial_must_open(struct trial *trial, const char *settings);

// Measures a candidate. trial->outcome is the outcome when it returns 0.
int trial_run(struct trial *trial, struct bytes candidate_taken);
const struct result *trial_result(struct trial *trial, struct bytes candidate_taken);
// Expects a verdict, and its reason to contain the words. With "" there must be no reason.
void trial_becomes(struct trial *trial, struct bytes candidate_taken, enum verdict verdict,
                   const char *words, bool retire);
// Expects an error, because a failure that is not the candidate's has no outcome.
void trial_fails(struct trial *trial, struct bytes candidate_taken, const char *words);

#endif
