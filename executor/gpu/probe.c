// Design note. The peak rates give the floor of a kernel's time, so they must not be too low.
// Memory: the quickest of several passes that read or write much more than the cache holds.
// Arithmetic: what the architecture can issue in one multiprocessor and cycle (NVIDIA's
// architecture papers; dense; a multiply-add counts as two) at the highest clock. It is not
// measured, because a kernel of this program would not reach it.
#include "executor/gpu/probe.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/fact_list.h"
#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/gpu.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEAK_BYTES ((size_t)2 << 30) // size of the buffer that is read and written
#define PEAK_RUNS 12                 // passes, every second one reads
#define GPUS_MAX 64
#define HEALTH_ROUNDS 20
#define HEALTH_NS (5 * NS_PER_S)

// Operations that one multiprocessor of an architecture can issue in one cycle, for each type.
struct rate {
    const char *target;
    double f32, f64, tf32, f16, bf16, fp8, i8; // 0: not supported
};

static const struct rate rates[] = {
    {"sm_75", 128, 4, 0, 1024, 0, 0, 2048},
    {"sm_80", 128, 128, 1024, 2048, 2048, 0, 4096},
    {"sm_86", 256, 4, 512, 1024, 1024, 0, 2048},
    {"sm_89", 256, 4, 512, 1024, 1024, 2048, 2048},
    {"sm_90", 256, 256, 2048, 4096, 4096, 8192, 8192},
};

static void add_fact(struct gpu_info *info, const char *name, double value)
{
    if (isfinite(value) && value > 0) {
        fact_list_add(&info->facts, &info->facts_count, name, value);
    }
}

static void add_peaks(struct gpu_info *info, const struct gpu *gpu)
{
    double all = gpu->multiprocessors * gpu->clock_hz;

    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        if (strcmp(rates[i].target, gpu->target) == 0) {
            add_fact(info, "peak_flops_f32", all * rates[i].f32);
            add_fact(info, "peak_flops_f64", all * rates[i].f64);
            add_fact(info, "peak_flops_tf32", all * rates[i].tf32);
            add_fact(info, "peak_flops_f16", all * rates[i].f16);
            add_fact(info, "peak_flops_bf16", all * rates[i].bf16);
            add_fact(info, "peak_flops_fp8", all * rates[i].fp8);
            add_fact(info, "peak_flops_i8", all * rates[i].i8);
        }
    }
}

// Queues one pass that reads or writes the whole buffer.
static int pass(struct gpu *gpu, cu_pointer buffer, uint64_t bytes, bool reads, struct err *err)
{
    cu_pointer sum = gpu_word(gpu, 0);

    if (reads) {
        return gpu_run(gpu, GPU_READ, bytes / 16, (void *[]){&buffer, &bytes, &sum}, err);
    }
    return gpu_check(gpu, gpu->driver.set_words(buffer, 0, bytes / 4, gpu->stream), "writing", err);
}

static int time_pass(struct gpu *gpu, cu_pointer buffer, size_t bytes, bool reads, cu_event from,
                     cu_event to, double *best_ns, struct err *err)
{
    int rc = gpu_check(gpu, gpu->driver.event_record(from, gpu->stream), "an event", err);

    if (rc != 0) {
        return rc;
    }
    rc = pass(gpu, buffer, bytes, reads, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, gpu->driver.event_record(to, gpu->stream), "an event", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_finish(gpu, "measuring the memory", err);
    if (rc != 0) {
        return rc;
    }
    float ms = 0;
    rc = gpu_check(gpu, gpu->driver.event_elapsed(&ms, from, to), "reading events", err);
    if (rc != 0) {
        return rc;
    }
    if (ms > 0) {
        *best_ns = fmin(*best_ns, (double)ms * 1e6);
    }
    return 0;
}

static int measure_memory(struct gpu *gpu, double *ret_bytes_per_second, struct err *err)
{
    size_t bytes = PEAK_BYTES < gpu->memory_bytes / 4 ? PEAK_BYTES : gpu->memory_bytes / 4;
    cu_event from = NULL, to = NULL;

    bytes &= ~(size_t)4095;
    cu_pointer buffer = 0;
    int rc = gpu_allocate(gpu, bytes, &buffer, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, gpu->driver.event_create(&from, CU_EVENT_DEFAULT), "an event", err);
    if (rc != 0) {
        goto out;
    }
    rc = gpu_check(gpu, gpu->driver.event_create(&to, CU_EVENT_DEFAULT), "an event", err);
    if (rc != 0) {
        goto out;
    }
    double best_ns = INFINITY;
    for (int i = 0; i < PEAK_RUNS; i++) {
        rc = time_pass(gpu, buffer, bytes, i % 2 == 0, from, to, &best_ns, err);
        if (rc != 0) {
            goto out;
        }
    }
    *ret_bytes_per_second = (double)bytes / best_ns * 1e9;
out:
    gpu_release(gpu, &buffer);
    return rc;
}

static int examine(struct gpu *gpu, struct gpu_info *info, const char *toolchain, struct err *err)
{
    double peak_bytes = NAN;
    int rc = gpu_open(gpu, info->uuid, err);

    if (rc == 0) {
        rc = measure_memory(gpu, &peak_bytes, err);
    }
    if (rc != 0) {
        return rc;
    }
    info->pageable = gpu->pageable != 0;
    add_fact(info, "multiprocessors", gpu->multiprocessors);
    add_fact(info, "threads_per_multiprocessor", gpu->threads_per_multiprocessor);
    add_fact(info, "l2_bytes", (double)gpu->l2_bytes);
    add_fact(info, "memory_bytes", (double)gpu->memory_bytes);
    add_fact(info, "shared_bytes_per_block", (double)gpu->smem_optin);
    add_fact(info, "shared_bytes_per_multiprocessor", (double)gpu->smem_multiprocessor);
    add_fact(info, "registers_per_multiprocessor", gpu->registers);
    add_fact(info, "clock_hz", gpu->clock_hz);
    add_fact(info, "peak_bytes", peak_bytes);
    add_peaks(info, gpu);
    // Only the compiler of the toolchain: its other tools do not change times.
    info->device_class =
        xasprintf("%s, %s, driver %d.%d, %.*s", gpu->name, gpu->target, gpu->driver_version / 1000,
                  gpu->driver_version % 1000 / 10, (int)strcspn(toolchain, ","), toolchain);
    return 0;
}

// Fills the entry of one GPU. An entry without facts has the reason.
static void describe(const struct driver *driver, int ordinal, const char *toolchain,
                     struct gpu_info *info)
{
    struct err why = ERR_INIT;
    struct gpu gpu;

    message_init(&gpu_info_message, info);
    info->ordinal = (uint64_t)ordinal;
    int rc = gpu_describe(&gpu, driver, ordinal, &why);
    if (rc == 0) {
        info->uuid = xstrdup(gpu.uuid);
        info->name = xstrdup(gpu.name);
        info->target = xstrdup(gpu.target);
        rc = examine(&gpu, info, toolchain, &why);
        gpu_close(&gpu);
    }
    if (rc != 0) {
        info->reason = xstrdup(why.text);
        info->uuid = info->uuid ? info->uuid : xasprintf("ordinal %d", ordinal);
    }
}

int probe_cuda(struct cuda_probe_outcome *outcome, struct err *err)
{
    char reason[ERR_TEXT_MAX], *toolchain = NULL;
    struct driver driver;
    int count = gpu_count(&driver, reason);

    (void)err;
    message_init(&cuda_probe_outcome_message, outcome);
    struct err why = ERR_INIT;
    if (count > 0 && nvrtc_toolchain(&toolchain, &why) != 0) {
        (void)snprintf(reason, sizeof(reason), "%s", why.text);
        count = 0;
    }
    if (count == 0) {
        outcome->reason = xstrdup(reason);
        return 0;
    }
    count = count < GPUS_MAX ? count : GPUS_MAX;
    outcome->toolchain = toolchain;
    outcome->gpus = xcalloc((size_t)count, sizeof(*outcome->gpus));
    outcome->gpus_count = (size_t)count;
    for (int i = 0; i < count; i++) {
        describe(&driver, i, toolchain, &outcome->gpus[i]);
    }
    return 0;
}

int probe_health(const char *uuid, struct err *err)
{
    struct gpu gpu = {.device = 0};
    int rc = gpu_open(&gpu, uuid, err);

    for (unsigned i = 0; i < HEALTH_ROUNDS && rc == 0; i++) {
        rc = gpu_health(&gpu, HEALTH_NS, err);
    }
    if (!gpu.hung) {
        gpu_close(&gpu);
    }
    return rc;
}
