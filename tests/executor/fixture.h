// Shared by the tests of real compilations and measurements: the problem tests/data/exec/window
// with its compiled reference and baseline, and plans for it.
#ifndef TESTS_EXECUTOR_FIXTURE_H
#define TESTS_EXECUTOR_FIXTURE_H

#include "common/file.h"
#include "executor/cpu/child.h"
#include "executor/cpu/compile.h"
#include "executor/cpu/harness.h"
#include "executor/cpu/measure.h"
#include "executor/cpu/probe.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FIXTURE_SANITIZED 1
#else
#define FIXTURE_SANITIZED 0
#endif

struct fixture {
    struct child_context context;
    struct bytes json;
    struct problem *problem;
    struct bytes reference, baseline;
    char *no_sandbox; // why the sandbox does not work here; NULL: it works
};

static inline struct bytes fixture_read(const char *name)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/tests/data/exec/%s", root ? root : ".", name);
    struct bytes bytes;
    struct err err = ERR_INIT;

    if (file_read(&bytes, path, 1 << 20, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
    return bytes;
}

// Returns a plan that compiles the file against the fixture's problem. The caller owns it and may
// change it.
static inline struct compile_plan fixture_compile_plan(const struct fixture *fixture,
                                                       const char *file, bool reference)
{
    struct strbuf header = STRBUF_INIT, glue = STRBUF_INIT;
    struct compile_plan plan = {.max_seconds = 60,
                                .wall_seconds = 1e6, // so that this machine's speed decides nothing
                                .max_memory = (uint64_t)2 << 30,
                                .max_output = (uint64_t)32 << 20};

    problem_header(fixture->problem, reference, &header);
    problem_glue(fixture->problem, reference, &glue);
    plan.header = strbuf_detach(&header);
    plan.glue = strbuf_detach(&glue);
    plan.source = fixture_read(file);
    return plan;
}

// Compiles and clears the plan. Without a sandbox here it compiles without one.
static inline int fixture_try_compile(const struct fixture *fixture, struct compile_plan *plan,
                                      struct compile_outcome *ret, struct err *err)
{
    plan->sandbox_off |= fixture->no_sandbox ? 1 : 0;
    struct zygote zygote = {.socket = -1};
    int rc = zygote_create(&zygote, child_main, &fixture->context, err);
    rc = rc == 0 ? compile_run(plan, &zygote, ret, err) : rc;
    zygote_release(&zygote);
    message_clear(&compile_plan_message, plan);
    return rc;
}

static inline struct compile_outcome fixture_compile(const struct fixture *fixture,
                                                     struct compile_plan *plan)
{
    struct compile_outcome outcome = {.compiled = NULL};
    struct err err = ERR_INIT;

    if (fixture_try_compile(fixture, plan, &outcome, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return outcome;
}

static inline struct bytes fixture_object(const struct fixture *fixture, const char *file,
                                          bool reference)
{
    struct compile_plan plan = fixture_compile_plan(fixture, file, reference);
    struct compile_outcome outcome = fixture_compile(fixture, &plan);

    if (outcome.compiled->verdict != VERDICT_NONE) {
        fail_msg("%s: %s", file, outcome.compiled->reason);
    }
    struct bytes object = outcome.object;
    outcome.object = (struct bytes){.data = NULL};
    message_clear(&compile_outcome_message, &outcome);
    return object;
}

// The plan borrows the fixture's and the object's bytes.
static inline struct measure_plan fixture_measure_plan(const struct fixture *fixture,
                                                       const struct bytes *object)
{
    return (struct measure_plan){.problem = fixture->json,
                                 .reference = fixture->reference,
                                 .baseline = fixture->baseline,
                                 .candidate = *object,
                                 .seed = 20240607,
                                 .anchor_log2 = NAN,
                                 .precision_log2 = NAN,
                                 .max_seconds = 20,
                                 .launch_seconds = 5,
                                 .max_memory = (uint64_t)512 << 20,
                                 .peak_flops = NAN,
                                 .peak_bytes = NAN};
}

// ops: measure_cpu, or a copy of it in which a test does more. Its machine is a struct harness.
static inline int fixture_try_ops(const struct fixture *fixture, const struct measure_ops *ops,
                                  struct measure_plan *plan, struct measure_outcome *ret,
                                  struct err *err)
{
    plan->sandbox_off |= fixture->no_sandbox ? 1 : 0;
    struct zygote zygote = {.socket = -1};
    int rc = zygote_create(&zygote, child_main, &fixture->context, err);
    if (rc == 0) {
        struct harness harness = {.zygote = &zygote};

        rc = measure_run(ops, &harness, plan, ret, err);
    }
    zygote_release(&zygote);
    return rc;
}

static inline int fixture_try_measure(const struct fixture *fixture, struct measure_plan *plan,
                                      struct measure_outcome *ret, struct err *err)
{
    return fixture_try_ops(fixture, &measure_cpu, plan, ret, err);
}

static inline struct measure_outcome fixture_measure(const struct fixture *fixture,
                                                     struct measure_plan *plan)
{
    struct measure_outcome outcome;
    struct err err = ERR_INIT;

    if (fixture_try_measure(fixture, plan, &outcome, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return outcome;
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    *state = fixture;
    struct probe_outcome probe;
    struct err err = ERR_INIT;
    if (child_context_init(&fixture->context, CHILD_NEEDS_JAIL | CHILD_NEEDS_RUNNER, &err) != 0 ||
        probe_run(&fixture->context, &probe, &err) != 0) {
        fail_msg("%s", err.text);
    }
    fixture->no_sandbox = probe.sandbox ? NULL : xstrdup(probe.reason);
    message_clear(&probe_outcome_message, &probe);
    fixture->json = fixture_read("window/problem.json");
    if (problem_parse(&fixture->problem, (const char *)fixture->json.data, fixture->json.len,
                      "window", &err) != 0) {
        fail_msg("%s", err.text);
    }
    fixture->reference = fixture_object(fixture, "window/reference.c", true);
    fixture->baseline = fixture_object(fixture, "window/baseline.c", false);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;

    child_context_release(&fixture->context);
    bytes_clear(&fixture->json);
    problem_free(fixture->problem);
    bytes_clear(&fixture->reference);
    bytes_clear(&fixture->baseline);
    free(fixture->no_sandbox);
    free(fixture);
    return 0;
}

// Ends a test that needs the sandbox where there is none.
static inline void fixture_need_sandbox(const struct fixture *fixture)
{
    if (fixture->no_sandbox) {
        print_message("skipped because there is no sandbox here: %s\n", fixture->no_sandbox);
        skip();
    }
}

#endif
