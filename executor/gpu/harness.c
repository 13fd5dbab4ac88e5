#include "common/clock.h"
#include "common/mem.h"
#include "executor/gpu/harness_words.h"
#include <math.h>
#include <string.h>

#define OVERHEAD_RUNS 16

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

static int measure_overhead(struct gpu_harness *harness, struct err *err)
{
    double ns[OVERHEAD_RUNS];

    for (size_t i = 0; i < OVERHEAD_RUNS; i++) {
        int rc = time_nothing(harness, &ns[i], err);

        if (rc != 0) {
            return rc;
        }
    }
    harness->measurement->overhead_ns = stats_median(ns, OVERHEAD_RUNS);
    return 0;
}

int gpu_harness_open(struct gpu_harness *harness, struct measurement *measurement, struct err *err)
{
    struct gpu *gpu = harness->gpu;

    *harness = (struct gpu_harness){.gpu = gpu,
                                    .oracle = harness->oracle,
                                    .measurement = measurement,
                                    .plan = measurement->plan,
                                    .problem = measurement->problem};
    harness->launch_limit_ns = (uint64_t)(harness->plan->launch_seconds * 1e9);
    harness->guard_key = stats_rng_u64(&measurement->rng);
    harness->hash_key = stats_rng_u64(&measurement->rng);
    int rc = gpu_check(gpu, gpu->driver.event_create(&harness->begin, CU_EVENT_DEFAULT),
                       "making an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, gpu->driver.event_create(&harness->end, CU_EVENT_DEFAULT),
                   "making an event", err);
    return rc == 0 ? measure_overhead(harness, err) : rc;
}

void gpu_harness_release(struct gpu_harness *harness)
{
    struct gpu *gpu = harness->gpu;

    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        program_free(harness->arm[arm]);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        guarded_buffer_release(&harness->live[t], gpu);
        for (size_t slot = 0; slot < MEASURE_CONTENTS; slot++) {
            guarded_buffer_release(&harness->store[slot][t], gpu);
        }
    }
    if (!gpu->hung && harness->begin && harness->end) {
        (void)gpu->driver.event_destroy(harness->begin);
        (void)gpu->driver.event_destroy(harness->end);
    }
    *harness = (struct gpu_harness){.gpu = gpu, .oracle = harness->oracle};
}

int gpu_harness_case_init(struct gpu_harness *harness, struct gpu_case *data,
                          const struct measure_case *of, struct err *err)
{
    *data = (struct gpu_case){.of = of};
    for (size_t slot = 0; slot < MEASURE_CONTENTS; slot++) {
        data->number[slot] = slot;
    }
    return tensor_sizes_of(harness->problem, of->shape, &data->sizes, err);
}

// ---- input data ----

struct input_set gpu_harness_input_set(const struct gpu_harness *harness,
                                       const struct gpu_case *data, size_t slot)
{
    return (struct input_set){.shape = *data->of->shape,
                              .seed = harness->plan->seed,
                              .case_index = data->of->index,
                              .number = data->number[slot]};
}

static int announce(struct gpu_harness *harness, const struct gpu_case *data, size_t slot,
                    struct err *err)
{
    struct input_set set = gpu_harness_input_set(harness, data, slot);

    return oracle_expect(harness->oracle, &set, err);
}

int gpu_harness_announce(struct gpu_harness *harness, const struct gpu_case *data, struct err *err)
{
    int rc = 0;

    for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0; slot++) {
        rc = announce(harness, data, slot, err);
    }
    return rc;
}

// Makes the input data of the slot and stores the hashes of its inputs.
static int fill_slot(struct gpu_harness *harness, const struct gpu_case *data, size_t slot,
                     struct err *err)
{
    struct gpu *gpu = harness->gpu;
    struct input_set set = gpu_harness_input_set(harness, data, slot);
    int rc = gpu_clear_words(gpu, WORD_HASH, PROBLEM_TENSOR_MAX * 2, err);

    if (rc != 0) {
        return rc;
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct guarded_buffer *buffer = &harness->store[slot][t];

        if (!tensor_is_input(&harness->problem->tensor[t])) {
            continue;
        }
        rc = input_set_fill(&set, gpu, harness->problem, t, buffer, &data->sizes, err);
        if (rc != 0) {
            return rc;
        }
        rc = guarded_buffer_hash(buffer, gpu, harness->hash_key, WORD_HASH + 2 * t, err);
        if (rc != 0) {
            return rc;
        }
    }
    rc = gpu_read_words(gpu, WORD_HASH, PROBLEM_TENSOR_MAX * 2, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(gpu, "making inputs", err);
    if (rc != 0) {
        return rc;
    }
    memcpy(harness->input_hash[slot], gpu->host_words + WORD_HASH,
           sizeof(harness->input_hash[slot]));
    return 0;
}

int gpu_harness_copy(struct gpu_harness *harness, const struct guarded_buffer *to,
                     const struct guarded_buffer *from, struct err *err)
{
    return gpu_check(
        harness->gpu,
        harness->gpu->driver.copy(to->tensor, from->tensor, from->bytes, harness->gpu->stream),
        "copying a tensor", err);
}

int gpu_harness_choose_slot(struct gpu_harness *harness, size_t slot, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        if (tensor_is_input(&harness->problem->tensor[t])) {
            rc = gpu_harness_copy(harness, &harness->live[t], &harness->store[slot][t], err);
        }
    }
    harness->slot = slot;
    return rc;
}

int gpu_harness_renew(struct gpu_harness *harness, struct gpu_case *data, size_t slot,
                      uint64_t number, struct err *err)
{
    data->number[slot] = number;
    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        data->verified[arm][slot].known = false;
    }
    int rc = announce(harness, data, slot, err);
    if (rc != 0) {
        return rc;
    }
    rc = fill_slot(harness, data, slot, err);
    if (rc != 0) {
        return rc;
    }
    return harness->slot == slot ? gpu_harness_choose_slot(harness, slot, err) : 0;
}

// ---- placing ----

static int place_buffers(struct gpu_harness *harness, const struct gpu_case *data, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        size_t bytes = data->sizes.bytes[t];

        rc = guarded_buffer_place(&harness->live[t], harness->gpu, bytes, err);
        for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0 && tensor_is_input(tensor);
             slot++) {
            rc = guarded_buffer_place(&harness->store[slot][t], harness->gpu, bytes, err);
        }
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

static int fill_guards(struct gpu_harness *harness, unsigned arms, struct err *err)
{
    struct gpu_zones *zones = &harness->zones;
    uint64_t key = harness->guard_key;

    *zones = (struct gpu_zones){.count = 0};
    bool room = true;
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        room = room && guarded_buffer_guards(&harness->live[t], zones);
    }
    for (size_t arm = 0; arm < ARM_COUNT; arm++) {
        if (arms & (1u << arm)) {
            room = room && program_guards(harness->arm[arm], zones);
        }
    }
    if (!room) {
        return err_set(err, ERR_LIMIT, "more tensors and scratch areas than can be guarded");
    }
    return gpu_run(harness->gpu, GPU_GUARD_FILL, GUARD_BYTES / 4, (void *[]){zones, &key}, err);
}

static int place(struct gpu_harness *harness, const struct gpu_case *data, unsigned arms,
                 struct err *err)
{
    int rc = place_buffers(harness, data, err);

    for (size_t slot = 0; slot < MEASURE_CONTENTS && rc == 0; slot++) {
        rc = fill_slot(harness, data, slot, err);
    }
    for (enum arm_index arm = 0; arm < ARM_COUNT && rc == 0; arm++) {
        if (arms & (1u << arm)) {
            rc = prepare_arm(harness, data, arm, err);
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = fill_guards(harness, arms, err);
    return rc == 0 ? gpu_harness_choose_slot(harness, 0, err) : rc;
}

int gpu_harness_place(struct gpu_harness *harness, struct gpu_case *data, unsigned arms,
                      struct err *err)
{
    double *inputs_s = &harness->measurement->seconds.inputs;
    uint64_t start = clock_now_ns(&clock_system);
    int rc = place(harness, data, arms, err);

    harness->placed = rc == 0 ? data : NULL;
    *inputs_s = fmax(*inputs_s, 0) + clock_seconds(clock_now_ns(&clock_system) - start);
    return rc;
}
