#include "problem/problem.h"
#include "tests/support/samples/problem_sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void assert_text_refused(const char *text, size_t len, const char *start)
{
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    int rc = problem_parse(&problem, text, len, "p/problem.json", &err);

    assert_null(problem);
    if (rc != ERR_INVALID || strncmp(err.text, start, strlen(start)) != 0 ||
        strchr(err.text, '\n')) {
        fail_msg("%d, \"%s\" instead of \"%s\"", rc, err.text, start);
    }
    assert_int_equal(problem_parse(&problem, text, len, "p/problem.json", NULL), ERR_INVALID);
}

// With `from` replaced by `to` the problem is refused, and the sentence continues with `start`
// behind the name of the file.
static void assert_refused(const char *from, const char *to, const char *start)
{
    char *text = problem_sample_text(from, to),
         *expected = xasprintf("p/problem.json:%s%s", start[0] == '$' ? " " : "", start);

    assert_text_refused(text, strlen(text), expected);
    free(text);
    free(expected);
}

struct change {
    const char *from, *to, *start;
};

static void assert_all_refused(const struct change *change, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_refused(change[i].from, change[i].to, change[i].start);
    }
}

static void whole_problem_is_read(void **state)
{
    struct problem *problem = problem_sample_with("", "");
    char *text = problem_sample_text("", "");
    struct digest digest = digest_of(text, strlen(text));

    (void)state;
    assert_string_equal(problem->name, "axpy-2");
    assert_string_equal(problem->title, "y = a x + y");
    assert_string_equal(problem->license, "MIT");
    assert_string_equal(problem->language, "c");
    assert_string_equal(problem->entry, "axpy");
    assert_int_equal(problem->param_count, 3);
    assert_int_equal(problem->param[1].type, PARAM_F64);
    assert_int_equal(problem->tensor_count, 3);
    assert_int_equal(problem->tensor[0].rank, 2);
    assert_int_equal(problem->tensor[1].direction, DIRECTION_INOUT);
    assert_int_equal(problem->tensor[1].values.distribution, VALUES_UNIFORM);
    assert_true(problem->tensor[1].values.a == -1.0 && problem->tensor[1].values.b == 2.5);
    assert_true(problem->tensor[1].tolerance == 8.0);
    assert_int_equal(problem->tensor[2].dtype, DTYPE_I32);
    assert_int_equal(problem->check_count, 2);
    assert_int_equal(problem->check[0].i[0], 17);
    assert_int_equal(problem->check[0].i[2], 3);
    assert_true(problem->check[0].f[1] == 0.1);
    assert_int_equal(problem->bench_count, 2);
    assert_true(problem->bench[0].weight == 0.25 && problem->bench[1].weight == 0.75);
    assert_true(problem->has_hidden);
    assert_int_equal(problem->hidden[2].multiple, 4);
    assert_int_equal(problem->hidden[0].multiple, 1);
    assert_int_equal(problem->cache, CACHE_COLD);
    assert_true(digest_equal(&problem->digest, &digest));
    free(text);
    problem_free(problem);
}

static void unknown_keys_are_refused_at_every_level(void **state)
{
    static const struct change changes[] = {
        {"{'name': 'axpy-2'", "{'nam': 1, 'name': 'axpy-2'",
         "$: the key \"nam\" is not known; use name, title"},
        {"'type': 'int'}", "'type': 'int', 'x': 1}",
         "$.params[0]: the key \"x\" is not known; use name or type"},
        {"'shape': ['M'],", "'shape': ['M'], 'size': 3,",
         "$.tensors[1]: the key \"size\" is not known"},
        {"'stddev': 1", "'stddev': 1, 'low': 0",
         "$.tensors[0].values: the key \"low\" is not known; use distribution, mean"},
        {"'check': [", "'checks': [], 'check': [",
         "$.cases: the key \"checks\" is not known; use check, bench or hidden"},
        {"'a': 0.1", "'a': 0.1, 'Q': 1",
         "$.cases.check[0]: the key \"Q\" is not known; use M, a or N"},
        {"'weight': 3", "'weight': 3, 'name': ''",
         "$.cases.bench[1]: the key \"name\" is not known; use params or weight"},
        {"{'params': {'M': 384,", "{'params': {'b': 1, 'M': 384,",
         "$.cases.bench[0].params: the key \"b\" is not known"},
        {"'hidden': {", "'hidden': {'a': {'min': 1, 'max': 2}, ",
         "$.cases.hidden: the key \"a\" is not known; use M or N"},
        {"'multiple': 4", "'multiples': 4",
         "$.cases.hidden.N: the key \"multiples\" is not known; use min, max or multiple"},
        {"'flops':", "'watts': 1, 'flops':",
         "$.work: the key \"watts\" is not known; use flops or bytes"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void missing_keys_are_refused(void **state)
{
    static const struct change changes[] = {
        {"'title': 'y = a x + y', ", "", "$: the key \"title\" is missing"},
        {"'cache': 'cold', ", "", "$: the key \"cache\" is missing"},
        {", 'type': 'int'}", "}", "$.params[0]: the key \"type\" is missing"},
        {"'dtype': 'f32', ", "", "$.tensors[0]: the key \"dtype\" is missing"},
        {", 'tolerance': 0}", "}", "$.tensors[2]: the key \"tolerance\" is missing"},
        {", 'stddev': 1", "", "$.tensors[0].values: the key \"stddev\" is missing"},
        {"'distribution': 'normal', ", "",
         "$.tensors[0].values: the key \"distribution\" is missing"},
        {", 'N': 3", "", "$.cases.check[0]: the key \"N\" is missing"},
        {", 'weight': 3", "", "$.cases.bench[1]: the key \"weight\" is missing"},
        {", 'max': 150", "", "$.cases.hidden.M: the key \"max\" is missing"},
        {"'M': {'min': 1, 'max': 150}, ", "", "$.cases.hidden: the key \"M\" is missing"},
        {", 'bytes': '4*(M+N)'", "", "$.work: the key \"bytes\" is missing"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void wrong_types_are_refused(void **state)
{
    static const struct change changes[] = {
        {"'name': 'axpy-2'", "'name': 3", "$.name: a text is expected, not an integer"},
        {"[{'name': 'M'", "[null, {'name': 'M'", "$.params[0]: an object is expected, not null"},
        {"'shape': ['M', '2*N']", "'shape': 'M'",
         "$.tensors[0].shape: a list is expected, not a text"},
        {"'2*N'", "2", "$.tensors[0].shape[1]: a text is expected, not an integer"},
        {"'tolerance': 8", "'tolerance': '8'",
         "$.tensors[1].tolerance: a number is expected, not a text"},
        {"'mean': 0", "'mean': true", "$.tensors[0].values.mean: a number is expected, not true"},
        {"'M': 17", "'M': 17.0", "$.cases.check[0].M: an integer is expected, not a real number"},
        {"'a': 0.1", "'a': 'x'", "$.cases.check[0].a: a number is expected"},
        {"'min': 1", "'min': []", "$.cases.hidden.M.min: an integer is expected, not a list"},
        {"'2*M*N'", "7", "$.work.flops: a text is expected, not an integer"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
    assert_text_refused("[]", 2, "p/problem.json: $: an object is expected, not a list");
}

static void unknown_words_are_refused_with_the_known_ones(void **state)
{
    static const struct change changes[] = {
        {"'f64', 'shape'", "'f16', 'shape'",
         "$.tensors[1].dtype: \"f16\" is not known; use f32, f64, i32, i64 or u8"},
        {"'inout'", "'both'",
         "$.tensors[1].direction: \"both\" is not known; use in, out or inout"},
        {"'int'", "'i64'", "$.params[0].type: \"i64\" is not known; use int or f64"},
        {"'normal'", "'gauss'",
         "$.tensors[0].values.distribution: \"gauss\" is not known; use normal, uniform"},
        {"'cold'", "'hot'", "$.cache: \"hot\" is not known; use warm or cold"},
        {"'c'", "'rust'", "$.language: \"rust\" is not known; use c or cuda"},
        {"'bytes'", "'unit': 'f32', 'bytes'", "$.work: the key \"unit\" is not known"},
        {"'cold'", "'\\u001b\\n[31m'", "$.cache: \"??[31m\" is not known"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void bad_names_and_texts_are_refused(void **state)
{
    static const struct change changes[] = {
        {"'axpy-2'", "'Axpy'", "$.name: \"Axpy\" holds a character other than"},
        {"'axpy-2'", "''", "$.name: 1 to 40 bytes are expected, not 0"},
        {"'axpy-2'", "'../../../../../../../../../../../etc/passwd'", "$.name: 1 to 40 bytes"},
        {"'y = a x + y'", "'two\\nlines'", "$.title: one line"},
        {"'MIT'", "'MIT;'", "$.license: "},
        {"'axpy'", "'a b'", "$.entry: the name \"a b\" is not a C identifier"},
        {"'axpy'", "'while'", "$.entry: the name \"while\" is a C keyword"},
        {"'axpy'", "'reference'", "$.entry: the name \"reference\" has a meaning"},
        {"'axpy'", "'kcast_entry'", "$.entry: the name \"kcast_entry\" begins with kcast_"},
        {"'name': 'a'", "'name': 'int64_t'", "$.params[1].name: the name \"int64_t\" may be"},
        {"'name': 'x'", "'name': 'x[1]'", "$.tensors[0].name: the name \"x[1]\""},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void names_used_twice_are_refused(void **state)
{
    static const struct change changes[] = {
        {"'name': 'N'", "'name': 'M'", "$.params[2]: the name \"M\" is used twice"},
        {"'name': 'z'", "'name': 'x'", "$.tensors: the name \"x\" is used twice"},
        {"'name': 'z'", "'name': 'M'", "$.tensors: the name \"M\" is used twice"},
        {"'name': 'x'", "'name': 'y_scale'", "$.tensors: the name \"y_scale\" is used twice"},
        {"'name': 'x'", "'name': 'y_out'", "$.tensors: the name \"y_out\" is used twice"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
    problem_free(
        problem_sample_with("'name': 'x'", "'name': 'z_out'")); // an out tensor has no NAME_out
}

static void invalid_json_is_refused_with_its_line(void **state)
{
    (void)state;
    assert_text_refused("", 0, "p/problem.json:");
    assert_text_refused("{\n\"a\" 1}", 8, "p/problem.json:2:");
    assert_text_refused("{} x", 4, "p/problem.json:1:");
    assert_text_refused("{\"a\":\"\xff\"}", 9, "p/problem.json:1:");
    assert_text_refused("{\"a\":\"\0\"}", 9, "p/problem.json:1:");
    assert_text_refused("{\"a\\u0000\":1}", 13, "p/problem.json:1:");
    char deep[10000];
    memset(deep, '[', sizeof deep);
    assert_text_refused(deep, sizeof deep, "p/problem.json:1:");
    assert_refused("'M': 17", "'M': 99999999999999999999",
                   "10:38: is not valid JSON: too big integer");
    assert_refused("'a': 0.1", "'a': 1e999", "10:");
}

static void duplicate_json_keys_are_refused(void **state)
{
    (void)state;
    assert_refused(
        "'cache':", "'cache': 'warm', 'cache':", "13:25: is not valid JSON: duplicate object key");
}

static void text_over_the_limit_is_refused_unread(void **state)
{
    (void)state;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(problem_parse(&problem, "", PROBLEM_JSON_MAX + 1, "p", &err), ERR_LIMIT);
}

static void bad_expressions_are_refused_with_their_column(void **state)
{
    static const struct change changes[] = {
        {"'2*N'", "'2*Q'", "$.tensors[0].shape[1]: column 3: \"Q\" is not known here; use M, N"},
        {"'2*N'", "'2*a'", "$.tensors[0].shape[1]: column 3: \"a\" is not known here; use M, N"},
        {"'2*N'", "'N < 2'",
         "$.tensors[0].shape[1]: column 3: comparisons are known in conditions only"},
        {"'2*M*N'", "'2*M*'", "$.work.flops: column 5: the expression ends"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void shapes_that_do_not_evaluate_are_refused_in_the_case_that_shows_it(void **state)
{
    static const struct change changes[] = {
        {"'2*N'", "'N-3'",
         "$.cases.check[0]: shape[1] of tensor x, \"N-3\", is 0; it must be 1 to"},
        {"'2*N'", "'N-2'", "$.cases.check[1]: shape[1] of tensor x, \"N-2\", is -1"},
        {"'2*N'", "'8/(5-N)'",
         "$.cases.bench[0].params: shape[1] of tensor x: \"8/(5-N)\" divides by zero"},
        {"'2*N'", "'N*300000000'",
         "$.cases.check[0]: shape[1] of tensor x, \"N*300000000\", is 900000000; it must be"},
        {"'2*N'", "'N*9223372036854775807'", "$.cases.check[0]: shape[1] of tensor x: "},
        {"['M', '2*N']", "['65536', '65536']",
         "$.cases.check[0]: tensor x has more than 268435456 elements"},
        {"'2*M*N'", "'M-N-1'", "$.cases.check[1]: work.flops, \"M-N-1\", is -1"},
        {"'4*(M+N)'", "'M/(N-1)'", "$.cases.check[1]: work.bytes: \"M/(N-1)\" divides by zero"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void distributions_are_checked_against_numbers_and_dtype(void **state)
{
    static const char normal[] = "'f32', 'shape': ['M', '2*N'],\n   'values': {'distribution': "
                                 "'normal', 'mean': 0, 'stddev': 1}";
    static const char *const bad[] = {
        "'f32', 'shape': [], 'values': {'distribution': 'normal', 'mean': 0, 'stddev': -1}",
        "'f32', 'shape': [], 'values': {'distribution': 'normal', 'mean': 1e39, 'stddev': 1}",
        "'i32', 'shape': [], 'values': {'distribution': 'normal', 'mean': 0, 'stddev': 1}",
        "'f32', 'shape': [], 'values': {'distribution': 'uniform', 'low': 1, 'high': 0}",
        "'f64', 'shape': [], 'values': {'distribution': 'uniform', 'low': -1e308, 'high': 1e308}",
        "'u8', 'shape': [], 'values': {'distribution': 'integers', 'low': 0, 'high': 256}",
        "'u8', 'shape': [], 'values': {'distribution': 'integers', 'low': -1, 'high': 2}",
        "'i32', 'shape': [], 'values': {'distribution': 'integers', 'low': 0, 'high': 2147483648}",
        "'i64', 'shape': [], 'values': {'distribution': 'integers', 'low': 0.5, 'high': 2}",
        "'f32', 'shape': [], 'values': {'distribution': 'integers', 'low': 0, 'high': 16777217}",
        "'u8', 'shape': [], 'values': {'distribution': 'zipf', 'count': 257, 'exponent': 1}",
        "'i32', 'shape': [], 'values': {'distribution': 'zipf', 'count': 0, 'exponent': 1}",
        "'i32', 'shape': [], 'values': {'distribution': 'zipf', 'count': 5, 'exponent': -1}",
        "'f32', 'shape': [], 'values': {'distribution': 'wide', 'low': 0, 'high': 1}",
        "'i32', 'shape': [], 'values': {'distribution': 'wide', 'low': 1, 'high': 2}",
        "'f32', 'shape': [], 'values': {'distribution': 'one-hot', 'low': 1}",
    };
    static const char *const good[] = {
        "'u8', 'shape': [], 'values': {'distribution': 'integers', 'low': 0, 'high': 255}",
        "'u8', 'shape': [], 'values': {'distribution': 'zipf', 'count': 256, 'exponent': 1.3}",
        "'i32', 'shape': [], 'values': {'distribution': 'integers', 'low': -2147483648, 'high': 9}",
        "'f32', 'shape': [], 'values': {'distribution': 'wide', 'low': 1e-30, 'high': 1e30}",
        "'i64', 'shape': [], 'values': {'distribution': 'sorted', 'low': 0, 'high': 1000}",
        "'f32', 'shape': [], 'values': {'distribution': 'one-hot'}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_refused(normal, bad[i], "$.tensors[0].values: ");
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        problem_free(problem_sample_with(normal, good[i]));
    }
}

static void values_and_tolerance_belong_to_their_directions(void **state)
{
    static const struct change changes[] = {
        {"'direction': 'in',", "'direction': 'in', 'tolerance': 1,",
         "$.tensors[0]: an in tensor has no \"tolerance\""},
        {"'direction': 'out',", "'direction': 'out', 'values': {},",
         "$.tensors[2]: an out tensor has no \"values\""},
        {"'tolerance': 8", "'tolerance': -1", "$.tensors[1].tolerance: -1 is outside its range"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

static void lists_are_bounded(void **state)
{
    (void)state;
    assert_refused("'shape': ['M']", "'shape': ['M','1','1','1','1','1','1']",
                   "$.tensors[1].shape: 0 to 6 entries are expected, not 7");
    struct strbuf many = STRBUF_INIT;
    strbuf_adds(&many, "'check': [{'M': 1, 'N': 1, 'a': 1}");
    for (int i = 0; i < PROBLEM_CASE_MAX; i++) {
        strbuf_adds(&many, ", {'M': 1, 'N': 1, 'a': 1}");
    }
    strbuf_adds(&many, "], 'unused': [");
    assert_refused("'check': [", strbuf_text(&many), "$.cases: "); // an unknown key comes first
    strbuf_reset(&many);
    strbuf_adds(&many, "'params': [");
    for (int i = 0; i < PROBLEM_PARAM_MAX; i++) {
        strbuf_addf(&many, "{'name': 'p%d', 'type': 'int'}, ", i);
    }
    assert_refused("'params': [", strbuf_text(&many),
                   "$.params: 0 to 32 entries are expected, not 35");
    strbuf_release(&many);
}

static void weights_must_be_positive_and_bounded(void **state)
{
    (void)state;
    assert_refused("'weight': 3", "'weight': 0", "$.cases.bench[1].weight: 0 is outside its range");
    assert_refused("'weight': 3", "'weight': -1",
                   "$.cases.bench[1].weight: -1 is outside its range");
    assert_refused("'weight': 3", "'weight': 1e300", "$.cases.bench[1].weight: ");
}

static void hidden_ranges_must_hold_a_shape_that_evaluates(void **state)
{
    static const struct change changes[] = {
        {"'min': 1, 'max': 150", "'min': 151, 'max': 150", "$.cases.hidden.M: min is above max"},
        {"'min': 1, 'max': 150", "'min': -1, 'max': 150",
         "$.cases.hidden.M.min: -1 is outside its range"},
        {"'max': 400, 'multiple': 4", "'max': 400, 'multiple': 0",
         "$.cases.hidden.N.multiple: 0 is outside"},
        {"'min': 3, 'max': 400", "'min': 5, 'max': 7",
         "$.cases.hidden.N: no multiple of 4 lies between"},
        {"'min': 1, 'max': 150", "'min': 0, 'max': 0", "$.cases.hidden: none of the shapes"},
        {"'min': 1, 'max': 150", "'min': 1000000000, 'max': 1099511627776",
         "$.cases.hidden: none of the shapes"},
    };

    (void)state;
    assert_all_refused(changes, sizeof changes / sizeof changes[0]);
}

// The sample problem with language cuda, and with `entry` in place of its entry.
static char *cuda_text(const char *entry, const char *from, const char *to)
{
    char *text = problem_sample_text(from, to);
    char *at = strstr(text, "\"c\", \"entry\": \"axpy\",");

    assert_non_null(at);
    struct strbuf out = STRBUF_INIT;
    strbuf_add(&out, text, (size_t)(at - text));
    strbuf_addf(&out, "\"cuda\",%s", entry);
    strbuf_adds(&out, strchr(strchr(at, ',') + 1, ',') + 1);
    free(text);
    return strbuf_detach(&out);
}

static void cuda_problems_have_more_dtypes_a_unit_and_no_entry(void **state)
{
    static const struct change refused[] = {
        {"'f64', 'shape'", "'f8', 'shape'",
         "p/problem.json: $.tensors[1].dtype: \"f8\" is not known; use f32, f64, i32, i64, u8, "
         "f16, "
         "bf16, e4m3, e5m2 or i8"},
        {"'bytes'", "'unit': 'fp4', 'bytes'",
         "p/problem.json: $.work.unit: \"fp4\" is not known; use f32, f64, tf32"},
        {"'f32', 'shape'", "'i8', 'shape'",
         "p/problem.json: $.tensors[0].values: normal values need a "},
    };
    char *text = cuda_text("", "'f64', 'shape'", "'e4m3', 'shape'");

    (void)state;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    if (problem_parse(&problem, text, strlen(text), "p/problem.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(problem->cuda && !problem->entry && problem->unit == UNIT_F32);
    assert_int_equal(problem->tensor[1].dtype, DTYPE_E4M3);
    problem_free(problem);
    free(text);
    text = cuda_text("", "'bytes'", "'unit': 'tf32', 'bytes'");
    assert_int_equal(problem_parse(&problem, text, strlen(text), "p/problem.json", NULL), 0);
    assert_int_equal(problem->unit, UNIT_TF32);
    problem_free(problem);
    free(text);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        text = cuda_text("", refused[i].from, refused[i].to);
        assert_text_refused(text, strlen(text), refused[i].start);
        free(text);
    }
    text = cuda_text("\"entry\": \"axpy\",", "", "");
    assert_text_refused(text, strlen(text),
                        "p/problem.json: $: a cuda problem has no \"entry\": candidates name their "
                        "kernels");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_problem_is_read),
        cmocka_unit_test(unknown_keys_are_refused_at_every_level),
        cmocka_unit_test(missing_keys_are_refused),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(unknown_words_are_refused_with_the_known_ones),
        cmocka_unit_test(bad_names_and_texts_are_refused),
        cmocka_unit_test(names_used_twice_are_refused),
        cmocka_unit_test(invalid_json_is_refused_with_its_line),
        cmocka_unit_test(duplicate_json_keys_are_refused),
        cmocka_unit_test(text_over_the_limit_is_refused_unread),
        cmocka_unit_test(bad_expressions_are_refused_with_their_column),
        cmocka_unit_test(shapes_that_do_not_evaluate_are_refused_in_the_case_that_shows_it),
        cmocka_unit_test(distributions_are_checked_against_numbers_and_dtype),
        cmocka_unit_test(values_and_tolerance_belong_to_their_directions),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(weights_must_be_positive_and_bounded),
        cmocka_unit_test(hidden_ranges_must_hold_a_shape_that_evaluates),
        cmocka_unit_test(cuda_problems_have_more_dtypes_a_unit_and_no_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
