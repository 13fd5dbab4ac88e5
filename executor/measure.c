#include "executor/measure.h"
#include "common/clock.h"
#include "executor/cpu/machine.h"
#include "executor/cpu/paired_run.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Candidates' files in the runners' tmpfs: three objects and the control's.
#define SCRATCH_EXTRA ((uint64_t)1 << 20)
#define FLOOR_SHARE 0.97
#define CONTROL_LOOKS 3
#define CONTROL_SHARE 0.25

struct measurement {
    struct harness harness;
    struct shape_case hidden[PROBLEM_HIDDEN_CASES];
    size_t hidden_count;
    struct trial bench[PROBLEM_CASE_MAX];
    size_t bench_count;
    struct paired_run paired_run;
    struct paired_run control;
    bool raced, controlled;
};

static double since(uint64_t start_ns)
{
    return clock_seconds(clock_now_ns(&clock_system) - start_ns);
}

// ---- phases ----

static int start(struct measurement *m, struct err *err)
{
    struct problem *problem = m->harness.problem;
    const struct measure_plan *plan = m->harness.plan;
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .off = plan->sandbox_off};
    uint64_t begin = clock_now_ns(&clock_system);

    sandbox.scratch =
        plan->reference.len + 2 * plan->baseline.len + plan->candidate.len + SCRATCH_EXTRA;
    int rc = arm_prepare_harness(plan->core, m->harness.zygote, err);
    if (rc == 0) {
        rc = zygote_enter(m->harness.zygote, &sandbox, err);
    }
    m->hidden_count = problem->has_hidden
                          ? problem_hidden_cases(
                                problem, stats_philox(plan->seed, 0x68696464656eULL, 0), m->hidden)
                          : 0;
    const struct shape_case *shape[2 * PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES];
    size_t count = 0;
    for (size_t i = 0; i < problem->check_count; i++) {
        shape[count++] = &problem->check[i];
    }
    for (size_t i = 0; i < m->hidden_count; i++) {
        shape[count++] = &m->hidden[i];
    }
    for (size_t i = 0; i < problem->bench_count; i++) {
        shape[count++] = &problem->bench[i];
    }
    if (rc == 0) {
        rc = harness_start(&m->harness, shape, count, err);
    }
    if (rc == 0) {
        rc = harness_ready(&m->harness, err);
    }
    m->harness.seconds.start = since(begin);
    return rc;
}

// Both contents, one after the other at the same addresses; then the first again: what answers from
// memory is wrong once.
static int verify_trial(struct harness *harness, struct trial *trial, struct err *err)
{
    int rc = 0;

    for (uint64_t number = 0; number < TRIAL_CONTENTS && rc == 0; number++) {
        rc = harness_content_make(harness, trial, number, number, err);
    }
    uint64_t begin = clock_now_ns(&clock_system);
    for (size_t slot = 0; slot < TRIAL_CONTENTS && rc == 0; slot++) {
        rc = harness_launch(harness, ARM_CANDIDATE, trial, slot, NULL, err);
    }
    harness->seconds.verify += since(begin);
    return rc;
}

static int verify_shapes(struct measurement *m, const struct shape_case *shape, size_t count,
                         uint64_t first_index, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        struct trial trial;
        rc = harness_trial_init(&m->harness, &trial, &shape[i], first_index + i, err);
        if (rc == 0) {
            rc = verify_trial(&m->harness, &trial, err);
        }
        m->harness.placed = NULL;
        harness_trial_release(&trial);
    }
    return rc;
}

// Keeps the benchmark cases' contents for the timing.
static int verify_bench(struct measurement *m, struct err *err)
{
    struct problem *problem = m->harness.problem;
    int rc = 0;

    for (size_t i = 0; i < problem->bench_count && rc == 0; i++) {
        m->bench_count = i + 1;
        rc = harness_trial_init(&m->harness, &m->bench[i], &problem->bench[i], 2000 + i, err);
        if (rc == 0) {
            rc = verify_trial(&m->harness, &m->bench[i], err);
        }
        for (size_t slot = 0; slot < TRIAL_CONTENTS && rc == 0; slot++) {
            rc = harness_launch(&m->harness, ARM_BASELINE, &m->bench[i], slot, NULL, err);
        }
    }
    return rc;
}

static void paired_run_init(struct measurement *m, struct paired_run *paired_run,
                            enum arm_index first, enum arm_index second)
{
    const struct measure_plan *plan = m->harness.plan;

    struct paired_timing *paired_timing = &paired_run->paired_timing;

    *paired_run = (struct paired_run){.harness = &m->harness, .first = first, .second = second};
    paired_timing->max_seconds = plan->max_seconds;
    paired_timing->looks = timing_looks(plan->max_launches);
    paired_timing->lane_count = m->bench_count;
    paired_timing->rule.precision_log2 =
        plan->precision_log2 > 0 ? plan->precision_log2 : TIMING_PRECISION_LOG2;
    paired_timing->rule.anchor_log2 = plan->anchor_log2;
    for (size_t i = 0; i < m->bench_count; i++) {
        paired_timing->lane[i].trial = &m->bench[i];
        paired_timing->lane[i].weight = m->bench[i].shape->weight;
    }
}

static int run_paired_run(struct measurement *m, struct err *err)
{
    uint64_t begin = clock_now_ns(&clock_system);
    double made = m->harness.seconds.inputs;

    paired_run_init(m, &m->paired_run, ARM_BASELINE, ARM_CANDIDATE);
    m->raced = true;
    int rc = paired_run_run(&m->paired_run, err);
    if (rc == 0) {
        rc = paired_run_probe_fresh(&m->paired_run, err);
    }
    m->harness.seconds.time = since(begin) - (m->harness.seconds.inputs - made);
    return rc;
}

// The baseline against a copy of itself, on the first benchmark case.
static int run_control(struct measurement *m, struct err *err)
{
    struct harness *harness = &m->harness;
    int rc = 0;

    for (size_t slot = 0; slot < TRIAL_CONTENTS && rc == 0; slot++) {
        rc = harness_launch(harness, ARM_CONTROL, &m->bench[0], slot, NULL, err);
    }
    paired_run_init(m, &m->control, ARM_BASELINE, ARM_CONTROL);
    m->control.paired_timing.lane_count = 1;
    m->control.paired_timing.lane[0].weight = 1;
    m->control.paired_timing.looks = CONTROL_LOOKS;
    m->control.paired_timing.max_seconds *= CONTROL_SHARE;
    if (rc == 0) {
        rc = paired_run_run(&m->control, err);
    }
    m->controlled = rc == 0 && m->control.paired_timing.lane[0].series.count >= 2;
    return rc;
}

// ---- physical floor ----

// The peak is that of f32; narrower integers fit more into a vector.
static double flops_factor(const struct problem *problem)
{
    double factor = 1;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        enum dtype dtype = problem->tensor[t].dtype;
        factor = fmax(factor, dtype == DTYPE_U8                          ? 8
                              : dtype == DTYPE_I32 || dtype == DTYPE_I64 ? 2
                                                                         : 1);
    }
    return factor;
}

// NaN when the peaks are not known.
static double floor_ns(const struct measurement *m, const struct trial *trial)
{
    const struct measure_plan *plan = m->harness.plan;
    struct err ignored = ERR_INIT;
    double flops, bytes, seconds = 0;

    if (problem_work(m->harness.problem, trial->shape, &flops, &bytes, &ignored) != 0) {
        return NAN;
    }
    if (plan->peak_flops > 0) {
        seconds = fmax(seconds, flops / (plan->peak_flops * flops_factor(m->harness.problem)));
    }
    if (plan->peak_bytes > 0) {
        seconds = fmax(seconds, bytes / plan->peak_bytes);
    }
    return seconds > 0 ? seconds * 1e9 : NAN;
}

static int check_floor(struct measurement *m)
{
    for (size_t i = 0; i < m->paired_run.paired_timing.lane_count; i++) {
        const struct lane *lane = &m->paired_run.paired_timing.lane[i];
        double floor = floor_ns(m, lane->trial), median = paired_timing_second_median(lane);

        if (!isnan(floor) && median < FLOOR_SHARE * floor) {
            return harness_stop(
                &m->harness, VERDICT_QUARANTINED,
                "the candidate took %.0f ns for %s, less than the %.0f ns that this "
                "processor needs at least",
                median, ((const struct trial *)lane->trial)->name, floor);
        }
    }
    return 0;
}

static int run_all(struct measurement *m, struct err *err)
{
    struct problem *problem = m->harness.problem;
    int rc = start(m, err);

    if (rc != 0) {
        return rc;
    }
    rc = verify_shapes(m, problem->check, problem->check_count, 0, err);
    if (rc != 0) {
        return rc;
    }
    rc = verify_shapes(m, m->hidden, m->hidden_count, 1000, err);
    if (rc != 0) {
        return rc;
    }
    rc = verify_bench(m, err);
    if (rc != 0) {
        return rc;
    }
    rc = run_paired_run(m, err);
    if (rc != 0) {
        return rc;
    }
    rc = check_floor(m);
    if (rc != 0) {
        return rc;
    }
    if (m->harness.plan->control) {
        rc = run_control(m, err);
    }
    return rc;
}

// ---- report ----

static void outcome_cases(const struct measurement *m, struct result *result)
{
    paired_timing_describe(&m->paired_run.paired_timing, result);
    for (size_t i = 0; i < result->cases_count; i++) {
        const struct trial *trial = m->paired_run.paired_timing.lane[i].trial;

        result->cases[i].params = xstrdup(trial->name);
        result->cases[i].floor_ns = floor_ns(m, trial);
    }
}

static void outcome(struct measurement *m, uint64_t begin, struct measure_outcome *ret)
{
    struct result *result = xcalloc(1, sizeof(*result));
    struct harness *harness = &m->harness;
    bool timed = m->raced && m->paired_run.paired_timing.combined.blocks > 0;

    result->verdict = harness->verdict != VERDICT_NONE
                          ? harness->verdict
                          : timing_verdict(&m->paired_run.paired_timing.rule,
                                           &m->paired_run.paired_timing.combined);
    if (harness->reason) {
        result->reason = harness->reason;
        harness->reason = NULL;
    } else if (m->paired_run.paired_timing.capped && result->verdict == VERDICT_INCONCLUSIVE) {
        result->reason =
            xasprintf("no decision within %g seconds of timing%s", harness->plan->max_seconds,
                      paired_timing_disturbed(&m->paired_run.paired_timing)
                          ? "; something else runs on this core"
                          : "");
    }
    if (timed) {
        outcome_cases(m, result);
    }
    if (m->controlled) {
        result->control = paired_timing_estimate(&m->control.paired_timing.combined);
    }
    result->max_error = harness->max_error;
    result->error_bound = harness->error_bound;
    result->checks = harness->checks;
    result->seconds = xmalloc(sizeof(*result->seconds));
    harness->seconds.held = since(begin);
    *result->seconds = harness->seconds;
    result->seconds->queue = result->seconds->compile = NAN;
    result->trust = xstrdup("c, unsealed");
    result->sandbox = xstrdup(harness->plan->sandbox_off ? "off" : "on");
    result->seed = harness->plan->seed;
    result->problem = harness->problem->digest;
    result->measured_at = (double)clock_wall_ns(&clock_system) * 1e-9;
    result->clock = xstrdup(MEASURE_CLOCK);
    result->overhead_ns = harness->overhead_ns > 0 ? harness->overhead_ns : NAN;
    result->output_tail =
        harness->arm[ARM_CANDIDATE].control ? arm_output(&harness->arm[ARM_CANDIDATE]) : NULL;
    message_init(&measure_outcome_message, ret);
    ret->result = result;
}

int measure_run(const struct measure_plan *plan, struct zygote *zygote, struct measure_outcome *ret,
                struct err *err)
{
    struct measurement *m = xcalloc(1, sizeof(*m));
    uint64_t begin = clock_now_ns(&clock_system);

    m->harness.plan = plan;
    m->harness.zygote = zygote;
    int rc = problem_parse(&m->harness.problem, (const char *)plan->problem.data, plan->problem.len,
                           "problem.json", err);
    if (rc == 0) {
        rc = run_all(m, err);
    }
    if (rc >= 0) {
        outcome(m, begin, ret);
        rc = 0;
    }
    for (size_t i = 0; i < m->bench_count; i++) {
        harness_trial_release(&m->bench[i]);
    }
    harness_release(&m->harness);
    free(m);
    return rc;
}
