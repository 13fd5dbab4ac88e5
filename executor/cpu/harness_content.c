// Contents: what the tensors of a case hold before a launch, and where the tensors lie.
#include "common/clock.h"
#include "executor/cpu/harness.h"
#include "executor/input_values.h"
#include "executor/inputs.h"
#include <stdlib.h>
#include <string.h>

// ---- cases ----

int harness_case_init(struct harness *harness, struct case_data *data,
                      const struct measure_case *of, struct err *err)
{
    const struct shape_case *shape = of->shape;

    *data = (struct case_data){.of = of};
    int rc = 0;
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        data->distance[t] = -1;
        rc = problem_elements(harness->problem, t, shape, &data->count[t], err);
        data->bytes[t] = data->count[t] * dtype_size(harness->problem->tensor[t].dtype);
        if (rc == 0) {
            rc = problem_last_extent(harness->problem, t, shape, &data->last[t], err);
        }
    }
    return rc;
}

void harness_case_release(struct harness *harness, struct case_data *data)
{
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        input_table_free(data->table[t]);
        free(data->stale[t]);
    }
    if (harness->made_for == data) {
        harness->made_for = NULL;
    }
    if (harness->placed == data) {
        harness->placed = NULL;
    }
    *data = (struct case_data){.of = NULL};
}

void harness_case_timed(struct harness *harness, struct case_data *data)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];

        if (tensor_is_input(tensor) && !data->table[t]) {
            uint64_t key = inputs_key(harness->plan->seed, data->of->index, UINT64_MAX, t);
            data->table[t] = input_table_create(tensor, key);
        }
    }
}

// ---- contents ----

void harness_content_make(struct harness *harness, const struct case_data *data, uint64_t number)
{
    uint64_t start = clock_now_ns(&clock_system);

    if (harness->made_for == data && harness->made_number == number) {
        return;
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        uint64_t key = inputs_key(harness->plan->seed, data->of->index, number, t);

        if (!tensor_is_input(tensor)) {
            continue;
        }
        if (number < MEASURE_CONTENTS) {
            inputs_fill(tensor->dtype,
                        input_values(tensor, harness->plan->seed, data->of->index, number), key,
                        data->count[t], data->last[t], harness->content[t]);
        } else {
            input_table_fill(data->table[t], key, data->count[t], data->last[t],
                             harness->content[t]);
        }
    }
    harness->made_for = data;
    harness->made_number = number;
    harness->measurement->seconds.inputs += seconds_since(start);
}

void harness_content_write(struct harness *harness, enum arm_index arm,
                           const struct case_data *data)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (tensor_is_input(&harness->problem->tensor[t])) {
            memcpy(buffer_tensor(harness_buffer(harness, arm, t)), harness->content[t],
                   data->bytes[t]);
        }
    }
}

// ---- places ----

struct buffer *harness_buffer(struct harness *harness, enum arm_index arm, size_t tensor)
{
    return harness->problem->tensor[tensor].direction == DIRECTION_IN ? &harness->input[tensor]
           : arm == ARM_REFERENCE                                     ? &harness->pristine[tensor]
                                                                      : &harness->output[tensor];
}

struct kept_outputs *harness_kept(struct harness *harness, enum arm_index arm, uint64_t number)
{
    return &harness->kept[arm != ARM_BASELINE][number & 1];
}

static void place(struct buffer *buffer, size_t bytes, size_t skew, uint64_t key)
{
    if (buffer->map) {
        buffer_place(buffer, bytes, skew, key);
    }
}

void harness_place(struct harness *harness, const struct case_data *data)
{
    uint64_t key = harness->guard_key = stats_rng_u64(&harness->measurement->rng);

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        size_t skew = buffer_skew(t, harness->problem->tensor_count);

        place(&harness->input[t], data->bytes[t], skew, key);
        place(&harness->expected[t], data->count[t] * sizeof(double), 0, key);
        place(&harness->scale[t], data->count[t] * sizeof(double), 0, key);
        place(&harness->pristine[t], data->bytes[t], skew, key);
        place(&harness->output[t], data->bytes[t], skew, key);
        if (harness->output[t].map) {
            buffer_fill_unused(&harness->output[t], key);
        }
    }
    harness->placed = data;
}
