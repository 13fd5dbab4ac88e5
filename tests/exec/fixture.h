// What the tests of real compilations and measurements share: the problem tests/data/exec/window,
// compiled, and plans for it.
#ifndef TESTS_EXEC_FIXTURE_H
#define TESTS_EXEC_FIXTURE_H

#include "common/file.h"
#include "contract/problem.h"
#include "contract/verdict.h"
#include "exec/child.h"
#include "exec/compile.h"
#include "exec/measure.h"
#include "exec/probe.h"
#include "proto/all.h"
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
    char *no_sandbox; // why there is none here; NULL: it works
};

static inline struct bytes fixture_read(const char *name)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/tests/data/exec/%s", root != NULL ? root : ".", name);
    struct bytes bytes;
    struct err err = ERR_INIT;

    if (file_read(&bytes, path, 1 << 20, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
    return bytes;
}

// Compiles a source against the fixture's problem; change what matters in the plan before.
static inline struct compile_plan fixture_compile_plan(const struct fixture *fixture,
                                                       const char *file, bool reference)
{
    struct strbuf header = STRBUF_INIT, glue = STRBUF_INIT;
    struct compile_plan plan = {
        .max_seconds = 60, .max_memory = (uint64_t)2 << 30, .max_output = (uint64_t)32 << 20};

    problem_header(fixture->problem, reference, &header);
    problem_glue(fixture->problem, reference, &glue);
    plan.header = strbuf_detach(&header);
    plan.glue = strbuf_detach(&glue);
    plan.source = fixture_read(file);
    return plan;
}

static inline struct compile_report fixture_compile(const struct fixture *fixture,
                                                    struct compile_plan *plan)
{
    struct nursery nursery = {.socket = -1};
    struct compile_report report = {.compiled = NULL};
    struct err err = ERR_INIT;

    plan->sandbox_off |= fixture->no_sandbox != NULL;
    if (nursery_create(&nursery, child_main, &fixture->context, &err) != 0 ||
        compile_run(plan, &nursery, &report, &err) != 0) {
        fail_msg("%s", err.text);
    }
    nursery_release(&nursery);
    message_clear(&compile_plan_message, plan);
    return report;
}

static inline struct bytes fixture_object(const struct fixture *fixture, const char *file,
                                          bool reference)
{
    struct compile_plan plan = fixture_compile_plan(fixture, file, reference);
    struct compile_report report = fixture_compile(fixture, &plan);
    struct bytes object;

    if (report.compiled->verdict != VERDICT_NONE) {
        fail_msg("%s: %s", file, report.compiled->reason);
    }
    object = report.object;
    report.object = (struct bytes){.data = NULL};
    message_clear(&compile_report_message, &report);
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

static inline int fixture_try_measure(const struct fixture *fixture, struct measure_plan *plan,
                                      struct measure_report *ret, struct err *err)
{
    struct nursery nursery = {.socket = -1};
    int status;

    plan->sandbox_off |= fixture->no_sandbox != NULL;
    status = nursery_create(&nursery, child_main, &fixture->context, err);
    if (status == 0) {
        status = measure_run(plan, &nursery, ret, err);
    }
    nursery_release(&nursery);
    return status;
}

static inline struct measure_report fixture_measure(const struct fixture *fixture,
                                                    struct measure_plan *plan)
{
    struct measure_report report;
    struct err err = ERR_INIT;

    if (fixture_try_measure(fixture, plan, &report, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return report;
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    struct probe_report probe;
    struct err err = ERR_INIT;

    *state = fixture;
    if (child_context_init(&fixture->context, CHILD_NEEDS_JAIL | CHILD_NEEDS_RUNNER, &err) != 0 ||
        probe_run(&fixture->context, &probe, &err) != 0) {
        fail_msg("%s", err.text);
    }
    fixture->no_sandbox = probe.sandbox ? NULL : xstrdup(probe.reason);
    message_clear(&probe_report_message, &probe);
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
    if (fixture->no_sandbox != NULL) {
        print_message("skipped because there is no sandbox here: %s\n", fixture->no_sandbox);
        skip();
    }
}

#endif
