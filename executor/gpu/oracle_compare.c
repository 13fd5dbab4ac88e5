// Design note. What the oracle does with outputs: those of the candidate, in the caller's memory,
// are compared with what is expected. And when a baseline has failed in the process in which the
// candidate has run, it is run here once more, in a context that no code of a candidate has ever
// been in: whether it fails here too says whose failure it was.
#include "common/clock.h"
#include "executor/gpu/oracle_process.h"
#include "problem/manifest.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- comparison ----

// Reads `bytes` of the device's memory.
static int read_value(struct oracle_process *p, cu_pointer at, void *ret, size_t bytes,
                      struct err *err)
{
    int rc = gpu_check(&p->gpu, p->gpu.driver.copy_to_host(ret, at, bytes, p->gpu.stream),
                       "reading a value", err);

    return rc == 0 ? gpu_finish(&p->gpu, "reading a value", err) : rc;
}

static double value_of(enum dtype dtype, const unsigned char *at)
{
    union {
        float f;
        double d;
        int32_t i;
        int64_t l;
    } pun;

    memcpy(&pun, at, dtype_size(dtype) < sizeof(pun) ? dtype_size(dtype) : sizeof(pun));
    switch (dtype) {
    case DTYPE_F32:
        return (double)pun.f;
    case DTYPE_F64:
        return pun.d;
    case DTYPE_I32:
        return pun.i;
    case DTYPE_I64:
        return (double)pun.l;
    case DTYPE_U8:
        return at[0];
    case DTYPE_I8:
        return (int8_t)at[0];
    default:
        return NAN; // nobody shows the value of a float of 8 or 16 bits, only its error
    }
}

#define CHECK_WORDS 8 // result words of one comparison: three of kc_compare, four of kc_digest
#define CHECK_DIGEST 3

// Queues comparing count elements at `got` with y and scale. What is found goes to three result
// words from word `at` on, which are 0 (kc_compare in executor/gpu/device/kernels.cu).
static int queue_compare(struct oracle_process *p, const struct tensor *tensor, cu_pointer got,
                         cu_pointer y, cu_pointer scale, uint64_t count, size_t at, struct err *err)
{
    cu_pointer result = gpu_word(&p->gpu, at);
    double u = dtype_roundoff(tensor->dtype), tolerance = tensor->tolerance;
    int dtype = (int)tensor->dtype, exact = tensor_is_exact(tensor);

    return gpu_run(&p->gpu, GPU_COMPARE, count,
                   (void *[]){&got, &dtype, &tolerance, &u, &exact, &y, &scale, &count, &result},
                   err);
}

// Brings the first `count` result words to the host, and waits for all that is queued.
static int take_words(struct oracle_process *p, size_t count, struct err *err)
{
    int rc = gpu_read_words(&p->gpu, 0, count, err);

    if (rc != 0) {
        return rc;
    }
    return p->computing > 0 ? oracle_process_settle(p, err)
                            : gpu_finish(&p->gpu, "comparing outputs", err);
}

// Compares one output, and waits.
static int run_compare(struct oracle_process *p, const struct tensor *tensor, cu_pointer got,
                       cu_pointer y, cu_pointer scale, uint64_t count, struct err *err)
{
    int rc = gpu_clear_words(&p->gpu, 0, CHECK_DIGEST, err);

    rc = rc == 0 ? queue_compare(p, tensor, got, y, scale, count, 0, err) : rc;
    return rc == 0 ? take_words(p, CHECK_DIGEST, err) : rc;
}

// Reads the first element that is wrong, and what it should be.
static int read_first(struct oracle_process *p, const struct tensor *tensor, cu_pointer got,
                      cu_pointer y, struct oracle_answer *answer, struct err *err)
{
    size_t size = dtype_size(tensor->dtype);
    unsigned char value[sizeof(double)];
    int rc = read_value(p, got + answer->first * size, value, size, err);

    if (rc != 0) {
        return rc;
    }
    answer->got = value_of(tensor->dtype, value);
    return read_value(p, y + answer->first * sizeof(double), &answer->expected, sizeof(double),
                      err);
}

// Queues comparing an output, and its digest: whoever asks knows the digest of what it means.
static int queue_check(struct oracle_process *p, const struct oracle_output *output,
                       const struct expected *entry, uint64_t hash_key, size_t at, struct err *err)
{
    const struct tensor *tensor = &p->problem->tensor[output->tensor];
    const struct guarded_buffer *value = &entry->value[output->tensor];
    const struct guarded_buffer *scale = &entry->scale[output->tensor];
    uint64_t count = value->bytes / sizeof(double);
    const struct guarded_buffer got = {.tensor = p->theirs.base + output->offset,
                                       .bytes = count * dtype_size(tensor->dtype)};

    if (output->offset + got.bytes > p->theirs.mapped) {
        return err_set(err, ERR_INTERNAL, "the output to compare is not in shared memory");
    }
    int rc = queue_compare(p, tensor, got.tensor, value->tensor, scale->tensor, count, at, err);
    return rc == 0 ? guarded_buffer_digest(&got, &p->gpu, (int)tensor->dtype, hash_key, 0,
                                           at + CHECK_DIGEST, err)
                   : rc;
}

// Takes what was found from the words on the host.
static int take_answer(struct oracle_process *p, const struct oracle_output *output,
                       const struct expected *entry, size_t at, struct oracle_answer *ret,
                       struct err *err)
{
    uint64_t words[CHECK_WORDS], count = entry->value[output->tensor].bytes / sizeof(double);

    memcpy(words, p->gpu.host_words + at, sizeof(words));
    *ret = (struct oracle_answer){.wrong = words[0]};
    memcpy(&ret->max_error, &words[2], sizeof(double));
    memcpy(ret->hash, &words[CHECK_DIGEST], sizeof(ret->hash));
    if (ret->wrong == 0) {
        return 0;
    }
    ret->first = count - words[1];
    return read_first(p, &p->problem->tensor[output->tensor], p->theirs.base + output->offset,
                      entry->value[output->tensor].tensor, ret, err);
}

// Waits for the comparisons of these outputs.
static int take_answers(struct oracle_process *p, const struct oracle_output *outputs,
                        struct expected *const *entries, size_t count, struct oracle_answer *ret,
                        struct err *err)
{
    int rc = take_words(p, count * CHECK_WORDS, err);

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = take_answer(p, &outputs[i], entries[i], i * CHECK_WORDS, &ret[i], err);
    }
    return rc;
}

// Queues comparing outputs from the first on, as many as there is room for what they must be: the
// rest would take its place. Returns how many in *ret_count, at least one.
static int queue_checks(struct oracle_process *p, const struct oracle_output *outputs, size_t count,
                        uint64_t hash_key, struct expected **entries, size_t *ret_count,
                        struct err *err)
{
    int rc = gpu_clear_words(&p->gpu, 0, count * CHECK_WORDS, err);

    for (*ret_count = 0; *ret_count < count && rc == 0; ++*ret_count) {
        const struct oracle_output *output = &outputs[*ret_count];
        struct expected **entry = &entries[*ret_count];
        struct err why = ERR_INIT;

        rc = *ret_count == 0 ? oracle_process_need(p, &output->set, entry, &why)
                             : oracle_process_have(p, &output->set, entry, &why);
        if (rc == ERR_LIMIT && *ret_count > 0) {
            return 0;
        }
        if (rc != 0) {
            *err = why;
            return rc;
        }
        rc = queue_check(p, output, *entry, hash_key, *ret_count * CHECK_WORDS, err);
    }
    return rc;
}

int oracle_process_check(struct oracle_process *p, const struct oracle_output *outputs,
                         size_t count, uint64_t hash_key, struct oracle_answer *ret,
                         struct err *err)
{
    struct expected *entries[ORACLE_OUTPUTS];
    size_t done = 0, some;
    int rc = 0;

    for (; done < count && rc == 0; done += some) {
        rc = queue_checks(p, outputs + done, count - done, hash_key, entries, &some, err);
        rc = rc == 0 ? take_answers(p, outputs + done, entries, some, ret + done, err) : rc;
    }
    return rc == 0 ? 0 : oracle_process_blame(p, rc, err);
}

// ---- the baseline alone ----

#define WORD_GUARDS 0 // result words of a run: changed guards (two words), then changed inputs
#define WORD_INPUTS 2
#define PATTERN_KEY 5

// Places the tensors where a measurement has them, which a recording relies on, with new contents.
static int place_alone(struct oracle_process *p, const struct input_set *set,
                       const struct tensor_sizes *sizes,
                       struct guarded_buffer live[static PROBLEM_TENSOR_MAX],
                       struct program_tensors *tensors, struct err *err)
{
    arena_rewind(&p->gpu.open, p->gpu.open_mark);
    int rc = oracle_process_place(p, sizes, live, tensors, err);

    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        rc = p->problem->tensor[t].direction == DIRECTION_OUT
                 ? guarded_buffer_poison(&live[t], &p->gpu, 1, err)
                 : input_set_fill(set, &p->gpu, p->problem, t, &live[t], sizes, err);
    }
    return rc;
}

// Lists where the baseline may not write: round the tensors and its own memory, in what flushes the
// cache, which the oracle does not do, and behind all areas. As in a measurement, that is all of
// the arenas.
static bool list_guards(const struct gpu *gpu, const struct program *baseline,
                        const struct program_tensors *tensors, struct gpu_zones *guards)
{
    const struct arena *open = &gpu->open;
    bool room = true;

    for (size_t t = 0; t < baseline->problem->tensor_count; t++) {
        room = room && guarded_buffer_guards(tensors->tensor[t], guards);
    }
    room = room && (baseline->memory ? program_gaps(baseline, true, guards)
                                     : program_zones(baseline, true, guards));
    return room && gpu_zones_add(guards, gpu->flush, gpu->flush_bytes) &&
           gpu_zones_add(guards, open->base + open->placed, open->mapped - open->placed);
}

// Queues all that comes before the launches.
static int prepare_alone(struct oracle_process *p, struct program *baseline,
                         const struct input_set *set, const struct program_tensors *tensors,
                         struct gpu_zones *guards, struct err *err)
{
    int rc = program_prepare(baseline, &set->shape, tensors, err);
    if (rc != 0) {
        return rc;
    }
    if (!list_guards(&p->gpu, baseline, tensors, guards)) {
        return err_set(err, ERR_LIMIT, "more tensors and scratch areas than can be guarded");
    }
    rc = gpu_pattern_fill(&p->gpu, guards, PATTERN_KEY, err);
    if (rc != 0) {
        return rc;
    }
    rc = program_restore(baseline, err);
    if (rc != 0) {
        return rc;
    }
    rc = oracle_process_ready(p, baseline, err);
    return rc == 0 ? gpu_clear_words(&p->gpu, 0, WORD_INPUTS + PROBLEM_TENSOR_MAX, err) : rc;
}

// Looks for changed guards and inputs. Returns what has changed, NULL when nothing has.
static int check_memory(struct oracle_process *p, const struct input_set *set,
                        const struct tensor_sizes *sizes, const struct program_tensors *tensors,
                        const struct gpu_zones *guards, const char **ret, struct err *err)
{
    int rc = gpu_pattern_check(&p->gpu, guards, PATTERN_KEY, WORD_GUARDS, err);

    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        if (p->problem->tensor[t].direction == DIRECTION_IN) {
            rc = input_set_check(set, &p->gpu, p->problem, t, tensors->tensor[t], sizes,
                                 WORD_INPUTS + t, err);
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = gpu_read_words(&p->gpu, 0, WORD_INPUTS + PROBLEM_TENSOR_MAX, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(&p->gpu, "checking the baseline", err);
    if (rc != 0) {
        return rc;
    }
    *ret = p->gpu.host_words[WORD_GUARDS] > 0 ? "it wrote outside its tensors" : NULL;
    for (size_t t = 0; t < p->problem->tensor_count && !*ret; t++) {
        *ret = p->gpu.host_words[WORD_INPUTS + t] > 0 ? "it changed its input" : NULL;
    }
    return 0;
}

static int check_outputs(struct oracle_process *p, const struct program *baseline,
                         const struct expected *entry, const struct tensor_sizes *sizes,
                         const struct program_tensors *tensors, const char **ret, struct err *err)
{
    for (size_t t = 0; t < p->problem->tensor_count && !*ret; t++) {
        const struct tensor *tensor = &p->problem->tensor[t];

        if (tensor->direction == DIRECTION_IN) {
            continue;
        }
        const struct guarded_buffer *result =
            baseline->result[t].bytes > 0 ? &baseline->result[t] : tensors->tensor[t];
        int rc = run_compare(p, tensor, result->tensor, entry->value[t].tensor,
                             entry->scale[t].tensor, sizes->count[t], err);
        if (rc != 0) {
            return rc;
        }
        *ret = p->gpu.host_words[0] > 0 ? "it disagrees with the reference" : NULL;
    }
    return 0;
}

static int run_alone(struct oracle_process *p, struct program *baseline,
                     const struct oracle_request *request, const struct expected *entry,
                     const char **ret, char buf[static 256], struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};
    struct guarded_buffer live[PROBLEM_TENSOR_MAX];
    struct gpu_zones guards = {.count = 0};
    const struct input_set *set = &request->set;
    struct tensor_sizes sizes;
    int rc = tensor_sizes_of(p->problem, &set->shape, &sizes, err);

    if (rc != 0) {
        return rc;
    }
    rc = place_alone(p, set, &sizes, live, &tensors, err);
    if (rc != 0) {
        return rc;
    }
    rc = prepare_alone(p, baseline, set, &tensors, &guards, err);
    if (rc != 0) {
        return rc;
    }
    rc = program_run(baseline, err);
    if (rc != 0) {
        return rc;
    }
    switch (gpu_wait(&p->gpu, request->limit_ns)) {
    case GPU_DONE:
        break;
    case GPU_TIMEOUT:
        *ret = "it does not end";
        return 0;
    case GPU_FAULT:
        *ret = gpu_result_text(&p->gpu, buf);
        return 0;
    }
    rc = check_memory(p, set, &sizes, &tensors, &guards, ret, err);
    return rc == 0 ? check_outputs(p, baseline, entry, &sizes, &tensors, ret, err) : rc;
}

// Gives back what a baseline alone has occupied.
static void give_back(struct oracle_process *p, struct arena *memory, size_t judge_placed)
{
    arena_rewind(&p->gpu.judge, judge_placed);
    oracle_process_give_back(p, &p->gpu.open, p->gpu.open_mark, 0);
    oracle_process_give_back(p, memory, 0, 0);
}

int oracle_process_alone(struct oracle_process *p, const struct bytes *baseline,
                         const struct oracle_request *request, struct oracle_reply *reply,
                         struct err *err)
{
    struct program *program = NULL;
    const char *what = NULL;
    char buf[256];

    struct expected *entry = NULL;
    int rc = oracle_process_need(p, &request->set, &entry, err);

    rc = rc == 0 ? oracle_process_settle(p, err) : rc;
    if (rc != 0) {
        return rc;
    }
    struct arena *memory = &p->gpu.recorded[0];
    size_t judge_placed = p->gpu.judge.placed;
    rc = program_create(&program, &p->gpu, p->problem, MANIFEST_CANDIDATE, baseline, memory, err);
    if (rc != 0) {
        return rc;
    }
    rc = run_alone(p, program, request, entry, &what, buf, err);
    if (rc == PROGRAM_UNFIT) { // it cannot even be launched
        what = err->text;
        rc = 0;
    }
    reply->failed = what;
    (void)snprintf(reply->text, sizeof(reply->text), "%s", what ? what : "");
    program_free(program);
    give_back(p, memory, judge_placed);
    return rc;
}
