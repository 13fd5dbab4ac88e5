#include "executor/gpu/area.h"

int area_place(struct area *area, struct gpu *gpu, size_t bytes, struct err *err)
{
    size_t room = (bytes + 255) & ~(size_t)255;

    if (area->base == 0 || area->capacity < room) {
        area_release(area, gpu);
        int rc = gpu_allocate(gpu, room + 2 * AREA_GUARD, &area->base, err);
        if (rc != 0) {
            return rc;
        }
        area->capacity = room;
    }
    area->tensor = area->base + AREA_GUARD;
    area->bytes = bytes;
    return 0;
}

void area_release(struct area *area, struct gpu *gpu)
{
    gpu_release(gpu, &area->base);
    *area = (struct area){.base = 0};
}

bool area_guards(const struct area *area, struct gpu_zones *zones)
{
    if (zones->count + 2 > GPU_ZONES) {
        return false;
    }
    zones->at[zones->count] = area->base;
    zones->words[zones->count++] = AREA_GUARD / 4;
    zones->at[zones->count] = area->tensor + ((area->bytes + 3) & ~(size_t)3);
    zones->words[zones->count++] = AREA_GUARD / 4;
    return true;
}

int area_poison(const struct area *area, struct gpu *gpu, uint64_t key, struct err *err)
{
    cu_pointer at = area->tensor;
    uint64_t bytes = area->bytes;

    return gpu_run(gpu, GPU_POISON, bytes / 4, (void *[]){&at, &bytes, &key}, err);
}

int area_hash(const struct area *area, struct gpu *gpu, uint64_t key, size_t at, struct err *err)
{
    cu_pointer in = area->tensor, out = gpu_word(gpu, at);
    uint64_t bytes = area->bytes;

    return gpu_run(gpu, GPU_HASH, bytes / 8, (void *[]){&in, &bytes, &key, &out}, err);
}
