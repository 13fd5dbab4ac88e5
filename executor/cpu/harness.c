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

static int make_output(struct harness *harness, size_t t, size_t most, struct err *err)
{
    enum direction direction = harness->problem->tensor[t].direction;
    size_t size = most * dtype_size(harness->problem->tensor[t].dtype);
    int rc = buffer_create(&harness->expected[t], most * sizeof(double), false, err);

    if (rc == 0) {
        rc = buffer_create(&harness->scale[t], most * sizeof(double), false, err);
    }
    if (rc == 0) {
        rc = buffer_create(&harness->output[t], size, false, err);
    }
    if (rc == 0 && direction == DIRECTION_INOUT) {
        rc = buffer_create(&harness->pristine[t], size, true, err);
    }
    for (size_t i = 0; i < 4; i++) {
        harness->kept[i / 2][i % 2].tensor[t] = xmalloc(size);
    }
    return rc;
}

// most[t] is the number of elements of tensor t in its largest case.
static int make_buffers(struct harness *harness, const size_t *most, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        size_t size = most[t] * dtype_size(tensor->dtype);

        if (tensor_is_input(tensor)) {
            harness->content[t] = xmalloc(size);
        }
        rc = tensor->direction == DIRECTION_IN ? buffer_create(&harness->input[t], size, true, err)
                                               : make_output(harness, t, most[t], err);
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
            add_pointer(runner, harness_buffer(harness, index, t), tensor_is_output(tensor));
            continue;
        }
        if (tensor_is_input(tensor)) {
            add_pointer(runner, harness_buffer(harness, index, t), false);
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

static int size_buffers(struct harness *harness, const struct shape_case *const *shape,
                        size_t shape_count, struct err *err)
{
    size_t most[PROBLEM_TENSOR_MAX] = {0}, count;

    for (size_t s = 0; s < shape_count; s++) {
        for (size_t t = 0; t < harness->problem->tensor_count; t++) {
            int rc = problem_elements(harness->problem, t, shape[s], &count, err);
            if (rc != 0) {
                return rc;
            }
            most[t] = count > most[t] ? count : most[t];
        }
    }
    return make_buffers(harness, most, err);
}

// Waits until the runner has loaded its object.
static int await_runner(struct harness *harness, enum arm_index index, struct err *err)
{
    enum launch_outcome outcome = runner_process_ready(&harness->runner[index], START_LIMIT_NS);

    return outcome == LAUNCH_DONE
               ? 0
               : harness_runner_failed(harness, index, outcome, "", START_LIMIT_NS, err);
}

// Starts the trusted runners side by side, and the candidate's when they have loaded their objects,
// so that it can reach none of these.
static int start_runners(struct harness *harness, struct err *err)
{
    static const enum arm_index trusted[] = {ARM_REFERENCE, ARM_BASELINE, ARM_CONTROL};
    size_t count = harness->plan->control ? 3 : 2;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = start_runner(harness, trusted[i], err);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = await_runner(harness, trusted[i], err);
    }
    if (rc != 0) {
        return rc;
    }
    rc = start_runner(harness, ARM_CANDIDATE, err);
    return rc == 0 ? await_runner(harness, ARM_CANDIDATE, err) : rc;
}

static int renew(struct harness *harness, enum arm_index index, const char *where, struct err *err)
{
    enum launch_outcome outcome = runner_process_renew(&harness->runner[index], START_LIMIT_NS);

    return outcome == LAUNCH_DONE
               ? 0
               : harness_runner_failed(harness, index, outcome, where, START_LIMIT_NS, err);
}

// Measures empty launches. Their processor time is the overhead that is reported. The excess of
// their wall time is the cost of waking processes up.
static int measure_overhead(struct harness *harness, struct err *err)
{
    enum { LAUNCHES = 31 };
    struct runner_process *runner = &harness->runner[ARM_BASELINE];
    struct launch_time time;
    double excess[LAUNCHES], empty[LAUNCHES];

    for (size_t i = 0; i < LAUNCHES; i++) {
        enum launch_outcome outcome =
            runner_process_launch(runner, CONTROL_NOTHING, NULL, NULL, START_LIMIT_NS, &time);
        if (outcome != LAUNCH_DONE) {
            return harness_runner_failed(harness, ARM_BASELINE, outcome, "an empty launch",
                                         START_LIMIT_NS, err);
        }
        excess[i] = fmax(time.wall - time.cpu, 0);
        empty[i] = time.cpu;
    }
    harness->measurement->overhead_ns = stats_median(empty, LAUNCHES);
    harness->wake_ns = stats_median(excess, LAUNCHES);
    return 0;
}

int harness_start(struct harness *harness, const struct shape_case *const *shape,
                  size_t shape_count, struct err *err)
{
    harness->launch_limit_ns = (uint64_t)(harness->plan->launch_seconds * 1e9);
    harness->reference_limit_ns = harness->launch_limit_ns * 10 > REFERENCE_LIMIT_NS
                                      ? harness->launch_limit_ns * 10
                                      : REFERENCE_LIMIT_NS;
    int rc = size_buffers(harness, shape, shape_count, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_flush(harness, err);
    if (rc != 0) {
        return rc;
    }
    rc = start_runners(harness, err);
    if (rc != 0) {
        return rc;
    }
    rc = renew(harness, ARM_REFERENCE, "", err);
    if (rc != 0) {
        return rc;
    }
    rc = renew(harness, ARM_BASELINE, "", err);
    return rc == 0 ? measure_overhead(harness, err) : rc;
}

int harness_renew(struct harness *harness, struct case_data *data, unsigned arms, struct err *err)
{
    int rc = 0;

    for (enum arm_index arm = ARM_BASELINE; arm < ARM_COUNT; arm++) {
        runner_end_child(&harness->runner[arm]);
    }
    harness_place(harness, data);
    harness->arms = arms;
    for (enum arm_index arm = ARM_BASELINE; arm < ARM_COUNT && rc == 0; arm++) {
        rc = (arms & 1u << arm) != 0 ? renew(harness, arm, data->of->name, err) : 0;
    }
    return rc;
}

void harness_release(struct harness *harness)
{
    for (enum arm_index arm = 0; arm < ARM_COUNT; arm++) {
        runner_process_release(&harness->runner[arm]);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        buffer_release(&harness->input[t]);
        buffer_release(&harness->expected[t]);
        buffer_release(&harness->scale[t]);
        buffer_release(&harness->output[t]);
        buffer_release(&harness->pristine[t]);
        for (size_t i = 0; i < 4; i++) {
            free(harness->kept[i / 2][i % 2].tensor[t]);
        }
        free(harness->content[t]);
    }
    if (harness->flush) {
        munmap(harness->flush, harness->flush_bytes);
    }
    *harness = (struct harness){.plan = NULL};
}
