#include "common/clock.h"
#include "common/mem.h"
#include "executor/gpu/bench_words.h"
#include <math.h>
#include <string.h>

#define OVERHEAD_RUNS 16

// ---- begin and end ----

static int measure_overhead(struct bench *bench, struct err *err)
{
    struct driver *d = &bench->gpu->driver;
    double ns[OVERHEAD_RUNS];
    int rc = 0;

    for (size_t i = 0; i < OVERHEAD_RUNS && rc == 0; i++) {
        rc = gpu_flush(bench->gpu, err);
        if (rc == 0) {
            rc = gpu_check(bench->gpu, d->event_record(bench->begin, bench->gpu->stream),
                           "recording an event", err);
        }
        if (rc == 0) {
            rc = gpu_check(bench->gpu, d->event_record(bench->end, bench->gpu->stream),
                           "recording an event", err);
        }
        if (rc == 0) {
            rc = gpu_finish(bench->gpu, "an empty window", err);
        }
        float ms = 0;
        if (rc == 0) {
            rc = gpu_check(bench->gpu, d->event_elapsed(&ms, bench->begin, bench->end),
                           "reading events", err);
        }
        ns[i] = (double)ms * 1e6;
    }
    if (rc == 0) {
        bench->measurement->overhead_ns = stats_median(ns, OVERHEAD_RUNS);
    }
    return rc;
}

int bench_open(struct bench *bench, struct measurement *measurement, struct err *err)
{
    struct gpu *gpu = bench->gpu;

    *bench = (struct bench){.gpu = gpu,
                            .oracle = bench->oracle,
                            .measurement = measurement,
                            .plan = measurement->plan,
                            .problem = measurement->problem};
    bench->launch_limit_ns = (uint64_t)(bench->plan->launch_seconds * 1e9);
    bench->guard_key = stats_rng_u64(&measurement->rng);
    bench->hash_key = stats_rng_u64(&measurement->rng);
    int rc = gpu_check(gpu, gpu->driver.event_create(&bench->begin, CU_EVENT_DEFAULT),
                       "making an event", err);
    if (rc == 0) {
        rc = gpu_check(gpu, gpu->driver.event_create(&bench->end, CU_EVENT_DEFAULT),
                       "making an event", err);
    }
    return rc == 0 ? measure_overhead(bench, err) : rc;
}

void bench_release(struct bench *bench)
{
    struct gpu *gpu = bench->gpu;

    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        program_free(bench->arm[arm]);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        area_release(&bench->live[t], gpu);
        for (size_t slot = 0; slot < MEASURE_CONTENTS; slot++) {
            area_release(&bench->store[slot][t], gpu);
        }
    }
    if (!gpu->hung && bench->begin && bench->end) {
        (void)gpu->driver.event_destroy(bench->begin);
        (void)gpu->driver.event_destroy(bench->end);
    }
    *bench = (struct bench){.gpu = gpu, .oracle = bench->oracle};
}

int bench_trial_init(struct bench *bench, struct bench_trial *trial, const struct measure_case *of,
                     struct err *err)
{
    *trial = (struct bench_trial){.of = of};
    for (size_t slot = 0; slot < MEASURE_CONTENTS; slot++) {
        trial->number[slot] = slot;
    }
    return content_sizes(bench->problem, of->shape, &trial->sizes, err);
}

// ---- contents ----

struct oracle_content bench_content(const struct bench *bench, const struct bench_trial *trial,
                                    size_t slot)
{
    return (struct oracle_content){.shape = *trial->of->shape,
                                   .seed = bench->plan->seed,
                                   .case_index = trial->of->index,
                                   .number = trial->number[slot]};
}

static int announce(struct bench *bench, const struct bench_trial *trial, size_t slot,
                    struct err *err)
{
    struct oracle_content content = bench_content(bench, trial, slot);

    return oracle_expect(bench->oracle, &content, err);
}

int bench_announce(struct bench *bench, const struct bench_trial *trial, struct err *err)
{
    int rc = 0;

    for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0; slot++) {
        rc = announce(bench, trial, slot, err);
    }
    return rc;
}

// Fills the slot's inputs and remembers their hashes.
static int fill_slot(struct bench *bench, const struct bench_trial *trial, size_t slot,
                     struct err *err)
{
    struct problem *problem = bench->problem;
    int rc = gpu_clear_words(bench->gpu, WORD_HASH, PROBLEM_TENSOR_MAX * 2, err);

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        if (tensor_is_input(&problem->tensor[t])) {
            rc = content_fill(bench->gpu, &problem->tensor[t], t, &bench->store[slot][t],
                              &trial->sizes, bench->plan->seed, trial->of->index,
                              trial->number[slot], err);
            if (rc == 0) {
                rc = area_hash(&bench->store[slot][t], bench->gpu, bench->hash_key,
                               WORD_HASH + 2 * t, err);
            }
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = gpu_read_words(bench->gpu, WORD_HASH, PROBLEM_TENSOR_MAX * 2, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(bench->gpu, "making inputs", err);
    if (rc != 0) {
        return rc;
    }
    memcpy(bench->input_hash[slot], bench->gpu->host_words + WORD_HASH,
           sizeof(bench->input_hash[slot]));
    return rc;
}

int bench_copy(struct bench *bench, const struct area *to, const struct area *from, struct err *err)
{
    return gpu_check(
        bench->gpu,
        bench->gpu->driver.copy(to->tensor, from->tensor, from->bytes, bench->gpu->stream),
        "copying a tensor", err);
}

// The slot's inputs become the live ones.
int bench_choose_slot(struct bench *bench, size_t slot, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        if (tensor_is_input(&bench->problem->tensor[t])) {
            rc = bench_copy(bench, &bench->live[t], &bench->store[slot][t], err);
        }
    }
    bench->slot = slot;
    return rc;
}

int bench_renew(struct bench *bench, struct bench_trial *trial, size_t slot, uint64_t number,
                struct err *err)
{
    trial->number[slot] = number;
    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        trial->verified[arm][slot].known = false;
    }
    int rc = announce(bench, trial, slot, err);
    if (rc == 0) {
        rc = fill_slot(bench, trial, slot, err);
    }
    return rc == 0 && bench->slot == slot ? bench_choose_slot(bench, slot, err) : rc;
}

// ---- placing ----

static int place_memory(struct bench *bench, const struct bench_trial *trial, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &bench->problem->tensor[t];
        size_t bytes = trial->sizes.bytes[t];

        rc = area_place(&bench->live[t], bench->gpu, bytes, err);
        for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0 && tensor_is_input(tensor);
             slot++) {
            rc = area_place(&bench->store[slot][t], bench->gpu, bytes, err);
        }
    }
    return rc;
}

static int prepare_arm(struct bench *bench, const struct bench_trial *trial, enum arm_index arm,
                       struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};

    for (size_t t = 0; t < bench->problem->tensor_count; t++) {
        tensors.tensor[t] = &bench->live[t];
    }
    struct err why = ERR_INIT;
    int rc = program_prepare(bench->arm[arm], trial->of->shape, &tensors, &why);
    if (rc == PROGRAM_UNFIT && arm == ARM_CANDIDATE) {
        return measurement_stop(bench->measurement, VERDICT_CRASH, "%s, for %s", why.text,
                                trial->of->name);
    }
    if (rc == PROGRAM_UNFIT) {
        return err_set(err, ERR_INVALID, "the baseline cannot be launched: %s", why.text);
    }
    if (rc != 0) {
        *err = why;
    }
    return rc;
}

static int fill_guards(struct bench *bench, unsigned arms, struct err *err)
{
    struct gpu_zones *zones = &bench->zones;
    uint64_t key = bench->guard_key;

    *zones = (struct gpu_zones){.count = 0};
    bool room = true;
    for (size_t t = 0; t < bench->problem->tensor_count; t++) {
        room = room && area_guards(&bench->live[t], zones);
    }
    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        if (arms & (1u << arm)) {
            room = room && program_guards(bench->arm[arm], zones);
        }
    }
    if (!room) {
        return err_set(err, ERR_LIMIT, "more tensors and scratch areas than can be guarded");
    }
    return gpu_run(bench->gpu, GPU_GUARD_FILL, AREA_GUARD / 4, (void *[]){zones, &key}, err);
}

int bench_place(struct bench *bench, struct bench_trial *trial, unsigned arms, struct err *err)
{
    double *inputs_s = &bench->measurement->seconds.inputs;
    uint64_t start = clock_now_ns(&clock_system);
    int rc = place_memory(bench, trial, err);

    for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0; slot++) {
        rc = fill_slot(bench, trial, slot, err);
    }
    for (enum arm_index arm = 0; arm < ARM_COUNT && rc == 0; arm++) {
        if (arms & (1u << arm)) {
            rc = prepare_arm(bench, trial, arm, err);
        }
    }
    if (rc == 0) {
        rc = fill_guards(bench, arms, err);
    }
    if (rc == 0) {
        rc = bench_choose_slot(bench, 0, err);
    }
    bench->placed = rc == 0 ? trial : NULL;
    *inputs_s = fmax(*inputs_s, 0) + clock_seconds(clock_now_ns(&clock_system) - start);
    return rc;
}
