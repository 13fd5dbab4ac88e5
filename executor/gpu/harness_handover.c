#include "executor/gpu/harness_handover.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/stats.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/harness_words.h"
#include "executor/input_values.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OVERHEAD_RUNS 16

// Takes over why the candidate has failed, and for what; NULL: for nothing in particular. Returns
// MEASURE_STOP.
static int stop(struct gpu_harness *harness, struct unsealed_failure *why, const char *where)
{
    int rc = measurement_stop(harness->measurement, why->verdict, "%s%s%s", why->reason,
                              where ? ", for " : "", where ? where : "");

    free(why->reason);
    return rc;
}

// ---- begin and end ----

// Lists the cases. *ret_bytes is what the tensors of the largest one take, from the first guard on.
static int list_cases(struct gpu_harness *harness, size_t *ret_bytes, struct err *err)
{
    struct gpu_handover *handover = harness->handover;
    const struct problem *problem = harness->problem;
    struct shape_case shape[GPU_CASES_MAX];
    int rc = 0;

    *ret_bytes = 0;
    handover->case_count = gpu_cases(problem, COMPILE_CANDIDATE, harness->plan->hidden_seed, shape);
    handover->cases = xcalloc(handover->case_count + 1, sizeof(*handover->cases));
    for (size_t i = 0; i < handover->case_count && rc == 0; i++) {
        struct record_case *of = &handover->cases[i];
        size_t placed = 0;

        of->shape = shape[i];
        rc = tensor_sizes_of(problem, &shape[i], &of->sizes, err);
        for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
            of->at[t] = gpu_next_area(placed, of->sizes.bytes[t], &placed);
        }
        *ret_bytes = placed > *ret_bytes ? placed : *ret_bytes;
    }
    return rc;
}

static int make_memory(struct gpu_harness *harness, size_t bytes, struct err *err)
{
    struct gpu_handover *handover = harness->handover;
    struct gpu *gpu = harness->gpu;
    int rc = arena_open(&handover->arena, &gpu->driver, gpu->device, ARENA_HANDOVER,
                        bytes + GUARD_BYTES, err);

    if (rc != 0) {
        return rc;
    }
    rc = arena_reach(&handover->arena, bytes, err);
    for (size_t i = 0; i < handover->case_count; i++) {
        for (size_t t = 0; t < harness->problem->tensor_count; t++) {
            handover->cases[i].at[t] += handover->arena.base;
        }
    }
    return rc;
}

static int start_process(struct gpu_harness *harness, struct err *err)
{
    struct gpu_handover *handover = harness->handover;
    const struct cuda_object *object = &harness->arm[ARM_CANDIDATE]->object;
    const struct measure_plan *plan = harness->plan;
    struct gpu *gpu = harness->gpu;
    struct record_request request = {.source = &object->source,
                                     .role = "candidate",
                                     .problem = harness->problem,
                                     .target = object->target,
                                     .device = gpu->uuid,
                                     .base = ARENA_RECORDED + ARENA_RECORDED_STEP,
                                     .shared = handover->arena.base,
                                     .shared_bytes = handover->arena.mapped,
                                     .cases = handover->cases,
                                     .case_count = handover->case_count};
    struct unsealed_plan limits = {.python = plan->python,
                                   .sandbox_off = plan->sandbox_off,
                                   .host_seconds = plan->host_seconds,
                                   .run_seconds = plan->max_seconds + plan->launch_seconds};
    int memory = -1;
    int rc = gpu_check(gpu, arena_export(&handover->arena, 0, &memory),
                       "sharing memory with an unsealed candidate", err);

    if (rc != 0) {
        return rc;
    }
    rc = unsealed_open(&handover->process, harness->recorder, &limits, &request, memory, err);
    close(memory);
    return rc;
}

// What it takes to tell the process to run and to have its answer, before the candidate is in it.
// The first one takes longer.
static int measure_empty(struct gpu_harness *harness, struct err *err)
{
    double ns[OVERHEAD_RUNS + 1];
    int rc = 0;

    for (size_t i = 0; i <= OVERHEAD_RUNS && rc == 0; i++) {
        uint64_t begin = clock_now_ns(&clock_system);

        rc = unsealed_empty(&harness->handover->process, err);
        ns[i] = (double)(clock_now_ns(&clock_system) - begin);
    }
    if (rc == 0) {
        harness->measurement->overhead_ns = stats_median(ns + 1, OVERHEAD_RUNS);
    }
    return rc;
}

int gpu_handover_open(struct gpu_harness *harness, struct err *err)
{
    if (!harness->recorder || !(harness->plan->host_seconds > 0)) {
        return err_set(err, ERR_INVALID, "the plan does not let a candidate run unsealed");
    }
    harness->handover = xcalloc(1, sizeof(*harness->handover));
    harness->handover->process.socket = -1;
    size_t bytes;
    int rc = list_cases(harness, &bytes, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_memory(harness, bytes, err);
    if (rc != 0) {
        return rc;
    }
    rc = start_process(harness, err);
    if (rc != 0) {
        return rc;
    }
    rc = measure_empty(harness, err);
    if (rc != 0) {
        return rc;
    }
    struct unsealed_failure why;
    rc = unsealed_begin(&harness->handover->process, &why, err);
    return rc == UNSEALED_FAILED ? stop(harness, &why, NULL) : rc;
}

void gpu_handover_end(struct gpu_harness *harness)
{
    struct gpu_handover *handover = harness->handover;

    if (handover && !handover->ended) {
        handover->ended = true;
        harness->retire = !unsealed_close(&handover->process) || harness->retire;
    }
}

void gpu_handover_close(struct gpu_harness *harness)
{
    struct gpu_handover *handover = harness->handover;

    if (!handover) {
        return;
    }
    gpu_handover_end(harness);
    if (!harness->gpu->hung && !harness->gpu->broken) {
        arena_release(&handover->arena);
    }
    free(handover->cases);
    free(handover);
    harness->handover = NULL;
}

// ---- cases ----

static bool same_values(const struct problem *problem, const struct shape_case *a,
                        const struct shape_case *b)
{
    bool same = true;

    for (size_t i = 0; i < problem->param_count; i++) {
        same = same && (problem->param[i].type == PARAM_INT
                            ? a->i[i] == b->i[i]
                            : memcmp(&a->f[i], &b->f[i], sizeof(a->f[i])) == 0);
    }
    return same;
}

static int find_case(const struct gpu_harness *harness, const struct gpu_case *data, size_t *ret,
                     struct err *err)
{
    const struct gpu_handover *handover = harness->handover;

    for (size_t i = 0; i < handover->case_count; i++) {
        if (same_values(harness->problem, &handover->cases[i].shape, data->of->shape)) {
            *ret = i;
            return 0;
        }
    }
    return err_set(err, ERR_INTERNAL, "an unsealed candidate was not told of %s", data->of->name);
}

// Lists what lies between the tensors.
static int list_guards(struct gpu_harness *harness, struct err *err)
{
    struct gpu_handover *handover = harness->handover;
    cu_pointer at = handover->arena.base, end = at + handover->arena.mapped;
    bool room = true;

    handover->guards = (struct gpu_zones){.count = 0};
    for (size_t t = 0; t < harness->problem->tensor_count; t++) { // in the order of their addresses
        const struct guarded_buffer *tensor = &handover->tensor[t];

        room = room && gpu_zones_add(&handover->guards, at, tensor->tensor - at);
        at = tensor->tensor + tensor->bytes;
    }
    room = room && gpu_zones_add(&handover->guards, at, end - at);
    return room ? 0 : err_set(err, ERR_LIMIT, "more tensors than can be guarded");
}

int gpu_handover_place(struct gpu_harness *harness, const struct gpu_case *data, struct err *err)
{
    struct gpu_handover *handover = harness->handover;
    int rc = find_case(harness, data, &handover->placed, err);

    if (rc != 0) {
        return rc;
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        handover->tensor[t] = (struct guarded_buffer){
            .tensor = handover->cases[handover->placed].at[t], .bytes = data->sizes.bytes[t]};
    }
    return list_guards(harness, err);
}

int gpu_handover_enter(struct gpu_harness *harness, const struct gpu_case *data, struct err *err)
{
    struct gpu_handover *handover = harness->handover;
    struct unsealed_failure why;

    harness->inspected = false;
    harness->candidate_ran = true;
    int rc = unsealed_case(&handover->process, (uint32_t)handover->placed, &why, err);
    return rc == UNSEALED_FAILED ? stop(harness, &why, data->of->name) : rc;
}

int gpu_handover_fill(struct gpu_harness *harness, struct err *err)
{
    struct gpu_handover *handover = harness->handover;

    handover->guard_key = stats_entropy();
    return gpu_pattern_fill(harness->gpu, &handover->guards, handover->guard_key, err);
}

int gpu_handover_check(struct gpu_harness *harness, struct err *err)
{
    const struct gpu_handover *handover = harness->handover;

    return gpu_pattern_check(harness->gpu, &handover->guards, handover->guard_key, WORD_HANDOVER,
                             err);
}

const struct guarded_buffer *gpu_handover_input(const struct gpu_harness *harness,
                                                enum arm_index arm, size_t tensor)
{
    return harness->handover && arm == ARM_CANDIDATE ? &harness->handover->tensor[tensor]
                                                     : &harness->live[tensor];
}

// ---- a launch ----

static int copy(struct gpu_harness *harness, const struct guarded_buffer *to,
                const struct guarded_buffer *from, struct err *err)
{
    struct gpu *gpu = harness->gpu;

    return gpu_check(gpu, gpu->driver.copy(to->tensor, from->tensor, from->bytes, gpu->stream),
                     "handing a tensor over", err);
}

int gpu_handover_ready(struct gpu_harness *harness, struct err *err)
{
    const struct problem *problem = harness->problem;
    int rc = 0;

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        if (!tensor_is_input(&problem->tensor[t])) {
            rc = guarded_buffer_poison(&harness->handover->tensor[t], harness->gpu, stats_entropy(),
                                       err);
        }
    }
    return rc == 0 ? gpu_finish(harness->gpu, "preparing a launch", err) : rc;
}

int gpu_handover_give(struct gpu_harness *harness, struct err *err)
{
    const struct problem *problem = harness->problem;
    int rc = 0;

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        if (tensor_is_input(&problem->tensor[t])) {
            rc = copy(harness, &harness->handover->tensor[t], &harness->live[t], err);
        }
    }
    return rc;
}

int gpu_handover_run(struct gpu_harness *harness, const struct gpu_case *data, uint64_t content,
                     uint64_t limit_ns, struct err *err)
{
    struct unsealed_failure why;
    int rc = gpu_finish(harness->gpu, "giving an unsealed candidate its inputs", err);

    if (rc != 0) {
        return rc;
    }
    harness->inspected = false;
    harness->candidate_ran = true; // not `here`: it cannot reach what lies beside `live`
    rc = unsealed_run(&harness->handover->process, limit_ns, &why, err);
    if (rc == UNSEALED_FAILED) {
        char *where = input_values_where(harness->problem, data->of, harness->plan->seed, content);
        rc = stop(harness, &why, where);
        free(where);
    }
    return rc;
}

int gpu_handover_take(struct gpu_harness *harness, enum arm_index arm, struct err *err)
{
    const struct problem *problem = harness->problem;
    int rc = 0;

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        const struct guarded_buffer *live = &harness->live[t];
        const struct guarded_buffer *shared = &harness->handover->tensor[t];

        if (tensor_is_output(&problem->tensor[t])) {
            rc = arm == ARM_CANDIDATE ? copy(harness, live, shared, err)
                                      : copy(harness, shared, live, err);
        }
    }
    return rc;
}
