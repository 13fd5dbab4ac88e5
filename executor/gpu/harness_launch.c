// Design note. One launch is queued as a whole, then the host waits once:
//
//   clear the result words; restore inputs, outputs, scratch memory, device variables
//   timed: 0 to 3 extra launches, stamp, caches, event, the arm's launches, event, stamp
//   untimed: the arm's launches
//   compare the guards, hash every tensor, copy the result words to the host
//
// A stamp reads the timer and the cycle counter of one multiprocessor; two of them give its clock.
// The order of these calls is part of what was measured (docs/measuring.md): leave it as it is.
#include "common/clock.h"
#include "executor/gpu/harness_words.h"
#include <math.h>

#define FIRST_LIMIT_NS (500 * NS_PER_MS) // least limit of an untimed launch of the candidate
#define LIMIT_LEAST_NS (100 * NS_PER_MS) // least limit of a timed one
#define LIMIT_FACTOR 50  // the candidate may take this many times the baseline's time
#define LEAD_NS 40000    // the host needs about as long to queue a launch
#define EXTRA_LAUNCHES 4 // the number of extra launches is below this

// ---- queueing ----

static int clear_results(struct gpu_harness *harness, struct err *err)
{
    uint64_t ones = ~0ULL;
    int rc = gpu_clear_words(harness->gpu, 0, WORD_COUNT, err);

    if (rc == 0) {
        rc = gpu_check(harness->gpu,
                       harness->gpu->driver.copy_to_device(gpu_word(harness->gpu, WORD_GUARD + 1),
                                                           &ones, sizeof(ones),
                                                           harness->gpu->stream),
                       "clearing results", err);
    }
    return rc;
}

static int stamp(struct gpu_harness *harness, size_t number, struct err *err)
{
    cu_pointer out = gpu_word(harness->gpu, WORD_STAMP + 3 * number);

    return gpu_run(harness->gpu, GPU_STAMP, 1, (void *[]){&out}, err);
}

// Queues restoring the state that every run must find.
static int restore(struct gpu_harness *harness, enum arm_index arm, size_t slot, struct err *err)
{
    int rc = slot == harness->slot ? 0 : gpu_harness_choose_slot(harness, slot, err);

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        switch (harness->problem->tensor[t].direction) {
        case DIRECTION_IN:
            break;
        case DIRECTION_OUT:
            rc = guarded_buffer_poison(&harness->live[t], harness->gpu,
                                       stats_rng_u64(&harness->measurement->rng), err);
            break;
        case DIRECTION_INOUT:
            rc = gpu_harness_copy(harness, &harness->live[t], &harness->store[slot][t], err);
            break;
        }
    }
    if (rc == 0) {
        rc = program_reset(harness->arm[arm], stats_rng_u64(&harness->measurement->rng), err);
    }
    return rc == 0 ? gpu_poison_shared(harness->gpu, stats_rng_u64(&harness->measurement->rng), err)
                   : rc;
}

// Queues putting the caches into the state that the problem asks for. This also keeps the stream
// busy while the host queues what follows.
static int set_caches(struct gpu_harness *harness, struct err *err)
{
    cu_pointer sum = gpu_word(harness->gpu, WORD_SUM);

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

static int run_arm(struct gpu_harness *harness, enum arm_index arm, struct err *err)
{
    struct err why = ERR_INIT;
    int rc = program_run(harness->arm[arm], &why);

    if (rc == PROGRAM_UNFIT && arm == ARM_CANDIDATE) {
        return measurement_stop(harness->measurement, VERDICT_CRASH, "%s", why.text);
    }
    if (rc == 0) {
        return 0;
    }
    *err = why;
    return rc < 0 ? rc : err_wrap(err, "the baseline");
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
        rc = stamp(harness, 0, err);
    }
    return rc;
}

static int timed_launch(struct gpu_harness *harness, enum arm_index arm, struct err *err)
{
    struct driver *d = &harness->gpu->driver;
    int rc = add_random_launches(harness, err);

    if (rc != 0) {
        return rc;
    }
    rc = stamp(harness, 0, err);
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
    rc = run_arm(harness, arm, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(harness->gpu, d->event_record(harness->end, harness->gpu->stream),
                   "recording an event", err);
    return rc == 0 ? stamp(harness, 1, err) : rc;
}

// Queues comparing the guards and hashing every tensor, and brings the results to the host.
static int take_results(struct gpu_harness *harness, struct err *err)
{
    cu_pointer differ = gpu_word(harness->gpu, WORD_GUARD);
    uint64_t key = harness->guard_key;
    int rc = gpu_run(harness->gpu, GPU_GUARD_CHECK, GUARD_BYTES / 4,
                     (void *[]){&harness->zones, &key, &differ}, err);

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = guarded_buffer_hash(&harness->live[t], harness->gpu, harness->hash_key,
                                 WORD_HASH + 2 * t, err);
    }
    return rc == 0 ? gpu_read_words(harness->gpu, 0, WORD_COUNT, err) : rc;
}

// ---- waiting ----

// The limit of a launch. The baseline is trusted and gets the limit of the plan.
static uint64_t limit_ns(const struct gpu_harness *harness, bool candidate, bool first)
{
    double usual = LIMIT_FACTOR * harness->baseline_ns;
    uint64_t least = first ? FIRST_LIMIT_NS : LIMIT_LEAST_NS;
    uint64_t limit = usual > (double)least ? (uint64_t)usual : least;

    return candidate && limit < harness->launch_limit_ns ? limit : harness->launch_limit_ns;
}

static int await(struct gpu_harness *harness, const struct gpu_case *data, bool candidate,
                 uint64_t limit, struct err *err)
{
    switch (gpu_wait(harness->gpu, limit)) {
    case GPU_DONE:
        return 0;
    case GPU_TIMEOUT:
        if (candidate) {
            return measurement_stop(harness->measurement, VERDICT_TIMEOUT,
                                    "a launch did not end within %.3g seconds, for %s",
                                    clock_seconds(limit), data->of->name);
        }
        return err_set(err, ERR_SYSTEM, "the baseline did not end within %.3g seconds, for %s",
                       clock_seconds(limit), data->of->name);
    case GPU_FAULT:
        break;
    }
    char buf[256];
    if (gpu_is_defective(harness->gpu)) {
        return err_set(err, ERR_SYSTEM, "the GPU has failed: %s, for %s",
                       gpu_result_text(harness->gpu, buf), data->of->name);
    }
    if (candidate) {
        return measurement_stop(harness->measurement, VERDICT_CRASH,
                                "the candidate ended with %s, for %s",
                                gpu_result_text(harness->gpu, buf), data->of->name);
    }
    return err_set(err, ERR_SYSTEM, "the baseline ended with %s, for %s",
                   gpu_result_text(harness->gpu, buf), data->of->name);
}

// Attributes an error of the driver to the arm whose kernels may have been running: a fault on the
// device is reported by whichever call comes next. A defect of the hardware is nobody's fault.
static int blame(struct gpu_harness *harness, const struct gpu_case *data, bool candidate, int rc,
                 struct err *err)
{
    if (rc >= 0 || !harness->gpu->broken || gpu_is_defective(harness->gpu)) {
        return rc;
    }
    *err = (struct err)ERR_INIT;
    char buf[256];
    if (candidate) {
        return measurement_stop(harness->measurement, VERDICT_CRASH,
                                "the candidate ended with %s, for %s",
                                gpu_result_text(harness->gpu, buf), data->of->name);
    }
    return err_set(err, ERR_SYSTEM, "the baseline ended with %s, for %s",
                   gpu_result_text(harness->gpu, buf), data->of->name);
}

// The average clock, in Hz, of the multiprocessor between the two stamps of a launch. NaN when they
// were taken on different multiprocessors.
static double clock_between(const uint64_t *stamps)
{
    double ns = (double)(stamps[3] - stamps[0]), cycles = (double)(stamps[4] - stamps[1]);

    return stamps[2] == stamps[5] && ns > 0 && cycles > 0 ? cycles / ns * 1e9 : NAN;
}

static int read_time(struct gpu_harness *harness, enum arm_index arm, struct gpu_launch_time *ret,
                     struct err *err)
{
    const uint64_t *stamps = harness->gpu->host_words + WORD_STAMP;
    float ms = 0;
    int rc = gpu_check(harness->gpu,
                       harness->gpu->driver.event_elapsed(&ms, harness->begin, harness->end),
                       "reading events", err);

    if (rc != 0) {
        return rc;
    }
    *ret = (struct gpu_launch_time){.ns = (double)ms * 1e6, .clock_hz = clock_between(stamps)};
    if (arm == ARM_BASELINE) {
        harness->baseline_ns = fmax(harness->baseline_ns, ret->ns);
    }
    return 0;
}

// ---- one launch ----

static int queue_launch(struct gpu_harness *harness, enum arm_index arm, size_t slot, bool timed,
                        struct err *err)
{
    int rc = clear_results(harness, err);

    if (rc != 0) {
        return rc;
    }
    rc = restore(harness, arm, slot, err);
    if (rc != 0) {
        return rc;
    }
    rc = timed ? timed_launch(harness, arm, err) : run_arm(harness, arm, err);
    return rc == 0 ? take_results(harness, err) : rc;
}

int gpu_harness_launch(struct gpu_harness *harness, struct gpu_case *data, enum arm_index arm,
                       size_t slot, struct gpu_launch_time *time, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    double *verify_s = &harness->measurement->seconds.verify;
    bool candidate = arm == ARM_CANDIDATE;
    int rc = queue_launch(harness, arm, slot, time, err);

    if (rc == 0) {
        rc = await(harness, data, candidate, limit_ns(harness, candidate, !time), err);
    }
    rc = blame(harness, data, candidate, rc, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_harness_check_memory(harness, data, candidate, err);
    if (rc != 0) {
        goto out;
    }
    if (time) {
        rc = read_time(harness, arm, time, err);
        if (rc != 0) {
            goto out;
        }
    }
    rc = gpu_harness_check_outputs(harness, data, arm, slot, err);
out:
    if (!time) {
        *verify_s = fmax(*verify_s, 0) + clock_seconds(clock_now_ns(&clock_system) - start);
    }
    return rc;
}
