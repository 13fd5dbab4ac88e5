// What --define makes of a source.
#include "client/cmd/candidates/defines.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/strbuf.h"
#include "problem/template.h"
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const char tunable[] = "//@ tune WIDTH in (1, 2, 4)\n"
                              "//@ tune DEPTH in (1, 2) if WIDTH * DEPTH < 8\n"
                              "int x = WIDTH;\n";

static int apply(struct bytes *source, const char *text, const char *defines, size_t *ret_lines,
                 char **ret_params, struct err *err)
{
    *source = bytes_copy(text, strlen(text));
    return defines_apply(source, "t.c", defines, ret_lines, ret_params, err);
}

static void the_source_of_a_point_is_the_one_that_a_search_makes(void **state)
{
    struct template *template;
    struct strbuf expected = STRBUF_INIT;
    struct bytes source;
    const int64_t values[] = {4, 1};
    size_t point, lines;
    char *params;

    (void)state;
    assert_int_equal(template_parse(&template, tunable, "t.c", NULL), 0);
    assert_true(template_find(template, values, &point));
    template_source(template, point, &expected);
    assert_int_equal(apply(&source, tunable, "DEPTH=1\nWIDTH=4", &lines, &params, NULL), 0);
    assert_int_equal(source.len, expected.len);
    assert_memory_equal(source.data, expected.data, expected.len);
    assert_int_equal(lines, 2);
    assert_string_equal(params, "WIDTH DEPTH");
    free(params);
    bytes_clear(&source);
    strbuf_release(&expected);
    template_free(template);
}

static void another_source_gets_lines_before_it(void **state)
{
    struct bytes source;
    size_t lines;
    char *params;

    (void)state;
    assert_int_equal(apply(&source, "int x;\n", "A=1 + 2\nB", &lines, &params, NULL), 0);
    assert_int_equal(lines, 2);
    assert_null(params);
    static const char expected[] = "#define A 1 + 2\n#define B 1\nint x;\n";
    assert_int_equal(source.len, strlen(expected));
    assert_memory_equal(source.data, expected, source.len);
    bytes_clear(&source);
}

static void without_defines_nothing_changes(void **state)
{
    static const char *const texts[] = {"int x;", tunable, "//@ tune broken\n"};
    struct bytes source;
    size_t lines;
    char *params;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(apply(&source, texts[i], NULL, &lines, &params, NULL), 0);
        assert_int_equal(lines, 0);
        assert_int_equal(source.len, strlen(texts[i]));
        assert_int_equal(!params, i != 1);
        free(params);
        bytes_clear(&source);
    }
}

static void what_does_not_fit_is_told(void **state)
{
    static const struct {
        const char *text, *defines, *sentence;
    } row[] = {
        {tunable, "WIDHT=4\nDEPTH=1", "t.c has no parameter WIDHT; did you mean WIDTH?"},
        {tunable, "FROB=4\nDEPTH=1", "it has WIDTH, DEPTH"},
        {tunable, "WIDTH=3\nDEPTH=1", "t.c: WIDTH is 3, and may be 1, 2, 4"},
        {tunable, "WIDTH\nDEPTH=1", "WIDTH is not given a value, and may be 1, 2, 4"},
        {tunable, "WIDTH=4",
         "t.c: no value for DEPTH (1, 2); give each with --define, or let "
         "`kcast tune` find the best ones"},
        {tunable, "WIDTH=4\nDEPTH=2", "excludes these values together"},
        {tunable, "WIDTH=4\nWIDTH=2", "WIDTH is given twice"},
        {"int x;", "4=5", "'4' is no name of a parameter"},
        {"int x;", "=5", "'' is no name of a parameter"},
        {"int x;", "a b=5", "'a b' is no name of a parameter"},
    };
    struct bytes source;
    size_t lines;
    char *params;

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(apply(&source, row[i].text, row[i].defines, &lines, &params, &err),
                         ERR_USAGE);
        if (!strstr(err.text, row[i].sentence)) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, row[i].sentence);
        }
        assert_int_equal(source.len, strlen(row[i].text));
        bytes_clear(&source);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_source_of_a_point_is_the_one_that_a_search_makes),
        cmocka_unit_test(another_source_gets_lines_before_it),
        cmocka_unit_test(without_defines_nothing_changes),
        cmocka_unit_test(what_does_not_fit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
