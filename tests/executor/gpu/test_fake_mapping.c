// Memory at chosen addresses, as the fake driver has it (tests/support/fake_gpu/mapping.c), and the
// arena that is made of it.
#include "common/mem.h"
#include "executor/gpu/arena.h"
#include "executor/gpu/driver.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OK(call) assert_int_equal(cuda.call, CU_OK)

// Enters a context of the fake driver with these settings.
static void enter(struct driver *ret, const char *settings)
{
    cu_context context;

    gpu_fake_use(settings);
    struct err err = ERR_INIT;
    assert_int_equal(driver_load(ret, &err), 0);
    assert_int_equal(ret->init(0), CU_OK);
    assert_int_equal(ret->context_retain(&context, 0), CU_OK);
    assert_int_equal(ret->context_set(context), CU_OK);
}

// Mapped memory can be used while it is accessible, across the pieces that it is made of.
static void memory_is_mapped_and_closed(void **state)
{
    struct driver cuda;
    const size_t step = (size_t)2 << 20;
    struct cu_memory_kind kind = {.type = CU_MEMORY_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
    struct cu_access access = {.location = {CU_LOCATION_DEVICE, 0}, .flags = CU_ACCESS_READ_WRITE};

    (void)state;
    enter(&cuda, "memory=5M");
    cu_stream stream = NULL;
    cu_pointer at;
    OK(address_reserve(&at, 4 * step, 0, 0x500000000000, 0));
    assert_int_equal(at, 0x500000000000);
    cu_memory piece[2];
    for (size_t i = 0; i < 2; i++) {
        OK(memory_create(&piece[i], step, &kind, 0));
        OK(memory_map(at + i * step, step, 0, piece[i], 0));
    }
    cu_memory more;
    assert_int_equal(cuda.memory_create(&more, step, &kind, 0), CU_OUT_OF_MEMORY);
    assert_int_equal(cuda.set_bytes(at, 1, 8, stream), 1); // nobody has given access
    OK(memory_access(at, 2 * step, &access, 1));
    OK(set_bytes(at, 1, 2 * step, stream));
    assert_int_equal(cuda.set_bytes(at + step, 1, step + 1, stream), 1);
    access.flags = CU_ACCESS_NONE;
    OK(memory_access(at, 2 * step, &access, 1));
    assert_int_equal(cuda.set_bytes(at, 1, 8, stream), 1);
    access.flags = CU_ACCESS_READ_WRITE;
    OK(memory_access(at, 2 * step, &access, 1));
    assert_int_equal(*(unsigned char *)(uintptr_t)(at + step), 1); // it has been kept
    for (size_t i = 0; i < 2; i++) {
        OK(memory_unmap(at + i * step, step));
        OK(memory_release(piece[i]));
    }
    OK(address_free(at, 4 * step));
    OK(context_release(0));
}

static void areas_lie_apart_and_stay_where_they_are(void **state)
{
    struct driver cuda;

    (void)state;
    enter(&cuda, "memory=9M");
    struct err err = ERR_INIT;
    struct arena arena, other;
    assert_int_equal(arena_open(&arena, &cuda, 0, ARENA_OPEN, 9 << 20, &err), 0);
    assert_int_equal(arena_open(&other, &cuda, 0, ARENA_OPEN, 9 << 20, &err), 0);
    assert_int_equal(arena.base, ARENA_OPEN);
    assert_int_equal(other.base, ARENA_OPEN + ((cu_pointer)1 << 40)); // the next place
    cu_pointer at[3];
    assert_int_equal(arena_place(&arena, 100, &at[0], &err), 0);
    assert_int_equal(arena_place(&arena, 3 << 20, &at[1], &err), 0); // needs another piece
    assert_true(at[0] >= arena.base + GUARD_BYTES && at[1] >= at[0] + 100 + GUARD_BYTES);
    assert_true(at[1] % 256 == 0);
    assert_true(arena.base + arena.mapped >= at[1] + (3 << 20) + GUARD_BYTES);
    memset((void *)(uintptr_t)at[1], 7, 3 << 20);
    assert_int_equal(arena_place(&arena, 8 << 20, &at[2], &err), ERR_LIMIT);
    assert_string_equal(err.text, "the GPU has no 8.0 MiB of memory left");
    assert_int_equal(*(unsigned char *)(uintptr_t)at[1], 7);
    size_t mapped = arena.mapped;
    OK(set_bytes(at[1], 1, 8, NULL));
    assert_int_equal(arena_close(&arena, true), CU_OK);
    assert_int_equal(cuda.set_bytes(at[1], 1, 8, NULL), 1);
    assert_int_equal(arena_close(&arena, false), CU_OK);
    OK(set_bytes(at[1], 1, 8, NULL));
    arena_trim(&arena, 0);
    assert_int_equal(arena.mapped, mapped); // all of it is in use
    arena_rewind(&arena, at[0] + 100 - arena.base);
    arena_trim(&arena, 0);
    assert_int_equal(arena.mapped, 2 << 20);
    arena_release(&arena);
    arena_release(&other);
    OK(context_release(0));
}

static void an_arena_becomes_one_piece_for_what_will_be_placed(void **state)
{
    struct driver cuda;

    (void)state;
    enter(&cuda, "memory=12M");
    struct err err = ERR_INIT;
    struct arena arena;
    assert_int_equal(arena_open(&arena, &cuda, 0, ARENA_JUDGE, 64 << 20, &err), 0);
    cu_pointer at[3];
    assert_int_equal(arena_place(&arena, 100, &at[0], &err), 0);
    assert_int_equal(arena_place(&arena, 3 << 20, &at[1], &err), 0);
    assert_int_equal(arena.chunk_count, 2);
    uint64_t serial = arena.chunk_serial[0];
    size_t mark = at[0] + 100 - arena.base;
    arena_rewind(&arena, mark);
    assert_int_equal(arena_unite(&arena, 5 << 20, 0, &err), 0);
    assert_int_equal(arena.chunk_count, 1);
    assert_true(arena.chunk_serial[0] != serial); // who has mapped the pieces maps it anew
    assert_int_equal(arena.placed, mark);
    OK(set_bytes(at[0], 1, 100, NULL));
    assert_int_equal(arena_place(&arena, 4 << 20, &at[2], &err), 0);
    assert_int_equal(at[2], at[1]);
    assert_int_equal(arena.chunk_count, 1);
    assert_int_equal(arena_close(&arena, true), CU_OK);
    assert_int_equal(cuda.set_bytes(at[2], 1, 8, NULL), 1);
    assert_int_equal(arena_close(&arena, false), CU_OK);
    // What is one piece and large enough stays, unless it is larger than the caller wants.
    arena_rewind(&arena, mark);
    serial = arena.chunk_serial[0];
    assert_int_equal(arena_unite(&arena, 1 << 20, 6 << 20, &err), 0);
    assert_int_equal(arena.chunk_serial[0], serial);
    assert_int_equal(arena_unite(&arena, 1 << 20, 5 << 20, &err), 0);
    assert_int_equal(arena.mapped, 2 << 20);
    // More than the GPU has: there is room for what is placed, and it grows.
    assert_int_equal(arena_unite(&arena, 40 << 20, 0, &err), 0);
    assert_int_equal(arena.mapped, 2 << 20);
    OK(set_bytes(at[0], 1, 100, NULL));
    assert_int_equal(arena_place(&arena, 4 << 20, &at[2], &err), 0);
    assert_int_equal(arena_place(&arena, 40 << 20, &at[2], &err), ERR_LIMIT);
    arena_release(&arena);
    OK(context_release(0));
}

// It grows by as much as it has, so long as there is memory, and by what it needs after that.
static void an_arena_may_grow_early(void **state)
{
    struct driver cuda;

    (void)state;
    enter(&cuda, "memory=200M");
    struct err err = ERR_INIT;
    struct arena arena;
    cu_pointer at;
    assert_int_equal(arena_open(&arena, &cuda, 0, ARENA_OPEN, 200 << 20, &err), 0);
    arena.grows_early = true;
    static const struct {
        size_t bytes, mapped;
    } steps[] = {{100, 64}, {60 << 20, 64}, {60 << 20, 128}, {20 << 20, 142}, {60 << 20, 0}};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        int rc = arena_place(&arena, steps[i].bytes, &at, &err);

        assert_int_equal(rc, steps[i].mapped > 0 ? 0 : ERR_LIMIT);
        if (rc == 0) {
            assert_int_equal(arena.mapped, steps[i].mapped << 20);
        }
    }
    assert_int_equal(arena.chunk_count, 3);
    arena_release(&arena);
    OK(context_release(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_mapped_and_closed),
        cmocka_unit_test(areas_lie_apart_and_stay_where_they_are),
        cmocka_unit_test(an_arena_becomes_one_piece_for_what_will_be_placed),
        cmocka_unit_test(an_arena_may_grow_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
