#include "common/clock.h"
#include "common/mem.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/harness_handover.h"
#include "executor/gpu/harness_words.h"
#include <string.h>

#define OVERHEAD_RUNS 16
#define ARENA_STAYS ((size_t)1 << 30) // bytes that stay mapped for the next measurement
#define ARENA_TIMES 4   // more than so many times what it needs is not left to a measurement
#define ARENA_PIECES 64 // nor what has grown in more pieces
#define VALUES_BYTES ((size_t)1 << 20) // for values of device variables, which most sources lack

// ---- begin and end ----

// Times once what lies between two events when nothing is launched between them.
static int time_nothing(struct gpu_harness *harness, double *ret_ns, struct err *err)
{
    struct gpu *gpu = harness->gpu;
    struct driver *d = &gpu->driver;
    int rc = gpu_flush(gpu, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, d->event_record(harness->begin, gpu->stream), "recording an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, d->event_record(harness->end, gpu->stream), "recording an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(gpu, "an empty window", err);
    if (rc != 0) {
        return rc;
    }
    float ms = 0;
    rc = gpu_check(gpu, d->event_elapsed(&ms, harness->begin, harness->end), "reading events", err);
    if (rc != 0) {
        return rc;
    }
    *ret_ns = (double)ms * 1e6;
    return 0;
}

// Once for each process: it is a property of the GPU and its driver.
static int measure_overhead(struct gpu_harness *harness, struct err *err)
{
    double ns[OVERHEAD_RUNS];
    int rc = 0;

    if (harness->gpu->overhead_ns == 0) {
        for (size_t i = 0; i < OVERHEAD_RUNS && rc == 0; i++) {
            rc = time_nothing(harness, &ns[i], err);
        }
        harness->gpu->overhead_ns = rc == 0 ? stats_median(ns, OVERHEAD_RUNS) : 0;
    }
    harness->measurement->overhead_ns = harness->gpu->overhead_ns;
    return rc;
}

int gpu_harness_open(struct gpu_harness *harness, struct measurement *measurement, struct err *err)
{
    struct gpu *gpu = harness->gpu;

    *harness = (struct gpu_harness){.gpu = gpu,
                                    .oracle = harness->oracle,
                                    .recorder = harness->recorder,
                                    .measurement = measurement,
                                    .plan = measurement->plan,
                                    .problem = measurement->problem};
    harness->launch_limit_ns = (uint64_t)(harness->plan->launch_seconds * 1e9);
    harness->inspected = true;
    harness->hash_key = stats_rng_u64(&measurement->rng);
    harness->sign_key = stats_rng_u64(&measurement->rng);
    int rc = gpu_check(gpu, gpu->driver.event_create(&harness->begin, CU_EVENT_DEFAULT),
                       "making an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, gpu->driver.event_create(&harness->end, CU_EVENT_DEFAULT),
                   "making an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_seal(gpu, false, err); // the measurement before may have left it closed
    if (rc != 0) {
        return rc;
    }
    // Contents of recordings, which are no larger than their objects, are kept there, too.
    size_t contents = harness->plan->candidate.len + harness->plan->baseline.len;
    rc = arena_unite(&gpu->judge, VALUES_BYTES + contents, ARENA_STAYS, err);
    return rc == 0 ? measure_overhead(harness, err) : rc;
}

void gpu_harness_release(struct gpu_harness *harness)
{
    struct gpu *gpu = harness->gpu;
    struct err ignored = ERR_INIT; // without its GPU or its oracle the next measurement here fails

    gpu_handover_close(harness);
    if (!gpu->hung && !gpu->broken) { // a candidate that was stopped may have left something queued
        (void)!gpu_finish(gpu, "the end of a measurement", &ignored);
    }
    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        program_free(harness->arm[arm]);
    }
    if (!gpu->hung && !gpu->broken) {
        arena_rewind(&gpu->open, gpu->open_mark);
        arena_rewind(&gpu->judge, gpu->judge_mark);
        arena_trim(&gpu->open, ARENA_STAYS);
        arena_trim(&gpu->judge, ARENA_STAYS);
        for (size_t i = 0; i < GPU_RECORDINGS; i++) {
            arena_rewind(&gpu->recorded[i], 0);
            arena_trim(&gpu->recorded[i], 0);
        }
    }
    if (!gpu->hung && !gpu->broken && !harness->retire) {
        (void)!oracle_drop_trimmed(harness->oracle, gpu, &ignored);
    }
    if (!gpu->hung && harness->begin && harness->end) {
        (void)gpu->driver.event_destroy(harness->begin);
        (void)gpu->driver.event_destroy(harness->end);
    }
    *harness =
        (struct gpu_harness){.gpu = gpu, .oracle = harness->oracle, .recorder = harness->recorder};
}

int gpu_harness_case_init(struct gpu_harness *harness, struct gpu_case *data,
                          const struct measure_case *of, struct err *err)
{
    *data = (struct gpu_case){.of = of};
    return tensor_sizes_of(harness->problem, of->shape, &data->sizes, err);
}

// ---- input data ----

struct input_set gpu_harness_input_set(const struct gpu_harness *harness,
                                       const struct gpu_case *data, uint64_t content)
{
    return (struct input_set){.shape = *data->of->shape,
                              .seed = harness->plan->seed,
                              .case_index = data->of->index,
                              .number = content};
}

// ---- placing ----

// Returns what is placed when an area of this size is as well; SIZE_MAX: the arena cannot have it.
static size_t with_area(const struct arena *arena, size_t placed, size_t bytes)
{
    if (placed > arena->reserved || bytes > arena->reserved) {
        return SIZE_MAX;
    }
    (void)gpu_next_area(placed, bytes, &placed);
    return placed;
}

// Returns how much of the open arena is placed when the tensors of these sizes are, and what
// outputs are kept in.
static size_t placed_with(const struct gpu_harness *harness, const struct tensor_sizes *sizes)
{
    const struct problem *problem = harness->problem;
    const struct arena *open = &harness->gpu->open;
    size_t placed = harness->gpu->open_mark;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        placed = with_area(open, placed, sizes->bytes[t]);
    }
    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (tensor_is_output(&problem->tensor[t])) {
            placed = with_area(open, placed, sizes->bytes[t]);
        }
    }
    return placed;
}

// Sets *most to what is placed with one of these cases, if that is more. A case that is larger than
// the arena can be is refused when it is placed.
static int reach(const struct gpu_harness *harness, const struct shape_case *list, size_t count,
                 size_t *most, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct tensor_sizes sizes;
        int rc = tensor_sizes_of(harness->problem, &list[i], &sizes, err);

        if (rc != 0) {
            return rc;
        }
        size_t placed = placed_with(harness, &sizes);
        *most = placed <= harness->gpu->open.reserved && placed > *most ? placed : *most;
    }
    return 0;
}

int gpu_harness_reserve(struct gpu_harness *harness, const struct shape_case *hidden,
                        size_t hidden_count, struct err *err)
{
    const struct problem *problem = harness->problem;
    struct gpu *gpu = harness->gpu;
    size_t most = gpu->open_mark;
    int rc = reach(harness, problem->bench, problem->bench_count, &most, err);

    rc = rc == 0 ? reach(harness, problem->check, problem->check_count, &most, err) : rc;
    rc = rc == 0 ? reach(harness, hidden, hidden_count, &most, err) : rc;
    if (rc == 0 && (gpu->open.mapped > ARENA_TIMES * most || // all of which is looked at
                    gpu->open.chunk_count > ARENA_PIECES)) {
        arena_trim(&gpu->open, 0);
        rc = oracle_drop_trimmed(harness->oracle, gpu, err);
    }
    rc = rc == 0 ? arena_reach(&gpu->open, most, err) : rc;
    arena_rewind(&gpu->open, gpu->open_mark);
    return rc;
}

static int place_tensors(struct gpu_harness *harness, const struct gpu_case *data, struct err *err)
{
    struct gpu *gpu = harness->gpu;
    int rc = 0;

    arena_rewind(&gpu->open, gpu->open_mark);
    for (size_t i = 0; i < GPU_RECORDINGS; i++) {
        arena_rewind(&gpu->recorded[i], 0);
    }
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = guarded_buffer_place(&harness->live[t], &gpu->open, data->sizes.bytes[t], err);
    }
    return rc;
}

// Places where outputs are kept.
static int place_kept(struct gpu_harness *harness, const struct gpu_case *data, struct err *err)
{
    int rc = 0;

    memset(harness->kept, 0, sizeof(harness->kept));
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = tensor_is_output(&harness->problem->tensor[t])
                 ? guarded_buffer_place(&harness->kept[t], &harness->gpu->open,
                                        data->sizes.bytes[t], err)
                 : 0;
    }
    return rc;
}

static int prepare_arm(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                       struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        tensors.tensor[t] = &harness->live[t];
    }
    struct err why = ERR_INIT;
    int rc = program_prepare(harness->arm[arm], data->of->shape, &tensors, &why);
    if (rc == PROGRAM_UNFIT && arm == ARM_CANDIDATE) {
        return measurement_stop(harness->measurement, VERDICT_CRASH, "%s, for %s", why.text,
                                data->of->name);
    }
    if (rc == PROGRAM_UNFIT) {
        return err_set(err, ERR_INVALID, "the baseline cannot be launched: %s", why.text);
    }
    if (rc != 0) {
        *err = why;
    }
    return rc;
}

// What recordings keep is put where it must be before the first launch.
static int restore_arms(struct gpu_harness *harness, struct err *err)
{
    int rc = 0;

    harness->must_restore = false;
    for (enum arm_index arm = 0; arm < ARM_COUNT && rc == 0; arm++) {
        if ((harness->arms & 1u << arm) != 0) {
            harness->must_restore =
                harness->must_restore || program_must_restore(harness->arm[arm]);
            rc = program_restore(harness->arm[arm], err);
        }
    }
    return rc;
}

// Opens the arena `judge` where preparing the arms needs it.
static int open_judge(struct gpu_harness *harness, struct err *err)
{
    bool needed = false;

    for (enum arm_index arm = 0; arm < ARM_COUNT; arm++) {
        needed =
            needed || ((harness->arms & 1u << arm) != 0 && program_uses_judge(harness->arm[arm]));
    }
    return needed ? gpu_seal(harness->gpu, false, err) : 0;
}

static int place(struct gpu_harness *harness, const struct gpu_case *data, unsigned arms,
                 struct err *err)
{
    int rc = open_judge(harness, err);

    rc = rc == 0 ? place_tensors(harness, data, err) : rc;
    rc = rc == 0 ? place_kept(harness, data, err) : rc;
    for (enum arm_index arm = 0; arm < ARM_COUNT && rc == 0; arm++) {
        if (arms & (1u << arm)) {
            rc = prepare_arm(harness, data, arm, err);
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = gpu_harness_list_elsewhere(harness, err);
    if (rc != 0) {
        return rc;
    }
    rc = harness->handover ? gpu_handover_place(harness, data, err) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = restore_arms(harness, err);
    if (rc != 0) {
        return rc;
    }
    bool waits = !harness->gpu->judge.closed || harness->handover;
    rc = gpu_harness_refill(harness, err);
    // What is queued may use memory that the first launch closes.
    rc = rc == 0 && waits ? gpu_finish(harness->gpu, "preparing the GPU's memory", err) : rc;
    return rc == 0 && harness->handover && (arms & 1u << ARM_CANDIDATE) != 0
               ? gpu_handover_enter(harness, data, err)
               : rc;
}

int gpu_harness_place(struct gpu_harness *harness, struct gpu_case *data, unsigned arms,
                      struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    int rc = gpu_harness_inspect(harness, err);

    if (rc != 0 || (harness->placed == data && harness->arms == arms)) {
        return rc;
    }
    if (harness->live_waits || harness->kept_waits) {
        return err_set(err, ERR_INTERNAL, "outputs that wait for the oracle would be lost");
    }
    harness->placed = NULL;
    harness->arms = arms;
    rc = place(harness, data, arms, err);
    if (rc == 0) {
        harness->placed = data;
    }
    measurement_spend(&harness->measurement->seconds.inputs, start);
    return rc;
}
