#include "executor/gpu/measure.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/gpu/bench.h"
#include "executor/gpu/race.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEALTH_NS (5 * NS_PER_S)
#define FLOOR_SHARE 0.97
#define CONTROL_LOOKS 3
#define CONTROL_SHARE 0.25
#define HIDDEN_INDEX 1000
#define BENCH_INDEX 2000
#define BOTH (1u << BENCH_BASELINE | 1u << BENCH_CANDIDATE)

struct measurement {
    struct bench bench;
    struct shape_case hidden[PROBLEM_HIDDEN_CASES];
    size_t hidden_count;
    struct bench_trial trial[PROBLEM_CASE_MAX]; // benchmark cases
    size_t trial_count;
    struct paired_run_cuda paired_run, control;
    bool raced, controlled;
};

static double since(uint64_t start_ns)
{
    return clock_seconds(clock_now_ns(&clock_system) - start_ns);
}

// ---- phases ----

static int load_arm(struct measurement *m, enum bench_arm arm, const struct bytes *object,
                    struct err *err)
{
    return program_create(&m->bench.arm[arm], m->bench.gpu, m->bench.problem, MANIFEST_CANDIDATE,
                          object, err);
}

static int start(struct measurement *m, struct err *err)
{
    const struct measure_plan *plan = m->bench.plan;
    uint64_t begin = clock_now_ns(&clock_system);
    // Whatever ran here before: nothing is measured on a GPU that does not compute.
    int rc = gpu_health(m->bench.gpu, HEALTH_NS, err);

    if (rc != 0) {
        goto out;
    }
    rc = oracle_setup(m->bench.oracle, &plan->problem, &plan->reference, err);
    if (rc != 0) {
        goto out;
    }
    rc = load_arm(m, BENCH_BASELINE, &plan->baseline, err);
    if (rc != 0) {
        goto out;
    }
    rc = load_arm(m, BENCH_CANDIDATE, &plan->candidate, err);
out:
    if (m->bench.problem->has_hidden) {
        m->hidden_count = problem_hidden_cases(m->bench.problem, plan->hidden_seed, m->hidden);
    }
    m->bench.seconds.start = since(begin);
    return rc;
}

// Both contents at the same addresses, then the first again: what answers from memory is wrong once.
static int verify_trial(struct measurement *m, struct bench_trial *trial, struct err *err)
{
    int rc = 0;

    for (size_t slot = 0; slot < BENCH_SLOTS && rc == 0; slot++) {
        rc = bench_launch(&m->bench, trial, BENCH_CANDIDATE, slot, NULL, err);
    }
    return rc == 0 ? bench_launch(&m->bench, trial, BENCH_CANDIDATE, 0, NULL, err) : rc;
}

static int verify_shapes(struct measurement *m, const struct shape_case *shape, size_t count,
                         uint64_t first_index, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        struct bench_trial trial;

        rc = bench_trial_init(&m->bench, &trial, &shape[i], first_index + i, err);
        if (rc == 0) {
            rc = bench_announce(&m->bench, &trial, err);
        }
        if (rc == 0) {
            rc = bench_place(&m->bench, &trial, 1u << BENCH_CANDIDATE, err);
        }
        if (rc == 0) {
            rc = verify_trial(m, &trial, err);
        }
        m->bench.placed = NULL;
        bench_trial_release(&trial);
    }
    return rc;
}

// The baseline first: how long a launch may take follows from it.
static int verify_bench(struct measurement *m, struct err *err)
{
    struct bench *bench = &m->bench;
    struct problem *problem = bench->problem;
    int rc = 0;

    for (size_t i = 0; i < problem->bench_count && rc == 0; i++) {
        struct bench_trial *trial = &m->trial[i];

        m->trial_count = i + 1;
        rc = bench_trial_init(bench, trial, &problem->bench[i], BENCH_INDEX + i, err);
        if (rc == 0) {
            rc = bench_announce(bench, trial, err);
        }
        if (rc == 0) {
            rc = bench_place(bench, trial, BOTH, err);
        }
        for (size_t slot = 0; slot < BENCH_SLOTS && rc == 0; slot++) {
            rc = bench_launch(bench, trial, BENCH_BASELINE, slot, NULL, err);
        }
        struct bench_time time;
        if (rc == 0) {
            bench->baseline_ns = 0;
            rc = bench_launch(bench, trial, BENCH_BASELINE, 0, &time, err);
        }
        if (rc == 0) {
            rc = verify_trial(m, trial, err);
        }
    }
    return rc;
}

static void paired_run_init(struct measurement *m, struct paired_run_cuda *paired_run,
                            enum bench_arm second)
{
    const struct measure_plan *plan = m->bench.plan;
    struct paired_timing *paired_timing = &paired_run->paired_timing;

    *paired_run = (struct paired_run_cuda){.bench = &m->bench,
                                           .first = BENCH_BASELINE,
                                           .second = second,
                                           .arms = 1u << BENCH_BASELINE | 1u << second};
    paired_timing->max_seconds = plan->max_seconds;
    paired_timing->looks = timing_looks(plan->max_launches);
    paired_timing->lane_count = m->trial_count;
    paired_timing->rule.precision_log2 =
        plan->precision_log2 > 0 ? plan->precision_log2 : TIMING_PRECISION_LOG2;
    paired_timing->rule.anchor_log2 = plan->anchor_log2;
    for (size_t i = 0; i < m->trial_count; i++) {
        paired_timing->lane[i].trial = &m->trial[i];
        paired_timing->lane[i].weight = m->trial[i].shape->weight;
    }
}

static int run_paired_run(struct measurement *m, struct err *err)
{
    uint64_t begin = clock_now_ns(&clock_system);

    paired_run_init(m, &m->paired_run, BENCH_CANDIDATE);
    m->raced = true;
    int rc = paired_run_cuda_run(&m->paired_run, err);
    if (rc == 0) {
        rc = paired_run_cuda_fresh(&m->paired_run, err);
    }
    m->bench.seconds.time = since(begin);
    return rc;
}

// The baseline against another load of itself, on the first benchmark case.
static int run_control(struct measurement *m, struct err *err)
{
    struct paired_timing *paired_timing = &m->control.paired_timing;
    int rc = load_arm(m, BENCH_CONTROL, &m->bench.plan->baseline, err);

    paired_run_init(m, &m->control, BENCH_CONTROL);
    paired_timing->lane_count = 1;
    paired_timing->lane[0].weight = 1;
    paired_timing->looks = CONTROL_LOOKS;
    paired_timing->max_seconds *= CONTROL_SHARE;
    m->bench.placed = NULL;
    if (rc == 0) {
        rc = paired_run_cuda_run(&m->control, err);
    }
    m->controlled = rc == 0 && paired_timing->lane[0].series.count >= 2;
    return rc;
}

// ---- physical floor ----

static double fact_of(const struct measure_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->facts_count; i++) {
        if (strcmp(plan->facts[i].name, name) == 0) {
            return plan->facts[i].value;
        }
    }
    return NAN;
}

// Bytes that need not have reached memory when the kernel has ended, or came from the cache.
static double cached_bytes(const struct measurement *m, const struct bench_trial *trial)
{
    const struct problem *problem = m->bench.problem;
    double l2 = (double)m->bench.gpu->l2_bytes, written = 0;

    if (problem->cache == CACHE_WARM) {
        return l2;
    }
    for (size_t t = 0; t < problem->tensor_count; t++) {
        written += problem->tensor[t].direction == DIRECTION_IN ? 0 : (double)trial->sizes.bytes[t];
    }
    return fmin(l2, written);
}

// NaN when the peaks are not known.
static double floor_ns(const struct measurement *m, const struct bench_trial *trial)
{
    const struct problem *problem = m->bench.problem;
    const struct measure_plan *plan = m->bench.plan;
    double flops, bytes, seconds = 0, peak_flops, peak_bytes = fact_of(plan, "peak_bytes");
    struct err ignored = ERR_INIT;

    if (problem_work(problem, trial->shape, &flops, &bytes, &ignored) != 0) {
        return NAN;
    }
    char name[32];
    (void)snprintf(name, sizeof(name), "peak_flops_%s", work_unit_name(problem->unit));
    peak_flops = fact_of(plan, name);
    if (peak_flops > 0) {
        seconds = fmax(seconds, flops / peak_flops);
    }
    if (peak_bytes > 0) {
        seconds = fmax(seconds, (bytes - cached_bytes(m, trial)) / peak_bytes);
    }
    return seconds > 0 ? seconds * 1e9 : NAN;
}

static int check_floor(struct measurement *m)
{
    for (size_t i = 0; i < m->paired_run.paired_timing.lane_count; i++) {
        const struct lane *lane = &m->paired_run.paired_timing.lane[i];
        const struct bench_trial *trial = lane->trial;
        double floor = floor_ns(m, trial), median = paired_timing_second_median(lane);

        if (!isnan(floor) && median < FLOOR_SHARE * floor) {
            return bench_stop(&m->bench, VERDICT_QUARANTINED,
                              "the candidate took %.0f ns for %s, less than the %.0f ns that this "
                              "GPU needs at least",
                              median, trial->name, floor);
        }
    }
    return 0;
}

static int run_all(struct measurement *m, struct err *err)
{
    struct problem *problem = m->bench.problem;
    int rc = start(m, err);

    if (rc != 0) {
        return rc;
    }
    rc = verify_shapes(m, problem->check, problem->check_count, 0, err);
    if (rc != 0) {
        return rc;
    }
    rc = verify_shapes(m, m->hidden, m->hidden_count, HIDDEN_INDEX, err);
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
    if (m->bench.plan->control) {
        rc = run_control(m, err);
    }
    return rc;
}

// ---- report ----

static void outcome_cases(const struct measurement *m, struct result *result)
{
    paired_timing_describe(&m->paired_run.paired_timing, result);
    for (size_t i = 0; i < result->cases_count; i++) {
        const struct bench_trial *trial = m->paired_run.paired_timing.lane[i].trial;

        result->cases[i].params = xstrdup(trial->name);
        result->cases[i].floor_ns = floor_ns(m, trial);
    }
}

static void outcome(struct measurement *m, uint64_t begin, struct measure_outcome *ret)
{
    struct result *result = xmalloc(sizeof(*result));
    struct bench *bench = &m->bench;
    const struct paired_timing *paired_timing = &m->paired_run.paired_timing;

    message_init(&result_message, result);
    result->verdict = bench->verdict != VERDICT_NONE
                          ? bench->verdict
                          : timing_verdict(&paired_timing->rule, &paired_timing->combined);
    if (bench->reason) {
        result->reason = bench->reason;
        bench->reason = NULL;
    } else if (paired_timing->capped && result->verdict == VERDICT_INCONCLUSIVE) {
        result->reason = xasprintf(
            "no decision within %g seconds of timing%s", bench->plan->max_seconds,
            paired_timing_disturbed(paired_timing) ? "; the GPU's clock keeps changing" : "");
    }
    if (m->raced && paired_timing->combined.blocks > 0) {
        outcome_cases(m, result);
    }
    if (m->controlled) {
        result->control = paired_timing_estimate(&m->control.paired_timing.combined);
    }
    result->max_error = bench->max_error;
    result->error_bound = bench->error_bound;
    result->checks = bench->checks;
    bench->seconds.held = since(begin);
    result->seconds = xmalloc(sizeof(*result->seconds));
    *result->seconds = bench->seconds;
    result->trust = xstrdup("sealed");
    result->sandbox = xstrdup("on");
    result->seed = bench->plan->seed;
    result->problem = bench->problem->digest;
    result->measured_at = (double)clock_wall_ns(&clock_system) * 1e-9;
    result->clock = xstrdup("CUDA events");
    result->overhead_ns = bench->overhead_ns > 0 ? bench->overhead_ns : NAN;
    message_init(&measure_outcome_message, ret);
    ret->result = result;
    ret->retire = bench->gpu->broken || bench->gpu->hung;
}

int measure_cuda(const struct measure_plan *plan, struct gpu *gpu, struct oracle *oracle,
                 struct measure_outcome *ret, struct err *err)
{
    struct measurement *m = xcalloc(1, sizeof(*m));
    uint64_t begin = clock_now_ns(&clock_system);
    struct problem *problem = NULL;
    int rc = problem_parse(&problem, (const char *)plan->problem.data, plan->problem.len,
                           "problem.json", err);

    if (rc == 0) {
        rc = bench_init(&m->bench, gpu, oracle, plan, problem, err);
        if (rc == 0) {
            rc = run_all(m, err);
        }
        if (rc >= 0) {
            outcome(m, begin, ret);
            rc = 0;
        }
        for (size_t i = 0; i < m->trial_count; i++) {
            bench_trial_release(&m->trial[i]);
        }
        bench_release(&m->bench);
    }
    free(m);
    return rc;
}
