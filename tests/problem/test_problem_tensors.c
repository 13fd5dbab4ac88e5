// The tensors of a problem: what values and shapes each type and direction takes.
#include "common/mem.h"
#include "problem/problem_reader.h"
#include "tests/support/samples/problem_sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Reads {"tensors": `list`}, where `list` writes ' for ", for a cuda problem with the int parameter
// N. Returns what problem_read_tensors returns. The caller frees *ret.
static int read_tensors(struct problem **ret, const char *list, bool cuda, struct err *err)
{
    char *json = xasprintf("{\"tensors\": %s}", list);

    for (char *at = json; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    json_error_t fault;
    json_t *root = json_loads(json, 0, &fault);
    if (!root) {
        fail_msg("%s: %s", json, fault.text);
    }
    struct problem *problem = xcalloc(1, sizeof(*problem));
    problem->cuda = cuda;
    problem->param_count = 1;
    struct reader reader = {.path = "p", .problem = problem, .int_name = {"N"}, .err = err};
    struct json_path where = {"$"};
    int rc = problem_read_tensors(&reader, &where, root);
    json_decref(root);
    free(json);
    *ret = problem;
    return rc;
}

static void assert_read(const char *list, const char *sentence)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    int rc = read_tensors(&problem, list, true, &err);

    if (rc != (sentence ? ERR_INVALID : 0) || !strstr(err.text, sentence ? sentence : "")) {
        fail_msg("%s: %d, \"%s\" instead of \"%s\"", list, rc, err.text, sentence ? sentence : "");
    }
    problem_free(problem);
}

// One inout tensor of this dtype and these values.
static char *tensor_text(const char *dtype, const char *distribution, const char *first_key,
                         double first, const char *second_key, double second)
{
    return xasprintf("[{'name': 'x', 'direction': 'inout', 'dtype': '%s', 'shape': ['N'], "
                     "'tolerance': 1, 'values': {'distribution': '%s', '%s': %.17g, '%s': %.17g}}]",
                     dtype, distribution, first_key, first, second_key, second);
}

static void assert_values(const char *dtype, const char *distribution, double low, double high,
                          const char *sentence)
{
    char *text = tensor_text(dtype, distribution, "low", low, "high", high);

    assert_read(text, sentence);
    free(text);
}

// The limits that docs/problems.md promises for each dtype.
static const struct {
    const char *name;
    double least, most;             // of uniform and sorted values
    double exact_least, exact_most; // of integers
} limits[] = {
    {"f32", -0x1.fffffep127, 0x1.fffffep127, -16777216, 16777216},
    {"f64", -0x1p1022, 0x1p1022, -0x1p53, 0x1p53},
    {"i32", -2147483648.0, 2147483647, -2147483648.0, 2147483647},
    {"i64", -0x1p53, 0x1p53, -0x1p53, 0x1p53},
    {"u8", 0, 255, 0, 255},
    {"f16", -65504, 65504, -2048, 2048},
    {"bf16", -0x1.fep127, 0x1.fep127, -256, 256},
    {"e4m3", -448, 448, -16, 16},
    {"e5m2", -57344, 57344, -8, 8},
    {"i8", -128, 127, -128, 127},
};

static void the_greatest_and_the_least_value_of_a_dtype_fit_and_the_next_does_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const char *name = limits[i].name;
        double above = nextafter(limits[i].most, INFINITY), least = limits[i].least,
               below = nextafter(least, -INFINITY);
        assert_values(name, "uniform", 0, limits[i].most, NULL);
        assert_values(name, "sorted", least, 0, NULL);
        if (strcmp(name, "f64") == 0) {
            continue; // JSON has no number beyond its limits
        }
        assert_values(name, "uniform", 0, above, "the values do not fit dtype");
        assert_values(name, "sorted", below, 0, "the values do not fit dtype");
    }
}

static void integers_stop_where_a_dtype_has_no_longer_all_of_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        const char *name = limits[i].name;
        double least = limits[i].exact_least, most = limits[i].exact_most;
        assert_values(name, "integers", least, most, NULL);
        assert_values(name, "integers", 0, most + (most < 0x1p53 ? 1 : 2),
                      "the values do not fit dtype");
        assert_values(name, "integers", least - (least > -0x1p53 ? 1 : 2), 0,
                      "the values do not fit dtype");
    }
}

static void the_ranks_of_zipf_begin_at_zero_and_end_at_the_greatest_integer(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        double most = limits[i].exact_most;
        char *fits = tensor_text(limits[i].name, "zipf", "count", fmin(most + 1, 0x1p53),
                                 "exponent", 1.1),
             *more = tensor_text(limits[i].name, "zipf", "count", most + (most < 0x1p53 ? 2 : 4),
                                 "exponent", 1.1);
        assert_read(fits, NULL);
        assert_read(more, "count must be an integer from 1 to");
        free(fits);
        free(more);
    }
}

static void each_distribution_says_what_is_wrong_with_its_numbers(void **state)
{
    static const struct {
        const char *dtype, *distribution, *first_key;
        double first;
        const char *second_key;
        double second;
        const char *sentence;
    } rows[] = {
        {"f16", "normal", "mean", 0, "stddev", 0, NULL},
        {"f16", "normal", "mean", 0, "stddev", -1, "stddev is negative; use 0 or more"},
        {"f16", "normal", "mean", 70000, "stddev", 1, "do not fit dtype f16, -65504 to 65504"},
        {"i8", "normal", "mean", 0, "stddev", 1, "normal values need a floating-point dtype"},
        {"i8", "wide", "low", 1, "high", 2, "wide values need a floating-point dtype"},
        {"bf16", "wide", "low", 0, "high", 2, "low must be above 0, because magnitudes"},
        {"bf16", "wide", "low", 3, "high", 2, "low must be at most high"},
        {"bf16", "wide", "low", 2, "high", 2, NULL},
        {"f64", "uniform", "low", -1e308, "high", 1e308, "their distance a finite number"},
        {"f32", "integers", "low", 0.5, "high", 1, "low and high of integers must be integers"},
        {"f32", "integers", "low", 0, "high", 1.5, "low and high of integers must be integers"},
        {"f32", "zipf", "count", 2.5, "exponent", 1, "count must be an integer from 1 to 16777217"},
        {"f32", "zipf", "count", 1, "exponent", 100, NULL},
        {"f32", "zipf", "count", 1, "exponent", 100.5, "exponent must lie between 0 and 100"},
        {"f32", "zipf", "low", 1, "high", 2, "the key \"count\" is missing"},
        {"f32", "one-hot", "low", 1, "high", 2, "the key \"low\" is not known; use distribution"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = tensor_text(rows[i].dtype, rows[i].distribution, rows[i].first_key,
                                 rows[i].first, rows[i].second_key, rows[i].second);
        assert_read(text, rows[i].sentence);
        free(text);
    }
}

static void the_numbers_of_a_distribution_keep_their_order(void **state)
{
    static const char list[] =
        "[{'name': 'a', 'direction': 'in', 'dtype': 'f32', 'shape': [],"
        "  'values': {'stddev': 2, 'mean': 1, 'distribution': 'normal'}},"
        " {'name': 'b', 'direction': 'in', 'dtype': 'i64', 'shape': ['N', '2'],"
        "  'values': {'exponent': 1.5, 'count': 9, 'distribution': 'zipf'}},"
        " {'name': 'c', 'direction': 'out', 'dtype': 'e5m2', 'shape': ['N'], 'tolerance': 0}]";
    struct problem *problem = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(read_tensors(&problem, list, true, &err), 0);
    assert_int_equal(problem->tensor_count, 3);
    const struct tensor *tensor = problem->tensor;
    assert_true(tensor[0].values.a == 1.0 && tensor[0].values.b == 2.0);
    assert_true(tensor[1].values.a == 9.0 && tensor[1].values.b == 1.5);
    assert_int_equal(tensor[0].values.distribution, VALUES_NORMAL);
    assert_int_equal(tensor[1].values.distribution, VALUES_ZIPF);
    assert_int_equal(tensor[1].dtype, DTYPE_I64);
    assert_int_equal(tensor[2].dtype, DTYPE_E5M2);
    assert_true(tensor[0].rank == 0 && tensor[1].rank == 2 && tensor[2].rank == 1);
    assert_string_equal(expr_text(tensor[1].shape[0]), "N");
    assert_true(tensor[2].tolerance == 0.0);
    problem_free(problem);
}

// ---- further distributions ----

#define ZERO_ONE "{'distribution': 'uniform', 'low': 0, 'high': 1}"
#define NORMAL "{'distribution': 'normal', 'mean': -1, 'stddev': 0.5}"

// An inout tensor with these further members.
static char *tensor_with(const char *members)
{
    return xasprintf("[{'name': 'x', 'direction': 'inout', 'dtype': 'f32', 'shape': ['N'], "
                     "'tolerance': 1, %s}]",
                     members);
}

static void further_distributions_are_read_in_their_order(void **state)
{
    char *list =
        tensor_with("'values': " NORMAL ", 'also': [{'distribution': 'one-hot'}, " ZERO_ONE "]");
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    struct strbuf text = STRBUF_INIT;

    (void)state;
    assert_int_equal(read_tensors(&problem, list, true, &err), 0);
    const struct tensor *x = &problem->tensor[0];
    assert_int_equal(x->also_count, 2);
    values_text(&x->values, &text);
    for (size_t i = 0; i < x->also_count; i++) {
        strbuf_adds(&text, " ");
        values_text(&x->also[i], &text);
    }
    assert_string_equal(strbuf_text(&text),
                        "normal(mean=-1, stddev=0.5) one-hot uniform(low=0, high=1)");
    strbuf_release(&text);
    problem_free(problem);
    free(list);
}

static void further_distributions_are_read_as_strictly_as_the_first(void **state)
{
    static const struct {
        const char *members, *sentence;
    } rows[] = {
        {"'also': [" ZERO_ONE "]", "p: $.tensors[0]: the key \"values\" is missing"},
        {"'values': " NORMAL ", 'also': []",
         "p: $.tensors[0].also: 1 to 8 entries are expected, not 0"},
        {"'values': " NORMAL ", 'also': [" ZERO_ONE "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE
         "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE "]",
         NULL},
        {"'values': " NORMAL ", 'also': [" ZERO_ONE "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE
         "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE "," ZERO_ONE "]",
         "p: $.tensors[0].also: 1 to 8 entries are expected, not 9"},
        {"'values': " NORMAL ", 'also': " ZERO_ONE,
         "p: $.tensors[0].also: a list is expected, not an object"},
        {"'values': " NORMAL ", 'also': null",
         "p: $.tensors[0].also: a list is expected, not null"},
        {"'values': " NORMAL ", 'also': ['normal']",
         "p: $.tensors[0].also[0]: an object is expected, not a text"},
        {"'values': " NORMAL ", 'also': [" ZERO_ONE ", {'distribution': 'one-hot', 'weight': 1}]",
         "p: $.tensors[0].also[1]: the key \"weight\" is not known; use distribution"},
        {"'values': " NORMAL ", 'also': [{'distribution': 'normal', 'mean': 0}]",
         "p: $.tensors[0].also[0]: the key \"stddev\" is missing"},
        {"'values': " NORMAL ", 'also': [{'distribution': 'uniform', 'low': 0, 'high': 1e39}]",
         "p: $.tensors[0].also[0]: the values do not fit dtype f32"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *list = tensor_with(rows[i].members);
        assert_read(list, rows[i].sentence);
        free(list);
    }
    assert_read("[{'name': 'y', 'direction': 'out', 'dtype': 'f32', 'shape': ['N'], "
                "'tolerance': 1, 'also': [" ZERO_ONE "]}]",
                "p: $.tensors[0]: an out tensor has no \"also\"; remove the key");
}

// Otherwise a distribution could be one that no candidate meets.
static void each_further_distribution_needs_a_check_case(void **state)
{
    static const char before[] = "'values': {'distribution': 'normal', 'mean': 0, 'stddev': 1}";
    struct problem *problem = NULL;
    struct err err = ERR_INIT;

    (void)state;
    char *two = xasprintf("%s, 'also': [" ZERO_ONE ", " NORMAL "]", before);
    problem_free(problem_sample_with(before, two));
    free(two);
    char *three = xasprintf("%s, 'also': [" ZERO_ONE ", " NORMAL ", " ZERO_ONE "]", before);
    char *text = problem_sample_text(before, three);
    assert_int_equal(problem_parse(&problem, text, strlen(text), "p", &err), ERR_INVALID);
    assert_string_equal(err.text, "p: $.tensors[0].also: 3 distributions need as many check cases, "
                                  "and there are 2; add cases or remove distributions");
    free(text);
    free(three);
}

static void the_dtypes_of_cuda_are_none_of_c(void **state)
{
    static const char *const dtypes[] = {"f16", "bf16", "e4m3", "e5m2", "i8"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++) {
        char *text = tensor_text(dtypes[i], "uniform", "low", 0, "high", 1);
        struct problem *problem = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(read_tensors(&problem, text, false, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "use f32, f64, i32, i64 or u8"));
        problem_free(problem);
        free(text);
    }
}

static void what_a_list_of_tensors_may_not_be(void **state)
{
    static const struct {
        const char *list, *sentence;
    } bad[] = {
        {"[]", "p: $.tensors: 1 to 16 entries are expected, not 0"},
        {"{}", "p: $.tensors: a list is expected, not an object"},
        {"[[]]", "p: $.tensors[0]: an object is expected, not a list"},
        {"[{'name': 'x', 'direction': 'in', 'dtype': 'f32', 'shape': [],"
         "  'values': {'distribution': 'one-hot'}}]",
         "p: $.tensors: no tensor has direction out or inout; an operation needs an output"},
        {"[{'name': 'x', 'direction': 'in', 'dtype': 'f32', 'shape': []}]",
         "p: $.tensors[0]: the key \"values\" is missing"},
        {"[{'name': 'x', 'direction': 'inout', 'dtype': 'f32', 'shape': [],"
         "  'values': {'distribution': 'one-hot'}}]",
         "p: $.tensors[0]: the key \"tolerance\" is missing"},
        {"[{'name': 'x', 'direction': 'out', 'dtype': 'f32', 'shape': ['N', 'M'], 'tolerance': 1}]",
         "p: $.tensors[0].shape[1]: column 1: \"M\" is not known here; use N"},
        {"[{'name': 'x', 'direction': 'out', 'dtype': 'f32', 'tolerance': 1}]",
         "p: $.tensors[0]: the key \"shape\" is missing"},
        {"[{'name': 'x', 'direction': 'out', 'dtype': 'f32', 'shape': ['1','1','1','1','1','1','1']"
         "}]",
         "p: $.tensors[0].shape: 0 to 6 entries are expected, not 7"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_read(bad[i].list, bad[i].sentence);
    }
}

static void as_many_tensors_as_allowed_are_read_and_one_more_is_refused(void **state)
{
    struct strbuf list = STRBUF_INIT;

    (void)state;
    for (int i = 0; i < PROBLEM_TENSOR_MAX; i++) {
        strbuf_addf(&list,
                    "%s{'name': 'x%d', 'direction': 'out', 'dtype': 'f32', "
                    "'shape': ['1', '1', '1', '1', '1', 'N'], 'tolerance': 1}",
                    i > 0 ? ", " : "[", i);
    }
    char *most = xasprintf("%s]", strbuf_text(&list)),
         *more = xasprintf("%s, {}]", strbuf_text(&list));
    assert_read(most, NULL);
    char *sentence = xasprintf("1 to %d entries are expected, not %d", PROBLEM_TENSOR_MAX,
                               PROBLEM_TENSOR_MAX + 1);
    assert_read(more, sentence);
    free(sentence);
    free(most);
    free(more);
    strbuf_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greatest_and_the_least_value_of_a_dtype_fit_and_the_next_does_not),
        cmocka_unit_test(integers_stop_where_a_dtype_has_no_longer_all_of_them),
        cmocka_unit_test(the_ranks_of_zipf_begin_at_zero_and_end_at_the_greatest_integer),
        cmocka_unit_test(each_distribution_says_what_is_wrong_with_its_numbers),
        cmocka_unit_test(the_numbers_of_a_distribution_keep_their_order),
        cmocka_unit_test(further_distributions_are_read_in_their_order),
        cmocka_unit_test(further_distributions_are_read_as_strictly_as_the_first),
        cmocka_unit_test(each_further_distribution_needs_a_check_case),
        cmocka_unit_test(the_dtypes_of_cuda_are_none_of_c),
        cmocka_unit_test(what_a_list_of_tensors_may_not_be),
        cmocka_unit_test(as_many_tensors_as_allowed_are_read_and_one_more_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
