// One GPU as one process has it: a context, one stream, the executor's own kernels, and waiting with a
// deadline. Everything is queued on the stream; gpu_wait is the only place that waits.
//
// After the first failure that the driver reports for the context (gpu->broken) nothing on it works any
// more, and after a deadline that passed (gpu->hung) no call of the driver may be expected to return:
// the process has to end.
#ifndef EXECUTOR_GPU_GPU_H
#define EXECUTOR_GPU_GPU_H

#include "executor/gpu/driver.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The executor's kernels (executor/gpu/kernels.cu).
#define GPU_KERNELS(X)                                                                             \
    X(FILL, "kc_fill")                                                                             \
    X(POISON, "kc_poison")                                                                         \
    X(GUARD_FILL, "kc_guard_fill")                                                                 \
    X(GUARD_CHECK, "kc_guard_check")                                                               \
    X(SHARED_POISON, "kc_shared_poison")                                                           \
    X(HASH, "kc_hash")                                                                             \
    X(COMPARE, "kc_compare")                                                                       \
    X(STAMP, "kc_stamp")                                                                           \
    X(SPIN, "kc_spin")                                                                             \
    X(COPY, "kc_copy")                                                                             \
    X(READ, "kc_read")                                                                             \
    X(HEALTH, "kc_health")

enum gpu_kernel {
#define X(id, symbol) GPU_##id,
    GPU_KERNELS(X)
#undef X
        GPU_KERNEL_COUNT
};

#define GPU_ZONES 128
#define GPU_UUID_MAX 64
#define GPU_SCRATCH_WORDS 8192 // 64-bit words of results that kernels leave and the host reads

// As the kernels know it: struct kc_zones.
struct gpu_zones {
    uint64_t count;
    cu_pointer at[GPU_ZONES];
    uint64_t words[GPU_ZONES]; // of 4 bytes
};

struct gpu {
    struct driver driver;
    cu_device device;
    cu_context context;
    cu_stream stream;
    char uuid[GPU_UUID_MAX]; // "GPU-…"
    char name[128];
    char target[16]; // "sm_90"
    int driver_version;
    int multiprocessors, threads_per_multiprocessor;
    int registers; // of a multiprocessor
    size_t l2_bytes, memory_bytes, smem_optin, smem_multiprocessor;
    double clock_hz; // the highest
    cu_module kernels;
    cu_function function[GPU_KERNEL_COUNT];
    cu_event mark; // for waiting
    cu_pointer flush;
    size_t flush_bytes;
    cu_pointer words;     // GPU_SCRATCH_WORDS, in device memory
    uint64_t *host_words; // where gpu_read_words puts them
    bool hung;
    bool broken;
    cu_result result; // that broke it
};

// Counts the GPUs of this machine: 0 with the sentence why when there is no driver or no GPU.
int gpu_count(struct driver *driver, char reason[static ERR_TEXT_MAX]);
// Fills uuid, name, target and sizes; makes no context.
MUST_CHECK int gpu_describe(struct gpu *gpu, const struct driver *driver, int ordinal,
                            struct err *err);

// A context on the GPU with this uuid (or "0", "1", …), with everything above.
MUST_CHECK int gpu_open(struct gpu *gpu, const char *uuid, struct err *err);
// Not after a hang: then only _exit is left.
void gpu_close(struct gpu *gpu);

// 0 or, with the sentence "WHAT: CUDA_ERROR_…", an error; remembers what breaks the context.
MUST_CHECK int gpu_check(struct gpu *gpu, cu_result result, const char *what, struct err *err);

enum gpu_outcome { GPU_DONE, GPU_TIMEOUT, GPU_FAULT };
// Waits until everything queued so far is done, at most so long. GPU_FAULT: gpu->result says what.
enum gpu_outcome gpu_wait(struct gpu *gpu, uint64_t limit_ns);
// The same where nothing of a candidate can be running: a fault or a timeout is an error.
MUST_CHECK int gpu_finish(struct gpu *gpu, const char *what, struct err *err);
// Whether what broke the context is the hardware's doing, whatever ran: memory errors, broken links.
bool gpu_is_defective(const struct gpu *gpu);
// The result in words: "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
const char *gpu_result_text(const struct gpu *gpu, char buf[static 256]);

// Queues one of the executor's kernels over about `items` elements.
MUST_CHECK int gpu_run(struct gpu *gpu, enum gpu_kernel kernel, uint64_t items, void **parameters,
                       struct err *err);
// Queues: what is left in shared memory is overwritten on every multiprocessor.
MUST_CHECK int gpu_poison_shared(struct gpu *gpu, uint64_t key, struct err *err);
// Queues: the L2 cache is overwritten (three times its size).
MUST_CHECK int gpu_flush(struct gpu *gpu, struct err *err);

MUST_CHECK int gpu_allocate(struct gpu *gpu, size_t bytes, cu_pointer *ret, struct err *err);
void gpu_release(struct gpu *gpu, cu_pointer *pointer); // sets it to 0; 0 is fine

// words[first .. first + count) := value; and read back into host_words (valid after a wait).
MUST_CHECK int gpu_clear_words(struct gpu *gpu, size_t first, size_t count, struct err *err);
MUST_CHECK int gpu_read_words(struct gpu *gpu, size_t first, size_t count, struct err *err);
cu_pointer gpu_word(const struct gpu *gpu, size_t index);

// Proves that the device computes, within limit_ns.
MUST_CHECK int gpu_health(struct gpu *gpu, uint64_t limit_ns, struct err *err);

#endif
