#include "problem/template.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct template *parsed(const char *source)
{
    struct template *template = NULL;
    struct err err = ERR_INIT;

    if (template_parse(&template, source, "t.c", &err) != 0) {
        fail_msg("%s", err.text);
    }
    return template;
}

static void assert_refused(const char *source, int code, const char *text)
{
    struct template *template = NULL;
    struct err err = ERR_INIT;
    int rc = template_parse(&template, source, "t.c", &err);

    assert_null(template);
    if (rc != code || strncmp(err.text, text, strlen(text)) != 0 || strchr(err.text, '\n')) {
        fail_msg("%d, \"%s\" instead of \"%s\"", rc, err.text, text);
    }
    assert_int_equal(template_parse(&template, source, "t.c", NULL), code);
}

static void assert_name(const struct template *template, size_t point, const char *name)
{
    struct strbuf out = STRBUF_INIT;

    template_point_name(template, point, &out);
    assert_string_equal(strbuf_text(&out), name);
    strbuf_release(&out);
}

static const char example[] =
    "//@ tune MB in (16, 32, 64, 128)\n"
    "//@ tune NB in (16, 32, 64, 128) if NB >= MB / 4\n"
    "//@ tune UNROLL in (1, 2, 4, 8) if UNROLL <= NB && MB % UNROLL == 0\n"
    "int x;\n";

static void points_come_in_the_order_of_the_lines(void **state)
{
    struct template *template =
        parsed("//@ tune A in (2, 1)\n//@ tune B in (10, 30, 20)\nint x;\n");

    (void)state;
    assert_int_equal(template_param_count(template), 2);
    assert_string_equal(template_param_name(template, 1), "B");
    assert_int_equal(template_value_count(template, 1), 3);
    assert_int_equal(template_value(template, 1, 2), 20);
    assert_int_equal(template_point_count(template), 6);
    assert_name(template, 0, "A=2 B=10");
    assert_name(template, 1, "A=2 B=30");
    assert_name(template, 5, "A=1 B=20");
    template_free(template);
}

static void conditions_leave_exactly_the_points_that_meet_them(void **state)
{
    struct template *template = parsed(example);

    (void)state;
    size_t expected = 0;
    int64_t values[3];
    for (int mb = 16; mb <= 128; mb *= 2) {
        for (int nb = 16; nb <= 128; nb *= 2) {
            for (int unroll = 1; unroll <= 8; unroll *= 2) {
                if (nb >= mb / 4 && unroll <= nb && mb % unroll == 0) {
                    template_point(template, expected, values);
                    assert_true(values[0] == mb && values[1] == nb && values[2] == unroll);
                    expected++;
                }
            }
        }
    }
    assert_int_equal(template_point_count(template), expected);
    template_free(template);
}

static void every_point_is_found_by_its_values_and_no_other(void **state)
{
    struct template *template = parsed(example);

    (void)state;
    int64_t values[3];
    size_t found = 0;
    for (size_t i = 0; i < template_point_count(template); i++) {
        template_point(template, i, values);
        assert_true(template_find(template, values, &found));
        assert_int_equal(found, i);
    }
    assert_false(
        template_find(template, (int64_t[]){128, 16, 1}, &found)); // does not meet a condition
    assert_false(template_find(template, (int64_t[]){16, 16, 3}, &found)); // is not listed
    template_free(template);
}

static void neighbours_move_one_parameter_to_an_adjacent_value(void **state)
{
    struct template *template =
        parsed("//@ tune A in (1, 2, 3)\n//@ tune B in (1, 2, 3) if !(A == 1 && B == 2)\n");
    size_t out[8] = {0}, point = 0;

    (void)state;
    assert_true(template_find(template, (int64_t[]){2, 2}, &point));
    assert_int_equal(template_neighbours(template, point, out, 8), 3);
    assert_name(template, out[0], "A=3 B=2");
    assert_name(template, out[1], "A=2 B=1");
    assert_name(template, out[2], "A=2 B=3");
    assert_true(template_find(template, (int64_t[]){1, 1}, &point));
    assert_int_equal(template_neighbours(template, point, out, 8), 1);
    assert_name(template, out[0], "A=2 B=1");
    template_free(template);
}

static void neighbourhood_is_mutual(void **state)
{
    struct template *template = parsed(example);
    size_t out[6], back[6];

    (void)state;
    for (size_t i = 0; i < template_point_count(template); i++) {
        size_t count = template_neighbours(template, i, out, 6);
        assert_true(count <= 6);
        for (size_t j = 0; j < count; j++) {
            size_t count_back = template_neighbours(template, out[j], back, 6), hits = 0;
            for (size_t k = 0; k < count_back; k++) {
                hits += back[k] == i;
            }
            assert_int_equal(hits, 1);
        }
    }
    template_free(template);
}

static void neighbours_writes_no_more_than_asked_and_counts_all(void **state)
{
    struct template *template = parsed("//@ tune A in (1, 2, 3)\n//@ tune B in (1, 2, 3)\n");

    (void)state;
    size_t out[2] = {99, 99};
    assert_int_equal(template_neighbours(template, 4, out, 1), 4);
    assert_int_equal(out[1], 99);
    assert_int_equal(template_neighbours(template, 4, NULL, 0), 4);
    template_free(template);
}

static void source_is_defines_before_the_unchanged_text(void **state)
{
    static const char text[] = "//@ tune A in (-3, 7)\r\nint a = A;\r\n";
    struct template *template = parsed(text);

    (void)state;
    struct strbuf out = STRBUF_INIT;
    template_source(template, 1, &out);
    assert_memory_equal(strbuf_text(&out), "#define A 7\n", 12);
    assert_string_equal(strbuf_text(&out) + 12, text);
    strbuf_reset(&out);
    template_source(template, 0, &out);
    assert_memory_equal(strbuf_text(&out), "#define A (-3)\n", 15);
    strbuf_release(&out);
    template_free(template);
}

static void least_integer_becomes_valid_c(void **state)
{
    struct template *template = parsed("//@ tune A in (-9223372036854775808, 9223372036854775807)");

    (void)state;
    struct strbuf out = STRBUF_INIT;
    template_source(template, 0, &out);
    assert_memory_equal(strbuf_text(&out), "#define A (-9223372036854775807 - 1)\n", 37);
    strbuf_release(&out);
    template_free(template);
}

static void lines_may_be_indented_stand_anywhere_and_end_in_crlf(void **state)
{
    struct template *template = parsed("int first;\r\n"
                                       "  \t//@tune A in(1,2)if A>1   \r\n"
                                       "// @ tune B in (1, 2)\r\n"
                                       "int last; //@ tune C in (1)\r\n"
                                       "//@ tune D in ( 4 )");

    (void)state;
    assert_int_equal(template_param_count(template), 2);
    assert_int_equal(template_point_count(template), 1);
    assert_name(template, 0, "A=2 D=4");
    template_free(template);
}

static void bad_lines_are_refused_with_their_place(void **state)
{
    static const char *const cases[][2] = {
        {"//@ tun A in (1)", "t.c:1:5: a line that begins with //@"},
        {"//@", "t.c:1:4: a line that begins with //@"},
        {"\n\n  //@ tune 3A in (1)", "t.c:3:12: a parameter's name is missing"},
        {"//@ tune A of (1)", "t.c:1:12: \"in\""},
        {"//@ tune A in 1, 2", "t.c:1:15: a list of values"},
        {"//@ tune A in ()", "t.c:1:16: an integer is expected"},
        {"//@ tune A in (1,)", "t.c:1:18: an integer is expected"},
        {"//@ tune A in (1 2)", "t.c:1:18: ',' or ')'"},
        {"//@ tune A in (1.5)", "t.c:1:17: ',' or ')'"},
        {"//@ tune A in (1, 2", "t.c:1:20: ',' or ')'"},
        {"//@ tune A in (1, x)", "t.c:1:19: an integer is expected"},
        {"//@ tune A in (1, 2, 1)", "t.c:1:22: the value 1 is listed twice"},
        {"//@ tune A in (9223372036854775808)", "t.c:1:16: the value does not fit"},
        {"//@ tune A in (-9223372036854775809)", "t.c:1:16: the value does not fit"},
        {"//@ tune A in (1) iff A", "t.c:1:19: \"if\" and a condition"},
        {"//@ tune A in (1) if", "t.c:1:21: the expression ends"},
        {"//@ tune A in (1) if B == 1", "t.c:1:22: \"B\" is not known here; use A"},
        {"//@ tune A in (1) if A == B\n//@ tune B in (1)", "t.c:1:27: \"B\" is not known"},
        {"//@ tune A in (1)\r\n//@ tune B in (1) if A = B\r\n", "t.c:2:24: '='"},
        {"//@ tune A in (1)\n//@ tune A in (2)", "t.c:2:10: \"A\" is declared already in line 1"},
        {"//@ tune while in (1)", "t.c:1:10: the parameter's name \"while\" is a C keyword"},
        {"//@ tune INT_MAX in (1)", "t.c:1:10: the parameter's name \"INT_MAX\" may be"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_refused(cases[i][0], ERR_INVALID, cases[i][1]);
    }
}

static void template_without_parameters_is_refused(void **state)
{
    (void)state;
    assert_refused("", ERR_INVALID, "t.c:1:1: no parameter is declared");
    assert_refused("int x;\n// @ tune A in (1)\n", ERR_INVALID,
                   "t.c:1:1: no parameter is declared");
}

static void condition_that_divides_by_zero_names_the_point(void **state)
{
    (void)state;
    assert_refused("//@ tune A in (1, 0)\n//@ tune B in (5) if B % A == 0", ERR_INVALID,
                   "t.c:2:22: the condition \"B % A == 0\" divides by zero at A=0 B=5");
    assert_refused("//@ tune A in (9223372036854775807) if A + 1 > 0", ERR_INVALID,
                   "t.c:1:40: the condition \"A + 1 > 0\" overflows");
    template_free(parsed("//@ tune A in (1, 0)\n//@ tune B in (5) if A != 0 && B % A == 0"));
}

static void conditions_that_leave_nothing_are_refused(void **state)
{
    (void)state;
    assert_refused("//@ tune A in (1)\n//@ tune B in (1, 2) if B > 2", ERR_INVALID,
                   "t.c:2:1: the conditions leave no");
}

// A template with `lines` parameters P0, P1 and so on, each with the values 0 to count - 1.
static char *wide_template(size_t lines, size_t count, const char *condition)
{
    struct strbuf out = STRBUF_INIT;

    for (size_t i = 0; i < lines; i++) {
        strbuf_addf(&out, "//@ tune P%zu in (0", i);
        for (size_t j = 1; j < count; j++) {
            strbuf_addf(&out, ", %zu", j);
        }
        strbuf_addf(&out, ")%s\n", i + 1 == lines ? condition : "");
    }
    return strbuf_detach(&out);
}

static void too_many_points_are_refused_soon(void **state)
{
    char *all = wide_template(TEMPLATE_PARAM_MAX, TEMPLATE_VALUE_MAX, "");
    char *none = wide_template(TEMPLATE_PARAM_MAX, TEMPLATE_VALUE_MAX, " if P0 == 1000");
    clock_t start = clock();

    (void)state;
    assert_refused(all, ERR_LIMIT, "t.c: the template has more than 1048576 points");
    assert_refused(none, ERR_LIMIT, "t.c: enumerating the points takes more than");
    assert_true(clock() - start < 30 * CLOCKS_PER_SEC);
    free(all);
    free(none);
}

static void exactly_the_greatest_number_of_points_is_accepted(void **state)
{
    char *most = wide_template(5, 16, "");
    char *more =
        wide_template(5, 16, "\n//@ tune Q in (0, 1) if Q == 0 || (P0 + P1 + P2 + P3 + P4 == 0)");
    struct template *template = parsed(most);

    (void)state;
    assert_int_equal(template_point_count(template), TEMPLATE_POINT_MAX);
    int64_t values[5] = {3, 1, 4, 1, 5};
    size_t found = 0;
    assert_true(template_find(template, values, &found));
    assert_int_equal(found, 0x31415);
    template_free(template);
    assert_refused(more, ERR_LIMIT, "t.c: the template has more than 1048576 points");
    free(most);
    free(more);
}

static void too_many_parameters_and_values_are_refused(void **state)
{
    char *lines = wide_template(TEMPLATE_PARAM_MAX + 1, 1, "");
    char *values = wide_template(1, TEMPLATE_VALUE_MAX + 1, "");

    (void)state;
    assert_refused(lines, ERR_INVALID, "t.c:25:1: the template has more than 24 parameters");
    assert_refused(values, ERR_INVALID, "t.c:1:");
    free(lines);
    free(values);
}

static void lines_of_a_launch_manifest_are_left_alone(void **state)
{
    struct template *template = parsed(
        "//@ tune A in (1, 2)\n//@ launch k grid=(A) block=(32) args=()\n//@ scratch s bytes=4\n"
        "//@ specialize n\n//@ tensormap t tensor=x box=(A)\n//@ tune B in (3)\n");

    (void)state;
    assert_int_equal(template_param_count(template), 2);
    template_free(template);
    assert_refused("//@ tune A in (1, 2)\n//@ lunch k grid=(A)\n", ERR_INVALID, "t.c:2:");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_a_launch_manifest_are_left_alone),
        cmocka_unit_test(points_come_in_the_order_of_the_lines),
        cmocka_unit_test(conditions_leave_exactly_the_points_that_meet_them),
        cmocka_unit_test(every_point_is_found_by_its_values_and_no_other),
        cmocka_unit_test(neighbours_move_one_parameter_to_an_adjacent_value),
        cmocka_unit_test(neighbourhood_is_mutual),
        cmocka_unit_test(neighbours_writes_no_more_than_asked_and_counts_all),
        cmocka_unit_test(source_is_defines_before_the_unchanged_text),
        cmocka_unit_test(least_integer_becomes_valid_c),
        cmocka_unit_test(lines_may_be_indented_stand_anywhere_and_end_in_crlf),
        cmocka_unit_test(bad_lines_are_refused_with_their_place),
        cmocka_unit_test(template_without_parameters_is_refused),
        cmocka_unit_test(condition_that_divides_by_zero_names_the_point),
        cmocka_unit_test(conditions_that_leave_nothing_are_refused),
        cmocka_unit_test(too_many_points_are_refused_soon),
        cmocka_unit_test(exactly_the_greatest_number_of_points_is_accepted),
        cmocka_unit_test(too_many_parameters_and_values_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
