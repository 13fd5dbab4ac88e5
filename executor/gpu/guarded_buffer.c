#include "executor/gpu/guarded_buffer.h"

int guarded_buffer_place(struct guarded_buffer *buffer, struct gpu *gpu, size_t bytes,
                         struct err *err)
{
    size_t room = (bytes + 255) & ~(size_t)255;

    if (buffer->base == 0 || buffer->capacity < room) {
        guarded_buffer_release(buffer, gpu);
        int rc = gpu_allocate(gpu, room + 2 * GUARD_BYTES, &buffer->base, err);
        if (rc != 0) {
            return rc;
        }
        buffer->capacity = room;
    }
    buffer->tensor = buffer->base + GUARD_BYTES;
    buffer->bytes = bytes;
    return 0;
}

void guarded_buffer_release(struct guarded_buffer *buffer, struct gpu *gpu)
{
    gpu_release(gpu, &buffer->base);
    *buffer = (struct guarded_buffer){.base = 0};
}

bool guarded_buffer_guards(const struct guarded_buffer *buffer, struct gpu_zones *zones)
{
    if (zones->count + 2 > GPU_ZONES) {
        return false;
    }
    zones->at[zones->count] = buffer->base;
    zones->words[zones->count++] = GUARD_BYTES / 4;
    zones->at[zones->count] = buffer->tensor + ((buffer->bytes + 3) & ~(size_t)3);
    zones->words[zones->count++] = GUARD_BYTES / 4;
    return true;
}

int guarded_buffer_poison(const struct guarded_buffer *buffer, struct gpu *gpu, uint64_t key,
                          struct err *err)
{
    cu_pointer at = buffer->tensor;
    uint64_t bytes = buffer->bytes;

    return gpu_run(gpu, GPU_POISON, bytes / 4, (void *[]){&at, &bytes, &key}, err);
}

int guarded_buffer_hash(const struct guarded_buffer *buffer, struct gpu *gpu, uint64_t key,
                        size_t at, struct err *err)
{
    cu_pointer in = buffer->tensor, out = gpu_word(gpu, at);
    uint64_t bytes = buffer->bytes;

    return gpu_run(gpu, GPU_HASH, bytes / 8, (void *[]){&in, &bytes, &key, &out}, err);
}
