#include "common/wrap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void check_wrapped(const char *text, size_t at, size_t indent, size_t width,
                          const char *expected)
{
    struct strbuf out = STRBUF_INIT;

    wrap_add(&out, text, at, indent, width);
    assert_string_equal(strbuf_text(&out), expected);
    strbuf_release(&out);
}

static void lines_break_between_words(void **state)
{
    (void)state;
    check_wrapped("", 0, 0, 10, "");
    check_wrapped("one two three", 0, 0, 10, "one two\nthree");
    check_wrapped("one two three", 0, 0, 13, "one two three");
    check_wrapped("one two three", 0, 0, 12, "one two\nthree");
    check_wrapped("one two", 6, 2, 10, "one\n  two");
    check_wrapped("  one  two", 0, 0, 20, "  one  two");
}

static void words_are_never_cut(void **state)
{
    (void)state;
    check_wrapped("a abcdefghijkl b", 0, 1, 5, "a\n abcdefghijkl\n b");
}

static void lines_of_the_text_stay(void **state)
{
    (void)state;
    check_wrapped("one\ntwo\n\nthree\n", 0, 2, 20, "one\n  two\n\n  three\n");
}

static void characters_count_and_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(wrap_columns("\xe2\x80\xa6\xcf\x84x"), 3);
    check_wrapped("\xe2\x80\xa6\xe2\x80\xa6 xx", 0, 0, 5, "\xe2\x80\xa6\xe2\x80\xa6 xx");
}

static void columns_give_way_to_what_is_long(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    (void)state;
    assert_non_null(file);
    wrap_print_columns(file, "  --a", 8, "the first of all second", 32);
    wrap_print_columns(file, "  --abc", 8, "third", 32);
    wrap_print_columns(file, "  --abc", 20, "the text of an option", 32); // no room for two columns
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, "  --a   the first of all second\n  --abc\n        third\n"
                              "  --abc\n      the text of an option\n");
    free(text);
}

static void width_is_that_of_the_environment(void **state)
{
    (void)state;
    assert_int_equal(setenv("COLUMNS", "57", 1), 0);
    assert_int_equal(wrap_width(stdout), 57);
    FILE *file = fopen("/dev/null", "w");
    assert_non_null(file);
    static const char *const none[] = {"0", "7", "-3", "wide", ""};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_int_equal(setenv("COLUMNS", none[i], 1), 0);
        assert_int_equal(wrap_width(file), WRAP_WIDTH_DEFAULT);
    }
    assert_int_equal(unsetenv("COLUMNS"), 0);
    assert_int_equal(wrap_width(file), WRAP_WIDTH_DEFAULT);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_break_between_words),
        cmocka_unit_test(words_are_never_cut),
        cmocka_unit_test(lines_of_the_text_stay),
        cmocka_unit_test(characters_count_and_not_bytes),
        cmocka_unit_test(columns_give_way_to_what_is_long),
        cmocka_unit_test(width_is_that_of_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
