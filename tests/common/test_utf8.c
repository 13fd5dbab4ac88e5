#include "common/utf8.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

static size_t length_of(const char *text)
{
    return utf8_length((const unsigned char *)text, strlen(text));
}

static void characters_have_one_to_four_bytes(void **state)
{
    (void)state;
    assert_int_equal(length_of("ab"), 1);
    assert_int_equal(utf8_length((const unsigned char *)"", 1), 1);
    assert_int_equal(length_of("\x7f"), 1);
    assert_int_equal(length_of("\xc2\x80"), 2);
    assert_int_equal(length_of("\xe0\xa0\x80"), 3);
    assert_int_equal(length_of("\xed\x9f\xbf"), 3);
    assert_int_equal(length_of("\xf0\x90\x80\x80z"), 4);
    assert_int_equal(length_of("\xf4\x8f\xbf\xbf"), 4);
}

static void invalid_characters_have_no_length(void **state)
{
    static const char *const invalid[] = {
        "\x80",             // a continuation byte alone
        "\xc0\xaf",         // longer than necessary
        "\xc1\xbf",         // the same
        "\xe0\x9f\xbf",     // the same
        "\xf0\x8f\xbf\xbf", // the same
        "\xed\xa0\x80",     // a surrogate
        "\xf4\x90\x80\x80", // beyond U+10FFFF
        "\xf5\x80\x80\x80", // the same
        "\xc3(",            // no continuation byte
        "\xe2\x82",         // cut off
        "\xf0\x9f\x98",     // cut off
    };

    (void)state;
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
        assert_int_equal(length_of(invalid[i]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_one_to_four_bytes),
        cmocka_unit_test(invalid_characters_have_no_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
