// A tensor in device memory between two guard zones, so that writes outside it are found.
//
//   | guard (16 KiB) | tensor, 256-byte aligned | guard (16 KiB) |
//
// The GPU harness, programs (scratch memory) and the oracle keep their tensors in these. The module
// must not know what a tensor means. The caller fills and checks the guards of all buffers at once,
// with the list of zones that guarded_buffer_guards makes.
#ifndef EXECUTOR_GPU_GUARDED_BUFFER_H
#define EXECUTOR_GPU_GUARDED_BUFFER_H

#include "executor/gpu/gpu.h"

#define GUARD_BYTES ((size_t)16384) // of each of the two zones

struct guarded_buffer {
    cu_pointer base;   // of the allocation, where the first guard begins; 0: nothing is allocated
    size_t capacity;   // bytes of the largest tensor that fits the allocation
    cu_pointer tensor; // address of the tensor that is placed now
    size_t bytes;      // length of the tensor that is placed now
};

// Places a tensor of this many bytes. Allocates anew when the allocation is too small; the old one
// and what it holds are lost then. ERR_LIMIT when the GPU has no memory left.
MUST_CHECK int guarded_buffer_place(struct guarded_buffer *buffer, struct gpu *gpu, size_t bytes,
                                    struct err *err);
// Frees the memory. A buffer that was never placed must be zero.
void guarded_buffer_release(struct guarded_buffer *buffer, struct gpu *gpu);
// Appends both guards to the list. Returns false, and appends nothing, when the list is full.
bool guarded_buffer_guards(const struct guarded_buffer *buffer, struct gpu_zones *zones);

// Queues filling the tensor with words that are NaN in every float type. The key chooses which.
MUST_CHECK int guarded_buffer_poison(const struct guarded_buffer *buffer, struct gpu *gpu,
                                     uint64_t key, struct err *err);
// Queues adding the 128-bit keyed hash of the tensor to the result words `at` and `at` + 1.
MUST_CHECK int guarded_buffer_hash(const struct guarded_buffer *buffer, struct gpu *gpu,
                                   uint64_t key, size_t at, struct err *err);

#endif
