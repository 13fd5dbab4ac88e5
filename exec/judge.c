#include "exec/judge.h"
#include "common/clock.h"
#include "exec/elf.h"
#include "exec/inputs.h"
#include "exec/machine.h"
#include "exec/verify.h"
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

int judge_stop(struct judge *judge, enum verdict verdict, const char *format, ...)
{
    if (judge->verdict == VERDICT_NONE) {
        char text[2048];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        judge->verdict = verdict;
        judge->reason = xstrdup(text);
    }
    return JUDGE_STOP;
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

static int make_buffers(struct judge *judge, const size_t *most, struct err *err)
{
    int status = 0;

    for (size_t t = 0; t < judge->problem->tensor_count && status == 0; t++) {
        const struct tensor *tensor = &judge->problem->tensor[t];
        size_t size = dtype_size(tensor->dtype);

        status = buffer_create(&judge->tensor[t], most[t] * size, tensor->direction == DIRECTION_IN,
                               err);
        if (status == 0 && is_output(tensor)) {
            judge->copy[t] = xmalloc(most[t] * size);
            status = buffer_create(&judge->expected[t], most[t] * sizeof(double), false, err);
            if (status == 0) {
                status = buffer_create(&judge->scale[t], most[t] * sizeof(double), false, err);
            }
        }
    }
    return status;
}

static void add_pointer(struct arm *arm, struct buffer *buffer, bool writable)
{
    arm->pointer[arm->pointer_count++] =
        (struct arm_pointer){.buffer = buffer, .writable = writable};
}

static void set_pointers(struct judge *judge, enum arm_index index)
{
    struct arm *arm = &judge->arm[index];

    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        const struct tensor *tensor = &judge->problem->tensor[t];
        if (index != ARM_REFERENCE) {
            add_pointer(arm, &judge->tensor[t], is_output(tensor));
            continue;
        }
        if (is_input(tensor)) {
            add_pointer(arm, &judge->tensor[t], false);
        }
        if (is_output(tensor)) {
            add_pointer(arm, &judge->expected[t], true);
            add_pointer(arm, &judge->scale[t], true);
        }
    }
}

static int start_arm(struct judge *judge, enum arm_index index, struct err *err)
{
    const struct bytes *object[ARM_COUNT] = {&judge->plan->reference, &judge->plan->baseline,
                                             &judge->plan->candidate, &judge->plan->baseline};
    const struct bytes *one = object[index];
    int status;

    judge->arm[index].name = arm_name[index];
    set_pointers(judge, index);
    status =
        arm_start(&judge->arm[index], judge->nursery, one, judge->plan->max_memory, CPU_SECONDS_MAX,
                  stats_rng_u64(&judge->rng), index, elf_needs(one, "libmvec.so.1"), err);
    return status == 0 ? 0 : err_wrap(err, "%s", arm_name[index]);
}

static int make_flush(struct judge *judge, struct err *err)
{
    if (judge->problem->cache != CACHE_COLD) {
        return 0;
    }
    judge->flush_bytes = 2 * machine_cache_bytes(0);
    judge->flush_bytes =
        judge->flush_bytes < FLUSH_BYTES_MAX ? judge->flush_bytes : FLUSH_BYTES_MAX;
    judge->flush =
        mmap(NULL, judge->flush_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (judge->flush == MAP_FAILED) {
        judge->flush = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "memory to flush caches with");
    }
    return 0;
}

int judge_start(struct judge *judge, const struct shape_case *const *shape, size_t shape_count,
                struct err *err)
{
    size_t most[PROBLEM_TENSOR_MAX] = {0}, count;
    int status = 0;

    stats_rng_init(&judge->rng, judge->plan->seed, 0x6a75646765ULL);
    judge->guard_key = stats_rng_u64(&judge->rng);
    judge->max_error = judge->error_bound = NAN;
    judge->launch_limit_ns = (uint64_t)(judge->plan->launch_seconds * 1e9);
    judge->reference_limit_ns = judge->launch_limit_ns * 10 > REFERENCE_LIMIT_NS
                                    ? judge->launch_limit_ns * 10
                                    : REFERENCE_LIMIT_NS;
    for (size_t s = 0; s < shape_count; s++) {
        for (size_t t = 0; t < judge->problem->tensor_count && status == 0; t++) {
            status = problem_elements(judge->problem, t, shape[s], &count, err);
            most[t] = count > most[t] ? count : most[t];
        }
    }
    if (status == 0) {
        status = make_buffers(judge, most, err);
    }
    if (status == 0) {
        status = make_flush(judge, err);
    }
    for (enum arm_index index = 0; index < ARM_COUNT && status == 0; index++) {
        if (index != ARM_CONTROL || judge->plan->control) {
            status = start_arm(judge, index, err);
        }
    }
    return status;
}

// The candidate's failure is its verdict, anybody else's an error.
static int arm_failed(struct judge *judge, enum arm_index index, enum launch_outcome outcome,
                      const char *where, uint64_t limit_ns, struct err *err)
{
    struct arm *arm = &judge->arm[index];
    uint32_t verdict = VERDICT_CRASH;
    char *sentence;
    int status;

    if (outcome == LAUNCH_TIMEOUT) {
        verdict = VERDICT_TIMEOUT;
        sentence = xasprintf("the %s took longer than the %g seconds allowed", arm->name,
                             clock_seconds(limit_ns));
    } else {
        sentence = arm_describe(arm, &verdict);
    }
    if (index == ARM_CANDIDATE && arm->control->trap != TRAP_SETUP) {
        status = judge_stop(judge, verdict, "%s%s%s", sentence, where[0] ? ", for " : "", where);
    } else {
        status = err_set(err, arm->control->trap == TRAP_SETUP ? ERR_SANDBOX : ERR_INVALID,
                         "%s%s%s", sentence, where[0] ? ", for " : "", where);
    }
    free(sentence);
    return status;
}

// Empty launches: their processor time is reported, and what the wall clock shows beyond it is what
// wake-ups take.
static int measure_overhead(struct judge *judge, struct err *err)
{
    enum { LAUNCHES = 31 };
    struct arm *arm = &judge->arm[ARM_BASELINE];
    struct launch_time time[LAUNCHES];
    double excess[LAUNCHES], empty[LAUNCHES];

    for (size_t i = 0; i < LAUNCHES; i++) {
        enum launch_outcome outcome =
            arm_launch(arm, CONTROL_NOTHING, NULL, NULL, START_LIMIT_NS, &time[i]);
        if (outcome != LAUNCH_DONE) {
            return arm_failed(judge, ARM_BASELINE, outcome, "an empty launch", START_LIMIT_NS, err);
        }
    }
    arm_settle(arm);
    for (size_t i = 0; i < LAUNCHES; i++) {
        excess[i] = fmax(time[i].wall - time[i].cpu, 0);
        empty[i] = time[i].cpu;
    }
    judge->overhead_ns = stats_median(empty, LAUNCHES);
    judge->wake_ns = stats_median(excess, LAUNCHES);
    return 0;
}

int judge_ready(struct judge *judge, struct err *err)
{
    for (enum arm_index index = 0; index < ARM_COUNT; index++) {
        enum launch_outcome outcome;
        if (judge->arm[index].pid == 0) {
            continue;
        }
        outcome = arm_ready(&judge->arm[index], START_LIMIT_NS);
        if (outcome != LAUNCH_DONE) {
            return arm_failed(judge, index, outcome, "", START_LIMIT_NS, err);
        }
    }
    return measure_overhead(judge, err);
}

void judge_release(struct judge *judge)
{
    for (enum arm_index index = 0; index < ARM_COUNT; index++) {
        arm_release(&judge->arm[index]);
    }
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        buffer_release(&judge->tensor[t]);
        buffer_release(&judge->expected[t]);
        buffer_release(&judge->scale[t]);
        free(judge->copy[t]);
    }
    if (judge->flush != NULL) {
        munmap(judge->flush, judge->flush_bytes);
    }
    problem_free(judge->problem);
    free(judge->reason);
    *judge = (struct judge){.verdict = VERDICT_NONE};
}

// ---- cases and contents ----

int judge_trial_init(struct judge *judge, struct trial *trial, const struct shape_case *shape,
                     uint64_t index, struct err *err)
{
    struct strbuf name = STRBUF_INIT;
    int status = 0;

    *trial = (struct trial){.shape = shape, .index = index};
    problem_case_name(judge->problem, shape, &name);
    trial->name = strbuf_detach(&name);
    for (size_t t = 0; t < judge->problem->tensor_count && status == 0; t++) {
        status = problem_elements(judge->problem, t, shape, &trial->count[t], err);
        trial->bytes[t] = trial->count[t] * dtype_size(judge->problem->tensor[t].dtype);
        if (status == 0) {
            status = problem_last_extent(judge->problem, t, shape, &trial->last[t], err);
        }
    }
    return status;
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

void judge_trial_release(struct trial *trial)
{
    for (size_t slot = 0; slot < TRIAL_CONTENTS; slot++) {
        content_release(&trial->content[slot]);
    }
    free(trial->name);
    *trial = (struct trial){.name = NULL};
}

static void place(struct judge *judge, const struct trial *trial)
{
    if (judge->placed == trial) {
        return;
    }
    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        buffer_place(&judge->tensor[t], trial->bytes[t], judge->guard_key);
        if (is_output(&judge->problem->tensor[t])) {
            buffer_place(&judge->expected[t], trial->count[t] * sizeof(double), judge->guard_key);
            buffer_place(&judge->scale[t], trial->count[t] * sizeof(double), judge->guard_key);
        }
    }
    judge->placed = trial;
}

static void write_inputs(struct judge *judge, const struct trial *trial,
                         const struct content *content)
{
    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        if (content->in[t] != NULL) {
            memcpy(buffer_tensor(&judge->tensor[t]), content->in[t], trial->bytes[t]);
        }
    }
}

static void generate(struct judge *judge, const struct trial *trial, struct content *content,
                     uint64_t number)
{
    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        const struct tensor *tensor = &judge->problem->tensor[t];
        if (is_input(tensor)) {
            content->in[t] = xmalloc(trial->bytes[t]);
            inputs_fill(tensor, inputs_key(judge->plan->seed, trial->index, number, t),
                        trial->count[t], trial->last[t], content->in[t]);
        }
    }
}

int judge_content_make(struct judge *judge, struct trial *trial, size_t slot, uint64_t number,
                       struct err *err)
{
    struct content *content = &trial->content[slot];
    uint64_t start = clock_now_ns(&clock_system);
    enum launch_outcome outcome;

    content_release(content);
    place(judge, trial);
    generate(judge, trial, content, number);
    write_inputs(judge, trial, content);
    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        if (is_output(
                &judge->problem->tensor[t])) { // what the reference forgets is NaN and never passes
            buffer_fill_nan(buffer_tensor(&judge->expected[t]), trial->count[t] * sizeof(double),
                            0);
            buffer_fill_nan(buffer_tensor(&judge->scale[t]), trial->count[t] * sizeof(double), 0);
        }
    }
    outcome = arm_launch(&judge->arm[ARM_REFERENCE], CONTROL_CALL, trial->shape->i, trial->shape->f,
                         judge->reference_limit_ns, NULL);
    if (outcome != LAUNCH_DONE) {
        return arm_failed(judge, ARM_REFERENCE, outcome, trial->name, judge->reference_limit_ns,
                          err);
    }
    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        if (is_output(&judge->problem->tensor[t])) {
            content->y[t] =
                xmemdup(buffer_tensor(&judge->expected[t]), trial->count[t] * sizeof(double));
            content->scale[t] =
                xmemdup(buffer_tensor(&judge->scale[t]), trial->count[t] * sizeof(double));
        }
    }
    content->made = true;
    judge->seconds.inputs += since(start);
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
static void poison(struct judge *judge, enum arm_index arm, const struct trial *trial, size_t slot,
                   size_t t)
{
    unsigned char *out = buffer_tensor(&judge->tensor[t]);
    const unsigned char *stale = trial->content[1 - slot].verified[arm][t];
    uint64_t bits = stats_rng_u64(&judge->rng);

    if (stale != NULL && bits % 4 == 0) {
        memcpy(out, stale, trial->bytes[t]);
    } else if (bits % 4 == 1) {
        fill_huge(judge->problem->tensor[t].dtype, out, trial->count[t], bits);
    } else {
        buffer_fill_nan(out, trial->bytes[t], bits);
    }
}

// Walks a buffer of twice the last-level cache, one line at a time, writing.
static void flush_caches(struct judge *judge)
{
    for (size_t i = 0; i < judge->flush_bytes; i += 64) {
        ((volatile unsigned char *)judge->flush)[i]++;
    }
}

static void prepare(struct judge *judge, enum arm_index arm, struct trial *trial, size_t slot)
{
    place(judge, trial);
    for (size_t t = 0; t < judge->problem->tensor_count; t++) {
        const struct tensor *tensor = &judge->problem->tensor[t];
        if (tensor->direction == DIRECTION_OUT) {
            poison(judge, arm, trial, slot, t);
        }
        if (is_output(tensor)) {
            buffer_guard_fill(&judge->tensor[t], judge->guard_key);
        }
    }
    write_inputs(judge, trial, &trial->content[slot]);
    if (judge->flush != NULL) {
        flush_caches(judge);
    }
}

static int wrong(struct judge *judge, enum arm_index arm, struct err *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static int wrong(struct judge *judge, enum arm_index arm, struct err *err, const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (arm == ARM_CANDIDATE) {
        return judge_stop(judge, VERDICT_WRONG, "%s", text);
    }
    return err_set(err, ERR_INVALID, "the %s is wrong: %s", arm_name[arm], text);
}

static void note_error(struct judge *judge, enum arm_index arm, double max_error, double tolerance)
{
    double share = max_error / fmax(tolerance, 1e-300),
           before = judge->max_error / fmax(judge->error_bound, 1e-300);

    if (arm == ARM_CANDIDATE && (isnan(judge->error_bound) || share > before)) {
        judge->max_error = max_error;
        judge->error_bound = tolerance;
    }
}

// Looks at the copy of one output.
static int check_output(struct judge *judge, enum arm_index arm, struct trial *trial, size_t slot,
                        size_t t, struct err *err)
{
    const struct tensor *tensor = &judge->problem->tensor[t];
    struct content *content = &trial->content[slot];
    unsigned char **verified = &content->verified[arm][t];
    struct verify_outcome outcome;

    if (*verified != NULL && memcmp(*verified, judge->copy[t], trial->bytes[t]) == 0) {
        return 0;
    }
    verify_tensor(tensor->dtype, tensor->tolerance, judge->copy[t], content->y[t],
                  content->scale[t], trial->count[t], &outcome);
    note_error(judge, arm, outcome.max_error, tensor->tolerance);
    if (outcome.wrong != 0) {
        return wrong(judge, arm, err,
                     "%s[%zu] is %.9g, expected %.9g, for %s; %zu of %zu elements are outside the "
                     "error bound",
                     tensor->name, outcome.first, outcome.got, outcome.expected, trial->name,
                     outcome.wrong, trial->count[t]);
    }
    if (*verified == NULL) {
        *verified = xmalloc(trial->bytes[t]);
    }
    memcpy(*verified, judge->copy[t], trial->bytes[t]);
    return 0;
}

static int check(struct judge *judge, enum arm_index arm, struct trial *trial, size_t slot,
                 struct err *err)
{
    const struct problem *problem = judge->problem;
    int status = 0;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        if (is_output(&problem->tensor[t])) {
            memcpy(judge->copy[t], buffer_tensor(&judge->tensor[t]), trial->bytes[t]);
        }
    }
    for (size_t t = 0; t < problem->tensor_count && status == 0; t++) {
        const struct tensor *tensor = &problem->tensor[t];
        struct buffer *buffer = &judge->tensor[t];
        // A sealed input cannot have been written; any other is compared whole.
        if (tensor->direction == DIRECTION_IN && !buffer->sealed &&
            memcmp(buffer_tensor(buffer), trial->content[slot].in[t], trial->bytes[t]) != 0) {
            status = wrong(judge, arm, err, "it changed its input %s, for %s", tensor->name,
                           trial->name);
        } else if (!buffer->sealed && !buffer_guard_intact(buffer, judge->guard_key)) {
            status =
                wrong(judge, arm, err, "it wrote outside %s, for %s", tensor->name, trial->name);
        } else if (is_output(tensor)) {
            status = check_output(judge, arm, trial, slot, t, err);
        }
    }
    judge->checks += status == 0 && arm == ARM_CANDIDATE;
    return status;
}

// The candidate's processor clock must stand still while another runs.
static int check_turn(struct judge *judge, enum arm_index arm, uint64_t before_ns, double wall_ns)
{
    uint64_t now = arm_clock_ns(&judge->arm[ARM_CANDIDATE]);

    if (arm == ARM_CANDIDATE || now <= before_ns) {
        return 0;
    }
    judge->out_of_turn_ns += now - before_ns;
    judge->others_ns += (uint64_t)wall_ns;
    if ((double)judge->out_of_turn_ns >
        OUT_OF_TURN_NS + OUT_OF_TURN_SHARE * (double)judge->others_ns) {
        return judge_stop(judge, VERDICT_QUARANTINED,
                          "the candidate ran for %.3f ms while it was not its turn",
                          (double)judge->out_of_turn_ns / 1e6);
    }
    return 0;
}

int judge_launch(struct judge *judge, enum arm_index arm, struct trial *trial, size_t slot,
                 struct launch_time *time, struct err *err)
{
    struct launch_time ignored;
    enum launch_outcome outcome;
    uint64_t candidate_ns;
    int status;

    prepare(judge, arm, trial, slot);
    candidate_ns = arm_clock_ns(&judge->arm[ARM_CANDIDATE]);
    if (time == NULL) {
        outcome = arm_launch(&judge->arm[arm], CONTROL_CALL, trial->shape->i, trial->shape->f,
                             judge->launch_limit_ns, NULL);
        ignored = (struct launch_time){0};
        time = &ignored;
    } else {
        outcome = arm_launch(&judge->arm[arm], CONTROL_CALL, trial->shape->i, trial->shape->f,
                             judge->launch_limit_ns, time);
    }
    status = check_turn(judge, arm, candidate_ns, time->wall);
    if (status != 0) {
        return status;
    }
    if (outcome != LAUNCH_DONE) {
        return arm_failed(judge, arm, outcome, trial->name, judge->launch_limit_ns, err);
    }
    return check(judge, arm, trial, slot, err);
}
