// Design note. One run of the problem's reference. Every tensor is in the arena `open`, where a
// measurement has it, since that is where it was when a recorded one was recorded. That leaves its
// results in memory of its own, from which they are copied; a sealed one does not touch what
// outputs have in `open`.
#include "common/clock.h"
#include "executor/gpu/oracle_process.h"

#define REFERENCE_NS (20 * NS_PER_S) // limit for each run of the reference that is queued

int oracle_process_place(struct oracle_process *p, const struct tensor_sizes *sizes,
                         struct guarded_buffer live[static PROBLEM_TENSOR_MAX],
                         struct program_tensors *tensors, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        tensors->tensor[t] = &live[t];
        rc = guarded_buffer_place(&live[t], &p->gpu.open, sizes->bytes[t], err);
    }
    return rc;
}

// Queues filling the inputs of the set.
static int fill(struct oracle_process *p, const struct input_set *set,
                const struct tensor_sizes *sizes, const struct program_tensors *tensors,
                struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        if (p->problem->tensor[t].direction != DIRECTION_OUT) {
            rc = input_set_fill(set, &p->gpu, p->problem, t, tensors->tensor[t], sizes, err);
        }
    }
    return rc;
}

static void name_outputs(const struct oracle_process *p, const struct expected *entry,
                         struct program_tensors *tensors)
{
    for (size_t t = 0; t < p->problem->tensor_count; t++) {
        if (tensor_is_output(&p->problem->tensor[t])) {
            tensors->expected[t] = &entry->value[t];
            tensors->scale[t] = &entry->scale[t];
        }
    }
}

int oracle_process_ready(struct oracle_process *p, struct program *program, struct err *err)
{
    struct gpu_zones scratch = {.count = 0};

    if (!program_zones(program, false, &scratch)) {
        return err_set(err, ERR_LIMIT, "more scratch areas than can be filled");
    }
    int rc = gpu_pattern_fill(&p->gpu, &scratch, 3, err);
    return rc == 0 ? program_clear(program, err) : rc;
}

static int copy_result(struct oracle_process *p, const struct guarded_buffer *to,
                       const struct guarded_buffer *from, struct err *err)
{
    return from->bytes > 0
               ? gpu_check(&p->gpu,
                           p->gpu.driver.copy(to->tensor, from->tensor, from->bytes, p->gpu.stream),
                           "collecting what the reference computes", err)
               : 0;
}

// Queues copying results that the reference leaves in memory of its own.
static int collect(struct oracle_process *p, const struct program_tensors *tensors, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        rc = copy_result(p, tensors->expected[t], &p->reference->result[t], err);
        if (rc == 0) {
            rc = copy_result(p, tensors->scale[t], &p->reference->scale[t], err);
        }
    }
    return rc;
}

// The outputs are poisoned first: what the reference does not write stays NaN, and no output equals
// that but another NaN.
static int queue_reference(struct oracle_process *p, const struct input_set *set,
                           const struct program_tensors *tensors, struct err *err)
{
    int rc = program_prepare(p->reference, &set->shape, tensors, err);

    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        if (tensors->expected[t]) {
            rc = guarded_buffer_poison(tensors->expected[t], &p->gpu, 1, err);
        }
        if (rc == 0 && tensors->scale[t]) {
            rc = guarded_buffer_poison(tensors->scale[t], &p->gpu, 2, err);
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = oracle_process_ready(p, p->reference, err);
    if (rc != 0) {
        return rc;
    }
    rc = program_restore(p->reference, err);
    if (rc != 0) {
        return rc;
    }
    rc = program_run(p->reference, err);
    return rc == 0 ? collect(p, tensors, err) : rc;
}

int oracle_process_settle(struct oracle_process *p, struct err *err)
{
    char buf[256];

    if (p->computing > 0 && !p->gpu.hung && !p->gpu.broken) {
        (void)gpu_wait(&p->gpu, p->computing * REFERENCE_NS);
    }
    p->computing = 0;
    if (p->gpu.hung) {
        return err_set(err, ERR_INVALID, "the problem's reference fails: it does not end");
    }
    if (gpu_is_defective(&p->gpu)) {
        return err_set(err, ERR_SYSTEM, "the GPU has failed: %s", gpu_result_text(&p->gpu, buf));
    }
    return p->gpu.broken ? err_set(err, ERR_INVALID, "the problem's reference fails: %s",
                                   gpu_result_text(&p->gpu, buf))
                         : 0;
}

int oracle_process_blame(struct oracle_process *p, int rc, struct err *err)
{
    struct err why = ERR_INIT;
    int settled = p->computing > 0 ? oracle_process_settle(p, &why) : 0;

    if (settled != 0) {
        *err = why;
    }
    return settled != 0 ? settled : rc;
}

// A recorded one is waited for, because it owns a graph, which the next run makes anew.
static int run_reference(struct oracle_process *p, const struct input_set *set,
                         const struct program_tensors *tensors, struct err *err)
{
    if (queue_reference(p, set, tensors, err) != 0) {
        return err_wrap(err, "the problem's reference");
    }
    return p->reference->memory ? oracle_process_settle(p, err) : 0;
}

int oracle_process_compute(struct oracle_process *p, const struct input_set *set,
                           const struct tensor_sizes *sizes, struct expected *entry,
                           struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};
    struct guarded_buffer live[PROBLEM_TENSOR_MAX] = {{.tensor = 0}};

    arena_rewind(&p->gpu.open, p->gpu.open_mark);
    int rc = oracle_process_place(p, sizes, live, &tensors, err);
    if (rc != 0) {
        return rc;
    }
    p->computing++;
    rc = fill(p, set, sizes, &tensors, err);
    if (rc != 0) {
        return rc;
    }
    name_outputs(p, entry, &tensors);
    return run_reference(p, set, &tensors, err);
}
