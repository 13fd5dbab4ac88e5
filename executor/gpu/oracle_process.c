// Design note. The oracle's process answers one request after the other. It keeps the expected
// outputs of one case, so that the sets of verification, on which several arms are launched, cost
// one run of the reference. What is asked for together is computed and compared without waiting in
// between: the GPU changes to this context and back once for each request, and that costs more than
// most references. Making and freeing memory costs more, too, so all outputs are in one arena,
// which is filled from its beginning by each case; those of a timed launch, for which nobody asks
// twice, lie where those of the one before were. Searches that share the GPU take turns, so the
// references of several problems stay loaded. Nothing of a candidate runs here: when the context
// breaks, the reference has broken it, and every later CHECK fails.
#include "executor/gpu/oracle_process.h"
#include "executor/sandbox/fd_message.h"
#include "problem/manifest.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define JUDGE_BYTES_MAX ((size_t)64 << 20)  // that the device variables of setups may take
#define OUTPUTS_BYTES_MAX ((size_t)8 << 30) // of outputs beyond which no more are kept
#define OUTPUTS_SHARE 8                     // nor more than this part of the GPU's memory

// ---- the cache ----

void oracle_process_give_back(struct oracle_process *p, struct arena *arena, size_t placed,
                              size_t bytes)
{
    arena_rewind(arena, placed);
    if (!p->gpu.hung) {
        arena_trim(arena, bytes);
    }
}

// Bytes of outputs beyond which no more are kept, nor memory for them.
static size_t usual_bytes(const struct oracle_process *p)
{
    size_t share = p->gpu.memory_bytes / OUTPUTS_SHARE;

    return share < OUTPUTS_BYTES_MAX ? share : OUTPUTS_BYTES_MAX;
}

// Forgets all outputs, when none is being computed any more, and gives back their memory beyond
// `bytes`. Returns the error of computing them.
static int forget(struct oracle_process *p, size_t bytes, struct err *err)
{
    int rc = oracle_process_settle(p, err);

    p->cache_count = 0;
    oracle_process_give_back(p, &p->outputs, 0, bytes);
    return rc;
}

static bool same_case(const struct input_set *a, const struct input_set *b)
{
    return a->seed == b->seed && a->case_index == b->case_index &&
           memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0;
}

static bool same_set(const struct input_set *a, const struct input_set *b)
{
    return same_case(a, b) && a->number == b->number;
}

static struct expected *find(struct oracle_process *p, const struct input_set *set)
{
    for (size_t i = 0; i < p->cache_count; i++) {
        if (p->cache[i].complete && same_set(&p->cache[i].set, set)) {
            return &p->cache[i];
        }
    }
    return NULL;
}

// Returns the entry of another timed launch on the same case, whose outputs are as large; NULL when
// there is none.
static struct expected *take_over(struct oracle_process *p, const struct input_set *set)
{
    for (size_t i = 0; i < p->cache_count && set->number >= MEASURE_CONTENTS; i++) {
        if (p->cache[i].set.number >= MEASURE_CONTENTS && same_case(&p->cache[i].set, set)) {
            return &p->cache[i];
        }
    }
    return NULL;
}

// ---- expected outputs ----

static int place(struct oracle_process *p, struct expected *entry, const struct tensor_sizes *sizes,
                 struct err *err)
{
    int rc = 0;

    p->outputs.grows_early = p->outputs.mapped < usual_bytes(p);
    for (size_t t = 0; t < p->problem->tensor_count && rc == 0; t++) {
        size_t bytes = sizes->count[t] * sizeof(double);

        if (tensor_is_output(&p->problem->tensor[t])) {
            rc = guarded_buffer_place(&entry->value[t], &p->outputs, bytes, err);
            rc = rc == 0 ? guarded_buffer_place(&entry->scale[t], &p->outputs, bytes, err) : rc;
        }
    }
    return rc;
}

// Makes an entry with room for the outputs of the set. Nobody asks again for those of another case.
static int make_entry(struct oracle_process *p, const struct input_set *set,
                      const struct tensor_sizes *sizes, struct expected **ret, struct err *err)
{
    int rc = p->cache_count > 0 && !same_case(&p->cache[0].set, set)
                 ? forget(p, usual_bytes(p), err)
                 : 0;
    if (rc != 0) {
        return rc;
    }
    size_t placed = p->outputs.placed;
    if (p->cache_count == CACHE_ENTRIES) {
        return err_set(err, ERR_INTERNAL, "the oracle is asked for too many contents of a case");
    }
    if (placed > usual_bytes(p)) {
        return err_set(err, ERR_LIMIT, "the oracle keeps no more outputs");
    }
    struct expected *entry = &p->cache[p->cache_count];
    *entry = (struct expected){.set = *set};
    rc = place(p, entry, sizes, err);
    if (rc != 0) {
        arena_rewind(&p->outputs, placed);
        return rc;
    }
    p->cache_count++;
    *ret = entry;
    return 0;
}

// Computes the outputs of a set that is not in the cache.
static int add(struct oracle_process *p, const struct input_set *set, struct expected **ret,
               struct err *err)
{
    struct tensor_sizes sizes;
    int rc = tensor_sizes_of(p->problem, &set->shape, &sizes, err);

    if (rc != 0) {
        return rc;
    }
    struct expected *entry = take_over(p, set);
    rc = entry ? 0 : make_entry(p, set, &sizes, &entry, err);
    if (rc != 0) {
        return rc;
    }
    entry->set = *set;
    entry->complete = false; // nobody finds it before it is
    rc = oracle_process_compute(p, set, &sizes, entry, err);
    if (rc != 0) {
        return oracle_process_blame(p, rc, err);
    }
    entry->complete = true;
    *ret = entry;
    return 0;
}

int oracle_process_have(struct oracle_process *p, const struct input_set *set,
                        struct expected **ret, struct err *err)
{
    if (!p->problem) {
        return err_set(err, ERR_INTERNAL, "the oracle has no problem");
    }
    if (p->gpu.hung || p->gpu.broken) {
        return oracle_process_settle(p, err);
    }
    *ret = find(p, set);
    return *ret ? 0 : add(p, set, ret, err);
}

int oracle_process_need(struct oracle_process *p, const struct input_set *set,
                        struct expected **ret, struct err *err)
{
    const size_t stays[] = {usual_bytes(p), 0}; // of the memory that the others had
    struct err why = ERR_INIT;
    int rc = oracle_process_have(p, set, ret, &why);

    for (size_t i = 0; i < ARRAY_LEN(stays) && rc == ERR_LIMIT; i++) {
        why = (struct err)ERR_INIT;
        rc = forget(p, stays[i], &why);
        rc = rc == 0 ? oracle_process_have(p, set, ret, &why) : rc;
    }
    if (rc != 0) {
        *err = why;
    }
    return rc;
}

// ---- requests ----

static int check(struct oracle_process *p, const struct oracle_request *request,
                 struct oracle_answer answers[static ORACLE_OUTPUTS], struct err *err)
{
    struct oracle_output outputs[ORACLE_OUTPUTS];

    if (request->count > ORACLE_OUTPUTS) {
        return err_set(err, ERR_INTERNAL, "the oracle is asked for too many outputs");
    }
    int rc = oracle_receive(p->socket, outputs, request->count * sizeof(outputs[0]), err);
    return rc == 0
               ? oracle_process_check(p, outputs, request->count, request->hash_key, answers, err)
               : rc;
}

static int take_shared(struct oracle_process *p, const struct oracle_request *request,
                       struct err *err)
{
    char byte, buf[256];
    int fd[FD_MESSAGE_MAX];
    size_t count = 0;
    struct arena *theirs = &p->theirs;

    if (p->gpu.hung && request->bytes == 0) { // giving memory back would not return
        return oracle_process_settle(p, err);
    }
    arena_cut(theirs, request->chunks);
    if (request->bytes == 0) {
        return 0;
    }
    if (fd_message_receive(p->socket, &byte, 1, fd, &count) != 1 || count != 1) {
        return err_set(err, ERR_INTERNAL, "the oracle got no descriptor of memory");
    }
    cu_result result = arena_adopt(theirs, fd[0], request->bytes);
    close(fd[0]);
    return result == CU_OK ? 0
                           : err_set(err, ERR_SYSTEM, "mapping memory of the other process: %s",
                                     driver_error(&p->gpu.driver, result, buf));
}

// Nothing is in use any more, and nothing expected.
static void leave_setup(struct oracle_process *p)
{
    struct err ignored = ERR_INIT; // nobody has checked anything with what fails

    (void)!forget(p, usual_bytes(p), &ignored);
    p->problem = NULL;
    p->reference = NULL;
}

static void use_setup(struct oracle_process *p, const struct oracle_setup *setup)
{
    p->problem = setup->problem;
    p->reference = setup->reference;
}

static void drop_setups(struct oracle_process *p)
{
    leave_setup(p);
    for (size_t i = 0; i < p->setup_count; i++) {
        struct program *reference = p->setup[i].reference;

        if (reference && reference->memory) { // which may be much
            oracle_process_give_back(p, &p->gpu.open, p->gpu.open_mark, 0);
            oracle_process_give_back(p, reference->memory, 0, 0);
        }
        program_free(reference);
        problem_free(p->setup[i].problem);
    }
    p->setup_count = 0;
    arena_rewind(&p->gpu.judge, p->gpu.judge_mark);
}

// Whether there is room for another setup. A recorded reference has all of an arena, and what
// device variables take of the arena `judge` is only given back together.
static bool has_room(const struct oracle_process *p)
{
    bool recorded = false;

    for (size_t i = 0; i < p->setup_count; i++) {
        recorded = recorded || p->setup[i].reference->memory;
    }
    return !recorded && p->setup_count < SETUPS_MAX &&
           p->gpu.judge.placed - p->gpu.judge_mark <= JUDGE_BYTES_MAX;
}

static bool find_setup(struct oracle_process *p, const struct digest *name)
{
    leave_setup(p);
    for (size_t i = 0; i < p->setup_count; i++) {
        if (digest_equal(&p->setup[i].name, name)) {
            use_setup(p, &p->setup[i]);
        }
    }
    return p->problem;
}

static int load_setup(struct oracle_process *p, const struct bytes *problem,
                      const struct bytes *object, struct oracle_setup *ret, struct err *err)
{
    int rc = problem_parse(&ret->problem, (const char *)problem->data, problem->len, "problem.json",
                           err);

    if (rc != 0) {
        return rc;
    }
    rc = program_create(&ret->reference, &p->gpu, ret->problem, MANIFEST_REFERENCE, object,
                        &p->gpu.recorded[ORACLE_RECORDED], err);
    if (rc != 0) {
        problem_free(ret->problem);
        return err_wrap(err, "the problem's reference");
    }
    return 0;
}

static int take_setup(struct oracle_process *p, const struct oracle_request *request,
                      struct err *err)
{
    struct bytes problem = {.data = xmalloc(request->problem_len + 1), .len = request->problem_len};
    struct bytes object = {.data = xmalloc(request->object_len + 1), .len = request->object_len};
    struct oracle_setup setup = {.name = request->setup};

    leave_setup(p);
    if (!has_room(p)) {
        drop_setups(p);
    }
    int rc = oracle_receive(p->socket, problem.data, problem.len, err);
    rc = rc == 0 ? oracle_receive(p->socket, object.data, object.len, err) : rc;
    rc = rc == 0 ? load_setup(p, &problem, &object, &setup, err) : rc;
    if (rc == 0) {
        p->setup[p->setup_count++] = setup;
        use_setup(p, &setup);
    }
    bytes_clear(&problem);
    bytes_clear(&object);
    return rc;
}

static int take_alone(struct oracle_process *p, const struct oracle_request *request,
                      struct oracle_reply *reply, struct err *err)
{
    struct bytes object = {.data = xmalloc(request->object_len + 1), .len = request->object_len};
    int rc = oracle_receive(p->socket, object.data, object.len, err);

    if (rc == 0) {
        rc = oracle_process_alone(p, &object, request, reply, err);
    }
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
    struct oracle_answer answers[ORACLE_OUTPUTS];
    struct oracle_reply reply = {.code = 0};
    size_t count = 0;
    int rc = 0;
    switch (request.operation) {
    case ORACLE_READY:
        rc = oracle_process_settle(p, &err);
        break;
    case ORACLE_USE:
        reply.loaded = find_setup(p, &request.setup);
        break;
    case ORACLE_SETUP:
        rc = take_setup(p, &request, &err);
        break;
    case ORACLE_CHECK:
        rc = check(p, &request, answers, &err);
        count = rc == 0 ? request.count : 0;
        break;
    case ORACLE_SHARE:
        rc = take_shared(p, &request, &err);
        break;
    case ORACLE_ALONE:
        rc = take_alone(p, &request, &reply, &err);
        break;
    }
    reply.code = rc;
    if (rc != 0) {
        (void)snprintf(reply.text, sizeof(reply.text), "%s", err.text);
    }
    return oracle_send(p->socket, &reply, sizeof(reply), &err) == 0 &&
           oracle_send(p->socket, answers, count * sizeof(answers[0]), &err) == 0;
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

static int open_arenas(struct oracle_process *p, const char *uuid, struct err *err)
{
    struct gpu *gpu = &p->gpu;
    int rc = gpu_open(gpu, uuid, err);

    if (rc != 0) {
        return rc;
    }
    // Nobody looks at all of these, so they may be larger than needed.
    gpu->open.grows_early = true;
    rc = arena_open(&p->theirs, &gpu->driver, gpu->device, ARENA_THEIRS, gpu->memory_bytes, err);
    if (rc != 0) {
        return rc;
    }
    return arena_open(&p->outputs, &gpu->driver, gpu->device, ARENA_OUTPUTS, gpu->memory_bytes,
                      err);
}

void oracle_main(const char *uuid, int socket)
{
    struct oracle_process *p = xcalloc(1, sizeof(*p));

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    p->socket = socket;
    struct err err = ERR_INIT;
    gpu_use_one_queue();
    int rc = open_arenas(p, uuid, &err);
    if (rc != 0) {
        report_failure(socket, rc, &err);
        _exit(1);
    }
    while (serve(p)) {
    }
    _exit(0);
}
