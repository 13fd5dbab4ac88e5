// Design note. The oracle's process answers one request after the other. It keeps the expected
// outputs of several input sets in a cache, so that the sets of verification, on which several arms
// are launched, cost one run of the reference. Making and freeing memory costs more than most
// references: new outputs take over the memory of outputs that nobody will ask for again, those of
// other measurements and of timed launches. A failure of an EXPECT, which has no reply, is kept and
// becomes the answer of the next CHECK. Nothing of a candidate runs here: when the context breaks,
// the reference has broken it, and every later request fails.
#include "executor/gpu/oracle_process.h"
#include "executor/measurement.h"
#include "executor/sandbox/fd_message.h"
#include "problem/manifest.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FIT_FACTOR 8                // memory may be this many times as large as its outputs
#define FIT_LEAST ((size_t)1 << 20) // or have this many bytes

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

// Whether nobody will ask for these outputs any more: they belong to another measurement than the
// new set, or to a timed launch.
static bool is_done_with(const struct expected *entry, const struct input_set *set)
{
    return entry->used > 0 &&
           (entry->set.seed != set->seed || entry->set.number >= MEASURE_CONTENTS);
}

// Whether outputs of these sizes fit the memory of the entry, and need most of it.
static bool fits(const struct expected *entry, const struct problem *problem,
                 const struct tensor_sizes *sizes)
{
    size_t needed = 0;

    for (size_t t = 0; t < problem->tensor_count; t++) {
        size_t bytes = tensor_is_output(&problem->tensor[t]) ? sizes->count[t] * sizeof(double) : 0;

        if (entry->value[t].capacity < bytes || entry->scale[t].capacity < bytes) {
            return false;
        }
        needed += 2 * bytes;
    }
    return entry->bytes / FIT_FACTOR <= needed || entry->bytes <= FIT_LEAST;
}

// Returns an entry whose memory can be used for the outputs of the set, NULL when there is none.
static struct expected *take_over(struct oracle_process *p, const struct input_set *set,
                                  const struct tensor_sizes *sizes)
{
    for (size_t i = 0; i < CACHE_ENTRIES_MAX; i++) {
        if (is_done_with(&p->cache[i], set) && fits(&p->cache[i], p->problem, sizes)) {
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

// Computes the outputs of a set that is not in the cache.
static int add(struct oracle_process *p, const struct input_set *set, struct expected **ret,
               struct err *err)
{
    struct tensor_sizes sizes;
    int rc = tensor_sizes_of(p->problem, &set->shape, &sizes, err);

    if (rc != 0) {
        return rc;
    }
    struct expected *entry = take_over(p, set, &sizes);
    if (!entry) {
        entry = make_room(p, output_bytes(p->problem, &sizes));
    }
    size_t had = entry->bytes;
    entry->used = 0; // nobody finds it before it is complete
    rc = oracle_process_compute(p, set, &sizes, entry, err);
    p->cache_bytes += entry->bytes - had;
    if (rc != 0) {
        forget(p, entry);
        return rc < 0 ? rc : ERR_INVALID;
    }
    entry->set = *set;
    *ret = entry;
    return 0;
}

int oracle_process_expect(struct oracle_process *p, const struct input_set *set,
                          struct expected **ret, struct err *err)
{
    if (!p->problem) {
        return err_set(err, ERR_INTERNAL, "the oracle has no problem");
    }
    struct expected *entry = find(p, set);
    int rc = entry ? 0 : add(p, set, &entry, err);
    if (rc != 0) {
        return rc;
    }
    entry->used = ++p->clock;
    *ret = entry;
    return 0;
}

// ---- requests ----

static int check(struct oracle_process *p, const struct oracle_request *request,
                 struct oracle_answer *ret, struct err *err)
{
    if (p->failure.code != ERR_NONE) {
        *err = p->failure;
        p->failure = (struct err)ERR_INIT;
        return (int)err->code;
    }
    struct expected *entry = NULL;
    int rc = oracle_process_expect(p, &request->set, &entry, err);
    return rc == 0 ? oracle_process_compare(p, request, entry, ret, err) : rc;
}

static int take_shared(struct oracle_process *p, const struct oracle_request *request,
                       struct err *err)
{
    char byte, buf[256];
    int fd[FD_MESSAGE_MAX];
    size_t count = 0;
    struct arena *theirs = &p->theirs;

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

static void give_back(struct arena *arena, size_t placed)
{
    arena_rewind(arena, placed);
    arena_trim(arena, 0);
}

static void drop_setup(struct oracle_process *p)
{
    for (size_t i = 0; i < CACHE_ENTRIES_MAX; i++) {
        if (p->cache[i].used > 0) {
            forget(p, &p->cache[i]);
        }
    }
    p->failure = (struct err)ERR_INIT;
    if (p->reference && p->reference->memory) { // which may be much
        give_back(&p->gpu.open, p->gpu.open_mark);
        give_back(p->reference->memory, 0);
    }
    program_free(p->reference);
    p->reference = NULL;
    problem_free(p->problem);
    p->problem = NULL;
    arena_rewind(&p->gpu.judge, p->gpu.judge_mark);
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
    rc = program_create(&p->reference, &p->gpu, p->problem, MANIFEST_REFERENCE, &object,
                        &p->gpu.recorded[ORACLE_RECORDED], err);
    if (rc != 0) {
        rc = err_wrap(err, "the problem's reference");
    }
out:
    if (rc != 0) {
        problem_free(p->problem);
        p->problem = NULL;
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
            (void)!oracle_process_expect(p, &request.set, &ignored, &p->failure);
        }
        return true;
    case ORACLE_CHECK:
        rc = check(p, &request, &reply.answer, &err);
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

void oracle_main(const char *uuid, int socket)
{
    struct oracle_process *p = xcalloc(1, sizeof(*p));

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    p->socket = socket;
    p->failure = (struct err)ERR_INIT;
    struct err err = ERR_INIT;
    gpu_use_one_queue();
    int rc = gpu_open(&p->gpu, uuid, &err);
    if (rc == 0) {
        rc = arena_open(&p->theirs, &p->gpu.driver, p->gpu.device, ARENA_THEIRS,
                        p->gpu.memory_bytes, &err);
    }
    if (rc != 0) {
        report_failure(socket, rc, &err);
        _exit(1);
    }
    while (serve(p)) {
    }
    _exit(0);
}
