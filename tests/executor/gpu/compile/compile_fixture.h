// Compiles sealed sources with the real NVRTC in the real jail. Skips without a CUDA compiler.
// cmocka.h comes before this file.
#ifndef TESTS_EXECUTOR_GPU_COMPILE_COMPILE_FIXTURE_H
#define TESTS_EXECUTOR_GPU_COMPILE_COMPILE_FIXTURE_H

#include "common/mem.h"
#include "executor/gpu/compile/compile.h"
#include "proto/verdict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef COMPILE_PROBLEM_TEXT // a test may have another one
#define COMPILE_PROBLEM_TEXT default_problem_text
#endif
static const char default_problem_text[] =
    "{\"name\": \"scale\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}],"
    "\"cases\": {\"check\": [{\"n\": 100, \"a\": 2}, {\"n\": 1000, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 1000, \"a\": 3}, \"weight\": 1}]},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

#define LAUNCH "//@ launch scale grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n"
#define BODY                                                                                       \
    "extern \"C\" __global__ void scale(const float *x, float *y, int n, float a)\n"               \
    "{ int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = a * x[i]; }\n"

struct fixture {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
    bool there;
    char reason[ERR_TEXT_MAX];
};

static inline int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    fixture->zygote.socket = -1;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        snprintf(fixture->reason, sizeof(fixture->reason), "%s", err.text);
    } else {
        assert_int_equal(sandbox_filter_build(&fixture->filter, STAGE_COMPILE, &err), 0);
        assert_int_equal(zygote_create(&fixture->zygote, cuda_jail_child, &fixture->filter, &err),
                         0);
        cuda_jail_init(&fixture->jail, &fixture->zygote, &toolkit, false);
        fixture->there = true;
    }
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *fixture = *state;

    if (fixture->there) {
        cuda_jail_release(&fixture->jail);
        zygote_release(&fixture->zygote);
        sandbox_filter_release(&fixture->filter);
    }
    free(fixture);
    return 0;
}

// What a plan asks for beside everything.
struct part {
    bool features_only, no_machine_code;
    const struct compile_outcome *known; // NULL: nothing is known
    bool no_known_features;
    size_t width;        // variants that are compiled at once; 0: one
    const char *problem; // text of problem.json; NULL: COMPILE_PROBLEM_TEXT
};

// Shares what is known, which drop_part takes out again.
static inline void add_part(struct compile_plan *plan, const struct part *part)
{
    plan->features_only = part->features_only;
    plan->no_machine_code = part->no_machine_code;
    plan->width = part->width;
    if (part->known) {
        plan->known = part->known->object;
    }
    if (part->known && !part->no_known_features) {
        plan->known_features = part->known->compiled->features;
        plan->known_features_count = part->known->compiled->features_count;
    }
}

static inline void drop_part(struct compile_plan *plan)
{
    plan->known = (struct bytes){.len = 0};
    plan->known_features = NULL;
    plan->known_features_count = 0;
}

static inline int try_compile(void **state, const char *source, double seconds, double wall_seconds,
                              uint64_t memory_mib, const struct part *part,
                              struct compile_outcome *ret, struct err *err)
{
    struct fixture *fixture = *state;

    if (!fixture->there) {
        printf("skipped because %s\n", fixture->reason);
        skip();
    }
    struct compile_plan plan;
    message_init(&compile_plan_message, &plan);
    plan.source = (struct bytes){.data = (unsigned char *)strdup(source), .len = strlen(source)};
    const char *problem = part && part->problem ? part->problem : COMPILE_PROBLEM_TEXT;
    plan.problem = (struct bytes){.data = (unsigned char *)strdup(problem), .len = strlen(problem)};
    plan.header = strdup("");
    plan.glue = strdup("");
    if (part) {
        add_part(&plan, part);
    }
    plan.name = strdup("candidate.cu");
    plan.language = strdup("cuda");
    plan.target = strdup("sm_90");
    plan.max_seconds = seconds;
    plan.wall_seconds = wall_seconds;
    plan.max_memory = memory_mib << 20;
    plan.max_output = (uint64_t)32 << 20;
    int rc = compile_cuda(&plan, &fixture->jail, ret, err);
    drop_part(&plan);
    message_clear(&compile_plan_message, &plan);
    return rc;
}

// seconds of processor time; the wall time is such that this machine's speed decides nothing.
static inline void compile_with(void **state, const char *source, double seconds,
                                uint64_t memory_mib, const struct part *part,
                                struct compile_outcome *ret)
{
    struct err err = ERR_INIT;

    if (try_compile(state, source, seconds, 1e6, memory_mib, part, ret, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static inline void compile(void **state, const char *source, double seconds,
                           struct compile_outcome *ret)
{
    compile_with(state, source, seconds, 4096, NULL, ret);
}

static inline void refused_within(void **state, const char *source, double seconds,
                                  enum verdict verdict, const char *words)
{
    struct compile_outcome outcome;

    compile(state, source, seconds, &outcome);
    if (outcome.compiled->verdict != verdict || !strstr(outcome.compiled->reason, words)) {
        print_message("%s: %s\n", verdict_name(outcome.compiled->verdict),
                      outcome.compiled->reason);
    }
    assert_int_equal(outcome.compiled->verdict, verdict);
    assert_non_null(strstr(outcome.compiled->reason, words));
    assert_int_equal(outcome.object.len, 0);
    message_clear(&compile_outcome_message, &outcome);
}

static inline void refused(void **state, const char *source, enum verdict verdict,
                           const char *words)
{
    refused_within(state, source, 30, verdict, words);
}

static inline void read_object(const struct compile_outcome *outcome, struct cuda_object *ret)
{
    if (outcome->compiled->verdict != VERDICT_NONE) {
        print_message("%s\n",
                      outcome->compiled->log ? outcome->compiled->log : outcome->compiled->reason);
    }
    assert_int_equal(outcome->compiled->verdict, VERDICT_NONE);
    struct err err = ERR_INIT;
    assert_int_equal(
        message_read(&cuda_object_message, ret, outcome->object.data, outcome->object.len, &err),
        0);
}

#endif
