#include "executor/gpu/bench.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Results that kernels leave in gpu->words.
#define WORD_HASH 0                                     // of tensor t: two words
#define WORD_GUARD (WORD_HASH + PROBLEM_TENSOR_MAX * 2) // changed words, first such zone
#define WORD_STAMP (WORD_GUARD + 2)                     // before the launch, after it
#define WORD_COUNT (WORD_STAMP + 6)
#define WORD_SUM WORD_COUNT // nobody reads it

#define FIRST_LIMIT_NS (500 * NS_PER_MS)
#define LIMIT_LEAST_NS (100 * NS_PER_MS)
#define LIMIT_FACTOR 50
#define LEAD_NS 40000 // what is queued takes the host about so long
#define OVERHEAD_RUNS 16
#define TURNS 4

static double since(uint64_t start_ns)
{
    return clock_seconds(clock_now_ns(&clock_system) - start_ns);
}

static bool is_input(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_OUT;
}

static bool is_output(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_IN;
}

int bench_stop(struct bench *bench, enum verdict verdict, const char *format, ...)
{
    va_list args;

    if (bench->verdict == VERDICT_NONE) {
        va_start(args, format);
        struct strbuf text = STRBUF_INIT;
        strbuf_vaddf(&text, format, args);
        va_end(args);
        bench->verdict = verdict;
        bench->reason = strbuf_detach(&text);
    }
    return BENCH_STOP;
}

// ---- begin and end ----

static int measure_overhead(struct bench *bench, struct err *err)
{
    struct driver *d = &bench->gpu->driver;
    double ns[OVERHEAD_RUNS];
    int rc = 0;

    for (size_t i = 0; i < OVERHEAD_RUNS && rc == 0; i++) {
        rc = gpu_flush(bench->gpu, err);
        if (rc == 0) {
            rc = gpu_check(bench->gpu, d->event_record(bench->begin, bench->gpu->stream),
                           "recording an event", err);
        }
        if (rc == 0) {
            rc = gpu_check(bench->gpu, d->event_record(bench->end, bench->gpu->stream),
                           "recording an event", err);
        }
        if (rc == 0) {
            rc = gpu_finish(bench->gpu, "an empty window", err);
        }
        float ms = 0;
        if (rc == 0) {
            rc = gpu_check(bench->gpu, d->event_elapsed(&ms, bench->begin, bench->end),
                           "reading events", err);
        }
        ns[i] = (double)ms * 1e6;
    }
    if (rc == 0) {
        bench->overhead_ns = stats_median(ns, OVERHEAD_RUNS);
    }
    return rc;
}

int bench_init(struct bench *bench, struct gpu *gpu, struct oracle *oracle,
               const struct measure_plan *plan, struct problem *problem_take, struct err *err)
{
    *bench = (struct bench){.gpu = gpu, .oracle = oracle, .plan = plan, .problem = problem_take};
    message_init(&accounts_message, &bench->seconds);
    bench->max_error = bench->error_bound = NAN;
    bench->launch_limit_ns = (uint64_t)(plan->launch_seconds * 1e9);
    stats_rng_init(&bench->rng, plan->seed, 0x62656e6368ULL);
    bench->guard_key = stats_rng_u64(&bench->rng);
    bench->hash_key = stats_rng_u64(&bench->rng);
    int rc = gpu_check(gpu, gpu->driver.event_create(&bench->begin, CU_EVENT_DEFAULT),
                       "making an event", err);
    if (rc == 0) {
        rc = gpu_check(gpu, gpu->driver.event_create(&bench->end, CU_EVENT_DEFAULT),
                       "making an event", err);
    }
    return rc == 0 ? measure_overhead(bench, err) : rc;
}

void bench_release(struct bench *bench)
{
    struct gpu *gpu = bench->gpu;

    for (size_t arm = 0; arm < BENCH_ARMS; arm++) {
        program_free(bench->arm[arm]);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        area_release(&bench->live[t], gpu);
        for (size_t slot = 0; slot < BENCH_SLOTS; slot++) {
            area_release(&bench->store[slot][t], gpu);
        }
    }
    if (!gpu->hung && bench->begin && bench->end) {
        (void)gpu->driver.event_destroy(bench->begin);
        (void)gpu->driver.event_destroy(bench->end);
    }
    problem_free(bench->problem);
    free(bench->reason);
    *bench = (struct bench){.gpu = NULL};
}

int bench_trial_init(struct bench *bench, struct bench_trial *trial, const struct shape_case *shape,
                     uint64_t index, struct err *err)
{
    *trial = (struct bench_trial){.shape = shape, .index = index};
    for (size_t slot = 0; slot < BENCH_SLOTS; slot++) {
        trial->number[slot] = slot;
    }
    struct strbuf name = STRBUF_INIT;
    problem_case_name(bench->problem, shape, &name);
    trial->name = strbuf_detach(&name);
    return content_sizes(bench->problem, shape, &trial->sizes, err);
}

void bench_trial_release(struct bench_trial *trial)
{
    free(trial->name);
    *trial = (struct bench_trial){.shape = NULL};
}

// ---- contents ----

static struct oracle_content content_of(const struct bench *bench, const struct bench_trial *trial,
                                        size_t slot)
{
    return (struct oracle_content){.shape = *trial->shape,
                                   .seed = bench->plan->seed,
                                   .case_index = trial->index,
                                   .number = trial->number[slot]};
}

static int announce(struct bench *bench, const struct bench_trial *trial, size_t slot,
                    struct err *err)
{
    struct oracle_content content = content_of(bench, trial, slot);

    return oracle_expect(bench->oracle, &content, err);
}

int bench_announce(struct bench *bench, const struct bench_trial *trial, struct err *err)
{
    int rc = 0;

    for (size_t slot = 0; slot < BENCH_SLOTS && rc == 0; slot++) {
        rc = announce(bench, trial, slot, err);
    }
    return rc;
}

// Fills the slot's inputs and remembers their hashes.
static int fill_slot(struct bench *bench, const struct bench_trial *trial, size_t slot,
                     struct err *err)
{
    struct problem *problem = bench->problem;
    int rc = gpu_clear_words(bench->gpu, WORD_HASH, PROBLEM_TENSOR_MAX * 2, err);

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        if (is_input(&problem->tensor[t])) {
            rc = content_fill(bench->gpu, &problem->tensor[t], t, &bench->store[slot][t],
                              &trial->sizes, bench->plan->seed, trial->index, trial->number[slot],
                              err);
            if (rc == 0) {
                rc = area_hash(&bench->store[slot][t], bench->gpu, bench->hash_key,
                               WORD_HASH + 2 * t, err);
            }
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = gpu_read_words(bench->gpu, WORD_HASH, PROBLEM_TENSOR_MAX * 2, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(bench->gpu, "making inputs", err);
    if (rc != 0) {
        return rc;
    }
    memcpy(bench->input_hash[slot], bench->gpu->host_words + WORD_HASH,
           sizeof(bench->input_hash[slot]));
    return rc;
}

static int copy_area(struct bench *bench, const struct area *to, const struct area *from,
                     struct err *err)
{
    return gpu_check(
        bench->gpu,
        bench->gpu->driver.copy(to->tensor, from->tensor, from->bytes, bench->gpu->stream),
        "copying a tensor", err);
}

// The slot's inputs become the live ones.
static int choose_slot(struct bench *bench, size_t slot, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        if (is_input(&bench->problem->tensor[t])) {
            rc = copy_area(bench, &bench->live[t], &bench->store[slot][t], err);
        }
    }
    bench->slot = slot;
    return rc;
}

int bench_renew(struct bench *bench, struct bench_trial *trial, size_t slot, uint64_t number,
                struct err *err)
{
    trial->number[slot] = number;
    for (size_t arm = 0; arm < BENCH_ARMS; arm++) {
        trial->verified[arm][slot].known = false;
    }
    int rc = announce(bench, trial, slot, err);
    if (rc == 0) {
        rc = fill_slot(bench, trial, slot, err);
    }
    return rc == 0 && bench->slot == slot ? choose_slot(bench, slot, err) : rc;
}

// ---- placing ----

static int place_memory(struct bench *bench, const struct bench_trial *trial, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &bench->problem->tensor[t];
        size_t bytes = trial->sizes.bytes[t];

        rc = area_place(&bench->live[t], bench->gpu, bytes, err);
        for (size_t slot = 0; slot < BENCH_SLOTS && rc == 0 && is_input(tensor); slot++) {
            rc = area_place(&bench->store[slot][t], bench->gpu, bytes, err);
        }
    }
    return rc;
}

static int prepare_arm(struct bench *bench, const struct bench_trial *trial, enum bench_arm arm,
                       struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};

    for (size_t t = 0; t < bench->problem->tensor_count; t++) {
        tensors.tensor[t] = &bench->live[t];
    }
    struct err why = ERR_INIT;
    int rc = program_prepare(bench->arm[arm], trial->shape, &tensors, &why);
    if (rc == PROGRAM_UNFIT && arm == BENCH_CANDIDATE) {
        return bench_stop(bench, VERDICT_CRASH, "%s, for %s", why.text, trial->name);
    }
    if (rc == PROGRAM_UNFIT) {
        return err_set(err, ERR_INVALID, "the baseline cannot be launched: %s", why.text);
    }
    if (rc != 0) {
        *err = why;
    }
    return rc;
}

static int fill_guards(struct bench *bench, unsigned arms, struct err *err)
{
    struct gpu_zones *zones = &bench->zones;
    uint64_t key = bench->guard_key;

    *zones = (struct gpu_zones){.count = 0};
    bool room = true;
    for (size_t t = 0; t < bench->problem->tensor_count; t++) {
        room = room && area_guards(&bench->live[t], zones);
    }
    for (size_t arm = 0; arm < BENCH_ARMS; arm++) {
        if (arms & (1u << arm)) {
            room = room && program_guards(bench->arm[arm], zones);
        }
    }
    if (!room) {
        return err_set(err, ERR_LIMIT, "more tensors and scratch areas than can be guarded");
    }
    return gpu_run(bench->gpu, GPU_GUARD_FILL, AREA_GUARD / 4, (void *[]){zones, &key}, err);
}

int bench_place(struct bench *bench, struct bench_trial *trial, unsigned arms, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    int rc = place_memory(bench, trial, err);

    for (size_t slot = 0; slot < BENCH_SLOTS && rc == 0; slot++) {
        rc = fill_slot(bench, trial, slot, err);
    }
    for (enum bench_arm arm = 0; arm < BENCH_ARMS && rc == 0; arm++) {
        if (arms & (1u << arm)) {
            rc = prepare_arm(bench, trial, arm, err);
        }
    }
    if (rc == 0) {
        rc = fill_guards(bench, arms, err);
    }
    if (rc == 0) {
        rc = choose_slot(bench, 0, err);
    }
    bench->placed = rc == 0 ? trial : NULL;
    bench->seconds.inputs = fmax(bench->seconds.inputs, 0) + since(start);
    return rc;
}

// ---- launches ----

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
static int set_up(struct bench *bench, enum bench_arm arm, size_t slot, struct err *err)
{
    int rc = slot == bench->slot ? 0 : choose_slot(bench, slot, err);

    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        switch (bench->problem->tensor[t].direction) {
        case DIRECTION_IN:
            break;
        case DIRECTION_OUT:
            rc = area_poison(&bench->live[t], bench->gpu, stats_rng_u64(&bench->rng), err);
            break;
        case DIRECTION_INOUT:
            rc = copy_area(bench, &bench->live[t], &bench->store[slot][t], err);
            break;
        }
    }
    if (rc == 0) {
        rc = program_reset(bench->arm[arm], stats_rng_u64(&bench->rng), err);
    }
    return rc == 0 ? gpu_poison_shared(bench->gpu, stats_rng_u64(&bench->rng), err) : rc;
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

        if (is_input(&bench->problem->tensor[t])) {
            rc = gpu_run(bench->gpu, GPU_READ, bytes / 16, (void *[]){&in, &bytes, &sum}, err);
        }
    }
    uint64_t lead = LEAD_NS;
    return rc == 0 ? gpu_run(bench->gpu, GPU_SPIN, 1, (void *[]){&lead}, err) : rc;
}

static int run_arm(struct bench *bench, enum bench_arm arm, struct err *err)
{
    struct err why = ERR_INIT;
    int rc = program_run(bench->arm[arm], &why);

    if (rc == PROGRAM_UNFIT && arm == BENCH_CANDIDATE) {
        return bench_stop(bench, VERDICT_CRASH, "%s", why.text);
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
    size_t more = stats_rng_below(&bench->rng, TURNS);
    int rc = 0;

    for (size_t i = 0; i < more && rc == 0; i++) {
        rc = stamp(bench, 0, err);
    }
    return rc;
}

static int timed_launch(struct bench *bench, enum bench_arm arm, struct err *err)
{
    struct driver *d = &bench->gpu->driver;
    int rc = take_random_turn(bench, err);

    if (rc != 0) {
        goto out;
    }
    rc = stamp(bench, 0, err);
    if (rc != 0) {
        goto out;
    }
    rc = set_caches(bench, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_check(bench->gpu, d->event_record(bench->begin, bench->gpu->stream),
                   "recording an event", err);
    if (rc != 0) {
        goto out;
    }
    rc = run_arm(bench, arm, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_check(bench->gpu, d->event_record(bench->end, bench->gpu->stream),
                   "recording an event", err);
out:
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

// ---- what came of it ----

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
            return bench_stop(bench, VERDICT_TIMEOUT,
                              "a launch did not end within %.3g seconds, for %s",
                              clock_seconds(limit), trial->name);
        }
        return err_set(err, ERR_SYSTEM, "the baseline did not end within %.3g seconds, for %s",
                       clock_seconds(limit), trial->name);
    case GPU_FAULT:
        break;
    }
    char buf[256];
    if (gpu_is_defective(bench->gpu)) {
        return err_set(err, ERR_SYSTEM, "the GPU has failed: %s, for %s",
                       gpu_result_text(bench->gpu, buf), trial->name);
    }
    if (candidate) {
        return bench_stop(bench, VERDICT_CRASH, "the candidate ended with %s, for %s",
                          gpu_result_text(bench->gpu, buf), trial->name);
    }
    return err_set(err, ERR_SYSTEM, "the baseline ended with %s, for %s",
                   gpu_result_text(bench->gpu, buf), trial->name);
}

static int harness_damage(struct bench *bench, const struct bench_trial *trial, bool candidate,
                          struct err *err)
{
    const uint64_t *words = bench->gpu->host_words;
    const char *who = candidate ? "it" : "the baseline";
    char what[200] = "";

    if (words[WORD_GUARD] > 0) {
        size_t t = (size_t)words[WORD_GUARD + 1] / 2;

        (void)snprintf(what, sizeof(what), "%s wrote outside %s", who,
                       t < bench->problem->tensor_count ? bench->problem->tensor[t].name
                                                        : "its scratch memory");
    }
    for (size_t t = 0; t < bench->problem->tensor_count && what[0] == '\0'; t++) {
        if (bench->problem->tensor[t].direction == DIRECTION_IN &&
            memcmp(words + WORD_HASH + 2 * t, bench->input_hash[bench->slot][t], 16) != 0) {
            (void)snprintf(what, sizeof(what), "%s changed its input %s", who,
                           bench->problem->tensor[t].name);
        }
    }
    if (what[0] == '\0') {
        return 0;
    }
    return candidate ? bench_stop(bench, VERDICT_WRONG, "%s, for %s", what, trial->name)
                     : err_set(err, ERR_INVALID, "%s, for %s", what, trial->name);
}

static int refuse_output(struct bench *bench, const struct bench_trial *trial, enum bench_arm arm,
                         size_t tensor, const struct oracle_answer *answer, struct err *err)
{
    const struct tensor *t = &bench->problem->tensor[tensor];
    char values[160] = "is wrong";

    if (!isnan(answer->got) || dtype_roundoff(t->dtype) < 1e-6) {
        (void)snprintf(values, sizeof(values), "is %.9g, expected %.9g", answer->got,
                       answer->expected);
    }
    char text[512];
    (void)snprintf(text, sizeof(text),
                   "%s[%llu] %s, for %s; %llu of %zu elements are outside the bound of %g, the "
                   "largest error is %.3g",
                   t->name, (unsigned long long)answer->first, values, trial->name,
                   (unsigned long long)answer->wrong, trial->sizes.count[tensor], t->tolerance,
                   answer->max_error);
    if (arm == BENCH_CANDIDATE) {
        return bench_stop(bench, VERDICT_WRONG, "%s", text);
    }
    return err_set(err, ERR_INVALID, "the baseline disagrees with the reference: %s", text);
}

// Has the oracle look at one output.
static int consult(struct bench *bench, const struct bench_trial *trial, enum bench_arm arm,
                   size_t slot, size_t tensor, struct err *err)
{
    struct oracle_content content = content_of(bench, trial, slot);
    const struct area *from = &bench->live[tensor];
    struct oracle_answer answer;
    int rc = oracle_check(bench->oracle, bench->gpu, &content, tensor, from->tensor, from->bytes,
                          &answer, err);

    if (rc != 0) {
        return rc;
    }
    if (arm == BENCH_CANDIDATE) {
        bench->max_error = fmax(bench->max_error, answer.max_error);
        bench->error_bound = fmax(bench->error_bound, bench->problem->tensor[tensor].tolerance);
    }
    return answer.wrong > 0 ? refuse_output(bench, trial, arm, tensor, &answer, err) : 0;
}

static int harness_outputs(struct bench *bench, struct bench_trial *trial, enum bench_arm arm,
                           size_t slot, struct err *err)
{
    struct bench_verified *verified = &trial->verified[arm][slot];
    uint64_t hash[PROBLEM_TENSOR_MAX][2];
    bool known = verified->known;

    memcpy(hash, bench->gpu->host_words + WORD_HASH, sizeof(hash));
    int rc = 0;
    for (size_t t = 0; t < bench->problem->tensor_count && rc == 0; t++) {
        if (is_output(&bench->problem->tensor[t]) &&
            !(known && memcmp(hash[t], verified->hash[t], sizeof(hash[t])) == 0)) {
            rc = consult(bench, trial, arm, slot, t, err);
        }
    }
    if (rc == 0) {
        if (!known) {
            memcpy(verified->hash, hash, sizeof(hash));
            verified->known = true;
        }
        bench->checks += arm == BENCH_CANDIDATE;
    }
    return rc;
}

// The clock of the multiprocessor between the two stamps of a launch.
static double clock_between(const uint64_t *stamps)
{
    double ns = (double)(stamps[3] - stamps[0]), cycles = (double)(stamps[4] - stamps[1]);

    return stamps[2] == stamps[5] && ns > 0 && cycles > 0 ? cycles / ns * 1e9 : NAN;
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
        return bench_stop(bench, VERDICT_CRASH, "the candidate ended with %s, for %s",
                          gpu_result_text(bench->gpu, buf), trial->name);
    }
    return err_set(err, ERR_SYSTEM, "the baseline ended with %s, for %s",
                   gpu_result_text(bench->gpu, buf), trial->name);
}

static int read_time(struct bench *bench, enum bench_arm arm, struct bench_time *ret,
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
    if (!isnan(ret->clock_hz)) {
        bench->clock_sum_hz += ret->clock_hz;
        bench->clock_count++;
    }
    if (arm == BENCH_BASELINE) {
        bench->baseline_ns = fmax(bench->baseline_ns, ret->ns);
    }
    return 0;
}

// ---- from outside ----

int bench_launch(struct bench *bench, struct bench_trial *trial, enum bench_arm arm, size_t slot,
                 struct bench_time *time, struct err *err)
{
    uint64_t start = clock_now_ns(&clock_system);
    bool candidate = arm == BENCH_CANDIDATE;
    int rc = clear_results(bench, err);

    if (rc == 0) {
        rc = set_up(bench, arm, slot, err);
    }
    if (rc == 0) {
        rc = time ? timed_launch(bench, arm, err) : run_arm(bench, arm, err);
    }
    if (rc == 0) {
        rc = take_results(bench, err);
    }
    if (rc == 0) {
        rc = await(bench, trial, candidate, limit_ns(bench, candidate, !time), err);
    }
    rc = blame(bench, trial, candidate, rc, err);
    if (rc != 0) {
        goto out;
    }
    rc = harness_damage(bench, trial, candidate, err);
    if (rc != 0) {
        goto out;
    }
    if (time) {
        rc = read_time(bench, arm, time, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = harness_outputs(bench, trial, arm, slot, err);
out:
    if (!time) {
        bench->seconds.verify = fmax(bench->seconds.verify, 0) + since(start);
    }
    return rc;
}
