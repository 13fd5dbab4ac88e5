// Design note. The driver's own waits have no deadline, so waiting means to poll an event. The
// first milliseconds are spent without sleeping, because most of what is waited for takes
// microseconds.
//
// A context is in one of three states. Usable: calls work. Broken: a call has reported a fault of a
// kernel, and every later call fails with it. Hung: a kernel has not ended in time, and a call of
// the driver may never return. Only the end of the process leaves the last two.
#include "executor/gpu/gpu.h"
#include "common/clock.h"
#include "common/mem.h"
#include "executor/gpu/cases.h"
#include "executor/gpu/device/kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPIN_NS (5 * NS_PER_MS)   // a wait does not sleep before this time has passed
#define NAP_NS (50 * 1000)        // between two polls of a longer wait
#define FINISH_NS (20 * NS_PER_S) // limit of a wait for the executor's own work
#define THREADS 256
#define BLOCKS_PER_MULTIPROCESSOR 8
#define HEALTH_COUNT 4096
#define HEALTH_STEPS 8 // the kernel does as many (kc_health)

// ---- context ----

void gpu_use_one_queue(void)
{
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
}

static int load_kernels(struct gpu *gpu, struct err *err)
{
    static const char *const symbol[] = {
#define X(id, name) name,
        GPU_KERNELS(X)
#undef X
    };
    struct driver *d = &gpu->driver;
    struct bytes cubin;
    int rc = kernels_build(gpu->target, &cubin, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, d->module_load(&gpu->kernels, cubin.data), "loading kernels", err);
    bytes_clear(&cubin);
    for (size_t i = 0; i < GPU_KERNEL_COUNT && rc == 0; i++) {
        rc = gpu_check(gpu, d->module_function(&gpu->function[i], gpu->kernels, symbol[i]),
                       symbol[i], err);
    }
    if (rc == 0) {
        rc = gpu_check(gpu,
                       d->function_set(gpu->function[GPU_SHARED_POISON],
                                       CU_FUNCTION_MAX_DYNAMIC_SMEM, (int)gpu->smem_optin),
                       "shared memory of the executor's kernel", err);
    }
    return rc;
}

static int make_context(struct gpu *gpu, struct err *err)
{
    struct driver *d = &gpu->driver;

    // This fails when the context exists already, which does no harm.
    (void)d->context_flags(gpu->device, CU_CONTEXT_SPIN);
    int rc =
        gpu_check(gpu, d->context_retain(&gpu->context, gpu->device), "making a CUDA context", err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_check(gpu, d->context_set(gpu->context), "entering the CUDA context", err);
    if (rc != 0) {
        return rc;
    }
    // Device code may neither print nor keep data in the L2 cache. The driver accepts no smaller
    // limit for printing.
    (void)d->context_limit(CU_LIMIT_PRINTF_BYTES, 4096);
    (void)d->context_limit(CU_LIMIT_PERSISTING_L2, 0);
    rc = gpu_check(gpu, d->stream_create(&gpu->stream, CU_STREAM_NON_BLOCKING), "making a stream",
                   err);
    if (rc != 0) {
        return rc;
    }
    return gpu_check(gpu, d->event_create(&gpu->mark, CU_EVENT_DEFAULT), "making an event", err);
}

static int open_arenas(struct gpu *gpu, struct err *err)
{
    const struct driver *d = &gpu->driver;
    int rc = arena_open(&gpu->open, d, gpu->device, ARENA_OPEN, gpu->memory_bytes, err);

    if (rc != 0) {
        return rc;
    }
    return arena_open(&gpu->judge, d, gpu->device, ARENA_JUDGE, gpu->memory_bytes, err);
}

static int make_memory(struct gpu *gpu, struct err *err)
{
    gpu->flush_bytes = gpu_flush_size(gpu->l2_bytes);
    int rc = open_arenas(gpu, err);
    if (rc != 0) {
        return rc;
    }
    rc = arena_place(&gpu->open, GPU_WORDS_BYTES, &gpu->words, err);
    if (rc != 0) {
        return rc;
    }
    rc = arena_place(&gpu->open, gpu->flush_bytes, &gpu->flush, err);
    if (rc != 0) {
        return rc;
    }
    gpu->open_mark = gpu->open.placed;
    gpu->judge_mark = gpu->judge.placed;
    gpu->host_words = aligned_alloc(4096, GPU_WORDS_BYTES);
    if (!gpu->host_words) {
        return err_set(err, ERR_SYSTEM, "no memory for results");
    }
    rc = gpu_check(
        gpu, gpu->driver.host_register(gpu->host_words, GPU_WORDS_BYTES, CU_HOST_REGISTER_PORTABLE),
        "pinning memory", err);
    return rc == 0 ? gpu_check(gpu, gpu->driver.host_pointer(&gpu->copied, gpu->host_words, 0),
                               "finding pinned memory", err)
                   : rc;
}

int gpu_open(struct gpu *gpu, const char *uuid, struct err *err)
{
    *gpu = (struct gpu){.device = 0};
    int rc = gpu_find(gpu, uuid, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_context(gpu, err);
    if (rc != 0) {
        return rc;
    }
    rc = load_kernels(gpu, err);
    if (rc != 0) {
        return rc;
    }
    rc = make_memory(gpu, err);
    if (rc != 0) {
        return rc;
    }
    return gpu_health(gpu, FINISH_NS, err);
}

void gpu_close(struct gpu *gpu)
{
    if (gpu->context && !gpu->hung) {
        arena_release(&gpu->open);
        arena_release(&gpu->judge);
        for (size_t i = 0; i < GPU_RECORDINGS; i++) {
            arena_release(&gpu->recorded[i]);
        }
        (void)gpu->driver.context_release(gpu->device); // also unpins host_words
        free(gpu->host_words);
    }
    *gpu = (struct gpu){.device = 0};
}

// ---- streams ----

int gpu_make_streams(struct gpu *gpu, unsigned count, struct err *err)
{
    int rc = 0;

    for (unsigned i = 1; i < count && rc == 0; i++) {
        cu_stream *side = &gpu->side[i - 1];

        rc = *side ? 0
                   : gpu_check(gpu, gpu->driver.stream_create(side, CU_STREAM_NON_BLOCKING),
                               "making a stream", err);
    }
    return rc;
}

cu_stream gpu_stream(const struct gpu *gpu, unsigned number)
{
    return number == 0 ? gpu->stream : gpu->side[number - 1];
}

// ---- results ----

static bool is_defect(cu_result result)
{
    return result == CU_ECC_UNCORRECTABLE || result == CU_NVLINK_UNCORRECTABLE ||
           result == CU_CONTAINED;
}

bool gpu_is_defective(const struct gpu *gpu)
{
    return gpu->broken && is_defect(gpu->result);
}

int gpu_check(struct gpu *gpu, cu_result result, const char *what, struct err *err)
{
    bool breaks = is_defect(result) ||
                  (result >= CU_ILLEGAL_ADDRESS && result < 800 &&
                   result != CU_LAUNCH_OUT_OF_RESOURCES && result != CU_COOPERATIVE_TOO_LARGE);

    if (breaks && !gpu->broken) {
        gpu->broken = true;
        gpu->result = result;
    }
    return driver_check(&gpu->driver, result, what, err);
}

const char *gpu_result_text(const struct gpu *gpu, char buf[static 256])
{
    return driver_error(&gpu->driver, gpu->result, buf);
}

// ---- waiting ----

static enum gpu_outcome poll_mark(struct gpu *gpu, cu_result result, uint64_t limit_ns)
{
    static const struct timespec nap = {.tv_nsec = NAP_NS};
    struct driver *d = &gpu->driver;
    uint64_t start = clock_now_ns(&clock_system), elapsed;

    while (result == CU_OK || result == CU_NOT_READY) {
        result = d->event_query(gpu->mark);
        if (result == CU_OK) {
            return GPU_DONE;
        }
        elapsed = clock_now_ns(&clock_system) - start;
        if (result == CU_NOT_READY && elapsed > limit_ns) {
            gpu->hung = true;
            return GPU_TIMEOUT;
        }
        if (elapsed > SPIN_NS) {
            (void)nanosleep(&nap, NULL);
        }
    }
    gpu->broken = true;
    gpu->result = result;
    return GPU_FAULT;
}

enum gpu_outcome gpu_wait(struct gpu *gpu, uint64_t limit_ns)
{
    return poll_mark(gpu, gpu->driver.event_record(gpu->mark, gpu->stream), limit_ns);
}

int gpu_mark(struct gpu *gpu, struct err *err)
{
    return gpu_check(gpu, gpu->driver.event_record(gpu->mark, gpu->stream), "recording an event",
                     err);
}

enum gpu_outcome gpu_wait_mark(struct gpu *gpu, uint64_t limit_ns)
{
    return poll_mark(gpu, CU_OK, limit_ns);
}

int gpu_finish(struct gpu *gpu, const char *what, struct err *err)
{
    char buf[256];

    switch (gpu_wait(gpu, FINISH_NS)) {
    case GPU_DONE:
        return 0;
    case GPU_TIMEOUT:
        return err_set(err, ERR_SYSTEM, "%s: the GPU does not answer", what);
    default:
        return err_set(err, ERR_SYSTEM, "%s: %s", what, gpu_result_text(gpu, buf));
    }
}

// ---- the executor's kernels ----

static int launch(struct gpu *gpu, enum gpu_kernel kernel, uint32_t blocks, uint32_t threads,
                  uint32_t smem, void **parameters, struct err *err)
{
    struct cu_launch config = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .smem = smem, .stream = gpu->stream};

    return gpu_check(gpu, gpu->driver.launch(&config, gpu->function[kernel], parameters, NULL),
                     "launching a kernel of the executor", err);
}

int gpu_run(struct gpu *gpu, enum gpu_kernel kernel, uint64_t items, void **parameters,
            struct err *err)
{
    // Blocks that wait for their turn make up for those that take longer.
    bool uneven = kernel == GPU_INPUTS || kernel == GPU_INPUTS_QUICK || kernel == GPU_COMPARE;
    uint64_t most = (uint64_t)gpu->multiprocessors * BLOCKS_PER_MULTIPROCESSOR * (uneven ? 2 : 1);
    uint64_t blocks = (items + THREADS - 1) / THREADS;

    blocks = blocks < 1 ? 1 : blocks < most ? blocks : most;
    return launch(gpu, kernel, (uint32_t)blocks, kernel == GPU_SPIN ? 1 : THREADS, 0, parameters,
                  err);
}

int gpu_poison_shared(struct gpu *gpu, uint64_t key, struct err *err)
{
    uint32_t bytes = (uint32_t)gpu->smem_optin & ~15u;

    return launch(gpu, GPU_SHARED_POISON, (uint32_t)gpu->multiprocessors, 1024, bytes,
                  (void *[]){&bytes, &key}, err);
}

int gpu_scrub_local(struct gpu *gpu, size_t bytes, uint64_t key, struct err *err)
{
    uint32_t blocks = (uint32_t)(gpu->multiprocessors * (gpu->threads_per_multiprocessor / 1024));
    enum gpu_kernel kernel = bytes <= 512    ? GPU_LOCAL_512
                             : bytes <= 4096 ? GPU_LOCAL_4096
                                             : GPU_LOCAL_16384;
    cu_pointer sum = gpu->words;

    return bytes == 0 ? 0 : launch(gpu, kernel, blocks, 1024, 0, (void *[]){&key, &sum}, err);
}

int gpu_seal(struct gpu *gpu, bool sealed, struct err *err)
{
    if (gpu->hung || gpu->broken) {
        return 0;
    }
    return gpu_check(gpu, arena_close(&gpu->judge, sealed),
                     "changing the access to memory of the GPU", err);
}

int gpu_flush(struct gpu *gpu, struct err *err)
{
    return gpu_check(gpu, gpu->driver.set_words(gpu->flush, 0, gpu->flush_bytes / 4, gpu->stream),
                     "flushing the cache", err);
}

// ---- health ----

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

int gpu_health(struct gpu *gpu, uint64_t limit_ns, struct err *err)
{
    cu_pointer out = gpu_word(gpu, GPU_SCRATCH_WORDS - HEALTH_COUNT);
    uint64_t count = HEALTH_COUNT, key = clock_now_ns(&clock_system);
    const uint64_t *got = gpu->host_words + GPU_SCRATCH_WORDS - HEALTH_COUNT;
    int rc = gpu_run(gpu, GPU_HEALTH, count, (void *[]){&out, &count, &key}, err);

    if (rc == 0) {
        rc = gpu_read_words(gpu, GPU_SCRATCH_WORDS - HEALTH_COUNT, HEALTH_COUNT, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (gpu_wait(gpu, limit_ns) != GPU_DONE) {
        return err_set(err, ERR_SYSTEM, "the GPU does not answer the health check");
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t x = key + i;

        for (uint64_t step = 0; step < HEALTH_STEPS; step++) {
            x = mix(x) + step;
        }
        if (got[i] != x) {
            return err_set(err, ERR_SYSTEM, "the GPU computes wrong values in the health check");
        }
    }
    return 0;
}
