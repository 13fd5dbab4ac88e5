// The parts of one line of a launch manifest: words, values, lists and expressions, and the columns
// that refusals name.
#include "common/mem.h"
#include "problem/manifest_line.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static char rows[] = "rows", eps[] = "eps", x[] = "x", y[] = "y", tile[] = "TILE",
            macro_rows[] = "rows2";

// A scan of one line. The problem has the params rows (int) and eps (f64) and the tensors x and y;
// the macros are TILE and rows2.
struct fixture {
    struct problem problem;
    struct scan scan;
    struct err err;
    char *line; // exactly as long as it is, so that a byte read behind it is found
};

static struct fixture *scan_of(const char *line)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    size_t len = strlen(line);

    f->line = len > 0 ? xmemdup(line, len) : xmalloc(1);
    f->problem.param_count = f->problem.tensor_count = 2;
    f->problem.param[0] = (struct param){.name = rows, .type = PARAM_INT};
    f->problem.param[1] = (struct param){.name = eps, .type = PARAM_F64};
    f->problem.tensor[0].name = x;
    f->problem.tensor[1].name = y;
    f->scan = (struct scan){.path = "k.cu",
                            .line = f->line,
                            .at = f->line,
                            .end = f->line + len,
                            .number = 7,
                            .problem = &f->problem,
                            .name = {rows, "", tile, macro_rows},
                            .name_count = 4,
                            .err = &f->err};
    return f;
}

static void done(struct fixture *f)
{
    free(f->line);
    free(f);
}

static void assert_span(struct span span, const char *text)
{
    if (!span_is(span, text)) {
        fail_msg("\"%.*s\" instead of \"%s\"", (int)span.len, span.at, text);
    }
}

static void assert_said(const struct fixture *f, const char *sentence)
{
    assert_int_equal(f->err.code, ERR_INVALID);
    assert_string_equal(f->err.text, sentence);
}

static struct span whole(const struct fixture *f)
{
    return (struct span){.at = f->scan.line, .len = (size_t)(f->scan.end - f->scan.line)};
}

// ---- words ----

static void blanks_and_tabs_are_consumed_up_to_the_end_of_the_line(void **state)
{
    struct fixture *f = scan_of(" \t a\t"), *empty = scan_of("");

    (void)state;
    assert_false(scan_at_end(&f->scan));
    assert_int_equal(*f->scan.at, 'a');
    f->scan.at++;
    assert_true(scan_at_end(&f->scan));
    assert_ptr_equal(f->scan.at, f->scan.end);
    assert_true(scan_at_end(&empty->scan));
    done(f);
    done(empty);
}

static void a_word_is_an_identifier_and_empty_when_none_comes(void **state)
{
    static const char *const words[][2] = {
        {"ab_1=2", "ab_1"}, {"_x y", "_x"}, {"9a", ""},       {"=a", ""},
        {" a", ""},         {"", ""},       {"\xc3\xa4", ""}, {"last", "last"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct fixture *f = scan_of(words[i][0]);
        assert_span(scan_word(&f->scan), words[i][1]);
        assert_int_equal(f->scan.at - f->scan.line, strlen(words[i][1]));
        done(f);
    }
}

static void a_span_is_its_whole_text_and_no_part_of_it(void **state)
{
    struct span span = {.at = "grid=", .len = 4};

    (void)state;
    assert_true(span_is(span, "grid"));
    assert_false(span_is(span, "grid="));
    assert_false(span_is(span, "gri"));
    assert_false(span_is(span, ""));
    span.len = 0;
    assert_true(span_is(span, ""));
}

static void trimming_removes_blanks_at_both_ends_alone(void **state)
{
    static const char *const spans[][2] = {
        {" \ta b\t ", "a b"}, {"a", "a"}, {" \t ", ""}, {"", ""}, {"\na", "\na"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spans); i++) {
        struct span span = {.at = spans[i][0], .len = strlen(spans[i][0])};
        assert_span(span_trim(span), spans[i][1]);
    }
}

// ---- values ----

static void a_value_ends_at_a_blank_that_no_operator_touches(void **state)
{
    static const char *const values[][3] = {
        // text, value, what is left
        {"=1 block=2", "1", " block=2"},
        {" = \t rows", "rows", ""},
        {"=4 * rows pdl", "4 * rows", " pdl"},
        {"=4 *rows pdl", "4 *rows", " pdl"},
        {"=4* rows pdl", "4* rows", " pdl"},
        {"=(1, 2) block=3", "(1, 2)", " block=3"},
        {"=f( 1 , g( 2 ) ) pdl", "f( 1 , g( 2 ) )", " pdl"},
        {"=rows == 7 && 1 pdl", "rows == 7 && 1", " pdl"},
        {"=1  ", "1", "  "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct fixture *f = scan_of(values[i][0]);
        struct span value;
        assert_int_equal(scan_value(&f->scan, &value), 0);
        assert_span(value, values[i][1]);
        assert_int_equal(f->scan.end - f->scan.at, strlen(values[i][2]));
        done(f);
    }
}

static void a_value_that_is_none_is_refused_at_its_column(void **state)
{
    static const char *const values[][2] = {
        {"", "k.cu:7:1: an = is missing here"},       {"  1", "k.cu:7:3: an = is missing here"},
        {"=", "k.cu:7:2: a value is missing here"},   {"=   ", "k.cu:7:5: a value is missing here"},
        {"=(1, 2", "k.cu:7:2: this ( is not closed"}, {"= ((1)", "k.cu:7:3: this ( is not closed"},
        {"=1)", "k.cu:7:3: this ) closes nothing"},   {"=(1))", "k.cu:7:5: this ) closes nothing"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct fixture *f = scan_of(values[i][0]);
        struct span value = {.at = NULL, .len = 77};
        assert_int_equal(scan_value(&f->scan, &value), ERR_INVALID);
        assert_said(f, values[i][1]);
        assert_true(!value.at && value.len == 77);
        done(f);
    }
}

// ---- lists ----

static void a_list_is_split_at_its_outer_commas(void **state)
{
    static const struct {
        const char *text, *item[3];
        size_t count;
    } lists[] = {
        {"(a, b(c, d) , e)", {"a", "b(c, d)", "e"}, 3},
        {"rows", {"rows"}, 1},
        {"(rows)", {"rows"}, 1},
        {"((a), (b))", {"(a)", "(b)"}, 2},
        {"()", {NULL}, 0},
        {"( \t)", {NULL}, 0},
        {"min(a, b)", {"min(a, b)"}, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct fixture *f = scan_of(lists[i].text);
        struct span item[SCAN_ITEM_MAX];
        size_t count = 77;
        assert_int_equal(scan_list(&f->scan, whole(f), item, &count), 0);
        assert_int_equal(count, lists[i].count);
        for (size_t k = 0; k < count; k++) {
            assert_span(item[k], lists[i].item[k]);
        }
        done(f);
    }
}

static void a_list_with_a_hole_or_a_loose_end_is_refused(void **state)
{
    static const char *const lists[][2] = {
        {"(a,,b)", "k.cu:7:4: an item is missing here"},
        {"(a, )", "k.cu:7:4: an item is missing here"},
        {"(,a)", "k.cu:7:2: an item is missing here"},
        {"(a)+(b)", "k.cu:7:3: put the whole value into parentheses"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct fixture *f = scan_of(lists[i][0]);
        struct span item[SCAN_ITEM_MAX];
        size_t count = 77;
        assert_int_equal(scan_list(&f->scan, whole(f), item, &count), ERR_INVALID);
        assert_said(f, lists[i][1]);
        assert_int_equal(count, 77);
        done(f);
    }
}

static void a_list_holds_as_many_items_as_a_launch_has_arguments(void **state)
{
    struct strbuf text = STRBUF_INIT;
    struct span item[SCAN_ITEM_MAX];
    size_t count = 0;

    (void)state;
    strbuf_adds(&text, "(0");
    for (int i = 1; i < SCAN_ITEM_MAX; i++) {
        strbuf_addf(&text, ",%d", i);
    }
    char *most = xasprintf("%s)", strbuf_text(&text)),
         *more = xasprintf("%s,1)", strbuf_text(&text));
    struct fixture *f = scan_of(most), *g = scan_of(more);
    assert_int_equal(scan_list(&f->scan, whole(f), item, &count), 0);
    assert_int_equal(count, SCAN_ITEM_MAX);
    assert_span(item[SCAN_ITEM_MAX - 1], "63");
    assert_int_equal(scan_list(&g->scan, whole(g), item, &count), ERR_INVALID);
    assert_non_null(strstr(g->err.text, "too many items"));
    done(f);
    done(g);
    free(most);
    free(more);
    strbuf_release(&text);
}

// ---- names and expressions ----

static void names_are_found_whole_among_tensors_or_params(void **state)
{
    struct fixture *f = scan_of("");
    size_t index = 77;

    (void)state;
    assert_true(scan_find_tensor(&f->scan, (struct span){"y", 1}, &index));
    assert_int_equal(index, 1);
    assert_true(scan_find_param(&f->scan, (struct span){"eps", 3}, &index));
    assert_int_equal(index, 1);
    index = 77;
    assert_false(scan_find_tensor(&f->scan, (struct span){"yy", 2}, &index));
    assert_false(scan_find_tensor(&f->scan, (struct span){"rows", 4}, &index));
    assert_false(scan_find_param(&f->scan, (struct span){"row", 3}, &index));
    assert_false(scan_find_param(&f->scan, (struct span){"", 0}, &index));
    assert_int_equal(index, 77);
    done(f);
}

static void an_expression_knows_int_params_and_macros(void **state)
{
    struct fixture *f = scan_of("grid=rows * TILE + rows2");
    static const int64_t values[] = {3, 1000, 16, 5};
    struct expr *expr = NULL;

    (void)state;
    struct span text = {.at = f->scan.line + 5, .len = 19};
    assert_int_equal(scan_expr(&f->scan, text, EXPR_ARITHMETIC, &expr), 0);
    int64_t value = 0;
    assert_int_equal(expr_eval(&value, expr, values, NULL), 0);
    assert_int_equal(value, 3 * 16 + 5);
    expr_free(expr);
    done(f);
}

static void an_expression_is_refused_at_its_column_in_the_line(void **state)
{
    static const struct {
        const char *text;
        enum expr_kind kind;
        const char *sentence;
    } bad[] = {
        {"grid=rows + COLS", EXPR_ARITHMETIC,
         "k.cu:7:13: \"COLS\" is not known here; use rows, TILE, rows2"},
        {"grid=eps", EXPR_ARITHMETIC, "k.cu:7:6: \"eps\" is not known here; use rows, TILE, rows2"},
        {"grid=2 * (rows", EXPR_ARITHMETIC, "k.cu:7:15: the expression ends where ')' is expected"},
        {"grid=rows > 2", EXPR_ARITHMETIC, "k.cu:7:11: comparisons are known in conditions only"},
        {"grid=1 < rows < 3", EXPR_CONDITIONS,
         "k.cu:7:15: comparisons do not chain; write a < b && b < c"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct fixture *f = scan_of(bad[i].text);
        struct span text = whole(f);
        struct expr *expr = NULL;
        text.at += 5;
        text.len -= 5;
        assert_int_equal(scan_expr(&f->scan, text, bad[i].kind, &expr), ERR_INVALID);
        assert_said(f, bad[i].sentence);
        assert_null(expr);
        done(f);
    }
}

static void a_name_with_two_meanings_is_refused_where_it_is_used(void **state)
{
    struct fixture *f = scan_of("1 + rows"), *g = scan_of("1 + rows2");
    struct expr *expr = NULL;

    (void)state;
    f->scan.name[3] = rows; // a macro of this name
    assert_int_equal(scan_expr(&f->scan, whole(f), EXPR_ARITHMETIC, &expr), ERR_INVALID);
    assert_said(f, "k.cu:7:5: rows is a param of the problem and a macro; rename the macro");
    assert_null(expr);
    assert_int_equal(scan_expr(&g->scan, whole(g), EXPR_ARITHMETIC, &expr), 0);
    expr_free(expr);
    done(f);
    done(g);
}

static void a_long_name_in_a_refusal_is_cut_and_the_first_refusal_stays(void **state)
{
    struct fixture *f = scan_of("");
    char name[200], *sentence;

    (void)state;
    memset(name, 'n', sizeof(name));
    assert_int_equal(scan_fail_name(&f->scan, (struct span){f->scan.line, 0}, "is missing"),
                     ERR_INVALID);
    assert_said(f, "k.cu:7:1:  is missing");
    f->err = (struct err)ERR_INIT;
    f->scan.line = name;
    assert_int_equal(scan_fail_name(&f->scan, (struct span){name + 9, 150}, "is odd"), ERR_INVALID);
    assert_int_equal(scan_fail(&f->scan, name, "later"), ERR_INVALID);
    sentence = xasprintf("k.cu:7:10: %.80s is odd", name);
    assert_said(f, sentence);
    free(sentence);
    done(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blanks_and_tabs_are_consumed_up_to_the_end_of_the_line),
        cmocka_unit_test(a_word_is_an_identifier_and_empty_when_none_comes),
        cmocka_unit_test(a_span_is_its_whole_text_and_no_part_of_it),
        cmocka_unit_test(trimming_removes_blanks_at_both_ends_alone),
        cmocka_unit_test(a_value_ends_at_a_blank_that_no_operator_touches),
        cmocka_unit_test(a_value_that_is_none_is_refused_at_its_column),
        cmocka_unit_test(a_list_is_split_at_its_outer_commas),
        cmocka_unit_test(a_list_with_a_hole_or_a_loose_end_is_refused),
        cmocka_unit_test(a_list_holds_as_many_items_as_a_launch_has_arguments),
        cmocka_unit_test(names_are_found_whole_among_tensors_or_params),
        cmocka_unit_test(an_expression_knows_int_params_and_macros),
        cmocka_unit_test(an_expression_is_refused_at_its_column_in_the_line),
        cmocka_unit_test(a_name_with_two_meanings_is_refused_where_it_is_used),
        cmocka_unit_test(a_long_name_in_a_refusal_is_cut_and_the_first_refusal_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
