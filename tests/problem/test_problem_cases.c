// The cases of a problem: values of parameters, weights, and the ranges of hidden shapes.
#include "common/mem.h"
#include "problem/problem.h"
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

#define CHECK_CASE "{'M': 1, 'N': 1, 'a': 2}"
#define BENCH_CASE "{'params': {'M': 4, 'N': 5, 'a': 1}, 'weight': 3}"
#define HIDDEN "'hidden': {'M': {'min': 1, 'max': 150}, 'N': {'min': 3, 'max': 400, 'multiple': 4}}"

static void assert_refused(const char *from, const char *to, const char *sentence)
{
    char *text = problem_sample_text(from, to);
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    int rc = problem_parse(&problem, text, strlen(text), "p", &err);

    assert_null(problem);
    if (rc != ERR_INVALID || strcmp(err.text, sentence) != 0) {
        fail_msg("%d, \"%s\" instead of \"%s\"", rc, err.text, sentence);
    }
    free(text);
}

// `entry` so many times, with commas between.
static char *repeated(const char *entry, size_t count)
{
    struct strbuf out = STRBUF_INIT;

    for (size_t i = 0; i < count; i++) {
        strbuf_addf(&out, "%s%s", i > 0 ? ", " : "", entry);
    }
    return strbuf_detach(&out);
}

static void as_many_cases_as_allowed_are_read_and_one_more_is_refused(void **state)
{
    // The sample has one check case, and one benchmark case, besides the repeated one.
    char *check = repeated(CHECK_CASE, PROBLEM_CASE_MAX - 1),
         *bench = repeated(BENCH_CASE, PROBLEM_CASE_MAX - 1),
         *more_check = repeated(CHECK_CASE, PROBLEM_CASE_MAX),
         *more_bench = repeated(BENCH_CASE, PROBLEM_CASE_MAX);

    (void)state;
    struct problem *problem = problem_sample_with(CHECK_CASE, check);
    assert_int_equal(problem->check_count, PROBLEM_CASE_MAX);
    assert_int_equal(problem->check[PROBLEM_CASE_MAX - 1].i[0], 1);
    problem_free(problem);
    problem = problem_sample_with(BENCH_CASE, bench);
    assert_int_equal(problem->bench_count, PROBLEM_CASE_MAX);
    double sum = 0.0;
    for (size_t i = 0; i < problem->bench_count; i++) {
        sum += problem->bench[i].weight;
    }
    assert_true(fabs(sum - 1.0) < 1e-12);
    assert_true(fabs(problem->bench[1].weight - 3 * problem->bench[0].weight) < 1e-12);
    problem_free(problem);
    assert_refused(CHECK_CASE, more_check,
                   "p: $.cases.check: 1 to 32 entries are expected, not 33");
    assert_refused(BENCH_CASE, more_bench,
                   "p: $.cases.bench: 1 to 32 entries are expected, not 33");
    free(check);
    free(bench);
    free(more_check);
    free(more_bench);
}

static void a_problem_needs_a_case_of_either_kind(void **state)
{
    (void)state;
    assert_refused("[{'M': 17, 'N': 3, 'a': 0.1}, " CHECK_CASE "]", "[]",
                   "p: $.cases.check: 1 to 32 entries are expected, not 0");
    assert_refused("[{'params': {'M': 384, 'N': 5, 'a': 1}, 'weight': 1}, " BENCH_CASE "]", "[]",
                   "p: $.cases.bench: 1 to 32 entries are expected, not 0");
    assert_refused("'check': [", "'bench2': [",
                   "p: $.cases: the key \"bench2\" is not known; use check, bench or hidden");
}

static void weights_at_both_ends_of_their_range_are_shares_of_one(void **state)
{
    struct problem *problem = problem_sample_with("'weight': 3", "'weight': 1e6");

    (void)state;
    assert_true(fabs(problem->bench[0].weight - 1 / 1000001.0) < 1e-15);
    assert_true(fabs(problem->bench[1].weight - 1000000 / 1000001.0) < 1e-15);
    problem_free(problem);
    problem = problem_sample_with("'weight': 3", "'weight': 1e-6");
    assert_true(fabs(problem->bench[1].weight - 1e-6 / 1.000001) < 1e-18);
    problem_free(problem);
    assert_refused("'weight': 3", "'weight': 1000001",
                   "p: $.cases.bench[1].weight: 1000001 is outside its range, "
                   "9.9999999999999995e-07 to 1000000");
}

static void an_f64_parameter_takes_whole_and_negative_numbers(void **state)
{
    struct problem *problem = problem_sample_with("'a': 0.1", "'a': -9007199254740993");

    (void)state;
    // The nearest double: 2^53 + 1 has none of its own.
    assert_true(problem->check[0].f[1] == -0x1p53);
    assert_int_equal(problem->check[0].i[1], 0);
    problem_free(problem);
    problem = problem_sample_with("'a': 0.1", "'a': 1.7976931348623157e308");
    assert_true(problem->check[0].f[1] == 0x1.fffffffffffffp1023);
    problem_free(problem);
}

static void a_case_that_does_not_evaluate_is_named_whichever_list_it_is_in(void **state)
{
    (void)state;
    assert_refused("'M': 17", "'M': -17",
                   "p: $.cases.check[0]: shape[0] of tensor x, \"M\", is -17; it must be 1 to "
                   "268435456");
    assert_refused("'M': 384", "'M': 0",
                   "p: $.cases.bench[0].params: shape[0] of tensor x, \"M\", is 0; it must be 1 to "
                   "268435456");
    assert_refused("'M': 17", "'M': 9223372036854775807",
                   "p: $.cases.check[0]: shape[0] of tensor x, \"M\", is 9223372036854775807; it "
                   "must be 1 to 268435456");
    // 2^26 x 2 x 2 floats are 1 GiB; one more row is too many.
    problem_free(problem_sample_with("'M': 384, 'N': 5", "'M': 67108864, 'N': 2"));
    assert_refused("'M': 384, 'N': 5", "'M': 67108865, 'N': 2",
                   "p: $.cases.bench[0].params: tensor x has more than 268435456 elements "
                   "(1073741824 bytes); use a smaller shape");
}

static void a_range_of_hidden_shapes_may_be_one_number(void **state)
{
    struct problem *problem = problem_sample_with("'min': 1, 'max': 150", "'min': 48, 'max': 48");
    struct shape_case drawn[PROBLEM_HIDDEN_CASES];

    (void)state;
    size_t count = problem_hidden_cases(problem, 5, drawn);
    assert_int_equal(count, PROBLEM_HIDDEN_CASES);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(drawn[i].i[0], 48);
        assert_true(drawn[i].weight == 0.0);
    }
    problem_free(problem);
}

static void hidden_ranges_are_refused_with_what_would_be_right(void **state)
{
    static const char *const changes[][3] = {
        {"'min': 1, 'max': 150", "'min': 0, 'max': 1099511627777",
         "p: $.cases.hidden.M.max: 1099511627777 is outside its range, 0 to 1099511627776"},
        {"'multiple': 4", "'multiple': 401",
         "p: $.cases.hidden.N: no multiple of 401 lies between min and max; widen the range"},
        {"'multiple': 4", "'multiple': 1.5",
         "p: $.cases.hidden.N.multiple: an integer is expected, not a real number"},
        {"'min': 1, 'max': 150", "'min': 3, 'max': 2",
         "p: $.cases.hidden.M: min is above max; exchange them"},
        {"'M': {'min': 1, 'max': 150}", "'M': 5",
         "p: $.cases.hidden.M: an object is expected, not an integer"},
        {HIDDEN, "'hidden': []", "p: $.cases.hidden: an object is expected, not a list"},
        {HIDDEN, "'hidden': {}", "p: $.cases.hidden: the key \"M\" is missing; add it"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        assert_refused(changes[i][0], changes[i][1], changes[i][2]);
    }
    // One multiple is enough, even where both ends of the range are it.
    problem_free(problem_sample_with("'min': 3, 'max': 400, 'multiple': 4",
                                     "'min': 400, 'max': 400, 'multiple': 400"));
}

// A problem whose only parameters are f64, with these cases besides check and bench.
static int parse_without_int_params(const char *hidden, struct err *err)
{
    char *text =
        xasprintf("{'name': 'p', 'title': 't', 'license': 'MIT', 'language': 'c', 'entry': 'f',"
                  "'params': [{'name': 'a', 'type': 'f64'}],"
                  "'tensors': [{'name': 'y', 'direction': 'out', 'dtype': 'f32', 'shape': ['8'],"
                  "             'tolerance': 1}],"
                  "'cases': {'check': [{'a': 1}], 'bench': [{'params': {'a': 1}, 'weight': 1}]%s},"
                  "'cache': 'warm', 'work': {'flops': '8', 'bytes': '32'}}",
                  hidden);

    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    struct problem *problem = NULL;
    int rc = problem_parse(&problem, text, strlen(text), "p", err);
    problem_free(problem);
    free(text);
    return rc;
}

static void hidden_shapes_need_an_int_parameter_to_draw(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(parse_without_int_params("", &err), 0);
    assert_int_equal(parse_without_int_params(", 'hidden': {}", &err), ERR_INVALID);
    assert_string_equal(err.text,
                        "p: $.cases.hidden: there is no int parameter to draw; remove the key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_cases_as_allowed_are_read_and_one_more_is_refused),
        cmocka_unit_test(a_problem_needs_a_case_of_either_kind),
        cmocka_unit_test(weights_at_both_ends_of_their_range_are_shares_of_one),
        cmocka_unit_test(an_f64_parameter_takes_whole_and_negative_numbers),
        cmocka_unit_test(a_case_that_does_not_evaluate_is_named_whichever_list_it_is_in),
        cmocka_unit_test(a_range_of_hidden_shapes_may_be_one_number),
        cmocka_unit_test(hidden_ranges_are_refused_with_what_would_be_right),
        cmocka_unit_test(hidden_shapes_need_an_int_parameter_to_draw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
