// What compilers say, told of the user's file.
#include "client/diagnostics.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void check_renamed(const char *text, size_t header_lines, const char *expected)
{
    struct strbuf out = STRBUF_INIT;

    diagnostics_rename(&out, text, "dir/my file.c", header_lines);
    assert_string_equal(strbuf_text(&out), expected);
    strbuf_release(&out);
}

static void the_users_name_stands_everywhere(void **state)
{
    (void)state;
    check_renamed("candidate.c: In function 'f':\ncandidate.c:3:5: error: x\n", 0,
                  "dir/my file.c: In function 'f':\ndir/my file.c:3:5: error: x\n");
    check_renamed("candidate.cu(3): error: x", 0, "dir/my file.c(3): error: x");
    check_renamed("In file included from candidate.c:1:", 0,
                  "In file included from dir/my file.c:1:");
    check_renamed("candidate.c", 0, "dir/my file.c");
    check_renamed("candidate.c:0: x candidate.c:007: y", 0,
                  "dir/my file.c:0: x dir/my file.c:007: y");
}

static void other_names_stay(void **state)
{
    (void)state;
    check_renamed("mycandidate.c:1:", 0, "mycandidate.c:1:");
    check_renamed("candidate.cc candidate.c_ /candidate.c candidate", 0,
                  "candidate.cc candidate.c_ /candidate.c candidate");
}

static void lines_are_counted_in_the_users_file(void **state)
{
    (void)state;
    check_renamed("candidate.c:5:7: error: x\n    5 | int x;\n      | ^\n", 2,
                  "dir/my file.c:3:7: error: x\n    3 | int x;\n      | ^\n");
    check_renamed("candidate.c:12:7: error: x\n   12 | int x;\n", 3,
                  "dir/my file.c:9:7: error: x\n    9 | int x;\n");
    check_renamed("candidate.c:2:9: note: x\n    2 | #define A 1\n", 2,
                  "<command-line>:2:9: note: x\n    2 | #define A 1\n");
    check_renamed("candidate.cu(12): error: x", 10, "dir/my file.c(2): error: x");
    check_renamed("candidate.c:99999999999: error", 1, "dir/my file.c:99999999999: error");
}

static void every_message_is_an_object(void **state)
{
    static const char text[] =
        "a.c: In function 'f':\n"
        "a.c:3:15: error: 'x' undeclared (first use in this function)\n"
        "    3 |   int unused; x = 3;\n"
        "      |               ^\n"
        "a.c:3:15: note: each undeclared identifier is reported only once\n"
        "a.c:7: warning: colons: in it\n"
        "b.cu(3): error: identifier \"Q\" is undefined\n"
        "b.cu(4): warning #177-D: variable \"q\" was declared but never referenced\n"
        "a.c:9:10: fatal error: x.h: No such file or directory\n"
        "cc1: all warnings being treated as errors\n";
    static const struct {
        const char *file, *severity, *message;
        int line, column;
    } expected[] = {
        {"a.c", "error", "'x' undeclared (first use in this function)", 3, 15},
        {"a.c", "note", "each undeclared identifier is reported only once", 3, 15},
        {"a.c", "warning", "colons: in it", 7, 0},
        {"b.cu", "error", "identifier \"Q\" is undefined", 3, 0},
        {"b.cu", "warning", "variable \"q\" was declared but never referenced", 4, 0},
        {"a.c", "error", "x.h: No such file or directory", 9, 10},
    };
    json_t *array = diagnostics_json(text);

    (void)state;
    assert_int_equal(json_array_size(array), sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        const json_t *object = json_array_get(array, i),
                     *column = json_object_get(object, "column");
        assert_string_equal(json_string_value(json_object_get(object, "file")), expected[i].file);
        assert_string_equal(json_string_value(json_object_get(object, "severity")),
                            expected[i].severity);
        assert_string_equal(json_string_value(json_object_get(object, "message")),
                            expected[i].message);
        assert_int_equal(json_integer_value(json_object_get(object, "line")), expected[i].line);
        assert_true(expected[i].column > 0 ? json_integer_value(column) == expected[i].column
                                           : json_is_null(column));
    }
    json_decref(array);
}

static void what_is_not_declared_is_found(void **state)
{
    static const struct {
        const char *text, *name;
    } row[] = {{"x: error: 'WIDTH' undeclared (first", "WIDTH"},
               {"error: identifier \"W_1\" is undefined", "W_1"},
               {"'a' declared, 'b' undeclared", "b"},
               {"error: '' undeclared", NULL},
               {"error: 'a", NULL},
               {"", NULL}};

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        const char *text = row[i].text;
        char *name = diagnostics_undeclared(&text);
        assert_true(row[i].name ? name && strcmp(name, row[i].name) == 0 : !name);
        free(name);
    }
    const char *two = "'a' undeclared\n'b' undeclared";
    char *first = diagnostics_undeclared(&two), *second = diagnostics_undeclared(&two);
    assert_string_equal(first, "a");
    assert_string_equal(second, "b");
    assert_null(diagnostics_undeclared(&two));
    free(first);
    free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_name_stands_everywhere),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(lines_are_counted_in_the_users_file),
        cmocka_unit_test(every_message_is_an_object),
        cmocka_unit_test(what_is_not_declared_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
