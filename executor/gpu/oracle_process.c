// The oracle's process. Expected values of several contents are kept, the least recently used ones go
// first, so that repeated checks of the timed contents do not run the reference again.
#include "common/clock.h"
#include "executor/gpu/content.h"
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

#define KEPT_MAX 48
#define KEPT_BYTES_MAX ((size_t)8 << 30)
#define REFERENCE_NS (60 * NS_PER_S)

struct kept {
    struct oracle_content content;
    struct area expected[PROBLEM_TENSOR_MAX];
    struct area scale[PROBLEM_TENSOR_MAX];
    size_t bytes;
    uint64_t used; // 0: empty
};

struct keeper {
    struct gpu gpu;
    int socket;
    unsigned char *window;
    struct problem *problem;
    struct program *reference;
    struct area input[PROBLEM_TENSOR_MAX];
    struct area piece; // of an output that is being compared
    struct kept kept[KEPT_MAX];
    uint64_t clock;
    size_t kept_bytes;
    struct err failure;          // of an EXPECT
    struct oracle_answer answer; // of the CHECK that is under way
    bool checking;
};

static void forget(struct keeper *k, struct kept *kept)
{
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        area_release(&kept->expected[t], &k->gpu);
        area_release(&kept->scale[t], &k->gpu);
    }
    k->kept_bytes -= kept->bytes;
    *kept = (struct kept){.used = 0};
}

static bool same_content(const struct oracle_content *a, const struct oracle_content *b)
{
    return a->seed == b->seed && a->case_index == b->case_index && a->number == b->number &&
           memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0;
}

static struct kept *find_kept(struct keeper *k, const struct oracle_content *content)
{
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (k->kept[i].used > 0 && same_content(&k->kept[i].content, content)) {
            return &k->kept[i];
        }
    }
    return NULL;
}

// An empty place; the least recently used one makes room.
static struct kept *make_place(struct keeper *k, size_t bytes)
{
    struct kept *oldest = NULL;

    for (;;) {
        oldest = NULL;
        struct kept *empty = NULL;
        for (size_t i = 0; i < KEPT_MAX; i++) {
            struct kept *kept = &k->kept[i];

            if (kept->used == 0) {
                empty = kept;
            } else if (!oldest || kept->used < oldest->used) {
                oldest = kept;
            }
        }
        if (empty && (!oldest || k->kept_bytes + bytes <= KEPT_BYTES_MAX)) {
            return empty;
        }
        forget(k, oldest);
    }
}

static int place_outputs(struct keeper *k, struct kept *kept, const struct content_sizes *sizes,
                         struct program_tensors *tensors, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < k->problem->tensor_count && rc == 0; t++) {
        if (k->problem->tensor[t].direction == DIRECTION_IN) {
            continue;
        }
        rc = area_place(&kept->expected[t], &k->gpu, sizes->count[t] * sizeof(double), err);
        if (rc == 0) {
            rc = area_place(&kept->scale[t], &k->gpu, sizes->count[t] * sizeof(double), err);
        }
        kept->bytes += 2 * sizes->count[t] * sizeof(double);
        tensors->expected[t] = &kept->expected[t];
        tensors->scale[t] = &kept->scale[t];
    }
    return rc;
}

static int fill_inputs(struct keeper *k, const struct oracle_content *content,
                       const struct content_sizes *sizes, struct program_tensors *tensors,
                       struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < k->problem->tensor_count && rc == 0; t++) {
        if (k->problem->tensor[t].direction == DIRECTION_OUT) {
            continue;
        }
        tensors->tensor[t] = &k->input[t];
        rc = area_place(&k->input[t], &k->gpu, sizes->bytes[t], err);
        if (rc == 0) {
            rc = content_fill(&k->gpu, &k->problem->tensor[t], t, &k->input[t], sizes,
                              content->seed, content->case_index, content->number, err);
        }
    }
    return rc;
}

// What the reference does not write is NaN, which no output equals but a NaN.
static int run_reference(struct keeper *k, const struct oracle_content *content,
                         const struct program_tensors *tensors, struct err *err)
{
    int rc = program_prepare(k->reference, &content->shape, tensors, err);

    for (size_t t = 0; t < k->problem->tensor_count && rc == 0; t++) {
        if (tensors->expected[t]) {
            rc = area_poison(tensors->expected[t], &k->gpu, 1, err);
        }
        if (rc == 0 && tensors->scale[t]) {
            rc = area_poison(tensors->scale[t], &k->gpu, 2, err);
        }
    }
    if (rc == 0) {
        rc = program_reset(k->reference, 3, err);
    }
    if (rc == 0) {
        rc = program_run(k->reference, err);
    }
    if (rc == PROGRAM_UNFIT) {
        return err_wrap(err, "the problem's reference");
    }
    char buf[256];
    if (rc == 0 && gpu_wait(&k->gpu, REFERENCE_NS) != GPU_DONE) {
        rc = err_set(err, ERR_INVALID, "the problem's reference fails: %s",
                     k->gpu.hung ? "it does not end" : gpu_result_text(&k->gpu, buf));
    }
    return rc;
}

static int expect(struct keeper *k, const struct oracle_content *content, struct kept **ret,
                  struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};
    struct kept *kept = find_kept(k, content);
    struct content_sizes sizes;
    size_t bytes = 0;
    int rc;

    if (!kept) {
        if (!k->problem) {
            return err_set(err, ERR_INTERNAL, "the oracle has no problem");
        }
        rc = content_sizes(k->problem, &content->shape, &sizes, err);
        for (size_t t = 0; t < k->problem->tensor_count && rc == 0; t++) {
            bytes += k->problem->tensor[t].direction == DIRECTION_IN
                         ? 0
                         : 2 * sizes.count[t] * sizeof(double);
        }
        kept = make_place(k, bytes);
        if (rc == 0) {
            rc = fill_inputs(k, content, &sizes, &tensors, err);
        }
        if (rc == 0) {
            rc = place_outputs(k, kept, &sizes, &tensors, err);
        }
        if (rc == 0) {
            rc = run_reference(k, content, &tensors, err);
        }
        if (rc != 0) {
            size_t counted = kept->bytes;
            k->kept_bytes += counted; // forget subtracts it
            forget(k, kept);
            return rc < 0 ? rc : ERR_INVALID;
        }
        k->kept_bytes += kept->bytes;
        kept->content = *content;
    }
    kept->used = ++k->clock;
    *ret = kept;
    return 0;
}

static int read_double(struct keeper *k, cu_pointer at, double *ret, struct err *err)
{
    int rc = gpu_check(&k->gpu, k->gpu.driver.copy_to_host(ret, at, sizeof(*ret), k->gpu.stream),
                       "reading an expected value", err);

    return rc == 0 ? gpu_finish(&k->gpu, "reading an expected value", err) : rc;
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
        return NAN; // shown as its bits by nobody: the narrow floats are told by their error
    }
}

// Runs the comparison of the piece that lies in the window; what it finds is in the first three words.
static int run_compare(struct keeper *k, const struct tensor *tensor, cu_pointer y,
                       cu_pointer scale, uint64_t bytes, struct err *err)
{
    cu_pointer got = k->piece.tensor, result = gpu_word(&k->gpu, 0);
    uint64_t count = bytes / dtype_size(tensor->dtype), all_ones = ~0ULL;
    double u = dtype_roundoff(tensor->dtype), tolerance = tensor->tolerance;
    int dtype = (int)tensor->dtype, exact = u == 1.0 && tolerance == 0.0;
    int rc = gpu_check(&k->gpu, k->gpu.driver.copy_to_device(got, k->window, bytes, k->gpu.stream),
                       "copying an output", err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_clear_words(&k->gpu, 0, 3, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(&k->gpu, k->gpu.driver.copy_to_device(result + 8, &all_ones, 8, k->gpu.stream),
                   "clearing results", err);
    if (rc != 0) {
        return rc;
    }
    rc =
        gpu_run(&k->gpu, GPU_COMPARE, count,
                (void *[]){&got, &dtype, &tolerance, &u, &exact, &y, &scale, &count, &result}, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_read_words(&k->gpu, 0, 3, err);
    return rc == 0 ? gpu_finish(&k->gpu, "comparing outputs", err) : rc;
}

// Compares the piece that lies in the window.
static int compare(struct keeper *k, const struct oracle_request *request, struct kept *kept,
                   struct err *err)
{
    const struct tensor *tensor = &k->problem->tensor[request->tensor];
    size_t size = dtype_size(tensor->dtype);
    uint64_t first = request->offset / size, count = request->bytes / size;
    cu_pointer y = kept->expected[request->tensor].tensor + first * sizeof(double);
    cu_pointer scale = kept->scale[request->tensor].tensor + first * sizeof(double);
    int rc = area_place(&k->piece, &k->gpu, request->bytes, err);

    if (rc != 0) {
        return rc;
    }
    rc = run_compare(k, tensor, y, scale, request->bytes, err);
    if (rc != 0) {
        return rc;
    }
    struct oracle_answer piece = {.wrong = 0};
    piece.wrong = k->gpu.host_words[0];
    memcpy(&piece.max_error, &k->gpu.host_words[2], sizeof(double));
    if (piece.wrong > 0 && k->gpu.host_words[1] < count) {
        uint64_t index = k->gpu.host_words[1];

        piece.first = first + index;
        piece.got = value_of(tensor->dtype, k->window + index * size);
        rc = read_double(k, y + index * sizeof(double), &piece.expected, err);
    }
    join(&k->answer, &piece);
    return rc;
}

static int check(struct keeper *k, const struct oracle_request *request, struct err *err)
{
    if (k->failure.code != ERR_NONE) {
        *err = k->failure;
        k->failure = (struct err)ERR_INIT;
        return (int)err->code;
    }
    if (!k->checking) {
        k->checking = true;
        k->answer = (struct oracle_answer){.wrong = 0};
    }
    struct kept *kept = NULL;
    int rc = 0;
    rc = expect(k, &request->content, &kept, err);
    return rc == 0 ? compare(k, request, kept, err) : rc;
}

static int take_setup(struct keeper *k, const struct oracle_request *request, struct err *err)
{
    struct bytes problem = {.data = xmalloc(request->problem_len + 1), .len = request->problem_len};
    struct bytes object = {.data = xmalloc(request->object_len + 1), .len = request->object_len};
    int rc = oracle_receive(k->socket, problem.data, problem.len, err);

    if (rc == 0) {
        rc = oracle_receive(k->socket, object.data, object.len, err);
    }
    for (size_t i = 0; i < KEPT_MAX; i++) {
        if (k->kept[i].used > 0) {
            forget(k, &k->kept[i]);
        }
    }
    k->failure = (struct err)ERR_INIT;
    k->checking = false;
    program_free(k->reference);
    k->reference = NULL;
    problem_free(k->problem);
    k->problem = NULL;
    if (rc == 0) {
        rc = problem_parse(&k->problem, (const char *)problem.data, problem.len, "problem.json",
                           err);
    }
    if (rc == 0) {
        rc = program_create(&k->reference, &k->gpu, k->problem, MANIFEST_REFERENCE, &object, err);
    }
    if (rc != 0) {
        problem_free(k->problem);
        k->problem = NULL;
    }
    bytes_clear(&problem);
    bytes_clear(&object);
    return rc;
}

// One request. Returns false when there will be no more.
static bool serve(struct keeper *k)
{
    struct err err = ERR_INIT;
    struct oracle_request request;

    if (oracle_receive(k->socket, &request, sizeof(request), &err) != 0) {
        return false;
    }
    struct oracle_reply reply = {.code = 0};
    struct kept *ignored;
    int rc = 0;
    switch (request.operation) {
    case ORACLE_READY:
        break;
    case ORACLE_SETUP:
        rc = take_setup(k, &request, &err);
        break;
    case ORACLE_EXPECT:
        if (k->failure.code == ERR_NONE) {
            (void)!expect(k, &request.content, &ignored, &k->failure);
        }
        return true;
    case ORACLE_CHECK:
        rc = check(k, &request, &err);
        if (request.last || rc != 0) {
            k->checking = false;
        }
        reply.answer = k->answer;
        break;
    }
    reply.code = rc;
    (void)snprintf(reply.text, sizeof(reply.text), "%s", err.text);
    return oracle_send(k->socket, &reply, sizeof(reply), &err) == 0;
}

void oracle_main(const char *uuid, int socket, unsigned char *window)
{
    struct keeper *k = xcalloc(1, sizeof(*k));

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    k->socket = socket;
    k->window = window;
    k->failure = (struct err)ERR_INIT;
    struct err err = ERR_INIT;
    int rc = gpu_open(&k->gpu, uuid, &err);
    if (rc == 0) {
        rc = gpu_check(
            &k->gpu, k->gpu.driver.host_register(window, ORACLE_WINDOW, CU_HOST_REGISTER_PORTABLE),
            "pinning the window", &err);
    }
    if (rc != 0) {
        struct oracle_reply reply = {.code = rc};

        (void)snprintf(reply.text, sizeof(reply.text), "%s", err.text);
        struct oracle_request request;
        (void)!oracle_receive(socket, &request, sizeof(request), &err);
        (void)!oracle_send(socket, &reply, sizeof(reply), &err);
        _exit(1);
    }
    while (serve(k)) {
    }
    _exit(0);
}
