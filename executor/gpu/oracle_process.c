// Design note. The oracle's process answers one request after the other. It keeps the expected
// outputs of several input sets in a cache, so that repeated checks of the timed sets do not run
// the reference again; the least recently used outputs go first. A failure of an EXPECT, which has
// no reply, is kept and becomes the answer of the next CHECK. Nothing of a candidate runs here:
// when the context breaks, the reference has broken it, and every later request fails.
#include "common/clock.h"
#include "executor/gpu/input_set.h"
#include "executor/gpu/oracle_wire.h"
#include "executor/gpu/program.h"
#include "problem/manifest.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CACHE_ENTRIES_MAX 48
#define CACHE_BYTES_MAX ((size_t)8 << 30)
#define REFERENCE_NS (60 * NS_PER_S) // limit of one run of the reference

// The expected outputs for one input set.
struct expected {
    struct input_set set;
    struct guarded_buffer value[PROBLEM_TENSOR_MAX]; // in double
    struct guarded_buffer scale[PROBLEM_TENSOR_MAX]; // error scale of each element, in double
    size_t bytes;                                    // of device memory that both take
    uint64_t used;                                   // time of the last use; 0: the entry is empty
};

struct oracle_process {
    struct gpu gpu;
    int socket;            // to the caller
    unsigned char *window; // shared with the caller
    struct problem *problem;
    struct program *reference;
    struct guarded_buffer input[PROBLEM_TENSOR_MAX];
    struct guarded_buffer piece; // copy of the piece of an output that is being compared
    struct expected cache[CACHE_ENTRIES_MAX];
    size_t cache_bytes;          // sum over the entries
    uint64_t clock;              // counts uses of entries
    struct err failure;          // of an EXPECT that no CHECK has reported yet
    bool checking;               // a CHECK has begun, more of its pieces will come
    struct oracle_answer answer; // of the pieces of that CHECK so far
};

// ---- the cache ----

static void forget(struct oracle_process *p, struct expected *entry)
{
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        guarded_buffer_release(&entry->value[t], &p->gpu);
        guarded_buffer_release(&entry->scale[t], &p->gpu);
    }
    p->cache_bytes -= entry->bytes;
    *entry = (struct expected){.used = 0};
}

static bool same_set(const struct input_set *a, const struct input_set *b)
{
    return a->seed == b->seed && a->case_index == b->case_index && a->number == b->number &&
           memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0;
}

static struct expected *find(struct oracle_process *p, const struct input_set *set)
{
    for (size_t i = 0; i < CACHE_ENTRIES_MAX; i++) {
        if (p->cache[i].used > 0 && same_set(&p->cache[i].set, set)) {
            return &p->cache[i];
        }
    }
    return NULL;
}

// Returns an empty entry. Forgets entries, the least recently used one first, until there is one
// and `bytes` more fit the cache. A single entry may be larger than the cache.
static struct expected *make_room(struct oracle_process *p, size_t bytes)
{
    for (;;) {
        struct expected *empty = NULL, *oldest = NULL;

        for (size_t i = 0; i < CACHE_ENTRIES_MAX; i++) {
            struct expected *entry = &p->cache[i];

            if (entry->used == 0) {
                empty = entry;
            } else if (!oldest || entry->used < oldest->used) {
                oldest = entry;
            }
        }
        if (empty && (!oldest || p->cache_bytes + bytes <= CACHE_BYTES_MAX)) {
            return empty;
        }
        forget(p, oldest);
    }
}

// ---- expected outputs ----

static size_t output_bytes(const struct problem *problem, const struct tensor_sizes *sizes)
{
    size_t bytes = 0;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        bytes +=
            problem->tensor[t].direction == DIRECTION_IN ? 0 : 2 * sizes->count[t] * sizeof(double);
    }
    return bytes;
}

static int fill_inputs(struct oracle_process *p, const struct input_set *set,
                       const struct tensor_sizes *sizes, struct program_tensors *tensors,
                       struct err *err)
{
    for (size_t t = 0; t < p->problem->tensor_count; t++) {
        if (p->problem->tensor[t].direction == DIRECTION_OUT) {
            continue;
        }
        tensors->tensor[t] = &p->input[t];
        int rc = guarded_buffer_place(&p->input[t], &p->gpu, sizes->bytes[t], err);
        if (rc != 0) {
            return rc;
        }
        rc = input_set_fill(set, &p->gpu, p->problem, t, &p->input[t], sizes, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int place_outputs(struct oracle_process *p, struct expected *entry,
                         const struct tensor_sizes *sizes, struct program_tensors *tensors,
                         struct err *err)
{
    for (size_t t = 0; t < p->problem->tensor_count; t++) {
        if (p->problem->tensor[t].direction == DIRECTION_IN) {
            continue;
        }
        size_t bytes = sizes->count[t] * sizeof(double);
        entry->bytes += 2 * bytes;
        tensors->expected[t] = &entry->value[t];
        tensors->scale[t] = &entry->scale[t];
        int rc = guarded_buffer_place(&entry->value[t], &p->gpu, bytes, err);
        if (rc != 0) {
            return rc;
        }
        rc = guarded_buffer_place(&entry->scale[t], &p->gpu, bytes, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

// The outputs are poisoned first: what the reference does not write stays NaN, and no output equals
// that but another NaN.
static int queue_reference(struct oracle_process *p, const struct input_set *set,
                           const struct program_tensors *tensors, struct err *err)
{
    int rc = program_prepare(p->reference, &set->shape, tensors, err);

    if (rc != 0) {
        return rc;
    }
    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        if (tensors->expected[t]) {
            rc = guarded_buffer_poison(tensors->expected[t], &p->gpu, 1, err);
        }
        if (rc == 0 && tensors->scale[t]) {
            rc = guarded_buffer_poison(tensors->scale[t], &p->gpu, 2, err);
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = program_reset(p->reference, 3, err);
    return rc == 0 ? program_run(p->reference, err) : rc;
}

static int run_reference(struct oracle_process *p, const struct input_set *set,
                         const struct program_tensors *tensors, struct err *err)
{
    int rc = queue_reference(p, set, tensors, err);

    if (rc == PROGRAM_UNFIT) {
        return err_wrap(err, "the problem's reference");
    }
    if (rc != 0) {
        return rc;
    }
    char buf[256];
    if (gpu_wait(&p->gpu, REFERENCE_NS) != GPU_DONE) {
        return err_set(err, ERR_INVALID, "the problem's reference fails: %s",
                       p->gpu.hung ? "it does not end" : gpu_result_text(&p->gpu, buf));
    }
    return 0;
}

static int compute(struct oracle_process *p, const struct input_set *set,
                   const struct tensor_sizes *sizes, struct expected *entry, struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};
    int rc = fill_inputs(p, set, sizes, &tensors, err);

    if (rc != 0) {
        return rc;
    }
    rc = place_outputs(p, entry, sizes, &tensors, err);
    return rc == 0 ? run_reference(p, set, &tensors, err) : rc;
}

// Finds the expected outputs in the cache, or computes them.
static int expect(struct oracle_process *p, const struct input_set *set, struct expected **ret,
                  struct err *err)
{
    struct expected *entry = find(p, set);

    if (!entry) {
        if (!p->problem) {
            return err_set(err, ERR_INTERNAL, "the oracle has no problem");
        }
        struct tensor_sizes sizes;
        int rc = tensor_sizes_of(p->problem, &set->shape, &sizes, err);
        if (rc != 0) {
            return rc;
        }
        entry = make_room(p, output_bytes(p->problem, &sizes));
        rc = compute(p, set, &sizes, entry, err);
        p->cache_bytes += entry->bytes;
        if (rc != 0) {
            forget(p, entry);
            return rc < 0 ? rc : ERR_INVALID;
        }
        entry->set = *set;
    }
    entry->used = ++p->clock;
    *ret = entry;
    return 0;
}

// ---- comparison ----

static int read_double(struct oracle_process *p, cu_pointer at, double *ret, struct err *err)
{
    int rc = gpu_check(&p->gpu, p->gpu.driver.copy_to_host(ret, at, sizeof(*ret), p->gpu.stream),
                       "reading an expected value", err);

    return rc == 0 ? gpu_finish(&p->gpu, "reading an expected value", err) : rc;
}

static void join(struct oracle_answer *all, const struct oracle_answer *piece)
{
    if (all->wrong == 0 && piece->wrong > 0) {
        all->first = piece->first;
        all->got = piece->got;
        all->expected = piece->expected;
    }
    all->wrong += piece->wrong;
    all->max_error = fmax(all->max_error, piece->max_error);
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

// Compares the bytes in the window with y and scale. What is found goes to the first three result
// words (kc_compare in executor/gpu/kernels.cu).
static int run_compare(struct oracle_process *p, const struct tensor *tensor, cu_pointer y,
                       cu_pointer scale, uint64_t bytes, struct err *err)
{
    cu_pointer got = p->piece.tensor, result = gpu_word(&p->gpu, 0);
    uint64_t count = bytes / dtype_size(tensor->dtype), all_ones = ~0ULL;
    double u = dtype_roundoff(tensor->dtype), tolerance = tensor->tolerance;
    int dtype = (int)tensor->dtype, exact = u == 1.0 && tolerance == 0.0;
    int rc = gpu_check(&p->gpu, p->gpu.driver.copy_to_device(got, p->window, bytes, p->gpu.stream),
                       "copying an output", err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_clear_words(&p->gpu, 0, 3, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(&p->gpu, p->gpu.driver.copy_to_device(result + 8, &all_ones, 8, p->gpu.stream),
                   "clearing results", err);
    if (rc != 0) {
        return rc;
    }
    rc =
        gpu_run(&p->gpu, GPU_COMPARE, count,
                (void *[]){&got, &dtype, &tolerance, &u, &exact, &y, &scale, &count, &result}, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_read_words(&p->gpu, 0, 3, err);
    return rc == 0 ? gpu_finish(&p->gpu, "comparing outputs", err) : rc;
}

// Compares the piece of an output that is in the window and adds what it finds to the answer.
static int compare(struct oracle_process *p, const struct oracle_request *request,
                   const struct expected *entry, struct err *err)
{
    const struct tensor *tensor = &p->problem->tensor[request->tensor];
    size_t size = dtype_size(tensor->dtype);
    uint64_t first = request->offset / size, count = request->bytes / size;
    cu_pointer y = entry->value[request->tensor].tensor + first * sizeof(double);
    cu_pointer scale = entry->scale[request->tensor].tensor + first * sizeof(double);
    int rc = guarded_buffer_place(&p->piece, &p->gpu, request->bytes, err);

    if (rc != 0) {
        return rc;
    }
    rc = run_compare(p, tensor, y, scale, request->bytes, err);
    if (rc != 0) {
        return rc;
    }
    struct oracle_answer piece = {.wrong = p->gpu.host_words[0]};
    memcpy(&piece.max_error, &p->gpu.host_words[2], sizeof(double));
    if (piece.wrong > 0 && p->gpu.host_words[1] < count) {
        uint64_t index = p->gpu.host_words[1];

        piece.first = first + index;
        piece.got = value_of(tensor->dtype, p->window + index * size);
        rc = read_double(p, y + index * sizeof(double), &piece.expected, err);
    }
    join(&p->answer, &piece);
    return rc;
}

// ---- requests ----

static int check(struct oracle_process *p, const struct oracle_request *request, struct err *err)
{
    if (p->failure.code != ERR_NONE) {
        *err = p->failure;
        p->failure = (struct err)ERR_INIT;
        return (int)err->code;
    }
    if (!p->checking) {
        p->checking = true;
        p->answer = (struct oracle_answer){.wrong = 0};
    }
    struct expected *entry = NULL;
    int rc = expect(p, &request->set, &entry, err);
    return rc == 0 ? compare(p, request, entry, err) : rc;
}

static void drop_setup(struct oracle_process *p)
{
    for (size_t i = 0; i < CACHE_ENTRIES_MAX; i++) {
        if (p->cache[i].used > 0) {
            forget(p, &p->cache[i]);
        }
    }
    p->failure = (struct err)ERR_INIT;
    p->checking = false;
    program_free(p->reference);
    p->reference = NULL;
    problem_free(p->problem);
    p->problem = NULL;
}

static int take_setup(struct oracle_process *p, const struct oracle_request *request,
                      struct err *err)
{
    struct bytes problem = {.data = xmalloc(request->problem_len + 1), .len = request->problem_len};
    struct bytes object = {.data = xmalloc(request->object_len + 1), .len = request->object_len};

    drop_setup(p);
    int rc = oracle_receive(p->socket, problem.data, problem.len, err);
    if (rc != 0) {
        goto out;
    }
    rc = oracle_receive(p->socket, object.data, object.len, err);
    if (rc != 0) {
        goto out;
    }
    rc = problem_parse(&p->problem, (const char *)problem.data, problem.len, "problem.json", err);
    if (rc != 0) {
        goto out;
    }
    rc = program_create(&p->reference, &p->gpu, p->problem, MANIFEST_REFERENCE, &object, err);
out:
    if (rc != 0) {
        problem_free(p->problem);
        p->problem = NULL;
    }
    bytes_clear(&problem);
    bytes_clear(&object);
    return rc;
}

// Serves one request. Returns false when the caller has closed the socket.
static bool serve(struct oracle_process *p)
{
    struct err err = ERR_INIT;
    struct oracle_request request;

    if (oracle_receive(p->socket, &request, sizeof(request), &err) != 0) {
        return false;
    }
    struct oracle_reply reply = {.code = 0};
    struct expected *ignored;
    int rc = 0;
    switch (request.operation) {
    case ORACLE_READY:
        break;
    case ORACLE_SETUP:
        rc = take_setup(p, &request, &err);
        break;
    case ORACLE_EXPECT:
        if (p->failure.code == ERR_NONE) {
            (void)!expect(p, &request.set, &ignored, &p->failure);
        }
        return true;
    case ORACLE_CHECK:
        rc = check(p, &request, &err);
        if (request.last || rc != 0) {
            p->checking = false;
        }
        reply.answer = p->answer;
        break;
    }
    reply.code = rc;
    (void)snprintf(reply.text, sizeof(reply.text), "%s", err.text);
    return oracle_send(p->socket, &reply, sizeof(reply), &err) == 0;
}

// Opening the GPU has failed: answers the first request, whatever it is, with the error.
static void report_failure(int socket, int code, const struct err *failure)
{
    struct oracle_reply reply = {.code = code};
    struct oracle_request request;
    struct err ignored = ERR_INIT;

    (void)snprintf(reply.text, sizeof(reply.text), "%s", failure->text);
    (void)!oracle_receive(socket, &request, sizeof(request), &ignored);
    (void)!oracle_send(socket, &reply, sizeof(reply), &ignored);
}

void oracle_main(const char *uuid, int socket, unsigned char *window)
{
    struct oracle_process *p = xcalloc(1, sizeof(*p));

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    p->socket = socket;
    p->window = window;
    p->failure = (struct err)ERR_INIT;
    struct err err = ERR_INIT;
    int rc = gpu_open(&p->gpu, uuid, &err);
    if (rc == 0) {
        rc = gpu_check(
            &p->gpu, p->gpu.driver.host_register(window, ORACLE_WINDOW, CU_HOST_REGISTER_PORTABLE),
            "pinning the window", &err);
    }
    if (rc != 0) {
        report_failure(socket, rc, &err);
        _exit(1);
    }
    while (serve(p)) {
    }
    _exit(0);
}
