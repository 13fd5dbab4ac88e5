// A tensor in device memory between two guard zones, so that writes outside it are found.
//
//   | guard (16 KiB) | tensor, aligned to ARENA_ALIGN | guard (16 KiB) |
//
// The GPU harness, programs (scratch memory) and the oracle keep their tensors in these, in an
// arena. The module must not know what a tensor means. The caller fills and checks the guards of
// all buffers at once, with the list of zones that guarded_buffer_guards makes.
#ifndef EXECUTOR_GPU_GUARDED_BUFFER_H
#define EXECUTOR_GPU_GUARDED_BUFFER_H

#include "executor/gpu/gpu.h"

struct guarded_buffer {
    cu_pointer tensor; // its address; 0: there is none
    size_t bytes;      // its length
};

// Places a tensor of this many bytes in an arena, which owns the memory. ERR_LIMIT when the GPU has
// no memory left.
MUST_CHECK int guarded_buffer_place(struct guarded_buffer *buffer, struct arena *arena,
                                    size_t bytes, struct err *err);
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
