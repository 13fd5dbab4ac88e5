#include "executor/cpu/harness.h"
#include "common/clock.h"
#include "executor/cpu/inputs.h"
#include "executor/cpu/machine.h"
#include "executor/cpu/verify.h"
#include "executor/sandbox/elf.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define START_LIMIT_NS (30 * NS_PER_S)
#define REFERENCE_LIMIT_NS (60 * NS_PER_S)
#define FLUSH_BYTES_MAX ((size_t)512 << 20)
#define CPU_SECONDS_MAX 3600
// A candidate may finish its way from "done" into its wait in another's turn; this is far more than
// that.
#define OUT_OF_TURN_NS (2 * NS_PER_MS)
#define OUT_OF_TURN_SHARE 0.05

static const char *const arm_name[ARM_COUNT] = {"reference", "baseline", "candidate",
                                                "baseline's copy"};

int harness_stop(struct harness *harness, enum verdict verdict, const char *format, ...)
{
    if (harness->verdict == VERDICT_NONE) {
        va_list args;
        va_start(args, format);
        char text[2048];
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        harness->verdict = verdict;
        harness->reason = xstrdup(text);
    }
    return HARNESS_STOP;
}

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

// ---- start and end ----

static int make_buffers(struct harness *harness, const size_t *most, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        size_t size = dtype_size(tensor->dtype);

        rc = buffer_create(&harness->tensor[t], most[t] * size, tensor->direction == DIRECTION_IN,
                           err);
        if (rc == 0 && is_output(tensor)) {
            harness->copy[t] = xmalloc(most[t] * size);
            rc = buffer_create(&harness->expected[t], most[t] * sizeof(double), false, err);
            if (rc == 0) {
                rc = buffer_create(&harness->scale[t], most[t] * sizeof(double), false, err);
            }
        }
    }
    return rc;
}

static void add_pointer(struct arm *arm, struct buffer *buffer, bool writable)
{
    arm->pointer[arm->pointer_count++] =
        (struct arm_pointer){.buffer = buffer, .writable = writable};
}

static void set_pointers(struct harness *harness, enum arm_index index)
{
    struct arm *arm = &harness->arm[index];

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        if (index != ARM_REFERENCE) {
            add_pointer(arm, &harness->tensor[t], is_output(tensor));
            continue;
        }
        if (is_input(tensor)) {
            add_pointer(arm, &harness->tensor[t], false);
        }
        if (is_output(tensor)) {
            add_pointer(arm, &harness->expected[t], true);
            add_pointer(arm, &harness->scale[t], true);
        }
    }
}

static int start_arm(struct harness *harness, enum arm_index index, struct err *err)
{
    const struct bytes *object[ARM_COUNT] = {&harness->plan->reference, &harness->plan->baseline,
                                             &harness->plan->candidate, &harness->plan->baseline};
    const struct bytes *one = object[index];

    harness->arm[index].name = arm_name[index];
    set_pointers(harness, index);
    int rc = arm_start(&harness->arm[index], harness->zygote, one, harness->plan->max_memory,
                       CPU_SECONDS_MAX, stats_rng_u64(&harness->rng), index,
                       elf_needs(one, "libmvec.so.1"), err);
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

    stats_rng_init(&harness->rng, harness->plan->seed, 0x6a75646765ULL);
    harness->guard_key = stats_rng_u64(&harness->rng);
    harness->max_error = harness->error_bound = NAN;
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
            rc = start_arm(harness, index, err);
        }
    }
    return rc;
}

// The candidate's failure is its verdict, anybody else's an error.
static int arm_failed(struct harness *harness, enum arm_index index, enum launch_outcome outcome,
                      const char *where, uint64_t limit_ns, struct err *err)
{
    struct arm *arm = &harness->arm[index];
    uint32_t verdict = VERDICT_CRASH;
    char *sentence;

    if (outcome == LAUNCH_TIMEOUT) {
        verdict = VERDICT_TIMEOUT;
        sentence = xasprintf("the %s took longer than the %g seconds allowed", arm->name,
                             clock_seconds(limit_ns));
    } else {
        sentence = arm_describe(arm, &verdict);
    }
    int rc;
    if (index == ARM_CANDIDATE && arm->control->trap != TRAP_SETUP) {
        rc = harness_stop(harness, verdict, "%s%s%s", sentence, where[0] ? ", for " : "", where);
    } else {
        rc = err_set(err, arm->control->trap == TRAP_SETUP ? ERR_SANDBOX : ERR_INVALID, "%s%s%s",
                     sentence, where[0] ? ", for " : "", where);
    }
    free(sentence);
    return rc;
}

// Empty launches: their processor time is reported, and what the wall clock shows beyond it is what
// wake-ups take.
static int measure_overhead(struct harness *harness, struct err *err)
{
    enum { LAUNCHES = 31 };
    struct arm *arm = &harness->arm[ARM_BASELINE];
    struct launch_time time[LAUNCHES];
    double excess[LAUNCHES], empty[LAUNCHES];

    for (size_t i = 0; i < LAUNCHES; i++) {
        enum launch_outcome outcome =
            arm_launch(arm, CONTROL_NOTHING, NULL, NULL, START_LIMIT_NS, &time[i]);
        if (outcome != LAUNCH_DONE) {
            return arm_failed(harness, ARM_BASELINE, outcome, "an empty launch", START_LIMIT_NS,
                              err);
        }
    }
    arm_settle(arm);
    for (size_t i = 0; i < LAUNCHES; i++) {
        excess[i] = fmax(time[i].wall - time[i].cpu, 0);
        empty[i] = time[i].cpu;
    }
    harness->overhead_ns = stats_median(empty, LAUNCHES);
    harness->wake_ns = stats_median(excess, LAUNCHES);
    return 0;
}

int harness_ready(struct harness *harness, struct err *err)
{
    for (enum arm_index index = 0; index < ARM_COUNT; index++) {
        if (harness->arm[index].pid == 0) {
            continue;
        }
        enum launch_outcome outcome = arm_ready(&harness->arm[index], START_LIMIT_NS);
        if (outcome != LAUNCH_DONE) {
            return arm_failed(harness, index, outcome, "", START_LIMIT_NS, err);
        }
    }
    return measure_overhead(harness, err);
}

void harness_release(struct harness *harness)
{
    for (enum arm_index index = 0; index < ARM_COUNT; index++) {
        arm_release(&harness->arm[index]);
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
    problem_free(harness->problem);
    free(harness->reason);
    *harness = (struct harness){.verdict = VERDICT_NONE};
}

// ---- cases and contents ----

int harness_trial_init(struct harness *harness, struct trial *trial, const struct shape_case *shape,
                       uint64_t index, struct err *err)
{
    *trial = (struct trial){.shape = shape, .index = index};
    struct strbuf name = STRBUF_INIT;
    problem_case_name(harness->problem, shape, &name);
    trial->name = strbuf_detach(&name);
    int rc = 0;
    for (size_t t = 0; t < harness->problem->tensor_count && rc == 0; t++) {
        rc = problem_elements(harness->problem, t, shape, &trial->count[t], err);
        trial->bytes[t] = trial->count[t] * dtype_size(harness->problem->tensor[t].dtype);
        if (rc == 0) {
            rc = problem_last_extent(harness->problem, t, shape, &trial->last[t], err);
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

void harness_trial_release(struct trial *trial)
{
    for (size_t slot = 0; slot < TRIAL_CONTENTS; slot++) {
        content_release(&trial->content[slot]);
    }
    free(trial->name);
    *trial = (struct trial){.name = NULL};
}

static void place(struct harness *harness, const struct trial *trial)
{
    if (harness->placed == trial) {
        return;
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        buffer_place(&harness->tensor[t], trial->bytes[t], harness->guard_key);
        if (is_output(&harness->problem->tensor[t])) {
            buffer_place(&harness->expected[t], trial->count[t] * sizeof(double),
                         harness->guard_key);
            buffer_place(&harness->scale[t], trial->count[t] * sizeof(double), harness->guard_key);
        }
    }
    harness->placed = trial;
}

static void write_inputs(struct harness *harness, const struct trial *trial,
                         const struct content *content)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (content->in[t]) {
            memcpy(buffer_tensor(&harness->tensor[t]), content->in[t], trial->bytes[t]);
        }
    }
}

static void generate(struct harness *harness, const struct trial *trial, struct content *content,
                     uint64_t number)
{
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        if (is_input(tensor)) {
            content->in[t] = xmalloc(trial->bytes[t]);
            inputs_fill(tensor, inputs_key(harness->plan->seed, trial->index, number, t),
                        trial->count[t], trial->last[t], content->in[t]);
        }
    }
}

int harness_content_make(struct harness *harness, struct trial *trial, size_t slot, uint64_t number,
                         struct err *err)
{
    struct content *content = &trial->content[slot];
    uint64_t start = clock_now_ns(&clock_system);

    content_release(content);
    place(harness, trial);
    generate(harness, trial, content, number);
    write_inputs(harness, trial, content);
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (is_output(&harness->problem
                           ->tensor[t])) { // what the reference forgets is NaN and never passes
            buffer_fill_nan(buffer_tensor(&harness->expected[t]), trial->count[t] * sizeof(double),
                            0);
            buffer_fill_nan(buffer_tensor(&harness->scale[t]), trial->count[t] * sizeof(double), 0);
        }
    }
    enum launch_outcome outcome =
        arm_launch(&harness->arm[ARM_REFERENCE], CONTROL_CALL, trial->shape->i, trial->shape->f,
                   harness->reference_limit_ns, NULL);
    if (outcome != LAUNCH_DONE) {
        return arm_failed(harness, ARM_REFERENCE, outcome, trial->name, harness->reference_limit_ns,
                          err);
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        if (is_output(&harness->problem->tensor[t])) {
            content->y[t] =
                xmemdup(buffer_tensor(&harness->expected[t]), trial->count[t] * sizeof(double));
            content->scale[t] =
                xmemdup(buffer_tensor(&harness->scale[t]), trial->count[t] * sizeof(double));
        }
    }
    content->made = true;
    harness->seconds.inputs += since(start);
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

// Poison: NaN, large noise, or what another content's answer was (what is stale shows then).
static void poison(struct harness *harness, enum arm_index arm, const struct trial *trial,
                   size_t slot, size_t t)
{
    unsigned char *out = buffer_tensor(&harness->tensor[t]);
    const unsigned char *stale = trial->content[1 - slot].verified[arm][t];
    uint64_t bits = stats_rng_u64(&harness->rng);

    if (stale && bits % 4 == 0) {
        memcpy(out, stale, trial->bytes[t]);
    } else if (bits % 4 == 1) {
        fill_huge(harness->problem->tensor[t].dtype, out, trial->count[t], bits);
    } else {
        buffer_fill_nan(out, trial->bytes[t], bits);
    }
}

// Walks a buffer of twice the last-level cache, one line at a time, writing.
static void flush_caches(struct harness *harness)
{
    for (size_t i = 0; i < harness->flush_bytes; i += 64) {
        ((volatile unsigned char *)harness->flush)[i]++;
    }
}

static void prepare(struct harness *harness, enum arm_index arm, struct trial *trial, size_t slot)
{
    place(harness, trial);
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct tensor *tensor = &harness->problem->tensor[t];
        if (tensor->direction == DIRECTION_OUT) {
            poison(harness, arm, trial, slot, t);
        }
        if (is_output(tensor)) {
            buffer_guard_fill(&harness->tensor[t], harness->guard_key);
        }
    }
    write_inputs(harness, trial, &trial->content[slot]);
    if (harness->flush) {
        flush_caches(harness);
    }
}

static int wrong(struct harness *harness, enum arm_index arm, struct err *err, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
static int wrong(struct harness *harness, enum arm_index arm, struct err *err, const char *format,
                 ...)
{
    va_list args;

    va_start(args, format);
    char text[1024];
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (arm == ARM_CANDIDATE) {
        return harness_stop(harness, VERDICT_WRONG, "%s", text);
    }
    return err_set(err, ERR_INVALID, "the %s is wrong: %s", arm_name[arm], text);
}

static void note_error(struct harness *harness, enum arm_index arm, double max_error,
                       double tolerance)
{
    double share = max_error / fmax(tolerance, 1e-300),
           before = harness->max_error / fmax(harness->error_bound, 1e-300);

    if (arm == ARM_CANDIDATE && (isnan(harness->error_bound) || share > before)) {
        harness->max_error = max_error;
        harness->error_bound = tolerance;
    }
}

// Looks at the copy of one output.
static int check_output(struct harness *harness, enum arm_index arm, struct trial *trial,
                        size_t slot, size_t t, struct err *err)
{
    const struct tensor *tensor = &harness->problem->tensor[t];
    struct content *content = &trial->content[slot];
    unsigned char **verified = &content->verified[arm][t];

    if (*verified && memcmp(*verified, harness->copy[t], trial->bytes[t]) == 0) {
        return 0;
    }
    struct verify_outcome outcome;
    verify_tensor(tensor->dtype, tensor->tolerance, harness->copy[t], content->y[t],
                  content->scale[t], trial->count[t], &outcome);
    note_error(harness, arm, outcome.max_error, tensor->tolerance);
    if (outcome.wrong != 0) {
        return wrong(harness, arm, err,
                     "%s[%zu] is %.9g, expected %.9g, for %s; %zu of %zu elements are outside the "
                     "error bound",
                     tensor->name, outcome.first, outcome.got, outcome.expected, trial->name,
                     outcome.wrong, trial->count[t]);
    }
    if (!*verified) {
        *verified = xmalloc(trial->bytes[t]);
    }
    memcpy(*verified, harness->copy[t], trial->bytes[t]);
    return 0;
}

static int check(struct harness *harness, enum arm_index arm, struct trial *trial, size_t slot,
                 struct err *err)
{
    const struct problem *problem = harness->problem;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (is_output(&problem->tensor[t])) {
            memcpy(harness->copy[t], buffer_tensor(&harness->tensor[t]), trial->bytes[t]);
        }
    }
    int rc = 0;
    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        struct buffer *buffer = &harness->tensor[t];
        // A sealed input cannot have been written; any other is compared whole.
        if (tensor->direction == DIRECTION_IN && !buffer->sealed &&
            memcmp(buffer_tensor(buffer), trial->content[slot].in[t], trial->bytes[t]) != 0) {
            rc = wrong(harness, arm, err, "it changed its input %s, for %s", tensor->name,
                       trial->name);
        } else if (!buffer->sealed && !buffer_guard_intact(buffer, harness->guard_key)) {
            rc = wrong(harness, arm, err, "it wrote outside %s, for %s", tensor->name, trial->name);
        } else if (is_output(tensor)) {
            rc = check_output(harness, arm, trial, slot, t, err);
        }
    }
    harness->checks += rc == 0 && arm == ARM_CANDIDATE;
    return rc;
}

// The candidate's processor clock must stand still while another runs.
static int check_turn(struct harness *harness, enum arm_index arm, uint64_t before_ns,
                      double wall_ns)
{
    uint64_t now = arm_clock_ns(&harness->arm[ARM_CANDIDATE]);

    if (arm == ARM_CANDIDATE || now <= before_ns) {
        return 0;
    }
    harness->out_of_turn_ns += now - before_ns;
    harness->others_ns += (uint64_t)wall_ns;
    if ((double)harness->out_of_turn_ns >
        OUT_OF_TURN_NS + OUT_OF_TURN_SHARE * (double)harness->others_ns) {
        return harness_stop(harness, VERDICT_QUARANTINED,
                            "the candidate ran for %.3f ms while it was not its turn",
                            (double)harness->out_of_turn_ns / 1e6);
    }
    return 0;
}

int harness_launch(struct harness *harness, enum arm_index arm, struct trial *trial, size_t slot,
                   struct launch_time *time, struct err *err)
{
    prepare(harness, arm, trial, slot);
    uint64_t candidate_ns = arm_clock_ns(&harness->arm[ARM_CANDIDATE]);
    struct launch_time ignored;
    enum launch_outcome outcome;
    if (!time) {
        outcome = arm_launch(&harness->arm[arm], CONTROL_CALL, trial->shape->i, trial->shape->f,
                             harness->launch_limit_ns, NULL);
        ignored = (struct launch_time){0};
        time = &ignored;
    } else {
        outcome = arm_launch(&harness->arm[arm], CONTROL_CALL, trial->shape->i, trial->shape->f,
                             harness->launch_limit_ns, time);
    }
    int rc = check_turn(harness, arm, candidate_ns, time->wall);
    if (rc != 0) {
        return rc;
    }
    if (outcome != LAUNCH_DONE) {
        return arm_failed(harness, arm, outcome, trial->name, harness->launch_limit_ns, err);
    }
    return check(harness, arm, trial, slot, err);
}
