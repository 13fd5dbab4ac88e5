// The processor clock does not count what other programs do on this core, so a disturbed launch is
// nearly as good as any other. A candidate could hide time from this clock only by sleeping while
// somebody works for it, and the sandbox allows neither. A block in which the baseline slept and
// the candidate did not is void nevertheless; the other way round it counts by the wall clock
// (executor/paired_timing.c).
#include "executor/cpu/measure.h"
#include "common/clock.h"
#include "executor/cpu/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Bytes in the runners' tmpfs beyond the objects, of which there are four with the control's.
#define SCRATCH_EXTRA ((uint64_t)1 << 20)
#define SLACK_NS 5000.0

// ---- start ----

static uint64_t hidden_seed(const struct measure_plan *plan)
{
    return stats_philox(plan->seed, 0x68696464656eULL, 0);
}

static int open_harness(void *machine, struct measurement *measurement, struct err *err)
{
    struct harness *harness = machine;

    (void)err;
    harness->measurement = measurement;
    harness->plan = measurement->plan;
    harness->problem = measurement->problem;
    measurement->seconds.inputs = measurement->seconds.verify = measurement->seconds.time = 0;
    return 0;
}

static int start(void *machine, const struct shape_case *hidden, size_t hidden_count,
                 struct err *err)
{
    struct harness *harness = machine;
    const struct problem *problem = harness->problem;
    const struct measure_plan *plan = harness->plan;
    struct sandbox sandbox = {.kind = SANDBOX_RUNNER, .off = plan->sandbox_off};

    sandbox.scratch =
        plan->reference.len + 2 * plan->baseline.len + plan->candidate.len + SCRATCH_EXTRA;
    int rc = runner_process_prepare_harness(plan->core, harness->zygote, err);
    if (rc != 0) {
        return rc;
    }
    rc = zygote_enter(harness->zygote, &sandbox, err);
    if (rc != 0) {
        return rc;
    }
    const struct shape_case *shape[2 * PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES];
    size_t count = 0;
    for (size_t i = 0; i < problem->check_count; i++) {
        shape[count++] = &problem->check[i];
    }
    for (size_t i = 0; i < hidden_count; i++) {
        shape[count++] = &hidden[i];
    }
    for (size_t i = 0; i < problem->bench_count; i++) {
        shape[count++] = &problem->bench[i];
    }
    return harness_start(harness, shape, count, err);
}

static void close_harness(void *machine)
{
    harness_release(machine);
}

// ---- cases ----

static int data_create(void *machine, const struct measure_case *of, void **ret, struct err *err)
{
    struct case_data *data = xmalloc(sizeof(*data));
    int rc = harness_case_init(machine, data, of, err);

    if (rc != 0) {
        harness_case_release(machine, data);
        free(data);
        return rc;
    }
    *ret = data;
    return 0;
}

static void data_free(void *machine, void *data)
{
    harness_case_release(machine, data);
    free(data);
}

// Has the reference judge the candidate on a content, and the baseline too when it will be timed.
static int verify_content(struct harness *harness, struct case_data *data, uint64_t number,
                          bool timed, struct err *err)
{
    int rc = harness_launch(harness, ARM_CANDIDATE, data, number, NULL, err);

    if (rc != 0 || !timed) {
        return rc != 0 ? rc : harness_judge(harness, ARM_CANDIDATE, data, number, err);
    }
    rc = harness_launch(harness, ARM_BASELINE, data, number, NULL, err);
    return rc != 0 ? rc : harness_compare(harness, ARM_CANDIDATE, data, number, true, err);
}

// The candidate has a fresh process for each case.
static int verify(void *machine, void *data, bool timed, struct err *err)
{
    struct harness *harness = machine;
    uint64_t begin = clock_now_ns(&clock_system);
    double made = harness->measurement->seconds.inputs;
    unsigned arms = 1u << ARM_CANDIDATE | (timed ? 1u << ARM_BASELINE : 0);
    int rc = harness_renew(harness, data, arms, err);

    for (uint64_t number = 0; number < MEASURE_CONTENTS && rc == 0; number++) {
        rc = verify_content(harness, data, number, timed, err);
    }
    if (rc != 0) {
        return rc;
    }
    rc = harness_check_all(harness, data, err);
    harness->measurement->seconds.verify +=
        seconds_since(begin) - (harness->measurement->seconds.inputs - made);
    return rc;
}

static int prepare_control(void *machine, void *data, struct err *err)
{
    (void)machine;
    (void)data;
    (void)err;
    return 0; // the runner has been waiting since the start
}

// ---- timing ----

static int superblock(void *machine, void *data, enum arm_index second, bool last, struct err *err)
{
    struct harness *harness = machine;

    harness_case_timed(harness, data);
    int rc = harness_check_all(harness, data, err);
    return rc != 0 || last ? rc
                           : harness_renew(harness, data, 1u << ARM_BASELINE | 1u << second, err);
}

static int launch(void *machine, void *data, enum arm_index arm, uint64_t content,
                  struct launch_time *ret, struct err *err)
{
    return harness_launch(machine, arm, data, content, ret, err);
}

static int end_pair(void *machine, void *data, enum arm_index second, uint64_t content, bool judge,
                    struct err *err)
{
    return harness_compare(machine, second, data, content, judge, err);
}

// An undisturbed launch's wall time exceeds its processor time by less than the slack used here.
static enum block_state block_state(void *machine, const struct timing_block *block)
{
    const struct harness *harness = machine;

    return timing_block_state(block, 3 * harness->wake_ns + SLACK_NS);
}

static double systematic(void *machine, double launch_ns)
{
    const struct harness *harness = machine;

    return timing_systematic(harness->measurement->overhead_ns, launch_ns);
}

// ---- floor and outcome ----

// The peak rate is that of f32. A vector holds more elements of a narrower type.
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

static struct measure_peaks peaks(void *machine, const void *data)
{
    const struct harness *harness = machine;

    (void)data;
    return (struct measure_peaks){.flops =
                                      harness->plan->peak_flops * flops_factor(harness->problem),
                                  .bytes = harness->plan->peak_bytes};
}

static void outcome(void *machine, struct measure_outcome *ret)
{
    struct harness *harness = machine;
    struct result *result = ret->result;

    result->trust = xstrdup("c, unsealed");
    result->sandbox = xstrdup(harness->plan->sandbox_off ? "off" : "on");
    result->clock = xstrdup(MEASURE_CLOCK);
    result->output_tail = harness->runner[ARM_CANDIDATE].control
                              ? runner_process_output(&harness->runner[ARM_CANDIDATE])
                              : NULL;
}

const struct measure_ops measure_cpu = {
    .noun = "processor",
    .disturbance = "something else runs on this core",
    .rng_stream = 0x6a75646765ULL,
    .hidden_seed = hidden_seed,
    .open = open_harness,
    .start = start,
    .close = close_harness,
    .data_create = data_create,
    .data_free = data_free,
    .verify = verify,
    .prepare_control = prepare_control,
    .superblock = superblock,
    .launch = launch,
    .end_pair = end_pair,
    .block_state = block_state,
    .systematic = systematic,
    .peaks = peaks,
    .outcome = outcome,
};
