// Design note. One launch is queued in two parts:
//
//   verification, the outputs of the launch before wait for the oracle: keep them
//   close the arena `judge`, unless it is closed
//     clear scratch memory
//     timed, the first of two launches on a content: forget the outputs that are kept
//     make the inputs, but for the second; poison outputs, local and shared memory
//     timed: 0 to 3 extra launches, stamp, caches, event, the arm's launches, event, stamp
//     untimed: stamp, the arm's launches, stamp
//     mark
//     compare the guards and, but for the baseline's timed launches, the inputs; digest every
//     output; copy the results to the host
//   wait for the mark; open the arena, where an arm has something in it to be restored
//     keep the outputs of the second arm; restore device variables and scratch memory's pattern
//   wait
//
// The looking is queued before anybody knows whether the launch ends: it needs nothing that a
// launch may not see, and goes on while the arena is opened. It begins when the launch has ended.
//
// A stamp also sets the result words to 0, the one before a launch so that it finds nothing there,
// the other so that it has no part in them.
//
// How long a launch takes depends, by some 20 ns, on its place in the block. So whatever is done
// for one arm only, or for one of the two launches on a content, precedes as many launches of one
// arm as of the other: inputs are compared and outputs kept after the second arm's launches, which
// in A B B A and in B A A B precede one of each arm; outputs are forgotten, and inputs made, before
// the first launch on each content.
//
// A stamp reads the timer and the cycle counter of one multiprocessor; two of them give its clock.
// They lie where a candidate can write, so each proves with keys that are used once that it is one:
// otherwise a candidate could have its slow launches taken for disturbed ones. The order of the
// timed calls is part of what was measured (docs/measuring.md): leave it as it is.
//
// What a launch costs, beside itself and the flush, from the figures of an H200 and the sizes of
// the tensors: making the inputs and comparing them, 0.1 ms each for 64 M floats, less for fewer,
// once for two launches; poisoning, digesting, keeping and forgetting outputs, 4 times their bytes
// at 2 to 4 TB/s; two waits and about eight short kernels, 55 us; where something is restored two
// changes of access, 100 us together.
#include "common/clock.h"
#include "executor/gpu/harness_handover.h"
#include "executor/gpu/harness_words.h"
#include <math.h>
#include <stdio.h>

#define FIRST_LIMIT_NS (500 * NS_PER_MS) // least limit of an untimed launch of the candidate
#define LIMIT_LEAST_NS (100 * NS_PER_MS) // least limit of a timed one
#define STANDSTILL_NS                                                                              \
    (2 * NS_PER_S)       // a GPU may stand still for so long when any program on it fails
#define LIMIT_FACTOR 50  // the candidate may take this many times the baseline's time
#define LEAD_NS 40000    // the host needs about as long to queue a launch
#define EXTRA_LAUNCHES 4 // the number of extra launches is below this

// ---- before a launch ----

// Queues a stamp, and setting the result words below `end` to 0.
static int stamp(struct gpu_harness *harness, size_t number, size_t end, struct err *err)
{
    cu_pointer out = gpu_word(harness->gpu, WORD_STAMP + number * STAMP_WORDS);
    cu_pointer clear = gpu_word(harness->gpu, WORD_DIGEST);
    uint64_t count = end - WORD_DIGEST;

    return gpu_run(harness->gpu, GPU_STAMP, 1,
                   (void *[]){&out, &harness->stamp_key[0], &harness->stamp_key[1], &clear, &count},
                   err);
}

static int stamp_before(struct gpu_harness *harness, struct err *err)
{
    return stamp(harness, 0, GPU_SCRATCH_WORDS, err);
}

static int stamp_after(struct gpu_harness *harness, struct err *err)
{
    return stamp(harness, 1, WORD_COUNT, err);
}

// Queues putting the caches into the state that the problem asks for. This also keeps the stream
// busy while the host queues what follows.
static int set_caches(struct gpu_harness *harness, struct err *err)
{
    cu_pointer sum = harness->gpu->words; // hardly ever written to

    if (harness->problem->cache == CACHE_COLD) {
        return gpu_flush(harness->gpu, err);
    }
    int rc = 0;
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        cu_pointer in = harness->live[t].tensor;
        uint64_t bytes = harness->live[t].bytes;

        if (tensor_is_input(&harness->problem->tensor[t])) {
            rc = gpu_run(harness->gpu, GPU_READ, bytes / 16, (void *[]){&in, &bytes, &sum}, err);
        }
    }
    uint64_t lead = LEAD_NS;
    return rc == 0 ? gpu_run(harness->gpu, GPU_SPIN, 1, (void *[]){&lead}, err) : rc;
}

static int run_arm(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                   struct err *err)
{
    struct err why = ERR_INIT;

    harness->inspected = false;
    if (arm == ARM_CANDIDATE) {
        harness->candidate_ran = harness->candidate_here = true;
    }
    int rc = program_run(harness->arm[arm], &why);
    if (rc == PROGRAM_UNFIT && arm == ARM_CANDIDATE) {
        return measurement_stop(harness->measurement, VERDICT_CRASH, "%s", why.text);
    }
    if (rc == PROGRAM_UNFIT) {
        return err_set(err, ERR_INVALID, "the baseline cannot be launched: %s, for %s", why.text,
                       data->of->name);
    }
    if (rc != 0) {
        *err = why;
    }
    return rc;
}

// Queues a random number of launches that do nothing of interest. The measured time of a launch
// depends on how many launches went before it, modulo four: it varies by up to 0.2 us. The number
// of launches between two timed ones is constant, so without the extra launches each position in a
// block A B B A would keep its own error for as long as the input data stays the same.
static int add_random_launches(struct gpu_harness *harness, struct err *err)
{
    size_t more = stats_rng_below(&harness->measurement->rng, EXTRA_LAUNCHES);
    int rc = 0;

    for (size_t i = 0; i < more && rc == 0; i++) {
        rc = stamp(harness, 0, WORD_DIGEST, err);
    }
    return rc;
}

static int timed_launch(struct gpu_harness *harness, const struct gpu_case *data,
                        enum arm_index arm, struct err *err)
{
    struct driver *d = &harness->gpu->driver;
    int rc = add_random_launches(harness, err);

    if (rc != 0) {
        return rc;
    }
    rc = stamp_before(harness, err);
    if (rc != 0) {
        return rc;
    }
    rc = set_caches(harness, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(harness->gpu, d->event_record(harness->begin, harness->gpu->stream),
                   "recording an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = run_arm(harness, data, arm, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(harness->gpu, d->event_record(harness->end, harness->gpu->stream),
                   "recording an event", err);
    return rc == 0 ? stamp_after(harness, err) : rc;
}

static int untimed_launch(struct gpu_harness *harness, const struct gpu_case *data,
                          enum arm_index arm, struct err *err)
{
    int rc = stamp_before(harness, err);

    if (rc != 0) {
        return rc;
    }
    rc = run_arm(harness, data, arm, err);
    return rc == 0 ? stamp_after(harness, err) : rc;
}

// ---- after a launch ----

// Queues giving back what the next launch must find, of all arms: a candidate may have reached the
// variables of another arm's module.
static int restore(struct gpu_harness *harness, enum arm_index arm, struct err *err)
{
    struct gpu_zones scratch = {.count = 0};
    int rc = 0;

    for (size_t i = 0; i < ARM_COUNT && rc == 0; i++) {
        if ((harness->arms & 1u << i) != 0) {
            rc = program_restore(harness->arm[i], err);
        }
    }
    if (rc != 0 || !program_zones(harness->arm[arm], false, &scratch) || scratch.count == 0) {
        return rc;
    }
    return gpu_pattern_fill(harness->gpu, &scratch, harness->pattern_key, err);
}

// Whether the launch's inputs are looked at. The baseline, which is known from verification to
// leave them alone, is timed without: a pair of launches has its inputs compared once.
static bool must_check_inputs(enum arm_index arm, uint64_t content)
{
    return arm != ARM_BASELINE || content < MEASURE_CONTENTS;
}

// Queues looking at one tensor.
static int look_at_tensor(struct gpu_harness *harness, const struct gpu_case *data,
                          enum arm_index arm, uint64_t content, size_t t, struct err *err)
{
    const struct tensor *tensor = &harness->problem->tensor[t];
    struct input_set set = gpu_harness_input_set(harness, data, content);
    struct gpu *gpu = harness->gpu;

    if (tensor->direction == DIRECTION_IN && !must_check_inputs(arm, content)) {
        return 0;
    }
    return tensor->direction == DIRECTION_IN
               ? input_set_check(&set, gpu, harness->problem, t,
                                 gpu_handover_input(harness, arm, t), &data->sizes, WORD_INPUT + t,
                                 err)
               : guarded_buffer_digest(&harness->live[t], gpu, (int)tensor->dtype,
                                       harness->hash_key, harness->sign_key + content,
                                       WORD_DIGEST + 4 * t, err);
}

static int keep_outputs(struct gpu_harness *harness, struct err *err)
{
    struct gpu *gpu = harness->gpu;
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        const struct guarded_buffer *live = &harness->live[t];

        if (tensor_is_output(&harness->problem->tensor[t])) {
            rc = gpu_check(
                gpu,
                gpu->driver.copy(harness->kept[t].tensor, live->tensor, live->bytes, gpu->stream),
                "keeping an output", err);
        }
    }
    return rc;
}

// Queues keeping the outputs of the launch of verification before, if they wait for the oracle.
static int keep_waiting(struct gpu_harness *harness, struct err *err)
{
    if (!harness->live_waits) {
        return 0;
    }
    if (harness->kept_waits) {
        return err_set(err, ERR_INTERNAL, "more outputs wait for the oracle than can be kept");
    }
    harness->live_waits = false;
    harness->kept_waits = true;
    return keep_outputs(harness, err);
}

// Queues copying results that are not in their tensors there.
static int collect(struct gpu_harness *harness, enum arm_index arm, struct err *err)
{
    struct gpu *gpu = harness->gpu;
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        const struct guarded_buffer *result = &harness->arm[arm]->result[t];

        if (result->bytes > 0) {
            rc = gpu_check(gpu,
                           gpu->driver.copy(harness->live[t].tensor, result->tensor, result->bytes,
                                            gpu->stream),
                           "collecting a result", err);
        }
    }
    return rc;
}

// Queues looking at what the launch that is queued will have done.
static int look(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                uint64_t content, const struct gpu_zones *zones, struct err *err)
{
    int rc = collect(harness, arm, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_pattern_check(harness->gpu, zones, harness->pattern_key, WORD_GUARD, err);
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = look_at_tensor(harness, data, arm, content, t, err);
    }
    return rc == 0 ? gpu_read_words(harness->gpu, 0, WORD_COUNT, err) : rc;
}

// Queues what else comes after a launch, and waits for all of it. The outputs of a timed launch of
// the second arm are kept, since the oracle may be asked for them when the baseline's for the same
// content are known. No code of a candidate runs before they are forgotten.
static int finish(struct gpu_harness *harness, enum arm_index arm, uint64_t content,
                  struct err *err)
{
    bool keeps = arm != ARM_BASELINE && content >= MEASURE_CONTENTS;
    int rc = keeps ? keep_outputs(harness, err) : 0;

    rc = rc == 0 ? restore(harness, arm, err) : rc;
    return rc == 0 ? gpu_finish(harness->gpu, "looking at what a launch has done", err) : rc;
}

// ---- waiting ----

// The limit of a launch. The baseline is trusted and gets the limit of the plan.
static uint64_t limit_ns(const struct gpu_harness *harness, const struct gpu_case *data,
                         enum arm_index arm, bool timed)
{
    double limit =
        fmax(LIMIT_FACTOR * data->baseline_ns, (double)(timed ? LIMIT_LEAST_NS : FIRST_LIMIT_NS));

    return arm == ARM_CANDIDATE && limit < (double)harness->launch_limit_ns
               ? (uint64_t)limit
               : harness->launch_limit_ns;
}

// The context is broken: a kernel of the arm has done it, because a fault on the device is reported
// by whichever call comes next. A defect of the hardware is nobody's fault.
static int fault(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                 uint64_t content, struct err *err)
{
    char buf[256], what[400];

    *err = (struct err)ERR_INIT;
    if (gpu_is_defective(harness->gpu)) {
        return err_set(err, ERR_SYSTEM, "the GPU has failed: %s, for %s",
                       gpu_result_text(harness->gpu, buf), data->of->name);
    }
    (void)snprintf(what, sizeof(what), "ended with %s", gpu_result_text(harness->gpu, buf));
    if (arm == ARM_CANDIDATE) {
        return gpu_harness_stop(harness, data, content, VERDICT_CRASH, "the candidate", what);
    }
    return gpu_harness_baseline_failed(harness, data, content, VERDICT_CRASH, ERR_SYSTEM, what,
                                       err);
}

// Waits for the mark behind the arm's launches.
static int await(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                 uint64_t content, uint64_t limit, struct err *err)
{
    char what[200];

    switch (gpu_wait_mark(harness->gpu, limit)) {
    case GPU_DONE:
        return 0;
    case GPU_FAULT:
        return fault(harness, data, arm, content, err);
    case GPU_TIMEOUT:
        break;
    }
    (void)snprintf(what, sizeof(what), "did not end within %.3g seconds", clock_seconds(limit));
    if (arm == ARM_CANDIDATE) {
        harness->doubtful = limit <= STANDSTILL_NS;
        return gpu_harness_stop(harness, data, content, VERDICT_TIMEOUT, "a launch", what);
    }
    return gpu_harness_baseline_failed(harness, data, content, VERDICT_CRASH, ERR_SYSTEM, what,
                                       err);
}

// ---- one launch ----

// Launches the arm where the candidate has its host code: the judge's clock runs from before the
// inputs are copied to where the candidate sees them until there is a copy of the outputs where it
// does not. The baseline's are copied as far, so that both have the same in their time. Before and
// after that nothing is queued but the stamps.
static int handed_over_launch(struct gpu_harness *harness, const struct gpu_case *data,
                              enum arm_index arm, uint64_t content, bool timed, struct err *err)
{
    uint64_t limit = limit_ns(harness, data, arm, timed);
    int rc = stamp_before(harness, err);

    rc = rc == 0 && timed ? set_caches(harness, err) : rc;
    rc = rc == 0 ? gpu_handover_ready(harness, err) : rc;
    if (rc != 0) {
        return rc;
    }
    uint64_t begin = clock_now_ns(&clock_system);
    rc = gpu_handover_give(harness, err);
    if (rc == 0) {
        rc = arm == ARM_CANDIDATE ? gpu_handover_run(harness, data, content, limit, err)
                                  : run_arm(harness, data, arm, err);
        harness->doubtful = arm == ARM_CANDIDATE && rc == MEASURE_STOP && limit <= STANDSTILL_NS;
    }
    rc = rc == 0 ? gpu_handover_take(harness, arm, err) : rc;
    rc = rc == 0 ? gpu_mark(harness->gpu, err) : rc;
    rc = rc == 0 ? await(harness, data, arm, content, limit, err) : rc;
    harness->handover->ns = (double)(clock_now_ns(&clock_system) - begin);
    return rc == 0 ? stamp_after(harness, err) : rc;
}

// Runs the arm, while what no launch may see is closed.
static int run_sealed(struct gpu_harness *harness, const struct gpu_case *data, enum arm_index arm,
                      uint64_t content, bool timed, const struct gpu_zones *zones, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    int rc = gpu_seal(harness->gpu, true, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_harness_prepare(harness, data, arm, content, err);
    if (rc == 0) {
        rc = harness->handover ? handed_over_launch(harness, data, arm, content, timed, err)
             : timed           ? timed_launch(harness, data, arm, err)
                               : untimed_launch(harness, data, arm, err);
    }
    rc = rc == 0 ? gpu_mark(harness->gpu, err) : rc;
    rc = rc == 0 ? look(harness, data, arm, content, zones, err) : rc;
    if (rc == 0) {
        rc = await(harness, data, arm, content, limit_ns(harness, data, arm, timed), err);
    } else if (rc < 0 && harness->gpu->broken) {
        rc = fault(harness, data, arm, content, err);
    }
    if (rc == 0 && arm == ARM_CANDIDATE) {
        rc = measurement_add_launch(harness->measurement, start, data->of->name);
    }
    struct err why = ERR_INIT;
    int opened = harness->must_restore ? gpu_seal(harness->gpu, false, &why) : 0;
    if (rc == 0 && opened != 0) {
        *err = why;
        rc = opened;
    }
    return rc;
}

int gpu_harness_launch(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                       uint64_t content, struct gpu_launch_time *time, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    struct gpu_zones zones = {.count = 0};

    for (size_t i = 0; i < 2; i++) {
        harness->stamp_key[i] = stats_rng_u64(&harness->measurement->rng);
    }
    int rc = keep_waiting(harness, err);
    rc = rc == 0 ? gpu_harness_zones(harness, arm, &zones, err) : rc;
    if (rc == 0) {
        rc = run_sealed(harness, data, arm, content, time, &zones, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = finish(harness, arm, content, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_harness_check_memory(harness, data, arm, content, &zones, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_harness_check_stamps(harness, data, arm, content, err);
    if (rc != 0) {
        goto out;
    }
    if (time) {
        rc = gpu_harness_read_time(harness, data, arm, time, err);
        if (rc != 0) {
            goto out;
        }
    } else {
        gpu_harness_note_time(harness, data, arm);
    }
    gpu_harness_note_outputs(harness, data, arm, content);
out:
    if (!time) {
        measurement_spend(&harness->measurement->seconds.verify, start);
    }
    return rc;
}
