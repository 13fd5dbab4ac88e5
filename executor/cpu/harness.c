#include "executor/cpu/harness.h"
#include "common/clock.h"
#include "executor/cpu/machine.h"
#include "executor/inputs.h"
#include "executor/sandbox/elf.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define START_LIMIT_NS (30 * NS_PER_S)     // for loading an object, and for an empty launch
#define REFERENCE_LIMIT_NS (60 * NS_PER_S) // least limit of the reference's launches
#define FLUSH_BYTES_MAX ((size_t)512 << 20)
#define CPU_SECONDS_MAX 3600 // processor time of a runner

static const char *const arm_name[ARM_COUNT] = {"reference", "baseline", "candidate",
                                                "baseline's copy"};

// ---- start and end ----

// most[t] is the number of elements of tensor t in its largest case.
static int make_buffers(struct harness *harness, const size_t *most, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        size_t size = dtype_size(tensor->dtype);

        rc = buffer_create(&harness->tensor[t], most[t] * size, tensor->direction == DIRECTION_IN,
                           err);
        if (rc == 0 && tensor_is_output(tensor)) {
            harness->copy[t] = xmalloc(most[t] * size);
            rc = buffer_create(&harness->expected[t], most[t] * sizeof(double), false, err);
            if (rc == 0) {
                rc = buffer_create(&harness->scale[t], most[t] * sizeof(double), false, err);
            }
        }
    }
    return rc;
}

static void add_pointer(struct runner_process *runner, struct buffer *buffer, bool writable)
{
    runner->pointer[runner->pointer_count++] =
        (struct runner_pointer){.buffer = buffer, .writable = writable};
}

static void set_pointers(struct harness *harness, enum arm_index index)
{
    struct runner_process *runner = &harness->runner[index];

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        if (index != ARM_REFERENCE) {
            add_pointer(runner, &harness->tensor[t], tensor_is_output(tensor));
            continue;
        }
        if (tensor_is_input(tensor)) {
            add_pointer(runner, &harness->tensor[t], false);
        }
        if (tensor_is_output(tensor)) {
            add_pointer(runner, &harness->expected[t], true);
            add_pointer(runner, &harness->scale[t], true);
        }
    }
}

static int start_runner(struct harness *harness, enum arm_index index, struct err *err)
{
    const struct bytes *object[ARM_COUNT] = {&harness->plan->reference, &harness->plan->baseline,
                                             &harness->plan->candidate, &harness->plan->baseline};
    const struct bytes *one = object[index];

    harness->runner[index].name = arm_name[index];
    set_pointers(harness, index);
    int rc = runner_process_start(
        &harness->runner[index], harness->zygote, one, harness->plan->max_memory, CPU_SECONDS_MAX,
        stats_rng_u64(&harness->measurement->rng), index, elf_needs(one, "libmvec.so.1"), err);
    return rc == 0 ? 0 : err_wrap(err, "%s", arm_name[index]);
}

static int make_flush(struct harness *harness, struct err *err)
{
    if (harness->problem->cache != CACHE_COLD) {
        return 0;
    }
    harness->flush_bytes = 2 * machine_cache_bytes(0);
    harness->flush_bytes =
        harness->flush_bytes < FLUSH_BYTES_MAX ? harness->flush_bytes : FLUSH_BYTES_MAX;
    harness->flush = mmap(NULL, harness->flush_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (harness->flush == MAP_FAILED) {
        harness->flush = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "memory to flush caches with");
    }
    return 0;
}

int harness_start(struct harness *harness, const struct shape_case *const *shape,
                  size_t shape_count, struct err *err)
{
    size_t most[PROBLEM_TENSOR_MAX] = {0}, count;

    harness->guard_key = stats_rng_u64(&harness->measurement->rng);
    harness->launch_limit_ns = (uint64_t)(harness->plan->launch_seconds * 1e9);
    harness->reference_limit_ns = harness->launch_limit_ns * 10 > REFERENCE_LIMIT_NS
                                      ? harness->launch_limit_ns * 10
                                      : REFERENCE_LIMIT_NS;
    int rc = 0;
    for (size_t s = 0; s < shape_count; s++) {
        for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
            rc = problem_elements(harness->problem, t, shape[s], &count, err);
            most[t] = count > most[t] ? count : most[t];
        }
    }
    if (rc == 0) {
        rc = make_buffers(harness, most, err);
    }
    if (rc == 0) {
        rc = make_flush(harness, err);
    }
    for (enum arm_index index = 0; index < ARM_COUNT && rc == 0; index++) {
        if (index != ARM_CONTROL || harness->plan->control) {
            rc = start_runner(harness, index, err);
        }
    }
    return rc;
}

int harness_runner_failed(struct harness *harness, enum arm_index index,
                          enum launch_outcome outcome, const char *where, uint64_t limit_ns,
                          struct err *err)
{
    struct runner_process *runner = &harness->runner[index];
    uint32_t verdict = VERDICT_CRASH;
    char *sentence;

    if (outcome == LAUNCH_TIMEOUT) {
        verdict = VERDICT_TIMEOUT;
        sentence =
            xasprintf("the %s %s longer than the %g seconds allowed", runner->name,
                      runner->returned ? "went on working after it had returned, for" : "took",
                      clock_seconds(limit_ns));
    } else {
        sentence = runner_process_describe(runner, &verdict);
    }
    int rc;
    bool setup = runner->fault == RUNNER_FAULT_SETUP;
    if (index == ARM_CANDIDATE && !setup) {
        rc = measurement_stop(harness->measurement, verdict, "%s%s%s", sentence,
                              where[0] ? ", for " : "", where);
    } else {
        rc = err_set(err, setup ? ERR_SANDBOX : ERR_INVALID, "%s%s%s", sentence,
                     where[0] ? ", for " : "", where);
    }
    free(sentence);
    return rc;
}

// Measures empty launches. Their processor time is the overhead that is reported. The excess of
// their wall time is the cost of waking processes up.
static int measure_overhead(struct harness *harness, struct err *err)
{
    enum { LAUNCHES = 31 };
    struct runner_process *runner = &harness->runner[ARM_BASELINE];
    struct launch_time time[LAUNCHES];
    double excess[LAUNCHES], empty[LAUNCHES];

    for (size_t i = 0; i < LAUNCHES; i++) {
        enum launch_outcome outcome =
            runner_process_launch(runner, CONTROL_NOTHING, NULL, NULL, START_LIMIT_NS, &time[i]);
        if (outcome != LAUNCH_DONE) {
            return harness_runner_failed(harness, ARM_BASELINE, outcome, "an empty launch",
                                         START_LIMIT_NS, err);
        }
    }
    for (size_t i = 0; i < LAUNCHES; i++) {
        excess[i] = fmax(time[i].wall - time[i].cpu, 0);
        empty[i] = time[i].cpu;
    }
    harness->measurement->overhead_ns = stats_median(empty, LAUNCHES);
    harness->wake_ns = stats_median(excess, LAUNCHES);
    return 0;
}

int harness_ready(struct harness *harness, struct err *err)
{
    for (enum arm_index index = 0; index < ARM_COUNT; index++) {
        if (harness->runner[index].pid == 0) {
            continue;
        }
        enum launch_outcome outcome = runner_process_ready(&harness->runner[index], START_LIMIT_NS);
        if (outcome == LAUNCH_DONE) {
            outcome = runner_process_renew(&harness->runner[index], START_LIMIT_NS);
        }
        if (outcome != LAUNCH_DONE) {
            return harness_runner_failed(harness, index, outcome, "", START_LIMIT_NS, err);
        }
    }
    return measure_overhead(harness, err);
}

void harness_release(struct harness *harness)
{
    for (enum arm_index index = 0; index < ARM_COUNT; index++) {
        runner_process_release(&harness->runner[index]);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        buffer_release(&harness->tensor[t]);
        buffer_release(&harness->expected[t]);
        buffer_release(&harness->scale[t]);
        free(harness->copy[t]);
    }
    if (harness->flush) {
        munmap(harness->flush, harness->flush_bytes);
    }
    *harness = (struct harness){.plan = NULL};
}

// ---- cases and contents ----

int harness_case_init(struct harness *harness, struct case_data *data,
                      const struct measure_case *of, struct err *err)
{
    const struct shape_case *shape = of->shape;

    *data = (struct case_data){.of = of};
    int rc = 0;
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = problem_elements(harness->problem, t, shape, &data->count[t], err);
        data->bytes[t] = data->count[t] * dtype_size(harness->problem->tensor[t].dtype);
        if (rc == 0) {
            rc = problem_last_extent(harness->problem, t, shape, &data->last[t], err);
        }
    }
    return rc;
}

static void content_release(struct content *content)
{
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        free(content->in[t]);
        free(content->y[t]);
        free(content->scale[t]);
        for (size_t arm = 0; arm < ARM_COUNT; arm++) {
            free(content->verified[arm][t]);
        }
    }
    *content = (struct content){.made = false};
}

void harness_case_release(struct harness *harness, struct case_data *data)
{
    for (size_t slot = 0; slot < MEASURE_CONTENTS; slot++) {
        content_release(&data->content[slot]);
    }
    *data = (struct case_data){.of = NULL};
    harness->placed = NULL;
}

static void place(struct harness *harness, const struct case_data *data)
{
    if (harness->placed == data) {
        return;
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        buffer_place(&harness->tensor[t], data->bytes[t], harness->guard_key);
        if (tensor_is_output(&harness->problem->tensor[t])) {
            buffer_place(&harness->expected[t], data->count[t] * sizeof(double),
                         harness->guard_key);
            buffer_place(&harness->scale[t], data->count[t] * sizeof(double), harness->guard_key);
        }
    }
    harness->placed = data;
}

static void write_inputs(struct harness *harness, const struct case_data *data,
                         const struct content *content)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (content->in[t]) {
            memcpy(buffer_tensor(&harness->tensor[t]), content->in[t], data->bytes[t]);
        }
    }
}

static void generate(struct harness *harness, const struct case_data *data, struct content *content,
                     uint64_t number)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        if (tensor_is_input(tensor)) {
            content->in[t] = xmalloc(data->bytes[t]);
            inputs_fill(tensor, inputs_key(harness->plan->seed, data->of->index, number, t),
                        data->count[t], data->last[t], content->in[t]);
        }
    }
}

int harness_content_make(struct harness *harness, struct case_data *data, size_t slot,
                         uint64_t number, struct err *err)
{
    struct content *content = &data->content[slot];
    uint64_t start = clock_now_ns(&clock_system);

    content_release(content);
    place(harness, data);
    generate(harness, data, content, number);
    write_inputs(harness, data, content);
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        // NaN first, so that an element which the reference does not write never passes.
        if (tensor_is_output(&harness->problem->tensor[t])) {
            buffer_fill_nan(buffer_tensor(&harness->expected[t]), data->count[t] * sizeof(double),
                            0);
            buffer_fill_nan(buffer_tensor(&harness->scale[t]), data->count[t] * sizeof(double), 0);
        }
    }
    enum launch_outcome outcome =
        runner_process_launch(&harness->runner[ARM_REFERENCE], CONTROL_CALL, data->of->shape->i,
                              data->of->shape->f, harness->reference_limit_ns, NULL);
    if (outcome != LAUNCH_DONE) {
        return harness_runner_failed(harness, ARM_REFERENCE, outcome, data->of->name,
                                     harness->reference_limit_ns, err);
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            content->y[t] =
                xmemdup(buffer_tensor(&harness->expected[t]), data->count[t] * sizeof(double));
            content->scale[t] =
                xmemdup(buffer_tensor(&harness->scale[t]), data->count[t] * sizeof(double));
        }
    }
    content->made = true;
    harness->measurement->seconds.inputs += seconds_since(start);
    return 0;
}

// ---- one launch ----

static void fill_huge(enum dtype dtype, unsigned char *out, size_t count, uint64_t key)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = inputs_bits(key, i);
        double value = (bits & 1 ? -1e30 : 1e30) * (1.0 + (double)(bits >> 40) * 0x1p-24);
        switch (dtype) {
        case DTYPE_F32:
            ((float *)(void *)out)[i] = (float)value;
            break;
        case DTYPE_F64:
            ((double *)(void *)out)[i] = value;
            break;
        default:
            memcpy(out + i * dtype_size(dtype), &bits, dtype_size(dtype));
            break;
        }
    }
}

// Fills an output with NaN, with large noise, or with the verified output of the other content,
// which shows a candidate that leaves old results in place.
static void poison(struct harness *harness, enum arm_index arm, const struct case_data *data,
                   size_t slot, size_t t)
{
    unsigned char *out = buffer_tensor(&harness->tensor[t]);
    const unsigned char *stale = data->content[1 - slot].verified[arm][t];
    uint64_t bits = stats_rng_u64(&harness->measurement->rng);

    if (stale && bits % 4 == 0) {
        memcpy(out, stale, data->bytes[t]);
    } else if (bits % 4 == 1) {
        fill_huge(harness->problem->tensor[t].dtype, out, data->count[t], bits);
    } else {
        buffer_fill_nan(out, data->bytes[t], bits);
    }
}

// Evicts everything from the caches by writing to each line of a buffer of twice the last level.
static void flush_caches(struct harness *harness)
{
    for (size_t i = 0; i < harness->flush_bytes; i += 64) {
        ((volatile unsigned char *)harness->flush)[i]++;
    }
}

static void prepare(struct harness *harness, enum arm_index arm, struct case_data *data,
                    size_t slot)
{
    place(harness, data);
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        if (tensor->direction == DIRECTION_OUT) {
            poison(harness, arm, data, slot, t);
        }
        if (tensor_is_output(tensor)) {
            buffer_guard_fill(&harness->tensor[t], harness->guard_key);
        }
    }
    write_inputs(harness, data, &data->content[slot]);
    if (harness->flush) {
        flush_caches(harness);
    }
}

int harness_launch(struct harness *harness, enum arm_index arm, struct case_data *data, size_t slot,
                   struct launch_time *time, struct err *err)
{
    prepare(harness, arm, data, slot);
    uint64_t candidate_ns = runner_process_clock_ns(&harness->runner[ARM_CANDIDATE]);
    enum launch_outcome outcome =
        runner_process_launch(&harness->runner[arm], CONTROL_CALL, data->of->shape->i,
                              data->of->shape->f, harness->launch_limit_ns, time);
    int rc = harness_check_turn(harness, arm, candidate_ns, time ? time->wall : 0);
    if (rc != 0) {
        return rc;
    }
    if (outcome != LAUNCH_DONE) {
        return harness_runner_failed(harness, arm, outcome, data->of->name,
                                     harness->launch_limit_ns, err);
    }
    return harness_check(harness, arm, data, slot, err);
}
