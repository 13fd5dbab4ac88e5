#include "executor/gpu/guarded_buffer.h"

int guarded_buffer_place(struct guarded_buffer *buffer, struct arena *arena, size_t bytes,
                         struct err *err)
{
    buffer->bytes = bytes;
    return arena_place(arena, bytes, &buffer->tensor, err);
}

bool guarded_buffer_guards(const struct guarded_buffer *buffer, struct gpu_zones *zones)
{
    return gpu_zones_add(zones, buffer->tensor - GUARD_BYTES, GUARD_BYTES) &&
           gpu_zones_add(zones, buffer->tensor + buffer->bytes, GUARD_BYTES);
}

int guarded_buffer_poison(const struct guarded_buffer *buffer, struct gpu *gpu, uint64_t key,
                          struct err *err)
{
    cu_pointer at = buffer->tensor;
    uint64_t bytes = buffer->bytes;

    return gpu_run(gpu, GPU_POISON, bytes / 4, (void *[]){&at, &bytes, &key}, err);
}

int guarded_buffer_digest(const struct guarded_buffer *buffer, struct gpu *gpu, int dtype,
                          uint64_t hash_key, uint64_t sign_key, size_t at, struct err *err)
{
    cu_pointer in = buffer->tensor, out = gpu_word(gpu, at);
    uint64_t bytes = buffer->bytes;

    return gpu_run(gpu, GPU_DIGEST, bytes / 8,
                   (void *[]){&in, &dtype, &bytes, &hash_key, &sign_key, &out}, err);
}
