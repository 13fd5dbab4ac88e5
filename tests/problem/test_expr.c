#include "common/strbuf.h"
#include "problem/expr.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"M", "", "N", "min"};
static const int64_t values[] = {7, 1000, -3, 5};

static int64_t value_of(const char *text, enum expr_kind kind)
{
    struct expr *expr = NULL;
    struct err err = ERR_INIT;

    if (expr_parse(&expr, text, kind, names, 4, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    assert_string_equal(expr_text(expr), text);
    int64_t value = 0;
    if (expr_eval(&value, expr, values, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    expr_free(expr);
    return value;
}

static int64_t number(const char *text)
{
    return value_of(text, EXPR_ARITHMETIC);
}

static int64_t truth(const char *text)
{
    return value_of(text, EXPR_CONDITIONS);
}

// Parsing fails at this column, and the sentence contains this text.
static void assert_refused(const char *text, enum expr_kind kind, size_t column, const char *part)
{
    struct expr *expr = NULL;
    struct err err = ERR_INIT;
    size_t at = 0;

    assert_int_equal(expr_parse_at(&expr, text, kind, names, 4, &at, &err), ERR_INVALID);
    assert_null(expr);
    if (at != column || !strstr(err.text, part) || strchr(err.text, '\n')) {
        fail_msg("%s: column %zu, %s", text, at, err.text);
    }
    err_clear(&err);
    assert_int_equal(expr_parse(&expr, text, kind, names, 4, &err), ERR_INVALID);
    char prefix[32];
    snprintf(prefix, sizeof prefix, "column %zu: ", column);
    assert_memory_equal(err.text, prefix, strlen(prefix));
    assert_int_equal(expr_parse(&expr, text, kind, names, 4, NULL), ERR_INVALID);
}

static void assert_no_value(const char *text, const char *part)
{
    struct expr *expr = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(expr_parse(&expr, text, EXPR_CONDITIONS, names, 4, &err), 0);
    int64_t value = 77;
    assert_int_equal(expr_eval(&value, expr, values, &err), ERR_INVALID);
    assert_int_equal(value, 77);
    if (!strstr(err.text, part) || !strstr(err.text, text)) {
        fail_msg("%s: %s", text, err.text);
    }
    expr_free(expr);
}

static void product_binds_closer_than_sum_and_both_group_left(void **state)
{
    (void)state;
    assert_int_equal(number("2+3*4"), 14);
    assert_int_equal(number("(2+3)*4"), 20);
    assert_int_equal(number("10-3-2"), 5);
    assert_int_equal(number("100/10/2"), 5);
    assert_int_equal(number("17%10%4"), 3);
    assert_int_equal(number(" 2 \t* M "), 14);
}

static void prefix_minus_binds_closest(void **state)
{
    (void)state;
    assert_int_equal(number("-2*3"), -6);
    assert_int_equal(number("5--3"), 8);
    assert_int_equal(number("--3"), 3);
    assert_int_equal(number("-(M+1)"), -8);
    assert_int_equal(number("-N"), 3);
}

static void division_truncates_towards_zero(void **state)
{
    (void)state;
    assert_int_equal(number("-7/2"), -3);
    assert_int_equal(number("7/-2"), -3);
    assert_int_equal(number("-7%2"), -1);
    assert_int_equal(number("7%-2"), 1);
}

static void ceildiv_rounds_up_for_all_signs(void **state)
{
    (void)state;
    assert_int_equal(number("ceildiv(7,2)"), 4);
    assert_int_equal(number("ceildiv(-7,2)"), -3);
    assert_int_equal(number("ceildiv(7,-2)"), -3);
    assert_int_equal(number("ceildiv(-7,-2)"), 4);
    assert_int_equal(number("ceildiv(8,2)"), 4);
    assert_int_equal(number("ceildiv(0,5)"), 0);
}

static void min_and_max_are_functions_and_may_be_names_too(void **state)
{
    (void)state;
    assert_int_equal(number("min(M, N)"), -3);
    assert_int_equal(number("max (M, N)"), 7);
    assert_int_equal(number("min + min(1, min)"), 6);
    assert_int_equal(number("max(min(1,2),max(3,4))"), 4);
}

static void limits_of_64_bits_are_literals(void **state)
{
    (void)state;
    assert_true(number("9223372036854775807") == INT64_MAX);
    assert_true(number("-9223372036854775808") == INT64_MIN);
    assert_refused("9223372036854775808", EXPR_ARITHMETIC, 1, "64 bits");
    assert_refused("1+99999999999999999999999", EXPR_ARITHMETIC, 3, "64 bits");
    assert_refused("-9223372036854775809", EXPR_ARITHMETIC, 2, "64 bits");
}

static void overflow_is_an_error_in_every_operation(void **state)
{
    (void)state;
    assert_no_value("9223372036854775807+1", "overflows");
    assert_no_value("-9223372036854775808-1", "overflows");
    assert_no_value("4611686018427387904*2", "overflows");
    assert_no_value("-(-9223372036854775808)", "overflows");
    assert_no_value("-9223372036854775808/-1", "overflows");
    assert_no_value("-9223372036854775808%-1", "overflows");
    assert_no_value("ceildiv(-9223372036854775808,-1)", "overflows");
}

static void division_by_zero_is_an_error_in_every_operation(void **state)
{
    (void)state;
    assert_no_value("M/(M-7)", "divides by zero");
    assert_no_value("M%0", "divides by zero");
    assert_no_value("ceildiv(1,0)", "divides by zero");
}

static void comparisons_and_logic_give_zero_or_one(void **state)
{
    (void)state;
    assert_int_equal(truth("M > N && N < 0"), 1);
    assert_int_equal(truth("M == 7"), 1);
    assert_int_equal(truth("M != 7"), 0);
    assert_int_equal(truth("M <= 7 && M >= 7"), 1);
    assert_int_equal(truth("M < 7 || M > 7"), 0);
    assert_int_equal(truth("5 && 6"), 1);
    assert_int_equal(truth("0 || 9"), 1);
    assert_int_equal(truth("!M"), 0);
    assert_int_equal(truth("!!M"), 1);
    assert_int_equal(truth("!(M < N) == 1"), 1);
    assert_int_equal(truth("(M > N) + 1"), 2);
}

static void and_binds_closer_than_or(void **state)
{
    (void)state;
    assert_int_equal(truth("1 || 1 && 0"), 1);
    assert_int_equal(truth("(1 || 1) && 0"), 0);
    assert_int_equal(truth("0 && 0 || 1"), 1);
    assert_int_equal(truth("0 || 0 || 3 && 2 && 1"), 1);
}

static void logic_does_not_evaluate_what_does_not_matter(void **state)
{
    (void)state;
    assert_int_equal(truth("M == 0 && 1 / 0 > 0"), 0);
    assert_int_equal(truth("M == 7 || 1 / 0 > 0"), 1);
    assert_int_equal(truth("0 && 1/0 || 5"), 1);
    assert_no_value("M == 7 && 1 / 0 > 0", "divides by zero");
}

static void conditions_are_refused_in_arithmetic(void **state)
{
    (void)state;
    assert_refused("M < 3", EXPR_ARITHMETIC, 3, "conditions only");
    assert_refused("M != 3", EXPR_ARITHMETIC, 3, "conditions only");
    assert_refused("M && 3", EXPR_ARITHMETIC, 3, "conditions only");
    assert_refused("M || 3", EXPR_ARITHMETIC, 3, "conditions only");
    assert_refused("!M", EXPR_ARITHMETIC, 1, "conditions only");
}

static void comparisons_do_not_chain(void **state)
{
    (void)state;
    assert_refused("1 < M < 3", EXPR_CONDITIONS, 7, "do not chain");
    assert_int_equal(truth("(1 < M) == (N < 3)"), 1);
}

static void syntax_errors_name_their_column(void **state)
{
    (void)state;
    assert_refused("", EXPR_ARITHMETIC, 1, "ends");
    assert_refused("  ", EXPR_ARITHMETIC, 3, "ends");
    assert_refused("M +", EXPR_ARITHMETIC, 4, "ends");
    assert_refused("M M", EXPR_ARITHMETIC, 3, "operator");
    assert_refused("(M", EXPR_ARITHMETIC, 3, "')'");
    assert_refused("M)", EXPR_ARITHMETIC, 2, "')'");
    assert_refused("M = 3", EXPR_CONDITIONS, 3, "'='");
    assert_refused("M & 3", EXPR_CONDITIONS, 3, "'&'");
    assert_refused("2M", EXPR_ARITHMETIC, 1, "letter");
    assert_refused("0x10", EXPR_ARITHMETIC, 1, "letter");
    assert_refused("1.5", EXPR_ARITHMETIC, 2, "'.'");
    assert_refused("ceildiv(1)", EXPR_ARITHMETIC, 10, "','");
    assert_refused("min(1,2,3)", EXPR_ARITHMETIC, 8, "')'");
    assert_refused("sqrt(4)", EXPR_ARITHMETIC, 1, "not a function");
    assert_refused("1 +\n2", EXPR_ARITHMETIC, 4, "0x0a");
    assert_refused("1 + \xff", EXPR_ARITHMETIC, 5, "0xff");
}

static void unknown_names_are_refused_with_the_known_ones(void **state)
{
    (void)state;
    assert_refused("1 + Q", EXPR_ARITHMETIC, 5, "\"Q\" is not known here; use M, N, min");
    assert_refused("MM", EXPR_ARITHMETIC, 1, "\"MM\"");
    assert_refused("ceildiv", EXPR_ARITHMETIC, 1, "\"ceildiv\"");
    struct expr *expr = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(expr_parse(&expr, "M", EXPR_ARITHMETIC, NULL, 0, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "no name is"));
}

// `open` count times, then "1", then `close` count times.
static char *nest(const char *open, const char *close, size_t count)
{
    struct strbuf out = STRBUF_INIT;

    for (size_t i = 0; i < count; i++) {
        strbuf_adds(&out, open);
    }
    strbuf_addc(&out, '1');
    for (size_t i = 0; i < count; i++) {
        strbuf_adds(&out, close);
    }
    return strbuf_detach(&out);
}

static void nesting_is_bounded_for_parentheses_calls_and_prefixes(void **state)
{
    static const char *const pairs[][2] = {{"(", ")"}, {"max(1,", ")"}, {"-(", ")"}, {"!", ""}};
    static const size_t levels[] = {1, 1, 2, 1}; // levels of nesting of one pair

    (void)state;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        size_t count = EXPR_DEPTH_MAX / levels[i];
        char *most = nest(pairs[i][0], pairs[i][1], count);
        char *more = nest(pairs[i][0], pairs[i][1], count + 1);

        (void)truth(most);
        assert_refused(more, EXPR_CONDITIONS, strlen(pairs[i][0]) * count + 1, "deeper");
        free(most);
        free(more);
    }
}

static void deepest_operand_stack_is_evaluated(void **state)
{
    char *text = nest("1<1+1*(", ")", EXPR_DEPTH_MAX);
    char *calls = nest("1<1+1*max(1,", ")", EXPR_DEPTH_MAX);

    (void)state;
    assert_int_equal(truth(text), 1);
    assert_int_equal(truth(calls), 1);
    free(text);
    free(calls);
}

static void long_texts_are_refused_and_long_sums_evaluated(void **state)
{
    (void)state;
    char text[EXPR_TEXT_MAX + 2];
    memset(text, '1', sizeof text);
    for (size_t i = 1; i < sizeof text; i += 2) {
        text[i] = '+';
    }
    text[EXPR_TEXT_MAX + 1] = '\0';
    assert_refused(text, EXPR_ARITHMETIC, EXPR_TEXT_MAX + 1, "longer");
    text[EXPR_TEXT_MAX - 1] = '\0';
    assert_int_equal(number(text), EXPR_TEXT_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_binds_closer_than_sum_and_both_group_left),
        cmocka_unit_test(prefix_minus_binds_closest),
        cmocka_unit_test(division_truncates_towards_zero),
        cmocka_unit_test(ceildiv_rounds_up_for_all_signs),
        cmocka_unit_test(min_and_max_are_functions_and_may_be_names_too),
        cmocka_unit_test(limits_of_64_bits_are_literals),
        cmocka_unit_test(overflow_is_an_error_in_every_operation),
        cmocka_unit_test(division_by_zero_is_an_error_in_every_operation),
        cmocka_unit_test(comparisons_and_logic_give_zero_or_one),
        cmocka_unit_test(and_binds_closer_than_or),
        cmocka_unit_test(logic_does_not_evaluate_what_does_not_matter),
        cmocka_unit_test(conditions_are_refused_in_arithmetic),
        cmocka_unit_test(comparisons_do_not_chain),
        cmocka_unit_test(syntax_errors_name_their_column),
        cmocka_unit_test(unknown_names_are_refused_with_the_known_ones),
        cmocka_unit_test(nesting_is_bounded_for_parentheses_calls_and_prefixes),
        cmocka_unit_test(deepest_operand_stack_is_evaluated),
        cmocka_unit_test(long_texts_are_refused_and_long_sums_evaluated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
