// A tensor in device memory with guard zones.
//
//   | guard (16 KiB) | tensor, 256-byte aligned | guard (16 KiB) |
#ifndef EXECUTOR_GPU_AREA_H
#define EXECUTOR_GPU_AREA_H

#include "executor/gpu/gpu.h"

#define AREA_GUARD ((size_t)16384)

struct area {
    cu_pointer base;
    size_t capacity;   // bytes that a tensor may have
    cu_pointer tensor; // of the present case
    size_t bytes;
};

// Room for a tensor of so many bytes, placed. Grows by a new allocation; what was there is lost.
MUST_CHECK int area_place(struct area *area, struct gpu *gpu, size_t bytes, struct err *err);
void area_release(struct area *area, struct gpu *gpu);
// Adds the two guards to the list; false when it is full.
bool area_guards(const struct area *area, struct gpu_zones *zones);

// Queues: fills the tensor with what is a NaN in every float type.
MUST_CHECK int area_poison(const struct area *area, struct gpu *gpu, uint64_t key, struct err *err);
// Queues: the 128-bit keyed hash of the tensor is added to words[at], words[at + 1].
MUST_CHECK int area_hash(const struct area *area, struct gpu *gpu, uint64_t key, size_t at,
                         struct err *err);

#endif
