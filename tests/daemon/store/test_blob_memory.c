// What is remembered of blobs: found until its time has passed or newer ones have taken its place,
// and never anything but what was added.
#include "common/stats.h"
#include "daemon/store/blob_memory.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM ((size_t)1 << 16)
#define MS UINT64_C(1000) // a time
#define LATER (MS + BLOB_MEMORY_S * UINT64_C(1000))
#define MANY 4000

static struct blob_memory *memory;

static int set_up(void **state)
{
    (void)state;
    memory = blob_memory_create(ROOM);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    blob_memory_free(memory);
    return 0;
}

static struct digest number(uint64_t i)
{
    return digest_of(&i, sizeof(i));
}

static void add(uint64_t i, const char *text, uint64_t now_ms)
{
    struct digest digest = number(i);
    struct bytes data = {.data = (unsigned char *)(uintptr_t)text, .len = text ? strlen(text) : 0};

    blob_memory_add(memory, &digest, text ? &data : NULL, now_ms);
}

static bool has(uint64_t i, uint64_t now_ms)
{
    struct digest digest = number(i);

    return blob_memory_has(memory, &digest, now_ms);
}

static const struct bytes *find(uint64_t i, uint64_t now_ms)
{
    struct digest digest = number(i);

    return blob_memory_find(memory, &digest, now_ms);
}

static void what_was_added_is_found_until_its_time_has_passed(void **state)
{
    (void)state;
    add(1, "source", MS);
    assert_true(has(1, LATER - 1));
    assert_int_equal(find(1, LATER - 1)->len, 6);
    assert_memory_equal(find(1, LATER - 1)->data, "source", 6);
    assert_false(has(1, LATER));
    assert_null(find(1, LATER));
    assert_false(has(2, MS));
    add(1, NULL, LATER); // its file was found, and not read
    assert_true(has(1, LATER));
    assert_null(find(1, LATER));
    add(1, "source", LATER); // it was read
    assert_memory_equal(find(1, LATER)->data, "source", 6);
    add(1, NULL, LATER + 1);
    assert_null(find(1, LATER + BLOB_MEMORY_S * UINT64_C(1000)));
}

static void a_file_that_was_only_looked_for_has_no_bytes_yet(void **state)
{
    (void)state;
    add(1, NULL, MS);
    assert_true(has(1, MS));
    assert_null(find(1, MS));
    add(1, "source", MS);
    assert_memory_equal(find(1, MS)->data, "source", 6);
}

static void bytes_of_a_large_blob_are_not_kept(void **state)
{
    struct blob_memory *large = blob_memory_create(4 * BLOB_MEMORY_ONE);
    struct bytes data = {.data = xcalloc(1, BLOB_MEMORY_ONE + 1), .len = BLOB_MEMORY_ONE};
    struct digest one = number(1), other = number(2);

    (void)state;
    blob_memory_add(large, &one, &data, MS);
    data.len++;
    blob_memory_add(large, &other, &data, MS);
    assert_non_null(blob_memory_find(large, &one, MS));
    assert_true(blob_memory_has(large, &other, MS));
    assert_null(blob_memory_find(large, &other, MS));
    bytes_clear(&data);
    blob_memory_free(large);
}

static void what_is_forgotten_is_not_found(void **state)
{
    struct digest digest = number(1);

    (void)state;
    blob_memory_forget(memory, &digest);
    add(1, "source", MS);
    blob_memory_forget(memory, &digest);
    assert_false(has(1, MS));
    add(1, "other", MS);
    assert_memory_equal(find(1, MS)->data, "other", 5);
    add(2, NULL, MS);
    blob_memory_forget_all(memory);
    assert_false(has(1, MS));
    assert_false(has(2, MS));
    add(2, "again", MS);
    assert_memory_equal(find(2, MS)->data, "again", 5);
}

static void without_room_nothing_is_kept(void **state)
{
    struct blob_memory *none = blob_memory_create(0);
    struct digest digest = number(1);

    (void)state;
    blob_memory_add(none, &digest, NULL, MS);
    assert_false(blob_memory_has(none, &digest, MS));
    blob_memory_free(none);
}

// The bytes of blob i: i repeated, as often as i says.
static struct bytes content(uint64_t i)
{
    struct stats_rng rng;

    stats_rng_init(&rng, i, 1);
    struct bytes ret = {.len = 1 + stats_rng_below(&rng, i % 100 == 0 ? ROOM / 2 : 600)};
    ret.data = xmalloc(ret.len);
    memset(ret.data, (int)(i % 256), ret.len);
    return ret;
}

static bool check(uint64_t i)
{
    const struct bytes *found = find(i, MS);
    struct bytes expected = content(i);

    if (found) {
        assert_int_equal(found->len, expected.len);
        assert_memory_equal(found->data, expected.data, expected.len);
    }
    bytes_clear(&expected);
    return found;
}

// Of all that has been added and not forgotten the last ones are there, with their bytes, whatever
// sizes they have; before them there is nothing.
static void the_oldest_make_room(void **state)
{
    struct stats_rng rng;
    size_t least = MANY;
    static bool forgotten[MANY];

    (void)state;
    stats_rng_init(&rng, 7, 1);
    for (uint64_t i = 0; i < MANY; i++) {
        struct bytes data = content(i);
        struct digest digest = number(i);
        size_t there = 0;

        blob_memory_add(memory, &digest, &data, MS);
        bytes_clear(&data);
        for (uint64_t k = i + 1; k-- > 0 && (check(k) || forgotten[k]);) {
            there++;
        }
        assert_true(there > 0);
        for (uint64_t k = 0; k + there < i; k += 37) { // older than the oldest
            assert_false(has(k, MS));
        }
        least = i > 500 && there < least ? there : least;
        if (stats_rng_below(&rng, 10) == 0) {
            forgotten[i] = true;
            blob_memory_forget(memory, &digest);
        }
    }
    assert_true(least > 1); // even beside one that takes half of the room
    assert_true(least < 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_added_is_found_until_its_time_has_passed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_was_only_looked_for_has_no_bytes_yet, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(bytes_of_a_large_blob_are_not_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_forgotten_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_room_nothing_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_oldest_make_room, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
