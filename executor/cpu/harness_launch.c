// One launch: what is prepared before it and what is checked right after it.
#include "executor/cpu/harness.h"
#include "executor/input_values.h"
#include "executor/inputs.h"
#include <stdlib.h>
#include <string.h>

// ---- before ----

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

// Fills an output with NaN, with large noise, or with a right output of earlier contents, which
// shows a candidate that leaves old results in place.
static void poison(struct harness *harness, enum arm_index arm, const struct case_data *data,
                   size_t t)
{
    unsigned char *out = buffer_tensor(harness_buffer(harness, arm, t));
    uint64_t bits = stats_rng_u64(&harness->measurement->rng);

    if (data->stale[t] && bits % 4 == 0) {
        memcpy(out, data->stale[t], data->bytes[t]);
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

static void prepare(struct harness *harness, enum arm_index arm, const struct case_data *data)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (harness->problem->tensor[t].direction == DIRECTION_OUT) {
            poison(harness, arm, data, t);
        }
    }
    harness_content_write(harness, arm, data);
    if (harness->flush) {
        flush_caches(harness);
    }
}

// ---- after ----

static void keep_outputs(struct harness *harness, enum arm_index arm, const struct case_data *data,
                         uint64_t number)
{
    struct kept_outputs *kept = harness_kept(harness, arm, number);

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_output(&harness->problem->tensor[t])) {
            memcpy(kept->tensor[t], buffer_tensor(harness_buffer(harness, arm, t)), data->bytes[t]);
        }
    }
}

static int wrote(struct harness *harness, enum arm_index arm, const struct case_data *data,
                 uint64_t number, const char *what, size_t t, struct err *err)
{
    const char *name = harness->problem->tensor[t].name;
    char *where = input_values_where(harness->problem, data->of, harness->plan->seed, number);
    int rc = arm == ARM_CANDIDATE ? measurement_stop(harness->measurement, VERDICT_WRONG,
                                                     "it %s %s, for %s", what, name, where)
                                  : err_set(err, ERR_INVALID, "the %s is wrong: it %s %s, for %s",
                                            harness->runner[arm].name, what, name, where);

    free(where);
    return rc;
}

// A sealed input cannot have been written. Any other input is compared as a whole.
static int check_memory(struct harness *harness, enum arm_index arm, const struct case_data *data,
                        uint64_t number, struct err *err)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        bool is_input = harness->problem->tensor[t].direction == DIRECTION_IN;
        const struct buffer *buffer = harness_buffer(harness, arm, t);

        if (is_input && buffer->sealed) {
            continue;
        }
        if (is_input && memcmp(buffer_tensor(buffer), harness->content[t], data->bytes[t]) != 0) {
            return wrote(harness, arm, data, number, "changed its input", t, err);
        }
        if (!buffer_guard_intact(buffer, harness->guard_key)) {
            return wrote(harness, arm, data, number, "wrote outside", t, err);
        }
    }
    return 0;
}

int harness_check_all(struct harness *harness, struct case_data *data, struct err *err)
{
    bool candidate = (harness->arms & 1u << ARM_CANDIDATE) != 0;
    enum arm_index arm = candidate ? ARM_CANDIDATE : ARM_BASELINE;

    if (harness->placed != data) {
        return 0;
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct buffer *buffer = harness_buffer(harness, arm, t);

        if (!buffer->sealed && !buffer_pattern_intact(buffer, harness->guard_key)) {
            // On which content it did so is not known.
            return wrote(harness, arm, data, 0, "wrote outside", t, err);
        }
    }
    return harness_check_turn(harness);
}

int harness_check_turn(struct harness *harness)
{
    return runner_process_still(&harness->runner[ARM_CANDIDATE])
               ? 0
               : measurement_stop(harness->measurement, VERDICT_QUARANTINED,
                                  "the candidate ran while it was not its turn");
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
    const char *between = where[0] ? ", for " : "";
    int rc = runner->fault == RUNNER_FAULT_SETUP
                 ? err_set(err, ERR_SANDBOX, "%s%s%s", sentence, between, where)
             : index == ARM_CANDIDATE
                 ? measurement_stop(harness->measurement, (enum verdict)verdict, "%s%s%s", sentence,
                                    between, where)
                 : err_set(err, ERR_INVALID, "%s%s%s", sentence, between, where);
    free(sentence);
    return rc;
}

// ---- the launch ----

int harness_launch(struct harness *harness, enum arm_index arm, struct case_data *data,
                   uint64_t number, struct launch_time *time, struct err *err)
{
    harness_content_make(harness, data, number);
    prepare(harness, arm, data);
    int rc = harness_check_turn(harness);
    if (rc != 0) {
        return rc;
    }
    uint64_t start = clock_now_ns(&clock_system);
    enum launch_outcome outcome =
        runner_process_launch(&harness->runner[arm], CONTROL_CALL, data->of->shape->i,
                              data->of->shape->f, harness->launch_limit_ns, time);
    if (arm != ARM_CANDIDATE) {
        rc = harness_check_turn(harness);
        if (rc != 0) {
            return rc;
        }
    }
    if (outcome != LAUNCH_DONE) {
        char *where = input_values_where(harness->problem, data->of, harness->plan->seed, number);
        rc = harness_runner_failed(harness, arm, outcome, where, harness->launch_limit_ns, err);
        free(where);
    } else {
        keep_outputs(harness, arm, data, number);
        rc = check_memory(harness, arm, data, number, err);
    }
    if (rc == 0 && arm == ARM_CANDIDATE) {
        rc = measurement_add_launch(harness->measurement, start, data->of->name);
    }
    return rc != 0 && arm == ARM_BASELINE ? harness_baseline_failed(harness, data, number, rc, err)
                                          : rc;
}
