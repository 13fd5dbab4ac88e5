// The bytes of each type of field, what is too large to be packed, and what makes two messages
// equal.
#include "proto/message.h"
#include "tests/proto/every_field.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char letters[] = "abcde";

// Packs *every and checks that it becomes a map of one pair: this key and these bytes.
static void assert_packed(const struct every *every, uint32_t key, const char *bytes, size_t len)
{
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;

    assert_int_equal(message_pack(&every_message, every, &packed, &err), 0);
    assert_int_equal(packed.len, len + 2);
    assert_int_equal((unsigned char)packed.data[0], 0x81);
    assert_int_equal(packed.data[1], key);
    assert_memory_equal(packed.data + 2, bytes, len);
    strbuf_release(&packed);
}
#define PACKED(every, key, bytes) assert_packed(every, key, bytes, sizeof(bytes) - 1)

static void numbers_take_the_shortest_form(void **state)
{
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    every.count = 127;
    PACKED(&every, 1, "\x7f");
    every.count = 128;
    PACKED(&every, 1, "\xcc\x80");
    every.count = UINT64_MAX;
    PACKED(&every, 1, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff");
    every.count = 0;
    every.offset = -32;
    PACKED(&every, 2, "\xe0");
    every.offset = INT64_MIN;
    PACKED(&every, 2, "\xd3\x80\0\0\0\0\0\0\0");
    every.offset = 0;
    every.ratio = -0.0; // a zero is present, NaN alone is absent
    PACKED(&every, 3, "\xcb\x80\0\0\0\0\0\0\0");
    every.ratio = (double)NAN;
    every.ready = true;
    PACKED(&every, 4, "\xc3");
}

static void texts_and_bytes_have_their_length_in_front(void **state)
{
    struct every every;
    char *words[] = {letters, letters + 5};
    struct inner inner = {.name = letters + 3, .value = (double)NAN};

    (void)state;
    message_init(&every_message, &every);
    every.text = letters + 1;
    PACKED(&every, 5,
           "\xa4"
           "bcde");
    every.text = letters + 5;
    PACKED(&every, 5, "\xa0");
    every.text = NULL;
    every.data = (struct bytes){(unsigned char *)letters, 2};
    PACKED(&every, 6,
           "\xc4\x02"
           "ab");
    every.data.len = 0;
    every.words = words;
    every.words_count = 2;
    PACKED(&every, 11,
           "\x92\xa5"
           "abcde\xa0");
    every.words_count = 0;
    every.one = &inner;
    PACKED(&every, 12,
           "\x81\x01\xa2"
           "de");
    every.one = NULL;
    every.list = &inner;
    every.list_count = 1;
    PACKED(&every, 13,
           "\x91\x81\x01\xa2"
           "de");
}

static void a_message_without_fields_is_an_empty_map(void **state)
{
    struct strbuf packed = STRBUF_INIT;
    struct every every, again;

    (void)state;
    message_init(&every_message, &every);
    assert_int_equal(message_pack(&every_message, &every, &packed, NULL), 0);
    assert_int_equal(packed.len, 1);
    assert_int_equal((unsigned char)packed.data[0], 0x80);
    assert_int_equal(message_read(&every_message, &again, packed.data, 1, NULL), 0);
    assert_true(message_equal(&every_message, &every, &again));
    strbuf_release(&packed);
}

static void a_field_beyond_its_max_is_refused_by_name(void **state)
{
    static uint64_t numbers[3];
    static unsigned char data[101];
    static char long_word[TEXTS_ELEMENT_MAX + 2];
    static char *words[] = {long_word};
    static struct inner unnamed, named = {.name = letters};
    static const struct {
        struct every every;
        enum err_code code;
        const char *sentence;
    } bad[] = {
        {{.text = letters}, ERR_LIMIT, "every.text has 5 bytes where 4 are allowed"},
        {{.data = {data, 101}}, ERR_LIMIT, "every.data has 101 bytes where 100 are allowed"},
        {{.numbers = numbers, .numbers_count = 3},
         ERR_LIMIT,
         "every.numbers has 3 elements where 2 are allowed"},
        {{.words = words, .words_count = 1},
         ERR_LIMIT,
         "every.words has 4097 bytes where 4096 are allowed"},
        {{.one = &named}, ERR_LIMIT, "inner.name has 5 bytes where 3 are allowed"},
        {{.one = &unnamed}, ERR_INVALID, "inner.name is required and absent"},
        {{.list = &unnamed, .list_count = 1}, ERR_INVALID, "inner.name is required and absent"},
    };

    (void)state;
    memset(long_word, 'w', TEXTS_ELEMENT_MAX + 1);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct strbuf packed = STRBUF_INIT;
        struct err err = ERR_INIT;
        assert_int_equal(message_pack(&every_message, &bad[i].every, &packed, &err), bad[i].code);
        assert_string_equal(err.text, bad[i].sentence);
        strbuf_release(&packed);
    }
}

static void a_message_larger_than_its_buffer_may_be_is_refused(void **state)
{
    struct every every;
    struct err err = ERR_INIT;

    (void)state;
    message_init(&every_message, &every);
    every.text = letters + 1; // seven bytes in all
    for (size_t max = 0; max < 9; max++) {
        struct strbuf packed;
        strbuf_init(&packed, max);
        err_clear(&err);
        int rc = message_pack(&every_message, &every, &packed, &err);
        assert_int_equal(rc, max < 7 ? ERR_LIMIT : 0);
        if (rc != 0) {
            char *sentence = xasprintf("a packed every is larger than %zu bytes", max);
            assert_string_equal(err.text, sentence);
            free(sentence);
        }
        strbuf_release(&packed);
    }
}

// ---- copies and equality ----

// A message with something in each field; it owns all of it.
static struct every whole(void)
{
    struct every every = {.count = 1,
                          .offset = -2,
                          .ratio = 0.5,
                          .ready = true,
                          .text = xstrdup("ab"),
                          .data = bytes_copy("\0x", 2),
                          .digest = digest_of("a", 1),
                          .reals = xcalloc(2, sizeof(double)),
                          .reals_count = 2,
                          .numbers = xcalloc(1, sizeof(uint64_t)),
                          .numbers_count = 1,
                          .digests = xcalloc(1, sizeof(struct digest)),
                          .digests_count = 1,
                          .words = xcalloc(2, sizeof(char *)),
                          .words_count = 2,
                          .one = xcalloc(1, sizeof(struct inner)),
                          .list = xcalloc(1, sizeof(struct inner)),
                          .list_count = 1};

    every.reals[1] = (double)NAN;
    every.words[0] = xstrdup("");
    every.words[1] = xstrdup("w");
    every.one->name = xstrdup("one");
    every.list[0].name = xstrdup("li");
    every.list[0].value = (double)NAN;
    return every;
}

static void a_copy_is_equal_and_shares_nothing(void **state)
{
    struct every every = whole(), copy, read;
    struct strbuf packed = STRBUF_INIT;

    (void)state;
    memset(&copy, 0x55, sizeof(copy));
    message_copy(&every_message, &copy, &every);
    assert_true(message_equal(&every_message, &every, &copy)); // its NaN too
    assert_int_equal(message_pack(&every_message, &every, &packed, NULL), 0);
    message_clear(&every_message, &every);
    assert_int_equal(message_read(&every_message, &read, packed.data, packed.len, NULL), 0);
    assert_true(message_equal(&every_message, &read, &copy));
    message_clear(&every_message, &read);
    message_clear(&every_message, &copy);
    assert_true(copy.words_count == 0 && !copy.words && !copy.one && !copy.data.data);
    strbuf_release(&packed);
}

static void a_difference_in_any_field_is_a_difference(void **state)
{
    (void)state;
    for (int change = 0; change < 17; change++) {
        struct every a = whole(), b;
        message_copy(&every_message, &b, &a);
        switch (change) {
        case 0:
            b.count = 2;
            break;
        case 1:
            b.offset = 2;
            break;
        case 2:
            b.ratio = (double)NAN;
            break;
        case 3:
            b.ready = false;
            break;
        case 4:
            b.text[1] = 'c';
            break;
        case 5:
            b.data.data[1] = 'y';
            break;
        case 6:
            b.data.len = 1;
            break;
        case 7:
            b.digest.byte[31] ^= 1;
            break;
        case 8:
            b.reals[0] = 1;
            break;
        case 9:
            b.reals[1] = 0;
            break;
        case 10:
            b.numbers[0] = 1;
            break;
        case 11:
            b.digests[0].byte[0] = 1;
            break;
        case 12:
            b.words[1][0] = 'x';
            break;
        case 13:
            b.one->value = 1;
            break;
        case 14:
            b.list[0].name[0] = 'x';
            break;
        case 15:
            message_clear(&inner_message, b.one);
            free(b.one);
            b.one = NULL;
            break;
        default:
            free(b.text);
            b.text = NULL;
            break;
        }
        if (message_equal(&every_message, &a, &b) || message_equal(&every_message, &b, &a)) {
            fail_msg("change %d goes unnoticed", change);
        }
        assert_true(message_equal(&every_message, &b, &b));
        message_clear(&every_message, &a);
        message_clear(&every_message, &b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_the_shortest_form),
        cmocka_unit_test(texts_and_bytes_have_their_length_in_front),
        cmocka_unit_test(a_message_without_fields_is_an_empty_map),
        cmocka_unit_test(a_field_beyond_its_max_is_refused_by_name),
        cmocka_unit_test(a_message_larger_than_its_buffer_may_be_is_refused),
        cmocka_unit_test(a_copy_is_equal_and_shares_nothing),
        cmocka_unit_test(a_difference_in_any_field_is_a_difference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
