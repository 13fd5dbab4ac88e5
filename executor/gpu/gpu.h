// One GPU as one process has it: a context, a stream, the executor's own kernels, and waiting with
// a deadline. Everything is queued on the one stream, and gpu_wait is the only function that waits
// for it. Launches of a program that may overlap are queued on others beside it, which begin after
// something on it and which it waits for afterwards (executor/gpu/program/run.c), so whoever has
// waited for the one has waited for all. The harness, programs, the oracle and the probe use it. It
// must not know candidates or plans.
//
// After the first fault that the driver reports for the context (gpu->broken) no call on it works
// any more. After a deadline has passed (gpu->hung) a call of the driver may never return. In both
// cases the process has to end.
#ifndef EXECUTOR_GPU_GPU_H
#define EXECUTOR_GPU_GPU_H

#include "executor/gpu/arena.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The executor's kernels (executor/gpu/device/kernels*.cu).
#define GPU_KERNELS(X)                                                                             \
    X(INPUTS, "kc_inputs")                                                                         \
    X(INPUTS_QUICK, "kc_inputs_quick")                                                             \
    X(POISON, "kc_poison")                                                                         \
    X(PATTERN_FILL, "kc_pattern_fill")                                                             \
    X(PATTERN_CHECK, "kc_pattern_check")                                                           \
    X(ZERO_CHECK, "kc_zero_check")                                                                 \
    X(SHARED_POISON, "kc_shared_poison")                                                           \
    X(LOCAL_512, "kc_local_512")                                                                   \
    X(LOCAL_4096, "kc_local_4096")                                                                 \
    X(LOCAL_16384, "kc_local_16384")                                                               \
    X(DIGEST, "kc_digest")                                                                         \
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

#define GPU_ZONES 120 // as many as fit the parameters of a kernel with others
#define GPU_UUID_MAX 64
#define GPU_SCRATCH_WORDS 8192 // 64-bit result words, which kernels write and the host reads
#define GPU_WORDS_BYTES (GPU_SCRATCH_WORDS * sizeof(uint64_t))
#define GPU_RECORDINGS 2 // recordings that may be loaded at a time
#define GPU_STREAMS 8    // on which launches of a program may overlap, the stream included

// Zones of device memory that nothing may write to. The kernels know the same struct as kc_zones.
struct gpu_zones {
    uint64_t count;
    cu_pointer at[GPU_ZONES];
    uint64_t bytes[GPU_ZONES]; // length of each zone
};

struct gpu {
    struct driver driver;
    cu_device device;
    cu_context context;
    cu_stream stream;
    cu_stream side[GPU_STREAMS - 1]; // other streams, for launches that overlap; NULL: not made yet
    char uuid[GPU_UUID_MAX];         // "GPU-…"
    char name[128];
    char target[16];    // "sm_90"
    int driver_version; // 13000 is version 13.0
    int multiprocessors, threads_per_multiprocessor;
    int pageable;  // 1: kernels can read all memory of this process, not the driver's alone; else 0
    int registers; // of a multiprocessor
    size_t l2_bytes;            // of the L2 cache
    size_t memory_bytes;        // of the GPU
    size_t smem_optin;          // most shared memory, in bytes, that a block can have
    size_t smem_multiprocessor; // bytes of shared memory of a multiprocessor
    double clock_hz;            // the highest clock of a multiprocessor
    cu_module kernels;          // the executor's
    cu_function function[GPU_KERNEL_COUNT];
    cu_event mark; // recorded by gpu_mark, polled by gpu_wait_mark
    // Memory at fixed addresses (executor/gpu/arena.h): what code of a candidate may see, and what
    // it may not. Areas below the two marks stay as long as the context; others belong to whoever
    // placed them and are given back by arena_rewind to the mark.
    struct arena open, judge;
    struct arena recorded[GPU_RECORDINGS]; // not opened before a recording needs it
    size_t open_mark, judge_mark;
    cu_pointer flush;     // memory in `open` that is overwritten to flush the L2 cache
    size_t flush_bytes;   // of that memory
    cu_pointer words;     // GPU_SCRATCH_WORDS result words in `open`; see gpu_clear_words
    uint64_t *host_words; // their copy on the host, which gpu_read_words fills
    cu_pointer copied;    // where the GPU finds that
    double overhead_ns;   // of an empty window between two events; 0: not measured yet
    bool hung;            // a wait has reached its limit
    bool broken;          // the driver has reported a fault of the context
    cu_result result;     // the fault that broke the context
};

// Loads the driver and returns how many GPUs this machine has. Returns 0, with the reason, when
// there is no driver or no GPU.
int gpu_count(struct driver *driver, char reason[static ERR_TEXT_MAX]);
// Overwrites *gpu with the driver and what it says about GPU number `ordinal`: uuid, name, target
// and sizes. Makes no context, so there is nothing to close.
MUST_CHECK int gpu_describe(struct gpu *gpu, const struct driver *driver, int ordinal,
                            struct err *err);
// gpu_describe of the GPU with the identifier `uuid`, or with that ordinal in decimal. Where it is
// an identifier, CUDA_VISIBLE_DEVICES is set, so that this process's driver sees no other GPU.
MUST_CHECK int gpu_find(struct gpu *gpu, const char *uuid, struct err *err);

// Has the driver make one queue for work instead of eight, for a process that never has two streams
// run beside each other: a context is then made in half of the time, and in a third where many
// are being made (docs/measuring.md). To be called before gpu_open.
void gpu_use_one_queue(void);
// Opens the GPU with this uuid or ordinal ("0", "1", …): makes the context, loads the kernels and
// runs the health check. gpu_close is needed also after a failure.
MUST_CHECK int gpu_open(struct gpu *gpu, const char *uuid, struct err *err);
// Releases the context and everything in it. After a hang it only forgets them: the process must
// then end by _exit.
void gpu_close(struct gpu *gpu);

// Makes the streams below `count`, at most GPU_STREAMS, that there are not yet. They stay as long
// as the context. They are made when a program first needs them, so that what needs one stream is
// measured in a process that has one.
MUST_CHECK int gpu_make_streams(struct gpu *gpu, unsigned count, struct err *err);
// Returns a stream that there is; 0 is gpu->stream.
cu_stream gpu_stream(const struct gpu *gpu, unsigned number);

// Returns 0 for CU_OK, otherwise an error with the sentence "WHAT: CUDA_ERROR_…". Sets gpu->broken
// when the result is one that breaks the context.
MUST_CHECK int gpu_check(struct gpu *gpu, cu_result result, const char *what, struct err *err);

enum gpu_outcome { GPU_DONE, GPU_TIMEOUT, GPU_FAULT };
// Waits until everything that is queued is done, but at most limit_ns nanoseconds. GPU_TIMEOUT sets
// gpu->hung. GPU_FAULT sets gpu->broken and gpu->result.
enum gpu_outcome gpu_wait(struct gpu *gpu, uint64_t limit_ns);
// The same for what has been queued before the mark, while more is queued behind it.
MUST_CHECK int gpu_mark(struct gpu *gpu, struct err *err);
enum gpu_outcome gpu_wait_mark(struct gpu *gpu, uint64_t limit_ns);
// Waits for work of the executor itself, when no kernel of a candidate can be running. A fault or a
// timeout is an error.
MUST_CHECK int gpu_finish(struct gpu *gpu, const char *what, struct err *err);
// Whether the context was broken by a defect of the hardware (uncorrectable memory error, broken
// link), which no kernel can be blamed for.
bool gpu_is_defective(const struct gpu *gpu);
// Returns what broke the context, in words: "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access
// was encountered)". The text may be in buf.
const char *gpu_result_text(const struct gpu *gpu, char buf[static 256]);

// Queues a kernel of the executor, with a grid for about this many items. parameters[i] points to
// the i-th parameter; the values are read before the call returns.
MUST_CHECK int gpu_run(struct gpu *gpu, enum gpu_kernel kernel, uint64_t items, void **parameters,
                       struct err *err);
// Queues overwriting the shared memory of every multiprocessor, and most of its registers.
MUST_CHECK int gpu_poison_shared(struct gpu *gpu, uint64_t key, struct err *err);
// Queues overwriting as much local memory of every thread as kernels with `bytes` a thread use, but
// at most 16 KiB a thread. Takes about 0.1 ms for 512 B, 0.4 ms for 4 KiB. Does nothing for 0.
MUST_CHECK int gpu_scrub_local(struct gpu *gpu, size_t bytes, uint64_t key, struct err *err);
// Queues overwriting the L2 cache with zeros, by writing three times its size.
MUST_CHECK int gpu_flush(struct gpu *gpu, struct err *err);

// Takes away the access to `judge` from everything that runs on the GPU, or gives it back. Nothing
// that uses it may be queued: wait before. After a hang or a fault this does nothing.
MUST_CHECK int gpu_seal(struct gpu *gpu, bool sealed, struct err *err);

// Appends a zone. Returns false, and appends nothing, when the list is full.
bool gpu_zones_add(struct gpu_zones *zones, cu_pointer at, size_t bytes);
// Appends what lies between *at and an area, and moves *at behind the area. False as above.
bool gpu_zones_add_gap(struct gpu_zones *zones, cu_pointer *at, cu_pointer area, size_t bytes);
// Queues filling the zones with the pattern of a key: NaN in every float type.
MUST_CHECK int gpu_pattern_fill(struct gpu *gpu, const struct gpu_zones *zones, uint64_t key,
                                struct err *err);
// Queues comparing the zones with it: adds the number of changed pieces to result word `at`. Word
// `at` + 1, which must be 0 before, becomes the number of zones less the first changed one.
MUST_CHECK int gpu_pattern_check(struct gpu *gpu, const struct gpu_zones *zones, uint64_t key,
                                 size_t at, struct err *err);

// Allocates device memory wherever the driver wants, which code of a candidate in this process can
// address: for processes without such code. ERR_LIMIT when there is not enough.
MUST_CHECK int gpu_allocate(struct gpu *gpu, size_t bytes, cu_pointer *ret, struct err *err);
// Frees device memory and sets the pointer to 0. A pointer that is 0 is fine. After a hang the
// memory is not freed.
void gpu_release(struct gpu *gpu, cu_pointer *pointer);

// Queues setting `count` result words, from word `first` on, to 0. A launch can read and write
// them, so they must be set to 0 after it, before use.
MUST_CHECK int gpu_clear_words(struct gpu *gpu, size_t first, size_t count, struct err *err);
// Queues copying them to the same place in host_words, which is valid after a wait.
MUST_CHECK int gpu_read_words(struct gpu *gpu, size_t first, size_t count, struct err *err);
// Returns the device address of a result word.
cu_pointer gpu_word(const struct gpu *gpu, size_t index);

// Checks that the GPU computes: runs a kernel whose results are known. At most limit_ns
// nanoseconds.
MUST_CHECK int gpu_health(struct gpu *gpu, uint64_t limit_ns, struct err *err);

#endif
