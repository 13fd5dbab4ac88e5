// Memory, zones of it that hold a pattern, and result words of one GPU. executor/gpu/gpu.c has the
// rest.
#include "executor/gpu/gpu.h"

// ---- memory ----

int gpu_allocate(struct gpu *gpu, size_t bytes, cu_pointer *ret, struct err *err)
{
    cu_pointer pointer = 0;
    cu_result result = gpu->driver.allocate(&pointer, bytes > 0 ? bytes : 1);

    if (result == CU_OUT_OF_MEMORY) {
        return err_set(err, ERR_LIMIT, "the GPU has no %.1f MiB of memory left",
                       (double)bytes / 0x1p20);
    }
    if (result == CU_OK) {
        *ret = pointer;
    }
    return gpu_check(gpu, result, "allocating memory on the GPU", err);
}

void gpu_release(struct gpu *gpu, cu_pointer *pointer)
{
    if (*pointer != 0 && !gpu->hung) {
        (void)gpu->driver.release(*pointer);
    }
    *pointer = 0;
}

// ---- zones ----

bool gpu_zones_add(struct gpu_zones *zones, cu_pointer at, size_t bytes)
{
    if (zones->count == GPU_ZONES) {
        return false;
    }
    zones->at[zones->count] = at;
    zones->bytes[zones->count++] = bytes;
    return true;
}

bool gpu_zones_add_gap(struct gpu_zones *zones, cu_pointer *at, cu_pointer area, size_t bytes)
{
    bool room = gpu_zones_add(zones, *at, area - *at);

    *at = area + bytes;
    return room;
}

// The pieces of all zones.
static uint64_t pieces(const struct gpu_zones *zones)
{
    uint64_t all = 0;

    for (size_t i = 0; i < zones->count; i++) {
        all += zones->bytes[i] / 16 + 1;
    }
    return all;
}

int gpu_pattern_fill(struct gpu *gpu, const struct gpu_zones *zones, uint64_t key, struct err *err)
{
    struct gpu_zones list = *zones;

    return gpu_run(gpu, GPU_PATTERN_FILL, pieces(zones), (void *[]){&list, &key}, err);
}

int gpu_pattern_check(struct gpu *gpu, const struct gpu_zones *zones, uint64_t key, size_t at,
                      struct err *err)
{
    struct gpu_zones list = *zones;
    cu_pointer differ = gpu_word(gpu, at);

    return gpu_run(gpu, GPU_PATTERN_CHECK, pieces(zones), (void *[]){&list, &key, &differ}, err);
}

// ---- result words ----

cu_pointer gpu_word(const struct gpu *gpu, size_t index)
{
    return gpu->words + index * sizeof(uint64_t);
}

int gpu_clear_words(struct gpu *gpu, size_t first, size_t count, struct err *err)
{
    return gpu_check(gpu, gpu->driver.set_words(gpu_word(gpu, first), 0, 2 * count, gpu->stream),
                     "clearing results", err);
}

// By a kernel, which takes less than half as long as a copy by the driver.
int gpu_read_words(struct gpu *gpu, size_t first, size_t count, struct err *err)
{
    cu_pointer to = gpu->copied + first * sizeof(uint64_t), from = gpu_word(gpu, first);
    uint64_t bytes = count * sizeof(uint64_t);

    return gpu_run(gpu, GPU_COPY, bytes, (void *[]){&to, &from, &bytes}, err);
}
