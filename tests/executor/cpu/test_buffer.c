// Tensors between guards: where they lie, that a write beyond either end shows, and that sealed
// memory cannot be mapped for writing by anyone else.
#include "executor/cpu/buffer.h"

#include "common/mem.h"
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct buffer make(size_t capacity, bool read_only)
{
    struct buffer buffer;
    struct err err = ERR_INIT;

    if (buffer_create(&buffer, capacity, read_only, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return buffer;
}

static void a_tensor_lies_between_guards_near_the_end(void **state)
{
    static const size_t capacity[] = {0, 1, 63, 64, 65, 4096, 100000};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(capacity); i++) {
        struct buffer buffer = make(capacity[i], false);
        const size_t sizes[] = {0, capacity[i] / 2, capacity[i]};

        assert_int_equal(buffer.size % (size_t)sysconf(_SC_PAGESIZE), 0);
        for (size_t j = 0; j < ARRAY_LEN(sizes); j++) {
            const size_t skew = buffer_skew(j, ARRAY_LEN(sizes));

            buffer_place(&buffer, sizes[j], skew, j);
            assert_int_equal(buffer.bytes, sizes[j]);
            assert_int_equal((uintptr_t)buffer_tensor(&buffer) % 64, 0);
            assert_true(buffer.offset >= BUFFER_GUARD);
            size_t behind = buffer.size - buffer.offset - buffer.bytes;
            assert_true(behind >= BUFFER_GUARD + skew && behind < BUFFER_GUARD + skew + 64);
            // All of the tensor can be written without a guard noticing.
            memset(buffer_tensor(&buffer), 0x5a, sizes[j]);
            assert_true(buffer_guard_intact(&buffer, j));
        }
        buffer_release(&buffer);
    }
}

// No two tensors of a problem begin at the same place within 4 KiB when they have the same size,
// and none is near another one's place.
static void tensors_of_one_size_do_not_begin_at_the_same_place(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 16; count++) {
        for (size_t i = 0; i < count; i++) {
            size_t skew = buffer_skew(i, count);
            size_t next = i + 1 < count ? buffer_skew(i + 1, count) : BUFFER_SKEW_MAX;

            assert_int_equal(skew % 64, 0);
            assert_true(next >= skew + BUFFER_SKEW_MAX / count - 64);
        }
    }
    struct buffer one = make(10000, true), other = make(10000, false);
    buffer_place(&one, 10000, buffer_skew(0, 2), 1);
    buffer_place(&other, 10000, buffer_skew(1, 2), 1);
    assert_int_equal(((uintptr_t)buffer_tensor(&one) - (uintptr_t)buffer_tensor(&other)) % 4096,
                     2048);
    buffer_release(&one);
    buffer_release(&other);
}

static void every_byte_beside_the_tensor_is_guarded(void **state)
{
    (void)state;
    struct buffer buffer = make(1000, false);
    buffer_place(&buffer, 997, 1344, 42);
    buffer_fill_unused(&buffer, 42);
    size_t end = buffer.offset + buffer.bytes;
    for (size_t at = 0; at < buffer.size; at++) {
        if (at == buffer.offset) {
            at = end; // the tensor itself
        }
        unsigned char was = buffer.map[at];
        buffer.map[at] ^= 1;
        bool is_guard = at + BUFFER_GUARD >= buffer.offset;
        if (buffer_guard_intact(&buffer, 42) == is_guard || buffer_pattern_intact(&buffer, 42)) {
            fail_msg("a write to byte %zu goes unnoticed", at);
        }
        buffer.map[at] = was;
    }
    assert_true(buffer_guard_intact(&buffer, 42));
    buffer_release(&buffer);
}

static void who_copies_a_guard_of_another_key_is_found(void **state)
{
    (void)state;
    struct buffer buffer = make(256, false);
    buffer_place(&buffer, 256, 0, 1);
    assert_false(buffer_guard_intact(&buffer, 2));
    assert_false(buffer_guard_intact(&buffer, ~(uint64_t)1));
    buffer_place(&buffer, 256, 0, 2);
    assert_true(buffer_guard_intact(&buffer, 2));
    assert_false(buffer_guard_intact(&buffer, 1));
    // The guards before and behind differ, so that one cannot be restored from the other.
    unsigned char *before = buffer.map + buffer.offset - BUFFER_GUARD;
    unsigned char *behind = buffer.map + buffer.offset + buffer.bytes;
    assert_memory_not_equal(before, behind, BUFFER_GUARD);
    memcpy(behind, before, BUFFER_GUARD);
    assert_false(buffer_guard_intact(&buffer, 2));
    buffer_release(&buffer);
}

// Code that reads beyond the end computes NaN, whatever it takes the bytes for.
static void the_fill_is_nan_for_either_float_type(void **state)
{
    unsigned char bytes[8 * 512 + 7];

    (void)state;
    for (uint64_t key = 0; key < 50; key++) {
        memset(bytes, 0, sizeof(bytes));
        buffer_fill_nan(bytes, sizeof(bytes), key * 0x123456789abcdefULL);
        for (size_t at = 0; at + 8 <= sizeof(bytes); at += 8) {
            double wide;
            float narrow[2];

            memcpy(&wide, bytes + at, 8);
            memcpy(narrow, bytes + at, 8);
            assert_true(isnan(wide) && isnan(narrow[0]) && isnan(narrow[1]));
        }
    }
    // Words differ from each other and from those of other keys.
    unsigned char other[sizeof(bytes)];
    buffer_fill_nan(bytes, sizeof(bytes), 1);
    buffer_fill_nan(other, sizeof(other), 2);
    assert_memory_not_equal(bytes, other, 8);
    assert_memory_not_equal(bytes, bytes + 8, 8);
}

static void a_fill_of_any_length_writes_just_that(void **state)
{
    unsigned char long_one[64], bytes[64];

    (void)state;
    buffer_fill_nan(long_one, sizeof(long_one), 9);
    for (size_t count = 0; count < sizeof(bytes); count++) {
        memset(bytes, 0xee, sizeof(bytes));
        buffer_fill_nan(bytes, count, 9);
        assert_memory_equal(bytes, long_one, count);
        for (size_t at = count; at < sizeof(bytes); at++) {
            assert_int_equal(bytes[at], 0xee);
        }
    }
}

// The harness writes through its own mapping; a runner that gets the descriptor cannot.
static void sealed_memory_is_never_mapped_for_writing_again(void **state)
{
    (void)state;
    struct buffer buffer = make(4096, true);
    buffer_place(&buffer, 4096, 0, 3);
    memset(buffer_tensor(&buffer), 7, 4096);
    if (!buffer.sealed) {
        buffer_release(&buffer);
        skip(); // a kernel before 5.1
    }
    void *map = mmap(NULL, buffer.size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.fd, 0);
    assert_ptr_equal(map, MAP_FAILED);
    map = mmap(NULL, buffer.size, PROT_READ, MAP_SHARED, buffer.fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(((unsigned char *)map)[buffer.offset], 7);
    assert_int_equal(mprotect(map, buffer.size, PROT_READ | PROT_WRITE), -1);
    munmap(map, buffer.size);
    assert_int_equal(pwrite(buffer.fd, "x", 1, 0), -1);
    buffer_release(&buffer);
    // An output can be written, but neither kind changes its size.
    for (int read_only = 0; read_only < 2; read_only++) {
        buffer = make(4096, read_only == 1);
        assert_int_equal(ftruncate(buffer.fd, 0), -1);
        assert_int_equal(ftruncate(buffer.fd, (off_t)(2 * buffer.size)), -1);
        assert_int_equal(errno, EPERM);
        assert_int_equal(pwrite(buffer.fd, "x", 1, 0), read_only == 1 ? -1 : 1);
        buffer_release(&buffer);
    }
}

static void what_cannot_be_made_is_an_error_and_can_be_released(void **state)
{
    struct buffer buffer;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(buffer_create(&buffer, (size_t)1 << 62, false, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "tensor"));
    buffer_release(&buffer);
    assert_int_equal(buffer.fd, -1);
    buffer_release(&buffer); // a second time is harmless
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tensor_lies_between_guards_near_the_end),
        cmocka_unit_test(tensors_of_one_size_do_not_begin_at_the_same_place),
        cmocka_unit_test(every_byte_beside_the_tensor_is_guarded),
        cmocka_unit_test(who_copies_a_guard_of_another_key_is_found),
        cmocka_unit_test(the_fill_is_nan_for_either_float_type),
        cmocka_unit_test(a_fill_of_any_length_writes_just_that),
        cmocka_unit_test(sealed_memory_is_never_mapped_for_writing_again),
        cmocka_unit_test(what_cannot_be_made_is_an_error_and_can_be_released),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
