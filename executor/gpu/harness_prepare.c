#include "executor/gpu/harness_words.h"

// Queues poisoning an output, and where the arm has its result elsewhere that place, too.
static int poison(struct gpu_harness *harness, enum arm_index arm, size_t tensor, struct err *err)
{
    struct stats_rng *rng = &harness->measurement->rng;
    const struct guarded_buffer *result = &harness->arm[arm]->result[tensor];
    int rc = guarded_buffer_poison(&harness->live[tensor], harness->gpu, stats_rng_u64(rng), err);

    return rc != 0 || result->bytes == 0
               ? rc
               : guarded_buffer_poison(result, harness->gpu, stats_rng_u64(rng), err);
}

// Queues what comes before the first of the two timed launches on a content: forgetting the outputs
// that are kept. Returns in *ret_second whether it is the second, which finds the inputs made and,
// since they were looked at after the second arm's launch, unchanged.
static int begin_pair(struct gpu_harness *harness, uint64_t content, bool *ret_second,
                      struct err *err)
{
    *ret_second = content >= MEASURE_CONTENTS && content == harness->pair;
    if (content < MEASURE_CONTENTS || *ret_second) {
        return 0;
    }
    harness->pair = content;
    return gpu_harness_forget_kept(harness, err);
}

// Queues making a tensor what a launch must find there.
static int make_tensor(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                       uint64_t content, bool second, size_t t, struct err *err)
{
    const struct tensor *tensor = &harness->problem->tensor[t];
    struct input_set set = gpu_harness_input_set(harness, data, content);

    if (!tensor_is_input(tensor)) {
        return poison(harness, arm, t, err);
    }
    return second && tensor->direction == DIRECTION_IN
               ? 0
               : input_set_fill(&set, harness->gpu, harness->problem, t, &harness->live[t],
                                &data->sizes, err);
}

int gpu_harness_prepare(struct gpu_harness *harness, const struct gpu_case *data,
                        enum arm_index arm, uint64_t content, struct err *err)
{
    struct stats_rng *rng = &harness->measurement->rng;
    struct gpu *gpu = harness->gpu;
    bool second = false;
    int rc = program_clear(harness->arm[arm], err);

    rc = rc == 0 ? begin_pair(harness, content, &second, err) : rc;
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = make_tensor(harness, data, arm, content, second, t, err);
    }
    if (rc != 0) {
        return rc;
    }
    rc = gpu_scrub_local(gpu, harness->arm[arm]->local_bytes, stats_rng_u64(rng), err);
    return rc == 0 ? gpu_poison_shared(gpu, stats_rng_u64(rng), err) : rc;
}
