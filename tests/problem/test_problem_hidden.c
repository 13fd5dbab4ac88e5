#include "problem/problem.h"
#include "tests/support/samples/problem_sample.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdbool.h>

static bool is_prime(int64_t n)
{
    for (int64_t d = 2; d * d <= n; d++) {
        if (n % d == 0) {
            return false;
        }
    }
    return n >= 2;
}

static void hidden_shapes_are_tiny_prime_odd_and_beside_a_multiple_of_16(void **state)
{
    struct problem *problem = problem_sample_with("", "");

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct shape_case drawn[PROBLEM_HIDDEN_CASES];
        assert_int_equal(problem_hidden_cases(problem, seed, drawn), PROBLEM_HIDDEN_CASES);
        assert_true(drawn[0].i[0] >= 1 && drawn[0].i[0] <= 4);
        assert_true(drawn[0].i[2] >= 4 && drawn[0].i[2] <= 16);
        assert_true(is_prime(drawn[1].i[0]));
        assert_true(drawn[2].i[0] % 2 == 1);
        assert_true(drawn[3].i[0] % 16 == 1 || drawn[3].i[0] % 16 == 15);
        for (size_t i = 0; i < PROBLEM_HIDDEN_CASES; i++) {
            assert_true(drawn[i].i[0] >= 1 && drawn[i].i[0] <= 150);
            assert_true(drawn[i].i[2] >= 3 && drawn[i].i[2] <= 400 && drawn[i].i[2] % 4 == 0);
            assert_true(drawn[i].f[1] == 0.1); // of the first check case
        }
    }
    problem_free(problem);
}

static void hidden_shapes_depend_on_the_seed_only(void **state)
{
    struct problem *problem = problem_sample_with("", "");
    struct shape_case a[PROBLEM_HIDDEN_CASES], b[PROBLEM_HIDDEN_CASES];

    (void)state;
    size_t differing = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        assert_int_equal(problem_hidden_cases(problem, seed, a),
                         problem_hidden_cases(problem, seed, b));
        for (size_t i = 0; i < PROBLEM_HIDDEN_CASES; i++) {
            assert_true(a[i].i[0] == b[i].i[0] && a[i].i[2] == b[i].i[2]);
        }
        (void)problem_hidden_cases(problem, seed + 1000, b);
        for (size_t i = 0; i < PROBLEM_HIDDEN_CASES; i++) {
            differing += a[i].i[0] != b[i].i[0];
        }
    }
    assert_true(differing > 40);
    problem_free(problem);
}

static void hidden_shapes_that_do_not_evaluate_are_drawn_again(void **state)
{
    struct problem *problem = problem_sample_with("'min': 1, 'max': 150", "'min': 0, 'max': 3");

    (void)state;
    struct shape_case drawn[PROBLEM_HIDDEN_CASES];
    for (uint64_t seed = 0; seed < 50; seed++) {
        size_t count = problem_hidden_cases(problem, seed, drawn);
        assert_int_equal(count, PROBLEM_HIDDEN_CASES);
        for (size_t i = 0; i < count; i++) {
            assert_true(drawn[i].i[0] >= 1);
        }
    }
    problem_free(problem);
}

static void problem_without_hidden_ranges_draws_none(void **state)
{
    struct problem *problem = problem_sample_with(
        ",\n  'hidden': {'M': {'min': 1, 'max': 150}, 'N': {'min': 3, 'max': 400, 'multiple': 4}}",
        "");

    (void)state;
    assert_false(problem->has_hidden);
    struct shape_case drawn[PROBLEM_HIDDEN_CASES];
    assert_int_equal(problem_hidden_cases(problem, 1, drawn), 0);
    problem_free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_shapes_are_tiny_prime_odd_and_beside_a_multiple_of_16),
        cmocka_unit_test(hidden_shapes_depend_on_the_seed_only),
        cmocka_unit_test(hidden_shapes_that_do_not_evaluate_are_drawn_again),
        cmocka_unit_test(problem_without_hidden_ranges_draws_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
