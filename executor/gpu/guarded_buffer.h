// A tensor in device memory between two guard zones, so that writes outside it are found.
//
//   | guard (16 KiB) | tensor, 256-byte aligned | guard (16 KiB) |
//
// The GPU harness, programs (scratch memory) and the oracle keep their tensors in these, in an
// arena or, where no code of a candidate runs, in memory of their own. The module must not know
// what a tensor means. The caller fills and checks the guards of all buffers at once, with the list
// of zones that guarded_buffer_guards makes.
#ifndef EXECUTOR_GPU_GUARDED_BUFFER_H
#define EXECUTOR_GPU_GUARDED_BUFFER_H

#include "executor/gpu/gpu.h"

struct guarded_buffer {
    cu_pointer base;   // of an allocation of its own, where the first guard begins; 0: it has none
    size_t capacity;   // bytes of the largest tensor that fits the allocation
    cu_pointer tensor; // address of the tensor that is placed now
    size_t bytes;      // length of the tensor that is placed now
};

// Places a tensor of this many bytes. Allocates anew when the allocation is too small; the old one
// and what it holds are lost then. ERR_LIMIT when the GPU has no memory left.
MUST_CHECK int guarded_buffer_place(struct guarded_buffer *buffer, struct gpu *gpu, size_t bytes,
                                    struct err *err);
// Places a tensor in an arena, which owns the memory. The buffer must have no allocation of its
// own.
MUST_CHECK int guarded_buffer_place_in(struct guarded_buffer *buffer, struct arena *arena,
                                       size_t bytes, struct err *err);
// Frees the memory. A buffer that was never placed must be zero.
void guarded_buffer_release(struct guarded_buffer *buffer, struct gpu *gpu);
// Appends both guards to the list. Returns false, and appends nothing, when the list is full.
bool guarded_buffer_guards(const struct guarded_buffer *buffer, struct gpu_zones *zones);

// Queues filling the tensor with words that are NaN in every float type. The key chooses which.
MUST_CHECK int guarded_buffer_poison(const struct guarded_buffer *buffer, struct gpu *gpu,
                                     uint64_t key, struct err *err);
// Queues adding the digest of the tensor, whose elements are of this enum dtype, to the four result
// words from `at` on: two words of a hash, the sum of the finite elements with keyed signs (a
// double) and the number of those that are not finite.
MUST_CHECK int guarded_buffer_digest(const struct guarded_buffer *buffer, struct gpu *gpu,
                                     int dtype, uint64_t hash_key, uint64_t sign_key, size_t at,
                                     struct err *err);

#endif
