#include "tests/gpu/original_replay.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "executor/measurement.h"
#include <stdlib.h>

#define LIMIT_NS (20 * NS_PER_S) // of one run
#define NO_RESULT 0xff           // bytes that are NaN in every float type
#define PAUSE_NS 150000          // before a run, in which the original is queued: both heat alike

static int queued(struct original_replay *r, cu_result result, const char *what, struct err *err)
{
    return gpu_check(&r->gpu, result, what, err);
}

// What is unfit is an error here: the recording has passed all checks.
static int must_fit(int rc, const struct err *err)
{
    return rc == PROGRAM_UNFIT ? (int)err->code : rc;
}

// ---- begin and end ----

static int keep(struct original_replay *r, size_t t, struct err *err)
{
    int rc = gpu_allocate(&r->gpu, r->sizes.bytes[t], &r->pristine[t], err);

    return rc != 0 ? rc
                   : queued(r,
                            r->gpu.driver.copy(r->pristine[t], r->tensor[t].tensor,
                                               r->sizes.bytes[t], r->gpu.stream),
                            "keeping an input", err);
}

static int make_inputs(struct original_replay *r, uint64_t seed, struct err *err)
{
    const struct input_set set = {.shape = r->problem->bench[0], .seed = seed};
    int rc = 0;

    for (size_t t = 0; t < r->problem->tensor_count && rc == 0; t++) {
        if (!tensor_is_input(&r->problem->tensor[t])) {
            continue;
        }
        rc = input_set_fill(&set, &r->gpu, r->problem, t, &r->tensor[t], &r->sizes, err);
        if (rc == 0 && tensor_is_output(&r->problem->tensor[t])) {
            rc = keep(r, t, err);
        }
    }
    return rc == 0 ? gpu_finish(&r->gpu, "making inputs", err) : rc;
}

static int make_events(struct original_replay *r, struct err *err)
{
    int rc =
        queued(r, r->gpu.driver.event_create(&r->begin, CU_EVENT_DEFAULT), "making an event", err);

    return rc != 0 ? rc
                   : queued(r, r->gpu.driver.event_create(&r->end, CU_EVENT_DEFAULT),
                            "making an event", err);
}

static int make_program(struct original_replay *r, const struct bytes *object, struct err *err)
{
    struct program_tensors tensors = {.tensor = {NULL}};
    int rc = program_create(&r->program, &r->gpu, r->problem, MANIFEST_CANDIDATE, object,
                            &r->gpu.recorded[0], err);

    for (size_t t = 0; t < r->problem->tensor_count; t++) {
        tensors.tensor[t] = &r->tensor[t];
    }
    return rc != 0
               ? rc
               : must_fit(program_prepare(r->program, &r->problem->bench[0], &tensors, err), err);
}

int original_replay_open(struct original_replay *r, const char *gpu, const struct bytes *problem,
                         const struct bytes *object, uint64_t seed, struct err *err)
{
    *r = (struct original_replay){.problem = NULL};
    int rc =
        problem_parse(&r->problem, (const char *)problem->data, problem->len, "problem.json", err);
    if (rc != 0) {
        return rc;
    }
    rc = tensor_sizes_of(r->problem, &r->problem->bench[0], &r->sizes, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_open(&r->gpu, gpu, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_events(r, err);
    // In the order and the arena of executor/gpu/harness.c, so at the addresses of the recording.
    for (size_t t = 0; t < r->problem->tensor_count && rc == 0; t++) {
        rc = guarded_buffer_place(&r->tensor[t], &r->gpu.open, r->sizes.bytes[t], err);
    }
    if (rc == 0) {
        rc = make_inputs(r, seed, err);
    }
    return rc == 0 ? make_program(r, object, err) : rc;
}

void original_replay_close(struct original_replay *r)
{
    program_free(r->program);
    for (size_t t = 0; t < PROBLEM_TENSOR_MAX; t++) {
        gpu_release(&r->gpu, &r->pristine[t]);
    }
    if (r->gpu.driver.library) {
        gpu_close(&r->gpu);
    }
    problem_free(r->problem);
    *r = (struct original_replay){.problem = NULL};
}

// ---- files ----

static int write_memory(struct original_replay *r, cu_pointer at, size_t bytes, const char *folder,
                        const char *name, const char *ending, struct err *err)
{
    char *path = xasprintf("%s/%s.%s", folder, name, ending);
    void *data = NULL;
    int rc = mem_try_alloc(&data, bytes, 1, PROBLEM_TENSOR_BYTES_MAX, name, err);

    if (rc == 0) {
        rc = queued(r, r->gpu.driver.copy_to_host(data, at, bytes, r->gpu.stream),
                    "copying a tensor", err);
    }
    if (rc == 0) {
        rc = gpu_finish(&r->gpu, "copying a tensor", err);
    }
    if (rc == 0) {
        rc = file_replace(path, data, bytes, false, err);
    }
    free(data);
    free(path);
    return rc;
}

int original_replay_write_inputs(struct original_replay *r, const char *folder, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < r->problem->tensor_count && rc == 0; t++) {
        cu_pointer at = r->pristine[t] != 0 ? r->pristine[t] : r->tensor[t].tensor;

        if (tensor_is_input(&r->problem->tensor[t])) {
            rc = write_memory(r, at, r->sizes.bytes[t], folder, r->problem->tensor[t].name, "in",
                              err);
        }
    }
    return rc;
}

// ---- a run ----

static int clear(struct original_replay *r, cu_pointer at, size_t bytes, struct err *err)
{
    return bytes == 0 ? 0
                      : queued(r, r->gpu.driver.set_bytes(at, NO_RESULT, bytes, r->gpu.stream),
                               "clearing a tensor", err);
}

// Queues what a run must find.
static int set_up(struct original_replay *r, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < r->problem->tensor_count && rc == 0; t++) {
        const struct guarded_buffer *result = &r->program->result[t];

        if (r->pristine[t] != 0) {
            rc = queued(r,
                        r->gpu.driver.copy(r->tensor[t].tensor, r->pristine[t], r->sizes.bytes[t],
                                           r->gpu.stream),
                        "giving back an input", err);
        } else if (tensor_is_output(&r->problem->tensor[t])) {
            rc = clear(r, r->tensor[t].tensor, r->sizes.bytes[t], err);
            rc = rc == 0 ? clear(r, result->tensor, result->bytes, err) : rc;
        }
    }
    if (rc != 0) {
        return rc;
    }
    rc = program_clear(r->program, err);
    return rc == 0 ? program_restore(r->program, err) : rc;
}

static int await(struct original_replay *r, struct err *err)
{
    char buf[256];

    switch (gpu_wait(&r->gpu, LIMIT_NS)) {
    case GPU_DONE:
        return 0;
    case GPU_FAULT:
        return err_set(err, ERR_SYSTEM, "its launches ended with %s",
                       gpu_result_text(&r->gpu, buf));
    case GPU_TIMEOUT:
        break;
    }
    return err_set(err, ERR_SYSTEM, "its launches did not end within %g seconds",
                   clock_seconds(LIMIT_NS));
}

int original_replay_run(struct original_replay *r, const char *folder, struct err *err)
{
    int rc = set_up(r, err);

    if (rc == 0) {
        rc = must_fit(program_run(r->program, err), err);
    }
    if (rc == 0) {
        rc = await(r, err);
    }
    for (size_t t = 0; t < r->problem->tensor_count && rc == 0; t++) {
        const struct guarded_buffer *result = &r->program->result[t];
        cu_pointer at = result->bytes > 0 ? result->tensor : r->tensor[t].tensor;

        if (tensor_is_output(&r->problem->tensor[t])) {
            rc = write_memory(r, at, r->sizes.bytes[t], folder, r->problem->tensor[t].name,
                              "replayed", err);
        }
    }
    return rc;
}

static int time_once(struct original_replay *r, double *ret_ns, struct err *err)
{
    struct driver *d = &r->gpu.driver;
    uint64_t pause = PAUSE_NS;
    int rc = gpu_run(&r->gpu, GPU_SPIN, 1, (void *[]){&pause}, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(&r->gpu, "a pause", err);
    if (rc != 0) {
        return rc;
    }
    rc = set_up(r, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_flush(&r->gpu, err);
    if (rc != 0) {
        return rc;
    }
    rc = queued(r, d->event_record(r->begin, r->gpu.stream), "recording an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = must_fit(program_run(r->program, err), err);
    if (rc != 0) {
        return rc;
    }
    rc = queued(r, d->event_record(r->end, r->gpu.stream), "recording an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = await(r, err);
    if (rc != 0) {
        return rc;
    }
    float ms = 0;
    rc = queued(r, d->event_elapsed(&ms, r->begin, r->end), "reading events", err);
    *ret_ns = (double)ms * 1e6;
    return rc;
}

int original_replay_time(struct original_replay *r, size_t count, double *ret_ns, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = time_once(r, &ret_ns[i], err);
    }
    return rc;
}
