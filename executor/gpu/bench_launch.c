// One launch: everything that it finds is as it must be, and everything that it may have written is
// looked at.
#include "common/clock.h"
#include "executor/gpu/bench_words.h"
#include <math.h>

#define FIRST_LIMIT_NS (500 * NS_PER_MS)
#define LIMIT_LEAST_NS (100 * NS_PER_MS)
#define LIMIT_FACTOR 50
#define LEAD_NS 40000 // what is queued takes the host about so long
#define TURNS 4

// ---- queueing ----

static int clear_results(struct bench *bench, struct err *err)
{
    uint64_t ones = ~0ULL;
    int rc = gpu_clear_words(bench->gpu, 0, WORD_COUNT, err);

    if (rc == 0) {
        rc = gpu_check(bench->gpu,
                       bench->gpu->driver.copy_to_device(gpu_word(bench->gpu, WORD_GUARD + 1),
                                                         &ones, sizeof(ones), bench->gpu->stream),
                       "clearing results", err);
    }
    return rc;
}

static int stamp(struct bench *bench, size_t number, struct err *err)
{
    cu_pointer out = gpu_word(bench->gpu, WORD_STAMP + 3 * number);

    return gpu_run(bench->gpu, GPU_STAMP, 1, (void *[]){&out}, err);
}

// Everything that a run finds is as it must be.
static int set_up(struct bench *bench, enum arm_index arm, size_t slot, struct err *err)
{
    int rc = slot == bench->slot ? 0 : bench_choose_slot(bench, slot, err);

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        switch (bench->problem->tensor[t].direction) {
        case DIRECTION_IN:
            break;
        case DIRECTION_OUT:
            rc = area_poison(&bench->live[t], bench->gpu, stats_rng_u64(&bench->measurement->rng),
                             err);
            break;
        case DIRECTION_INOUT:
            rc = bench_copy(bench, &bench->live[t], &bench->store[slot][t], err);
            break;
        }
    }
    if (rc == 0) {
        rc = program_reset(bench->arm[arm], stats_rng_u64(&bench->measurement->rng), err);
    }
    return rc == 0 ? gpu_poison_shared(bench->gpu, stats_rng_u64(&bench->measurement->rng), err)
                   : rc;
}

// The caches are as the problem says, and the stream is busy while what follows is being queued.
static int set_caches(struct bench *bench, struct err *err)
{
    cu_pointer sum = gpu_word(bench->gpu, WORD_SUM);

    if (bench->problem->cache == CACHE_COLD) {
        return gpu_flush(bench->gpu, err);
    }
    int rc = 0;
    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        cu_pointer in = bench->live[t].tensor;
        uint64_t bytes = bench->live[t].bytes;

        if (tensor_is_input(&bench->problem->tensor[t])) {
            rc = gpu_run(bench->gpu, GPU_READ, bytes / 16, (void *[]){&in, &bytes, &sum}, err);
        }
    }
    uint64_t lead = LEAD_NS;
    return rc == 0 ? gpu_run(bench->gpu, GPU_SPIN, 1, (void *[]){&lead}, err) : rc;
}

static int run_arm(struct bench *bench, enum arm_index arm, struct err *err)
{
    struct err why = ERR_INIT;
    int rc = program_run(bench->arm[arm], &why);

    if (rc == PROGRAM_UNFIT && arm == ARM_CANDIDATE) {
        return measurement_stop(bench->measurement, VERDICT_CRASH, "%s", why.text);
    }
    if (rc == 0) {
        return 0;
    }
    *err = why;
    return rc < 0 ? rc : err_wrap(err, "the baseline");
}

// The end of a launch is seen sooner or later by up to 0.2 us, depending on how many launches went
// before it, in turns of four; and from one timed launch to the next it is the same number of
// launches. Without more of them, a random number, each place in A B B A would have its own turn
// for as long as the contents stay the same.
static int take_random_turn(struct bench *bench, struct err *err)
{
    size_t more = stats_rng_below(&bench->measurement->rng, TURNS);
    int rc = 0;

    for (size_t i = 0; i < more && rc == 0; i++) {
        rc = stamp(bench, 0, err);
    }
    return rc;
}

static int timed_launch(struct bench *bench, enum arm_index arm, struct err *err)
{
    struct driver *d = &bench->gpu->driver;
    int rc = take_random_turn(bench, err);

    if (rc != 0) {
        return rc;
    }
    rc = stamp(bench, 0, err);
    if (rc != 0) {
        return rc;
    }
    rc = set_caches(bench, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(bench->gpu, d->event_record(bench->begin, bench->gpu->stream),
                   "recording an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = run_arm(bench, arm, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(bench->gpu, d->event_record(bench->end, bench->gpu->stream),
                   "recording an event", err);
    return rc == 0 ? stamp(bench, 1, err) : rc;
}

// Queues what has to be known afterwards: guards, and the hash of every tensor.
static int take_results(struct bench *bench, struct err *err)
{
    cu_pointer differ = gpu_word(bench->gpu, WORD_GUARD);
    uint64_t key = bench->guard_key;
    int rc = gpu_run(bench->gpu, GPU_GUARD_CHECK, AREA_GUARD / 4,
                     (void *[]){&bench->zones, &key, &differ}, err);

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        rc = area_hash(&bench->live[t], bench->gpu, bench->hash_key, WORD_HASH + 2 * t, err);
    }
    return rc == 0 ? gpu_read_words(bench->gpu, 0, WORD_COUNT, err) : rc;
}

// ---- waiting ----

// The baseline, which is trusted, may take as long as any launch may.
static uint64_t limit_ns(const struct bench *bench, bool candidate, bool first)
{
    double usual = LIMIT_FACTOR * bench->baseline_ns;
    uint64_t least = first ? FIRST_LIMIT_NS : LIMIT_LEAST_NS;
    uint64_t limit = usual > (double)least ? (uint64_t)usual : least;

    return candidate && limit < bench->launch_limit_ns ? limit : bench->launch_limit_ns;
}

static int await(struct bench *bench, const struct bench_trial *trial, bool candidate,
                 uint64_t limit, struct err *err)
{
    switch (gpu_wait(bench->gpu, limit)) {
    case GPU_DONE:
        return 0;
    case GPU_TIMEOUT:
        if (candidate) {
            return measurement_stop(bench->measurement, VERDICT_TIMEOUT,
                                    "a launch did not end within %.3g seconds, for %s",
                                    clock_seconds(limit), trial->of->name);
        }
        return err_set(err, ERR_SYSTEM, "the baseline did not end within %.3g seconds, for %s",
                       clock_seconds(limit), trial->of->name);
    case GPU_FAULT:
        break;
    }
    char buf[256];
    if (gpu_is_defective(bench->gpu)) {
        return err_set(err, ERR_SYSTEM, "the GPU has failed: %s, for %s",
                       gpu_result_text(bench->gpu, buf), trial->of->name);
    }
    if (candidate) {
        return measurement_stop(bench->measurement, VERDICT_CRASH,
                                "the candidate ended with %s, for %s",
                                gpu_result_text(bench->gpu, buf), trial->of->name);
    }
    return err_set(err, ERR_SYSTEM, "the baseline ended with %s, for %s",
                   gpu_result_text(bench->gpu, buf), trial->of->name);
}

// An error of the driver while something of an arm may have been running is that arm's fault: it surfaces
// in whatever call comes next. Not so where the hardware is at fault.
static int blame(struct bench *bench, const struct bench_trial *trial, bool candidate, int status,
                 struct err *err)
{
    if (status >= 0 || !bench->gpu->broken || gpu_is_defective(bench->gpu)) {
        return status;
    }
    *err = (struct err)ERR_INIT;
    char buf[256];
    if (candidate) {
        return measurement_stop(bench->measurement, VERDICT_CRASH,
                                "the candidate ended with %s, for %s",
                                gpu_result_text(bench->gpu, buf), trial->of->name);
    }
    return err_set(err, ERR_SYSTEM, "the baseline ended with %s, for %s",
                   gpu_result_text(bench->gpu, buf), trial->of->name);
}

// The clock of the multiprocessor between the two stamps of a launch.
static double clock_between(const uint64_t *stamps)
{
    double ns = (double)(stamps[3] - stamps[0]), cycles = (double)(stamps[4] - stamps[1]);

    return stamps[2] == stamps[5] && ns > 0 && cycles > 0 ? cycles / ns * 1e9 : NAN;
}

static int read_time(struct bench *bench, enum arm_index arm, struct bench_time *ret,
                     struct err *err)
{
    const uint64_t *stamps = bench->gpu->host_words + WORD_STAMP;
    float ms = 0;
    int rc = gpu_check(bench->gpu, bench->gpu->driver.event_elapsed(&ms, bench->begin, bench->end),
                       "reading events", err);

    if (rc != 0) {
        return rc;
    }
    *ret = (struct bench_time){.ns = (double)ms * 1e6, .clock_hz = clock_between(stamps)};
    if (arm == ARM_BASELINE) {
        bench->baseline_ns = fmax(bench->baseline_ns, ret->ns);
    }
    return 0;
}

// ---- from outside ----

static int queue_launch(struct bench *bench, enum arm_index arm, size_t slot, bool timed,
                        struct err *err)
{
    int rc = clear_results(bench, err);

    if (rc != 0) {
        return rc;
    }
    rc = set_up(bench, arm, slot, err);
    if (rc != 0) {
        return rc;
    }
    rc = timed ? timed_launch(bench, arm, err) : run_arm(bench, arm, err);
    return rc == 0 ? take_results(bench, err) : rc;
}

int bench_launch(struct bench *bench, struct bench_trial *trial, enum arm_index arm, size_t slot,
                 struct bench_time *time, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    double *verify_s = &bench->measurement->seconds.verify;
    bool candidate = arm == ARM_CANDIDATE;
    int rc = queue_launch(bench, arm, slot, time, err);

    if (rc == 0) {
        rc = await(bench, trial, candidate, limit_ns(bench, candidate, !time), err);
    }
    rc = blame(bench, trial, candidate, rc, err);
    if (rc != 0) {
        goto out;
    }
    rc = bench_check_damage(bench, trial, candidate, err);
    if (rc != 0) {
        goto out;
    }
    if (time) {
        rc = read_time(bench, arm, time, err);
        if (rc != 0) {
            goto out;
        }
    }
    rc = bench_check_outputs(bench, trial, arm, slot, err);
out:
    if (!time) {
        *verify_s = fmax(*verify_s, 0) + clock_seconds(clock_now_ns(&clock_system) - start);
    }
    return rc;
}
