#include "common/printable.h"
#include "common/utf8.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka.h needs some of the above.
#include <cmocka.h>

// What a terminal obeys, and what is no text, one per string.
static const char *const hostile[] = {"\x01",         "\x07",         "\b",
                                      "\x1b",         "\x1f",         "\x7f",
                                      "\xc2\x80",     "\xc2\x9b",     "\xc2\x9f",
                                      "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f",
                                      "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa",
                                      "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6",
                                      "\xe2\x81\xa9", "\x80",         "\x9b",
                                      "\xff",         "\xc0\xaf",     "\xed\xa0\x80",
                                      "\xe2\x82",     "\xc3",         "\xf4\x90\x80\x80"};
// Neighbours of those in Unicode, which are harmless.
static const char *const harmless[] = {" ",
                                       "~",
                                       "\xc2\xa0",
                                       "\xc3\xa4",
                                       "\xd8\x9b",
                                       "\xe2\x80\x8d",
                                       "\xe2\x80\x90",
                                       "\xe2\x80\xa7",
                                       "\xe2\x80\xaf",
                                       "\xe2\x81\xa5",
                                       "\xe2\x81\xaa",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80"};

static size_t length_of(const char *text)
{
    return printable_length((const unsigned char *)text, strlen(text));
}

// Whether all of the text is printable, but for newlines and tabs.
static bool is_clean(const char *text, size_t len)
{
    for (size_t at = 0, step; at < len; at += step) {
        step = text[at] == '\n' || text[at] == '\t'
                   ? 1
                   : printable_length((const unsigned char *)text + at, len - at);
        if (step == 0) {
            return false;
        }
    }
    return true;
}

static void what_a_terminal_obeys_is_not_printable(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        assert_int_equal(length_of(hostile[i]), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        assert_int_equal(length_of(harmless[i]), strlen(harmless[i]));
    }
    assert_int_equal(printable_length((const unsigned char *)"", 1), 0);
    assert_int_equal(length_of("\n"), 0);
    assert_int_equal(length_of("\t"), 0);
}

static void names_have_none_of_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        char name[32];
        struct err err = ERR_INIT;

        (void)snprintf(name, sizeof(name), "a%sb", hostile[i]);
        assert_int_equal(printable_check("the name of a search", name, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "the name of a search, \"a\\x"));
        assert_true(is_clean(err.text, strlen(err.text)));
    }
    for (size_t i = 0; i < ARRAY_LEN(harmless); i++) {
        assert_int_equal(printable_check("a name", harmless[i], NULL), 0);
    }
    assert_int_equal(printable_check("a name", "a\nb", NULL), ERR_INVALID);
    assert_int_equal(printable_check("a name", "a\tb", NULL), ERR_INVALID);
    assert_int_equal(printable_check("a name", "", NULL), 0);
}

static void added(const char *text, bool lines, const char *expected)
{
    struct strbuf out = STRBUF_INIT;

    (lines ? printable_add_lines : printable_add)(&out, text, strlen(text));
    assert_string_equal(strbuf_text(&out), expected);
    strbuf_release(&out);
}

static void it_is_escaped(void **state)
{
    (void)state;
    added("a\x1b[2J\xc2\x9b"
          "1m\xe2\x80\xae\n\t\r\xff\xc3\xa4z",
          false, "a\\x1b[2J\\xc2\\x9b1m\\xe2\\x80\\xae\\n\\t\\r\\xff\xc3\xa4z");
    added("\x1b one\n\ttwo\r\n", true, "\\x1b one\n\ttwo\\r\n");
    added("", true, "");
    added("\n", true, "\n");
}

static void json_stays_what_it_is(void **state)
{
    static const char json[] = "{\"a\":\"\x7f\xc2\x9b\xe2\x80\xae\xc3\xa4\\u001b\"}\n";
    struct strbuf out = STRBUF_INIT;

    (void)state;
    printable_add_json(&out, json, strlen(json));
    assert_string_equal(strbuf_text(&out), "{\"a\":\"\\u007f\\u009b\\u202e\xc3\xa4\\u001b\"}\n");
    strbuf_release(&out);
}

static void bytes_are_replaced_in_place(void **state)
{
    char text[] = "a\x1b\xc2\x9b\n\t\xe2\x80\xae\xc3\xa4\xff";

    (void)state;
    printable_clean(text, strlen(text));
    assert_string_equal(text, "a???\n\t???\xc3\xa4?");
}

// What printable_printf or printable_print_lines has written to the file, which the caller frees.
static char *content(FILE *file)
{
    size_t len = (size_t)ftell(file);
    char *text = calloc(1, len + 1);

    rewind(file);
    assert_int_equal(fread(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return text;
}

static void a_value_begins_no_line(void **state)
{
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    printable_printf(file, "\n%s: %d%s\n\n", "one\ntwo", 3, "\x1b[0m\n");
    printable_printf(file, "%s", "\n");
    printable_printf(file, "\n");
    printable_printf(file, "%s", "");
    printable_printf(file, "in\nside\n");
    printable_print_lines(file, "\x1b\n\tlast\n");
    char *text = content(file);
    assert_string_equal(text, "\none\\ntwo: 3\\x1b[0m\\n\n\n\\n\nin\\nside\n\\x1b\n\tlast\n");
    free(text);
}

static void any_bytes_become_printable(void **state)
{
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        char text[64];
        struct strbuf line = STRBUF_INIT, lines = STRBUF_INIT;

        for (size_t i = 0; i < sizeof(text); i++) {
            seed = seed * 1103515245u + 12345u;
            text[i] = (char)(seed >> 16);
        }
        printable_add(&line, text, sizeof(text));
        assert_true(is_clean(line.data, line.len));
        assert_null(memchr(line.data, '\n', line.len));
        printable_add_lines(&lines, text, sizeof(text));
        assert_true(is_clean(lines.data, lines.len));
        printable_clean(text, sizeof(text));
        assert_true(is_clean(text, sizeof(text)));
        strbuf_release(&line);
        strbuf_release(&lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_terminal_obeys_is_not_printable),
        cmocka_unit_test(names_have_none_of_it),
        cmocka_unit_test(it_is_escaped),
        cmocka_unit_test(json_stays_what_it_is),
        cmocka_unit_test(bytes_are_replaced_in_place),
        cmocka_unit_test(a_value_begins_no_line),
        cmocka_unit_test(any_bytes_become_printable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
