// The processor clock does not count what other programs do on this core, so a disturbed launch is
// nearly as good as any other. A block that was disturbed in one arm more than in the other is void
// nevertheless. A candidate could hide time from this clock only by sleeping while another process
// works for it, and the sandbox allows neither.
#include "executor/cpu/measure.h"
#include "common/clock.h"
#include "executor/comparison.h"
#include "executor/cpu/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Bytes in the runners' tmpfs beyond the objects, of which there are four with the control's.
#define SCRATCH_EXTRA ((uint64_t)1 << 20)
#define FRESH_MAX 9        // new contents of a case, at most
#define FRESH_SECONDS 0.02 // for new contents over all cases, unless the candidate is suspicious
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
    rc = harness_start(harness, shape, count, err);
    return rc == 0 ? harness_ready(harness, err) : rc;
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

static int launch_contents(struct harness *harness, enum arm_index arm, struct case_data *data,
                           struct err *err)
{
    int rc = 0;

    for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0; slot++) {
        rc = harness_launch(harness, arm, data, slot, NULL, err);
    }
    return rc;
}

// Makes the contents, which are launched one after another at the same addresses.
static int verify(void *machine, void *data, bool timed, struct err *err)
{
    struct harness *harness = machine;
    int rc = 0;

    for (uint64_t number = 0; number < MEASURE_CONTENTS && rc == 0; number++) {
        rc = harness_content_make(harness, data, number, number, err);
    }
    uint64_t begin = clock_now_ns(&clock_system);
    if (rc == 0) {
        rc = launch_contents(harness, ARM_CANDIDATE, data, err);
    }
    harness->measurement->seconds.verify += seconds_since(begin);
    return rc == 0 && timed ? launch_contents(harness, ARM_BASELINE, data, err) : rc;
}

static int prepare_control(void *machine, void *data, struct err *err)
{
    return launch_contents(machine, ARM_CONTROL, data, err);
}

// ---- timing ----

static int launch(void *machine, void *data, enum arm_index arm, size_t content,
                  struct launch_time *ret, struct err *err)
{
    return harness_launch(machine, arm, data, content, ret, err);
}

// Every launch is complete when it has been launched.
static void end_block(void *machine, enum arm_index second)
{
    (void)machine;
    (void)second;
}

// An undisturbed launch's wall time exceeds its processor time by less than the slack used here.
static bool is_void(void *machine, const struct timing_block *block)
{
    const struct harness *harness = machine;

    return timing_block_void(block, 3 * harness->wake_ns + SLACK_NS);
}

static double systematic(void *machine, double launch_ns)
{
    const struct harness *harness = machine;

    return timing_systematic(harness->measurement->overhead_ns, launch_ns);
}

// ---- never-seen contents ----

struct fresh {
    double never_seen_ns[FRESH_MAX];  // the candidate's launch on each new content
    double repeated_ns[FRESH_MAX];    // its launch on a repeated content just before
    double baseline_ratio[FRESH_MAX]; // the baseline's time on new / repeated contents: the effect
                                      // of the contents themselves
    size_t count;
};

// Takes the quickest launch on new contents. Other programs on this core make launches slower,
// never faster, and a candidate that remembers answers is slow on every new content.
static struct measure_fresh harness_fresh(const struct fresh *fresh)
{
    double repeated[FRESH_MAX], baseline[FRESH_MAX];

    memcpy(repeated, fresh->repeated_ns, sizeof(repeated));
    memcpy(baseline, fresh->baseline_ratio, sizeof(baseline));
    struct measure_fresh ret = {.least_ns = INFINITY};
    for (size_t i = 0; i < fresh->count; i++) {
        ret.least_ns = fmin(ret.least_ns, fresh->never_seen_ns[i]);
    }
    ret.usual_ns =
        stats_median(repeated, fresh->count) * fmax(stats_median(baseline, fresh->count), 1.0);
    return ret;
}

// Launches the arm on a repeated content and then on a new one of the same case, at the same
// addresses. ret_ns is the processor time of the two.
static int launch_pair(struct harness *harness, struct case_data *usual, struct case_data *fresh,
                       enum arm_index arm, double ret_ns[2], struct err *err)
{
    struct launch_time repeated, never_seen;
    int rc = harness_launch(harness, arm, usual, 0, NULL, err);

    if (rc != 0) {
        goto out;
    }
    rc = harness_launch(harness, arm, usual, 0, &repeated, err);
    if (rc != 0) {
        goto out;
    }
    rc = harness_launch(harness, arm, fresh, 0, &never_seen, err);
out:
    if (rc == 0) {
        ret_ns[0] = repeated.cpu;
        ret_ns[1] = never_seen.cpu;
    }
    return rc;
}

static int fresh_round(struct harness *harness, const struct measure_case *of, struct fresh *fresh,
                       struct err *err)
{
    struct case_data data;
    double candidate[2], baseline[2];
    int rc = harness_case_init(harness, &data, of, err);

    if (rc != 0) {
        goto out;
    }
    rc = harness_content_make(harness, &data, 0, MEASURE_CONTENTS + fresh->count, err);
    if (rc != 0) {
        goto out;
    }
    rc = launch_pair(harness, of->data, &data, ARM_CANDIDATE, candidate, err);
    if (rc != 0) {
        goto out;
    }
    rc = launch_pair(harness, of->data, &data, ARM_BASELINE, baseline, err);
    if (rc != 0) {
        goto out;
    }
    fresh->repeated_ns[fresh->count] = candidate[0];
    fresh->never_seen_ns[fresh->count] = candidate[1];
    fresh->baseline_ratio[fresh->count++] = baseline[1] / baseline[0];
out:
    harness_case_release(harness, &data);
    return rc;
}

// Tries new contents while there is time, and on a candidate that looks as if it remembered answers
// up to FRESH_MAX of them. Each new content costs a run of the reference.
static int probe_fresh(void *machine, struct paired_timing *paired_timing, struct timed_case *timed,
                       struct measure_fresh *ret, struct err *err)
{
    uint64_t begin = clock_now_ns(&clock_system);

    (void)paired_timing;
    struct fresh fresh = {.count = 0};
    while (fresh.count < FRESH_MAX && (fresh.count == 0 || comparison_remembers(ret) ||
                                       seconds_since(begin) < FRESH_SECONDS * timed->weight)) {
        int rc = fresh_round(machine, timed->of, &fresh, err);

        if (rc != 0) {
            return rc;
        }
        *ret = harness_fresh(&fresh);
    }
    return 0;
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
    .launch = launch,
    .end_block = end_block,
    .is_void = is_void,
    .systematic = systematic,
    .probe_fresh = probe_fresh,
    .peaks = peaks,
    .outcome = outcome,
};
