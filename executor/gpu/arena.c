#include "executor/gpu/arena.h"
#include "executor/gpu/cases.h"
#include <string.h>

#define PLACES 8
#define PLACE_STEP ((cu_pointer)1 << 40)
#define EARLY_LEAST ((size_t)64 << 20) // bytes by which an arena that grows early does at least
#define EARLY_MOST ((size_t)1 << 30)   // and at most, unless it needs more

static struct cu_memory_kind kind_of(const struct arena *arena)
{
    return (struct cu_memory_kind){
        .type = CU_MEMORY_PINNED,
        .handle_types = CU_HANDLE_FD,
        .location = {.type = CU_LOCATION_DEVICE, .id = arena->device},
    };
}

static size_t round_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

int arena_open(struct arena *arena, const struct driver *driver, cu_device device,
               cu_pointer wanted, size_t bytes, struct err *err)
{
    struct arena opened = {.driver = driver, .device = device};
    struct cu_memory_kind kind = kind_of(&opened);
    cu_result result = driver->granularity(&opened.granularity, &kind, CU_GRANULARITY_MINIMUM);
    char buf[256];

    if (result != CU_OK || opened.granularity == 0) {
        return err_set(err, ERR_UNSUPPORTED,
                       "this GPU cannot map memory at chosen addresses (%s): measuring needs "
                       "CUDA's virtual memory management",
                       driver_error(driver, result, buf));
    }
    opened.reserved = round_up(bytes, opened.granularity);
    for (size_t i = 0; i < PLACES; i++) {
        cu_pointer address = wanted + i * PLACE_STEP;

        result = driver->address_reserve(&opened.base, opened.reserved, 0, address, 0);
        if (result == CU_OK && opened.base == address) {
            *arena = opened;
            return 0;
        }
        if (result == CU_OK) {
            (void)driver->address_free(opened.base, opened.reserved);
        }
    }
    return err_set(err, ERR_SYSTEM, "the addresses from %llx on cannot be reserved for the GPU: %s",
                   (unsigned long long)wanted, driver_error(driver, result, buf));
}

// Frees the last chunk.
static void drop_chunk(struct arena *arena)
{
    size_t bytes = arena->chunk_bytes[--arena->chunk_count];

    arena->mapped -= bytes;
    (void)arena->driver->memory_unmap(arena->base + arena->mapped, bytes);
    (void)arena->driver->memory_release(arena->chunk[arena->chunk_count]);
}

void arena_release(struct arena *arena)
{
    if (arena->driver) {
        arena_cut(arena, 0);
        (void)arena->driver->address_free(arena->base, arena->reserved);
    }
    *arena = (struct arena){.driver = NULL};
}

static cu_result set_access(const struct arena *arena, size_t from, size_t bytes, int flags)
{
    struct cu_access access = {
        .location = {.type = CU_LOCATION_DEVICE, .id = arena->device},
        .flags = flags,
    };

    return arena->driver->memory_access(arena->base + from, bytes, &access, 1);
}

// Maps a chunk behind the others, and takes the memory. What fails leaves the arena as it was.
static cu_result add_chunk(struct arena *arena, cu_memory memory, size_t bytes)
{
    const struct driver *d = arena->driver;

    cu_result result = d->memory_map(arena->base + arena->mapped, bytes, 0, memory, 0);
    if (result != CU_OK) {
        (void)d->memory_release(memory);
        return result;
    }
    result = set_access(arena, arena->mapped, bytes, CU_ACCESS_READ_WRITE);
    if (result != CU_OK) {
        (void)d->memory_unmap(arena->base + arena->mapped, bytes);
        (void)d->memory_release(memory);
        return result;
    }
    arena->chunk[arena->chunk_count] = memory;
    arena->chunk_serial[arena->chunk_count] = ++arena->serials;
    arena->chunk_bytes[arena->chunk_count++] = bytes;
    arena->mapped += bytes;
    return CU_OK;
}

static bool has_room(const struct arena *arena, size_t bytes)
{
    return arena->chunk_count < ARENA_CHUNKS && bytes <= arena->reserved - arena->mapped;
}

// Maps `bytes` more. What fails leaves the arena as it was.
static cu_result grow(struct arena *arena, size_t bytes)
{
    struct cu_memory_kind kind = kind_of(arena);

    if (!has_room(arena, bytes)) {
        return CU_OUT_OF_MEMORY;
    }
    cu_memory memory;
    cu_result result = arena->driver->memory_create(&memory, bytes, &kind, 0);
    return result == CU_OK ? add_chunk(arena, memory, bytes) : result;
}

// Memory comes in pieces of the granularity, so a smaller area needs that much.
static int no_memory(const struct arena *arena, size_t bytes, struct err *err)
{
    size_t least = bytes > arena->granularity ? bytes : arena->granularity;

    return err_set(err, ERR_LIMIT, "the GPU has no %.1f MiB of memory left",
                   (double)least / 0x1p20);
}

// Maps `more` bytes behind what is mapped. The error speaks of `wanted`.
static int extend(struct arena *arena, size_t more, size_t wanted, struct err *err)
{
    size_t least = round_up(more, arena->granularity);
    size_t early = arena->mapped < EARLY_LEAST  ? EARLY_LEAST
                   : arena->mapped > EARLY_MOST ? EARLY_MOST
                                                : arena->mapped;
    cu_result result = CU_OUT_OF_MEMORY;
    char buf[256];

    if (arena->grows_early && early > least) {
        result = grow(arena, round_up(early, arena->granularity));
    }
    if (result == CU_OUT_OF_MEMORY) {
        result = grow(arena, least);
    }
    if (result == CU_OUT_OF_MEMORY) {
        return no_memory(arena, wanted, err);
    }
    return result == CU_OK ? 0
                           : err_set(err, ERR_SYSTEM, "mapping memory of the GPU: %s",
                                     driver_error(arena->driver, result, buf));
}

int arena_place(struct arena *arena, size_t bytes, cu_pointer *ret, struct err *err)
{
    size_t end, at = gpu_next_area(arena->placed, bytes, &end);

    if (bytes > arena->reserved || end + GUARD_BYTES > arena->reserved) {
        return no_memory(arena, bytes, err);
    }
    if (end + GUARD_BYTES > arena->mapped) {
        int rc = extend(arena, end + GUARD_BYTES - arena->mapped, bytes, err);
        if (rc != 0) {
            return rc;
        }
    }
    arena->placed = end;
    *ret = arena->base + at;
    return 0;
}

int arena_reach(struct arena *arena, size_t bytes, struct err *err)
{
    if (bytes > arena->reserved || bytes + GUARD_BYTES > arena->reserved) {
        return no_memory(arena, bytes, err);
    }
    if (bytes + GUARD_BYTES > arena->mapped) {
        int rc = extend(arena, bytes + GUARD_BYTES - arena->mapped, bytes, err);
        if (rc != 0) {
            return rc;
        }
    }
    arena->placed = bytes > arena->placed ? bytes : arena->placed;
    return 0;
}

void arena_rewind(struct arena *arena, size_t placed)
{
    if (placed < arena->placed) {
        arena->placed = placed;
    }
}

void arena_trim(struct arena *arena, size_t bytes)
{
    size_t needed = arena->placed > 0 ? arena->placed + GUARD_BYTES : 0;
    size_t least = needed > bytes ? needed : bytes;

    while (arena->chunk_count > 0 &&
           arena->mapped - arena->chunk_bytes[arena->chunk_count - 1] >= least) {
        drop_chunk(arena);
    }
}

int arena_unite(struct arena *arena, size_t bytes, size_t most, struct err *err)
{
    size_t least = arena->placed + GUARD_BYTES;
    size_t needed = round_up(least + bytes, arena->granularity);

    if (arena->chunk_count == 1 && arena->mapped >= needed &&
        (arena->mapped <= most || arena->mapped == needed)) {
        return 0;
    }
    arena_cut(arena, 0);
    struct err why = ERR_INIT;
    int rc = extend(arena, needed, bytes, &why);
    if (rc == ERR_LIMIT) {
        return extend(arena, least, least, err);
    }
    if (rc != 0) {
        *err = why;
    }
    return rc;
}

cu_result arena_export(const struct arena *arena, size_t chunk, int *ret_fd)
{
    return arena->driver->memory_export(ret_fd, arena->chunk[chunk], CU_HANDLE_FD, 0);
}

cu_result arena_adopt(struct arena *arena, int fd, size_t bytes)
{
    if (!has_room(arena, bytes)) {
        return CU_OUT_OF_MEMORY;
    }
    cu_memory memory;
    cu_result result = arena->driver->memory_import(&memory, (void *)(intptr_t)fd, CU_HANDLE_FD);
    return result == CU_OK ? add_chunk(arena, memory, bytes) : result;
}

void arena_cut(struct arena *arena, size_t count)
{
    while (arena->chunk_count > count) {
        drop_chunk(arena);
    }
}

cu_result arena_close(struct arena *arena, bool closed)
{
    cu_result result = CU_OK;

    if (arena->closed != closed && arena->mapped > 0) {
        result =
            set_access(arena, 0, arena->mapped, closed ? CU_ACCESS_NONE : CU_ACCESS_READ_WRITE);
    }
    if (result == CU_OK) {
        arena->closed = closed;
    }
    return result;
}
