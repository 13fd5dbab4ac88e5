// Design note. Messages on the socket are fixed structs of trusted code on both sides of one program.
//
//   SUBJECT problem, object  -> answer
//   EXPECT  content          -> nothing: computed at once, failures are told at the next CHECK
//   CHECK   content, tensor  -> answer; a tensor larger than the window comes in pieces
//
// Expected values of several contents are kept, the least recently used ones go first, so that repeated
// checks of the timed contents do not run the reference again.
#include "executor/gpu/oracle.h"
#include "common/clock.h"
#include "common/digest.h"
#include "executor/gpu/content.h"
#include "executor/gpu/program.h"
#include "problem/manifest.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_MAX 48
#define KEPT_BYTES_MAX ((size_t)8 << 30)
#define REFERENCE_NS (60 * NS_PER_S)

enum operation { ORACLE_READY, ORACLE_SETUP, ORACLE_EXPECT, ORACLE_CHECK };

struct oracle_request {
    enum operation operation;
    struct oracle_content content;
    uint64_t tensor, offset, bytes;   // CHECK: this piece is in the window
    bool last;                        // CHECK: no more pieces
    uint64_t problem_len, object_len; // SUBJECT: follow
};

struct oracle_reply {
    int code; // of the error, 0: none
    char text[ERR_TEXT_MAX];
    struct oracle_answer answer;
};

// ---- both sides ----

static int send_all(int socket, const void *data, size_t len, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(socket, at, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "talking to the oracle");
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static int receive_all(int socket, void *data, size_t len, struct err *err)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = recv(socket, at, len, 0);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_set(err, ERR_SYSTEM, "the oracle process has gone");
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

// ---- the oracle's side ----

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

// Compares the piece that lies in the window.
static int compare(struct keeper *k, const struct oracle_request *request, struct kept *kept,
                   struct err *err)
{
    const struct tensor *tensor = &k->problem->tensor[request->tensor];
    size_t size = dtype_size(tensor->dtype);
    uint64_t first = request->offset / size, count = request->bytes / size;
    cu_pointer got, y, scale, result = gpu_word(&k->gpu, 0);
    int dtype = (int)tensor->dtype;
    bool is_integer = dtype_roundoff(tensor->dtype) == 1.0;
    int exact = is_integer && tensor->tolerance == 0.0, rc;
    double u = dtype_roundoff(tensor->dtype);
    struct oracle_answer piece = {.wrong = 0};
    uint64_t all_ones = ~0ULL;

    rc = area_place(&k->piece, &k->gpu, request->bytes, err);
    if (rc != 0) {
        return rc;
    }
    got = k->piece.tensor;
    y = kept->expected[request->tensor].tensor + first * sizeof(double);
    scale = kept->scale[request->tensor].tensor + first * sizeof(double);
    rc = gpu_check(&k->gpu,
                   k->gpu.driver.copy_to_device(got, k->window, request->bytes, k->gpu.stream),
                   "copying an output", err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_clear_words(&k->gpu, 0, 3, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_check(&k->gpu, k->gpu.driver.copy_to_device(result + 8, &all_ones, 8, k->gpu.stream),
                   "clearing results", err);
    if (rc != 0) {
        goto out;
    }
    double tolerance = tensor->tolerance;

    rc =
        gpu_run(&k->gpu, GPU_COMPARE, count,
                (void *[]){&got, &dtype, &tolerance, &u, &exact, &y, &scale, &count, &result}, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_read_words(&k->gpu, 0, 3, err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_finish(&k->gpu, "comparing outputs", err);
out:
    if (rc != 0) {
        return rc;
    }
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
    int rc = receive_all(k->socket, problem.data, problem.len, err);

    if (rc == 0) {
        rc = receive_all(k->socket, object.data, object.len, err);
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

    if (receive_all(k->socket, &request, sizeof(request), &err) != 0) {
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
    return send_all(k->socket, &reply, sizeof(reply), &err) == 0;
}

static void oracle_main(const char *uuid, int socket, unsigned char *window)
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
        (void)!receive_all(socket, &request, sizeof(request), &err);
        (void)!send_all(socket, &reply, sizeof(reply), &err);
        _exit(1);
    }
    while (serve(k)) {
    }
    _exit(0);
}

// ---- the caller's side ----

int oracle_start(struct oracle *oracle, const char *uuid, struct err *err)
{
    *oracle = (struct oracle){.socket = -1};
    oracle->window =
        mmap(NULL, ORACLE_WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (oracle->window == MAP_FAILED) {
        oracle->window = NULL;
        return err_set_errno(err, ERR_SYSTEM, errno, "memory for the oracle's window");
    }
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a socket for the oracle");
    }
    oracle->pid = fork();
    if (oracle->pid < 0) {
        oracle->pid = 0;
        close(pair[0]);
        close(pair[1]);
        return err_set_errno(err, ERR_SYSTEM, errno, "starting the oracle");
    }
    if (oracle->pid == 0) {
        close(pair[0]);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        oracle_main(uuid, pair[1], oracle->window);
    }
    close(pair[1]);
    oracle->socket = pair[0];
    return 0;
}

static int take_reply(struct oracle *oracle, struct oracle_reply *reply, struct err *err)
{
    int rc = receive_all(oracle->socket, reply, sizeof(*reply), err);

    if (rc == 0 && reply->code != 0) {
        rc = err_set(err, (enum err_code)reply->code, "%s", reply->text);
    }
    return rc;
}

static int ask(struct oracle *oracle, const struct oracle_request *request,
               struct oracle_reply *reply, struct err *err)
{
    int rc = send_all(oracle->socket, request, sizeof(*request), err);

    return rc == 0 ? take_reply(oracle, reply, err) : rc;
}

int oracle_ready(struct oracle *oracle, struct err *err)
{
    struct oracle_request request = {.operation = ORACLE_READY};
    struct oracle_reply reply;

    return ask(oracle, &request, &reply, err);
}

void oracle_stop(struct oracle *oracle)
{
    if (oracle->socket >= 0) {
        close(oracle->socket);
    }
    if (oracle->pid > 0) {
        (void)kill(oracle->pid, SIGKILL);
        while (waitpid(oracle->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    // The window stays mapped: our driver may have it registered.
    *oracle = (struct oracle){.socket = -1};
}

int oracle_setup(struct oracle *oracle, const struct bytes *problem, const struct bytes *reference,
                 struct err *err)
{
    struct oracle_request request = {
        .operation = ORACLE_SETUP, .problem_len = problem->len, .object_len = reference->len};
    struct digest_state *state = digest_begin();

    digest_add(state, &request.problem_len, sizeof(request.problem_len));
    digest_add(state, problem->data, problem->len);
    digest_add(state, reference->data, reference->len);
    struct digest setup = digest_end(state);
    if (digest_equal(&setup, &oracle->setup)) {
        return 0;
    }
    oracle->setup = (struct digest){{0}};
    int rc = send_all(oracle->socket, &request, sizeof(request), err);
    if (rc != 0) {
        return rc;
    }
    rc = send_all(oracle->socket, problem->data, problem->len, err);
    if (rc != 0) {
        return rc;
    }
    rc = send_all(oracle->socket, reference->data, reference->len, err);
    if (rc != 0) {
        return rc;
    }
    struct oracle_reply reply;
    rc = take_reply(oracle, &reply, err);
    if (rc != 0) {
        return rc;
    }
    oracle->setup = setup;
    return rc;
}

int oracle_expect(struct oracle *oracle, const struct oracle_content *content, struct err *err)
{
    struct oracle_request request = {.operation = ORACLE_EXPECT, .content = *content};

    return send_all(oracle->socket, &request, sizeof(request), err);
}

int oracle_check(struct oracle *oracle, struct gpu *gpu, const struct oracle_content *content,
                 size_t tensor, cu_pointer from, size_t bytes, struct oracle_answer *ret,
                 struct err *err)
{
    struct oracle_request request = {
        .operation = ORACLE_CHECK, .content = *content, .tensor = tensor};
    int rc = 0;

    if (!oracle->registered) {
        rc = gpu_check(
            gpu,
            gpu->driver.host_register(oracle->window, ORACLE_WINDOW, CU_HOST_REGISTER_PORTABLE),
            "pinning the window", err);
        oracle->registered = true;
    }
    struct oracle_reply reply = {.code = 0};
    while (rc == 0 && request.offset < bytes) {
        request.bytes =
            bytes - request.offset < ORACLE_WINDOW ? bytes - request.offset : ORACLE_WINDOW;
        request.last = request.offset + request.bytes == bytes;
        rc = gpu_check(gpu,
                       gpu->driver.copy_to_host(oracle->window, from + request.offset,
                                                request.bytes, gpu->stream),
                       "reading an output", err);
        if (rc == 0) {
            rc = gpu_finish(gpu, "reading an output", err);
        }
        if (rc == 0) {
            rc = ask(oracle, &request, &reply, err);
        }
        request.offset += request.bytes;
    }
    if (rc == 0) {
        *ret = reply.answer;
    }
    return rc;
}
