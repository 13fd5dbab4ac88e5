// The walk over packed bytes that bounds everything before anything is allocated.
#include "common/mem.h"
#include "proto/message.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

// Checks the bytes in memory of exactly their length.
static int check(const void *data, size_t len, size_t *ret_size, struct err *err)
{
    unsigned char *copy = len > 0 ? xmemdup(data, len) : xmalloc(1);
    int rc = message_precheck(copy, len, ret_size, err);

    free(copy);
    return rc;
}

// One value of every form of msgpack that is known, and its bytes.
static const struct form {
    const char *bytes;
    size_t len;
} forms[] = {
    {"\x00", 1},
    {"\x7f", 1},
    {"\xe0", 1},
    {"\xff", 1},
    {"\xc0", 1},
    {"\xc2", 1},
    {"\xc3", 1},
    {"\xcc\xff", 2},
    {"\xcd\xff\xff", 3},
    {"\xce\xff\xff\xff\xff", 5},
    {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    {"\xd0\xff", 2},
    {"\xd1\xff\xff", 3},
    {"\xd2\xff\xff\xff\xff", 5},
    {"\xd3\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    {"\xca\xff\xff\xff\xff", 5},
    {"\xcb\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    {"\xa0", 1},
    {"\xa2xy", 3},
    {"\xd9\x02xy", 4},
    {"\xda\0\x02xy", 5},
    {"\xdb\0\0\0\x02xy", 7},
    {"\xc4\0", 2},
    {"\xc4\x02xy", 4},
    {"\xc5\0\x02xy", 5},
    {"\xc6\0\0\0\x02xy", 7},
    {"\x90", 1},
    {"\x92\x01\xa1x", 4},
    {"\xdc\0\x01\xc0", 4},
    {"\xdd\0\0\0\x01\xc0", 6},
    {"\x80", 1},
    {"\x81\x01\x91\xc0", 4},
    {"\xde\0\x01\x01\xc0", 5},
    {"\xdf\0\0\0\x01\x01\xc0", 7},
};

static void every_known_form_is_walked_to_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct err err = ERR_INIT;
        size_t size = 0;
        if (check(forms[i].bytes, forms[i].len, &size, &err) != 0 || size != forms[i].len) {
            fail_msg("0x%02x: %zu, %s", (unsigned char)forms[i].bytes[0], size, err.text);
        }
    }
}

static void bytes_behind_the_value_are_not_its_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        char text[16];
        size_t size = 0;
        memcpy(text, forms[i].bytes, forms[i].len);
        memset(text + forms[i].len, 0xc1, sizeof(text) - forms[i].len); // no value begins so
        assert_int_equal(check(text, sizeof(text), &size, NULL), 0);
        assert_int_equal(size, forms[i].len);
    }
}

static void every_form_that_is_cut_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        for (size_t len = 0; len < forms[i].len; len++) {
            struct err err = ERR_INIT;
            size_t size = 77;
            assert_int_equal(check(forms[i].bytes, len, &size, &err), ERR_PROTOCOL);
            assert_true(strstr(err.text, "ends in the middle") || strstr(err.text, "claims"));
            assert_int_equal(size, 77);
        }
    }
}

static void types_that_no_message_uses_are_refused_wherever_they_are(void **state)
{
    static const unsigned char unknown[] = {0xc1, 0xc7, 0xc8, 0xc9, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8};
    unsigned char data[3 + 20] = {0x92, 0x01};

    (void)state;
    for (int lead = 0; lead < 256; lead++) {
        struct err err = ERR_INIT;
        size_t size = 0;
        data[2] = (unsigned char)lead;
        int rc = check(data, sizeof(data), &size, &err);
        bool is_unknown = memchr(unknown, lead, sizeof(unknown));
        assert_int_equal(!!strstr(err.text, "unknown type"), is_unknown);
        assert_true(!is_unknown || rc == ERR_PROTOCOL);
    }
}

static void the_greatest_counts_are_compared_without_overflow(void **state)
{
    static const struct form greatest[] = {
        {"\xdf\xff\xff\xff\xff\x01\x01", 7},
        {"\xdd\xff\xff\xff\xff\x01\x01", 7},
        {"\xdb\xff\xff\xff\xffxy", 7},
        {"\xc6\xff\xff\xff\xffxy", 7},
        {"\xdf\x80\0\0\0\x01\x01", 7}, // twice this count does not fit into 32 bits
        {"\x82\x01\x01\x01", 4},       // four values in three bytes
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(greatest); i++) {
        struct err err = ERR_INIT;
        size_t size = 0;
        assert_int_equal(check(greatest[i].bytes, greatest[i].len, &size, &err), ERR_PROTOCOL);
        assert_non_null(strstr(err.text, "claims"));
    }
}

static void nesting_is_allowed_to_its_limit_in_lists_and_maps(void **state)
{
    static const struct form levels[] = {{"\x91", 1}, {"\x81\x01", 2}, {"\xdd\0\0\0\x01", 5}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
        struct strbuf deep = STRBUF_INIT;
        struct err err = ERR_INIT;
        size_t size = 0;
        for (int level = 0; level < MESSAGE_DEPTH_MAX; level++) {
            strbuf_add(&deep, levels[i].bytes, levels[i].len);
        }
        strbuf_addc(&deep, '\x01');
        assert_int_equal(check(deep.data, deep.len, &size, &err), 0);
        assert_int_equal(size, deep.len);
        struct strbuf deeper = STRBUF_INIT;
        strbuf_add(&deeper, levels[i].bytes, levels[i].len);
        strbuf_add(&deeper, deep.data, deep.len);
        assert_int_equal(check(deeper.data, deeper.len, &size, &err), ERR_PROTOCOL);
        assert_string_equal(err.text, "a message nests deeper than 15 levels");
        strbuf_release(&deep);
        strbuf_release(&deeper);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_known_form_is_walked_to_its_end),
        cmocka_unit_test(bytes_behind_the_value_are_not_its_own),
        cmocka_unit_test(every_form_that_is_cut_is_refused),
        cmocka_unit_test(types_that_no_message_uses_are_refused_wherever_they_are),
        cmocka_unit_test(the_greatest_counts_are_compared_without_overflow),
        cmocka_unit_test(nesting_is_allowed_to_its_limit_in_lists_and_maps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
