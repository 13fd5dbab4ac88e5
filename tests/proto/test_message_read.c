// What each type of field takes from the wire, byte by byte, and what it refuses.
#include "proto/message.h"
#include "tests/proto/every_field.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <string.h>

#define KINDS_OF_VALUE 8

// A value of each type of msgpack, as `len` bytes.
static const struct wire_value {
    const char *what, *bytes;
    size_t len;
} wire[KINDS_OF_VALUE] = {
    {"nothing", "\xc0", 1},
    {"a flag", "\xc3", 1},
    {"a positive integer", "\x07", 1},
    {"a negative integer", "\xff", 1},
    {"a real", "\xcb\x3f\xf8\0\0\0\0\0\0", 9},
    {"a text", "\xa1x", 2},
    {"bytes", "\xc4\x01x", 3},
    {"a map", "\x81\x01\xa1n", 4},
};
enum { NOTHING, FLAG, POSITIVE, NEGATIVE, REAL, TEXT, BYTES, MAP };

// Reads {key: value}.
static int read_pair(struct every *ret, uint32_t key, const void *value, size_t len,
                     struct err *err)
{
    struct strbuf packed = STRBUF_INIT;

    strbuf_addc(&packed, (char)0x81);
    strbuf_addc(&packed, (char)key);
    strbuf_add(&packed, value, len);
    int rc = message_read(&every_message, ret, packed.data, packed.len, err);
    strbuf_release(&packed);
    return rc;
}

static bool is_zero(const struct every *every)
{
    static const struct every zero;

    return memcmp(every, &zero, sizeof(zero)) == 0;
}

static void assert_refused(uint32_t key, const void *value, size_t len, const char *sentence)
{
    struct every every;
    struct err err = ERR_INIT;
    int rc = read_pair(&every, key, value, len, &err);

    if (rc != ERR_PROTOCOL || !strstr(err.text, sentence)) {
        fail_msg("%d, \"%s\" instead of \"%s\"", rc, err.text, sentence);
    }
    assert_true(is_zero(&every));
}
#define REFUSED(key, value, sentence) assert_refused(key, value, sizeof(value) - 1, sentence)

static void each_type_of_field_takes_its_types_of_value_alone(void **state)
{
    static const struct {
        uint32_t key;
        bool takes[KINDS_OF_VALUE];
    } fields[] = {
        {1, {[POSITIVE] = true}},
        {2, {[POSITIVE] = true, [NEGATIVE] = true}},
        {3, {[POSITIVE] = true, [NEGATIVE] = true, [REAL] = true}},
        {4, {[FLAG] = true}},
        {5, {[TEXT] = true}},
        {6, {[BYTES] = true}},
        {7, {false}}, // a digest is bytes of one length
        {8, {false}}, // the others are arrays
        {9, {false}},
        {10, {false}},
        {11, {false}},
        {12, {[MAP] = true}},
        {13, {false}},
        {99, {true, true, true, true, true, true, true, true}}, // no field at all
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        for (size_t k = 0; k < ARRAY_LEN(wire); k++) {
            struct every every;
            struct err err = ERR_INIT;
            int rc = read_pair(&every, fields[i].key, wire[k].bytes, wire[k].len, &err);
            if (rc != (fields[i].takes[k] ? 0 : ERR_PROTOCOL)) {
                fail_msg("key %u, %s: %d, %s", fields[i].key, wire[k].what, rc, err.text);
            }
            message_clear(&every_message, &every);
        }
    }
}

static void numbers_are_read_from_their_shortest_and_their_longest_form(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        uint64_t value;
    } numbers[] = {
        {"\x7f", 1, 127},
        {"\xcc\x07", 2, 7},
        {"\xcd\xff\xff", 3, 65535},
        {"\xce\xff\xff\xff\xff", 5, UINT32_MAX},
        {"\xcf\0\0\0\0\0\0\0\x07", 9, 7},
        {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, UINT64_MAX},
        {"\xd0\x07", 2, 7}, // a signed form of a positive number
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct every every;
        assert_int_equal(read_pair(&every, 1, numbers[i].bytes, numbers[i].len, NULL), 0);
        assert_true(every.count == numbers[i].value);
        message_clear(&every_message, &every);
    }
}

static void an_i64_takes_its_whole_range_and_no_more(void **state)
{
    struct every every;

    (void)state;
    assert_int_equal(read_pair(&every, 2, "\xd3\x80\0\0\0\0\0\0\0", 9, NULL), 0);
    assert_true(every.offset == INT64_MIN);
    assert_int_equal(read_pair(&every, 2, "\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", 9, NULL), 0);
    assert_true(every.offset == INT64_MAX);
    REFUSED(2, "\xcf\x80\0\0\0\0\0\0\0", "every.offset has a value of the wrong type or range");
}

static void an_f64_takes_every_number_and_nan_is_absent(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        double value;
    } reals[] = {
        {"\xca\x3f\xc0\0\0", 5, 1.5},           {"\xcb\x7f\xf0\0\0\0\0\0\0", 9, (double)INFINITY},
        {"\xcb\x80\0\0\0\0\0\0\0", 9, -0.0},    {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, 0x1p64},
        {"\xd3\x80\0\0\0\0\0\0\0", 9, -0x1p63},
    };
    struct every every;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
        assert_int_equal(read_pair(&every, 3, reals[i].bytes, reals[i].len, NULL), 0);
        assert_true(every.ratio == reals[i].value);
    }
    assert_int_equal(read_pair(&every, 3, "\xcb\x7f\xf8\0\0\0\0\0\0", 9, NULL), 0);
    assert_true(isnan(every.ratio));
    assert_int_equal(read_pair(&every, 1, "\x01", 1, NULL), 0);
    assert_true(isnan(every.ratio));
}

static void texts_and_bytes_are_bounded_by_their_max(void **state)
{
    struct every every;
    char long_bytes[3 + 101] = "\xc5\0\x65";

    (void)state;
    assert_int_equal(read_pair(&every, 5, "\xa4stop", 5, NULL), 0);
    assert_string_equal(every.text, "stop");
    message_clear(&every_message, &every);
    assert_int_equal(read_pair(&every, 5, "\xa0", 1, NULL), 0);
    assert_string_equal(every.text, "");
    message_clear(&every_message, &every);
    REFUSED(5, "\xa5later", "every.text has length 5 where 4 is allowed");
    REFUSED(5, "\xa2\xff\xff", "every.text is no UTF-8 text");
    assert_refused(6, long_bytes, sizeof(long_bytes), "every.data has length 101 where 100 is");
    long_bytes[2] = 100;
    assert_int_equal(read_pair(&every, 6, long_bytes, sizeof(long_bytes) - 1, NULL), 0);
    assert_int_equal(every.data.len, 100);
    message_clear(&every_message, &every);
}

static void a_digest_has_exactly_32_bytes(void **state)
{
    char packed[2 + 33] = "\xc4\x20";
    struct every every;

    (void)state;
    memset(packed + 2, 'd', 33);
    assert_int_equal(read_pair(&every, 7, packed, 34, NULL), 0);
    assert_memory_equal(every.digest.byte, packed + 2, 32);
    packed[1] = 33;
    assert_refused(7, packed, 35, "every.digest has a value of the wrong type");
    packed[1] = 31;
    assert_refused(7, packed, 33, "every.digest has a value of the wrong type");
}

static void arrays_are_bounded_and_all_their_elements_are_checked(void **state)
{
    struct every every;

    (void)state;
    assert_int_equal(read_pair(&every, 8, "\x92\x01\xca\x3f\xc0\0\0", 7, NULL), 0);
    assert_true(every.reals_count == 2 && every.reals[0] == 1.0 && every.reals[1] == 1.5);
    message_clear(&every_message, &every);
    assert_int_equal(read_pair(&every, 11, "\x92\xa0\xa1z", 4, NULL), 0);
    assert_string_equal(every.words[0], "");
    assert_string_equal(every.words[1], "z");
    message_clear(&every_message, &every);
    assert_int_equal(read_pair(&every, 9, "\x90", 1, NULL), 0);
    assert_true(every.numbers_count == 0 && !every.numbers);
    REFUSED(9, "\x93\x01\x02\x03", "every.numbers has length 3 where 2 is allowed");
    REFUSED(9, "\x92\x01\xff", "every.numbers has a value of the wrong type");
    REFUSED(8, "\x91\xa1x", "every.reals has a value of the wrong type");
    REFUSED(10, "\x91\xc4\x01x", "every.digests has a value of the wrong type");
    // The first element is owned already when the second one is refused.
    REFUSED(11,
            "\x92\xa1"
            "a\xa1\0",
            "every.words is no UTF-8 text");
    REFUSED(13,
            "\x92\x81\x01\xa1"
            "a\x80",
            "inner.name is required and missing");
    REFUSED(13, "\x93\x80\x80\x80", "every.list has length 3 where 2 is allowed");
}

static void an_element_of_texts_has_a_limit_of_its_own(void **state)
{
    char packed[1 + 3 + TEXTS_ELEMENT_MAX + 1];
    struct every every;

    (void)state;
    memset(packed, 'w', sizeof(packed));
    memcpy(packed, "\x91\xda\x10\x00", 4); // 4096
    assert_int_equal(read_pair(&every, 11, packed, 4 + TEXTS_ELEMENT_MAX, NULL), 0);
    assert_int_equal(strlen(every.words[0]), TEXTS_ELEMENT_MAX);
    message_clear(&every_message, &every);
    packed[3] = 1;
    assert_refused(11, packed, sizeof(packed), "every.words has length 4097 where 4096 is allowed");
}

static void a_failure_inside_a_message_is_named_by_that_message(void **state)
{
    (void)state;
    REFUSED(12, "\x80", "inner.name is required and missing");
    REFUSED(12, "\x81\x01\xa4long", "inner.name has length 4 where 3 is allowed");
    REFUSED(12,
            "\x82\x01\xa1"
            "a\x01\xa1"
            "b",
            "inner.name is given twice");
    REFUSED(12,
            "\x82\x01\xa1"
            "a\x02\xc0",
            "inner.value has a value of the wrong type");
    REFUSED(12, "\x90", "inner is no map");
}

static void what_was_read_before_a_failure_is_freed(void **state)
{
    static const char packed[] =
        "\x86\x05\xa1t\x06\xc4\x01x\x08\x91\x01\x0b\x91\xa1w\x0c\x81\x01\xa1n\x04\x01";
    struct every every;
    struct err err = ERR_INIT;

    (void)state;
    memset(&every, 0x55, sizeof(every));
    assert_int_equal(message_read(&every_message, &every, packed, sizeof(packed) - 1, &err),
                     ERR_PROTOCOL);
    assert_string_equal(err.text, "every.ready has a value of the wrong type or range");
    assert_true(is_zero(&every));
}

static void keys_that_are_no_small_integers_are_keys_of_later_versions(void **state)
{
    static const char packed[] = "\x85\xff\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc0\xc3\x90"
                                 "\xcb\x3f\xf0\0\0\0\0\0\0\x02\xcd\0\x01\x09";
    struct every every;

    (void)state;
    assert_int_equal(message_read(&every_message, &every, packed, sizeof(packed) - 1, NULL), 0);
    assert_int_equal(every.count, 9);  // the key 1 in three bytes
    assert_int_equal(every.offset, 0); // neither -1 nor 1.0 is a key
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_of_field_takes_its_types_of_value_alone),
        cmocka_unit_test(numbers_are_read_from_their_shortest_and_their_longest_form),
        cmocka_unit_test(an_i64_takes_its_whole_range_and_no_more),
        cmocka_unit_test(an_f64_takes_every_number_and_nan_is_absent),
        cmocka_unit_test(texts_and_bytes_are_bounded_by_their_max),
        cmocka_unit_test(a_digest_has_exactly_32_bytes),
        cmocka_unit_test(arrays_are_bounded_and_all_their_elements_are_checked),
        cmocka_unit_test(an_element_of_texts_has_a_limit_of_its_own),
        cmocka_unit_test(a_failure_inside_a_message_is_named_by_that_message),
        cmocka_unit_test(what_was_read_before_a_failure_is_freed),
        cmocka_unit_test(keys_that_are_no_small_integers_are_keys_of_later_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
