// Design note. A thin layer between executor/measure.c, which knows the order of a measurement, and
// the GPU harness, which makes the launches. It decides which arms are placed together, which
// launches verify a case, and when arms had different clocks: when that of the multiprocessor was
// more than 1 % higher in one arm's launches than in the other's. Either the GPU has changed its
// frequency in between, or an arm takes so much power that it always does.
#include "executor/gpu/measure.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/fact_list.h"
#include "executor/gpu/harness_handover.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define HEALTH_NS (5 * NS_PER_S)
#define CLOCKS_DIFFER 0.01
// Standard deviation of the difference between the times of two loads of the same code. It does not
// depend on how long a launch takes (docs/measuring.md).
#define SYSTEMATIC_NS 12.0
// The distribution of launch times is multimodal: its modes lie about 160 ns apart, and the timer
// has steps of 32 ns. Below SHORT_NS this makes up most of the spread.
#define SHORT_NS 100000.0
#define QUANTUM_NS 32.0
#define ALONE_LAUNCHES 15
#define ALONE_CONTENT ((uint64_t)1 << 33) // first content of the baseline alone

// ---- start ----

static uint64_t hidden_seed(const struct measure_plan *plan)
{
    return plan->hidden_seed;
}

static int open_harness(void *machine, struct measurement *measurement, struct err *err)
{
    return gpu_harness_open(machine, measurement, err);
}

static int load_arm(struct gpu_harness *harness, enum arm_index arm, const struct bytes *object,
                    struct err *err)
{
    struct arena *memory = &harness->gpu->recorded[arm == ARM_CANDIDATE];

    return program_create(&harness->arm[arm], harness->gpu, harness->problem, MANIFEST_CANDIDATE,
                          object, memory, err);
}

static int start(void *machine, const struct shape_case *hidden, size_t hidden_count,
                 struct err *err)
{
    struct gpu_harness *harness = machine;
    const struct measure_plan *plan = harness->plan;
    // Nothing is measured on a GPU that an earlier candidate has left in a state where it cannot
    // compute.
    int rc = gpu_health(harness->gpu, HEALTH_NS, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_harness_reserve(harness, hidden, hidden_count, err);
    if (rc != 0) {
        return rc;
    }
    rc = oracle_setup(harness->oracle, &plan->problem, &plan->reference, err);
    if (rc != 0) {
        return rc;
    }
    rc = load_arm(harness, ARM_BASELINE, &plan->baseline, err);
    if (rc != 0) {
        return rc;
    }
    rc = load_arm(harness, ARM_CANDIDATE, &plan->candidate, err);
    if (rc != 0) {
        return rc;
    }
    return harness->arm[ARM_CANDIDATE]->object.unsealed ? gpu_handover_open(harness, err) : 0;
}

static void close_harness(void *machine)
{
    gpu_harness_release(machine);
}

// ---- cases ----

static int data_create(void *machine, const struct measure_case *of, void **ret, struct err *err)
{
    struct gpu_case *data = xmalloc(sizeof(*data));
    int rc = gpu_harness_case_init(machine, data, of, err);

    if (rc != 0) {
        free(data);
        return rc;
    }
    *ret = data;
    return 0;
}

static void data_free(void *machine, void *data)
{
    struct gpu_harness *harness = machine;

    harness->placed = NULL;
    free(data);
}

static int launch_contents(struct gpu_harness *harness, enum arm_index arm, struct gpu_case *data,
                           struct err *err)
{
    int rc = 0;

    for (uint64_t content = 0; content < MEASURE_CONTENTS && rc == 0; content++) {
        rc = gpu_harness_launch(harness, data, arm, content, NULL, err);
    }
    return rc == 0 ? gpu_harness_judge(harness, data, arm, err) : rc;
}

// The baseline is verified first: the limit of the candidate's launches follows from what it took.
static int verify_baseline(struct gpu_harness *harness, struct gpu_case *data, struct err *err)
{
    int rc = launch_contents(harness, ARM_BASELINE, data, err);

    // What the baseline has written elsewhere is found before the candidate has run.
    return rc == 0 ? gpu_harness_inspect(harness, err) : rc;
}

// Launches the candidate on the contents of verification, at the same addresses, and where no timed
// launches follow, which have new contents, on the first again. A candidate that returns a
// remembered result is wrong at least once.
static int verify(void *machine, void *data, bool timed, struct err *err)
{
    struct gpu_harness *harness = machine;
    unsigned arms = timed ? 1u << ARM_BASELINE | 1u << ARM_CANDIDATE : 1u << ARM_CANDIDATE;
    int rc = gpu_harness_place(harness, data, arms, err);

    if (rc != 0) {
        return rc;
    }
    rc = timed ? verify_baseline(harness, data, err) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = launch_contents(harness, ARM_CANDIDATE, data, err);
    if (rc == 0 && !timed) {
        rc = gpu_harness_launch(harness, data, ARM_CANDIDATE, 0, NULL, err);
        rc = rc == 0 ? gpu_harness_judge(harness, data, ARM_CANDIDATE, err) : rc;
    }
    return rc == 0 ? gpu_harness_inspect(harness, err) : rc;
}

// The control is a second load of the baseline. The case is placed anew before its first launch,
// because it is placed for other arms.
static int prepare_control(void *machine, void *data, struct err *err)
{
    struct gpu_harness *harness = machine;

    (void)data;
    return load_arm(harness, ARM_CONTROL, &harness->plan->baseline, err);
}

// ---- timing ----

static int superblock(void *machine, void *data, enum arm_index second, bool last, struct err *err)
{
    struct gpu_harness *harness = machine;
    int rc = gpu_harness_inspect(harness, err);

    if (rc != 0 || last) {
        return rc;
    }
    rc = gpu_harness_place(harness, data, 1u << ARM_BASELINE | 1u << second, err);
    return rc == 0 ? gpu_harness_refill(harness, err) : rc;
}

static int launch(void *machine, void *data, enum arm_index arm, uint64_t content,
                  struct launch_time *ret, struct err *err)
{
    struct gpu_launch_time time;
    int rc = gpu_harness_launch(machine, data, arm, content, &time, err);

    if (rc == 0) {
        *ret = (struct launch_time){.cpu = time.ns, .wall = time.clock_hz};
    }
    return rc;
}

static int end_pair(void *machine, void *data, enum arm_index second, uint64_t content, bool judge,
                    struct err *err)
{
    return gpu_harness_verify(machine, data, second, content, judge, err);
}

static int alone(void *machine, void *data, double *ret_ns, struct err *err)
{
    struct gpu_harness *harness = machine;
    double ns[ALONE_LAUNCHES];

    *ret_ns = NAN;
    if (!harness->handover) {
        return 0;
    }
    gpu_handover_end(harness);
    int rc = gpu_harness_place(harness, data, 1u << ARM_BASELINE, err);
    for (size_t i = 0; i < ALONE_LAUNCHES && rc == 0; i++) {
        struct gpu_launch_time time = {.ns = 0};

        rc = gpu_harness_launch(harness, data, ARM_BASELINE, ALONE_CONTENT + i, &time, err);
        ns[i] = time.ns;
    }
    if (rc == 0) {
        *ret_ns = stats_median(ns, ALONE_LAUNCHES);
    }
    return rc;
}

// On a GPU the field `wall` of a launch holds the clock frequency.
static enum block_state block_state(void *machine, const struct timing_block *block)
{
    double first = block->wall[0][0] + block->wall[0][1];
    double second = block->wall[1][0] + block->wall[1][1];

    (void)machine;
    return !isnan(first + second) && fabs(log(first / second)) > CLOCKS_DIFFER ? BLOCK_UNLIKE
                                                                               : BLOCK_COUNTS;
}

static double systematic(void *machine, double launch_ns)
{
    (void)machine;
    return SYSTEMATIC_NS / launch_ns / log(2);
}

// ---- floor and outcome ----

// Bytes that the cache may have kept from memory: all that fits it when the problem asks for a warm
// cache, otherwise outputs that are still in the cache when the kernel ends.
static double cached_bytes(const struct gpu_harness *harness, const struct gpu_case *data)
{
    const struct problem *problem = harness->problem;
    double l2 = (double)harness->gpu->l2_bytes, written = 0;

    if (problem->cache == CACHE_WARM) {
        return l2;
    }
    for (size_t t = 0; t < problem->tensor_count; t++) {
        written += problem->tensor[t].direction == DIRECTION_IN ? 0 : (double)data->sizes.bytes[t];
    }
    return fmin(l2, written);
}

static struct measure_peaks peaks(void *machine, const void *data)
{
    const struct gpu_harness *harness = machine;
    const struct measure_plan *plan = harness->plan;
    char name[32];

    (void)snprintf(name, sizeof(name), "peak_flops_%s", work_unit_name(harness->problem->unit));
    return (struct measure_peaks){.flops = fact_list_find(plan->facts, plan->facts_count, name),
                                  .bytes =
                                      fact_list_find(plan->facts, plan->facts_count, "peak_bytes"),
                                  .cached_bytes = cached_bytes(harness, data)};
}

static void outcome(void *machine, struct measure_outcome *ret)
{
    struct gpu_harness *harness = machine;
    const struct program *candidate = harness->arm[ARM_CANDIDATE];
    bool unsealed = harness->handover;

    gpu_handover_end(harness);
    ret->result->unsealed = unsealed;
    ret->result->trust = xstrdup(unsealed                         ? "unsealed"
                                 : candidate && candidate->memory ? "recorded"
                                                                  : "sealed");
    ret->result->sandbox = xstrdup(harness->plan->sandbox_off ? "off" : "on");
    ret->result->clock = xstrdup(unsealed ? "the executor's monotonic clock" : "CUDA events");
    ret->retire = harness->retire || harness->gpu->broken || harness->gpu->hung;
    ret->doubtful = harness->doubtful && ret->result->verdict == VERDICT_TIMEOUT;
}

const struct measure_ops measure_gpu = {
    .noun = "GPU",
    .disturbance = "the GPU's clock keeps changing",
    .rng_stream = 0x62656e6368ULL,
    .inputs_are_timing = true,
    .short_ns = SHORT_NS,
    .quantum_ns = QUANTUM_NS,
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
    .alone = alone,
    .block_state = block_state,
    .systematic = systematic,
    .peaks = peaks,
    .outcome = outcome,
};
