#include "problem/problem.h"
#include "tests/support/samples/problem_sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>

static void elements_extents_and_work_follow_the_case(void **state)
{
    struct problem *problem = problem_sample_with("", "");
    const struct shape_case *shape = &problem->check[0];
    double flops = 0.0, bytes = 0.0;

    (void)state;
    size_t count = 0;
    assert_int_equal(problem_elements(problem, 0, shape, &count, NULL), 0);
    assert_int_equal(count, 17 * 6);
    assert_int_equal(problem_last_extent(problem, 0, shape, &count, NULL), 0);
    assert_int_equal(count, 6);
    assert_int_equal(problem_elements(problem, 2, shape, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(problem_last_extent(problem, 2, shape, &count, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(problem_work(problem, shape, &flops, &bytes, NULL), 0);
    assert_true(flops == 2 * 17 * 3 && bytes == 4 * (17 + 3));
    problem_free(problem);
}

static void failed_evaluation_leaves_its_results_untouched(void **state)
{
    struct problem *problem = problem_sample_with("", "");
    double flops = 99.0, bytes = 99.0;

    (void)state;
    struct shape_case shape = {.i = {0, 0, INT64_MAX}};
    struct err err = ERR_INIT;
    size_t count = 99;
    assert_int_equal(problem_elements(problem, 0, &shape, &count, &err), ERR_INVALID);
    assert_int_equal(problem_last_extent(problem, 0, &shape, &count, NULL), ERR_INVALID);
    assert_int_equal(problem_work(problem, &shape, &flops, &bytes, NULL), ERR_INVALID);
    assert_true(count == 99 && flops == 99.0 && bytes == 99.0);
    problem_free(problem);
}

static void case_name_lists_parameters_in_order(void **state)
{
    struct problem *problem = problem_sample_with("", "");

    (void)state;
    struct strbuf out = STRBUF_INIT;
    problem_case_name(problem, &problem->check[0], &out);
    assert_string_equal(strbuf_text(&out), "M=17 a=0.1 N=3");
    strbuf_release(&out);
    problem_free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_extents_and_work_follow_the_case),
        cmocka_unit_test(failed_evaluation_leaves_its_results_untouched),
        cmocka_unit_test(case_name_lists_parameters_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
