// A block is void when the multiprocessor's clock was more than 1 % higher in one arm's launches
// than in the other's: the GPU changed its frequency in between.
#include "executor/gpu/measure.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/fact_list.h"
#include "executor/gpu/bench.h"
#include "executor/paired_timing.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEALTH_NS (5 * NS_PER_S)
#define CLOCKS_DIFFER 0.01
#define FRESH_NUMBER 100 // contents from here on are not used otherwise
#define FRESH_CONTENTS 2
// Two loads of the same code differ by about so much of an empty window, one standard deviation
// (docs/measuring.md).
#define SYSTEMATIC_NS 12.0
// Times of launches come in modes about 160 ns apart, in steps of 32 ns; below SHORT_NS this is
// what most of their spread is.
#define SHORT_NS 100000.0
#define QUANTUM_NS 32.0

// ---- start ----

static uint64_t hidden_seed(const struct measure_plan *plan)
{
    return plan->hidden_seed;
}

static int open_bench(void *machine, struct measurement *measurement, struct err *err)
{
    return bench_open(machine, measurement, err);
}

static int load_arm(struct bench *bench, enum arm_index arm, const struct bytes *object,
                    struct err *err)
{
    return program_create(&bench->arm[arm], bench->gpu, bench->problem, MANIFEST_CANDIDATE, object,
                          err);
}

static int start(void *machine, const struct shape_case *hidden, size_t hidden_count,
                 struct err *err)
{
    struct bench *bench = machine;
    const struct measure_plan *plan = bench->plan;
    // Whatever ran here before: nothing is measured on a GPU that does not compute.
    int rc = gpu_health(bench->gpu, HEALTH_NS, err);

    (void)hidden; // memory grows with the cases
    (void)hidden_count;
    if (rc != 0) {
        return rc;
    }
    rc = oracle_setup(bench->oracle, &plan->problem, &plan->reference, err);
    if (rc != 0) {
        return rc;
    }
    rc = load_arm(bench, ARM_BASELINE, &plan->baseline, err);
    if (rc != 0) {
        return rc;
    }
    return load_arm(bench, ARM_CANDIDATE, &plan->candidate, err);
}

static void close_bench(void *machine)
{
    bench_release(machine);
}

// ---- cases ----

static int trial_create(void *machine, const struct measure_case *of, void **ret, struct err *err)
{
    struct bench_trial *trial = xmalloc(sizeof(*trial));
    int rc = bench_trial_init(machine, trial, of, err);

    if (rc != 0) {
        free(trial);
        return rc;
    }
    *ret = trial;
    return 0;
}

static void trial_free(void *machine, void *trial)
{
    struct bench *bench = machine;

    bench->placed = NULL;
    free(trial);
}

static int launch_contents(struct bench *bench, enum arm_index arm, struct bench_trial *trial,
                           struct err *err)
{
    int rc = 0;

    for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0; slot++) {
        rc = bench_launch(bench, trial, arm, slot, NULL, err);
    }
    return rc;
}

// How long a launch may take follows from the time of the baseline, which therefore comes first.
static int verify_baseline(struct bench *bench, struct bench_trial *trial, struct err *err)
{
    int rc = launch_contents(bench, ARM_BASELINE, trial, err);

    if (rc != 0) {
        return rc;
    }
    bench->baseline_ns = 0;
    struct bench_time time;
    return bench_launch(bench, trial, ARM_BASELINE, 0, &time, err);
}

// Both contents at the same addresses, then the first again: what answers from memory is wrong
// once.
static int verify(void *machine, void *trial, bool timed, struct err *err)
{
    struct bench *bench = machine;
    unsigned arms = timed ? 1u << ARM_BASELINE | 1u << ARM_CANDIDATE : 1u << ARM_CANDIDATE;
    int rc = bench_announce(bench, trial, err);

    if (rc != 0) {
        return rc;
    }
    rc = bench_place(bench, trial, arms, err);
    if (rc != 0) {
        return rc;
    }
    rc = timed ? verify_baseline(bench, trial, err) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = launch_contents(bench, ARM_CANDIDATE, trial, err);
    return rc == 0 ? bench_launch(bench, trial, ARM_CANDIDATE, 0, NULL, err) : rc;
}

// Another load of the baseline. The trial is placed anew, for other arms.
static int prepare_control(void *machine, void *trial, struct err *err)
{
    struct bench *bench = machine;

    (void)trial;
    bench->placed = NULL;
    return load_arm(bench, ARM_CONTROL, &bench->plan->baseline, err);
}

// ---- timing ----

static int begin_block(void *machine, void *trial, enum arm_index second, struct err *err)
{
    struct bench *bench = machine;

    return bench->placed == trial
               ? 0
               : bench_place(bench, trial, 1u << ARM_BASELINE | 1u << second, err);
}

static int launch(void *machine, void *trial, enum arm_index arm, size_t content,
                  struct launch_time *ret, struct err *err)
{
    struct bench_time time;
    int rc = bench_launch(machine, trial, arm, content, &time, err);

    if (rc == 0) {
        *ret = (struct launch_time){.cpu = time.ns, .wall = time.clock_hz};
    }
    return rc;
}

// Here the second reading of a launch is the clock frequency.
static bool is_void(void *machine, const struct timing_block *block)
{
    double first = block->wall[0][0] + block->wall[0][1];
    double second = block->wall[1][0] + block->wall[1][1];

    (void)machine;
    return !isnan(first + second) && fabs(log(first / second)) > CLOCKS_DIFFER;
}

static double systematic(void *machine, double launch_ns)
{
    (void)machine;
    return SYSTEMATIC_NS / launch_ns / log(2);
}

// The candidate's quickest launch on never-seen contents, against what its record says and what the
// baseline, on the same contents, takes longer than its own.
static int probe_fresh(void *machine, struct paired_timing *paired_timing, struct timed_case *timed,
                       struct measure_fresh *ret, struct err *err)
{
    const struct measure_case *of = timed->of;
    double least = INFINITY, usual = paired_timing_second_median(timed), baseline = 0;
    double baseline_usual = paired_timing_median(timed) * paired_timing_median(timed) / usual;
    int rc = begin_block(machine, of->data, ARM_CANDIDATE, err);

    timed->slot = 0;
    for (uint64_t i = 0; i < FRESH_CONTENTS && rc == 0; i++) {
        rc = bench_renew(machine, of->data, 0, FRESH_NUMBER + i, err);
        struct timing_block block;
        if (rc == 0) {
            rc = paired_timing->run_block(paired_timing->owner, timed, &block, err);
        }
        if (rc == 0) {
            least = fmin(least, fmin(block.cpu[1][0], block.cpu[1][1]));
            baseline = fmax(baseline, fmin(block.cpu[0][0], block.cpu[0][1]));
        }
    }
    if (rc != 0) {
        return rc;
    }
    usual *= fmax(baseline / baseline_usual, 1.0); // what the contents themselves change
    *ret = (struct measure_fresh){.least_ns = least, .usual_ns = usual};
    return 0;
}

// ---- floor and report ----

// Bytes that need not have reached memory when the kernel has ended, or came from the cache.
static double cached_bytes(const struct bench *bench, const struct bench_trial *trial)
{
    const struct problem *problem = bench->problem;
    double l2 = (double)bench->gpu->l2_bytes, written = 0;

    if (problem->cache == CACHE_WARM) {
        return l2;
    }
    for (size_t t = 0; t < problem->tensor_count; t++) {
        written += problem->tensor[t].direction == DIRECTION_IN ? 0 : (double)trial->sizes.bytes[t];
    }
    return fmin(l2, written);
}

static struct measure_peaks peaks(void *machine, const void *trial)
{
    const struct bench *bench = machine;
    const struct measure_plan *plan = bench->plan;
    char name[32];

    (void)snprintf(name, sizeof(name), "peak_flops_%s", work_unit_name(bench->problem->unit));
    return (struct measure_peaks){.flops = fact_list_find(plan->facts, plan->facts_count, name),
                                  .bytes =
                                      fact_list_find(plan->facts, plan->facts_count, "peak_bytes"),
                                  .cached_bytes = cached_bytes(bench, trial)};
}

static void outcome(void *machine, struct measure_outcome *ret)
{
    const struct bench *bench = machine;

    ret->result->trust = xstrdup("sealed");
    ret->result->sandbox = xstrdup("on");
    ret->result->clock = xstrdup("CUDA events");
    ret->retire = bench->gpu->broken || bench->gpu->hung;
}

const struct measure_ops measure_gpu = {
    .noun = "GPU",
    .disturbance = "the GPU's clock keeps changing",
    .rng_stream = 0x62656e6368ULL,
    .inputs_are_timing = true,
    .short_ns = SHORT_NS,
    .quantum_ns = QUANTUM_NS,
    .hidden_seed = hidden_seed,
    .open = open_bench,
    .start = start,
    .close = close_bench,
    .data_create = trial_create,
    .data_free = trial_free,
    .verify = verify,
    .prepare_control = prepare_control,
    .begin_block = begin_block,
    .launch = launch,
    .is_void = is_void,
    .systematic = systematic,
    .probe_fresh = probe_fresh,
    .peaks = peaks,
    .outcome = outcome,
};
