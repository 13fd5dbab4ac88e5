// Benchmark cases one by one: which are chosen, and the problem with only one of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/tune/tune_case.h"
#include <stdlib.h>
#include <string.h>

static struct problem_dir dir;

static int set_up(void **state)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/problems/cpu/sgemm", root ? root : ".");
    (void)state;
    struct err err = ERR_INIT;
    int rc = problem_dir_load(&dir, path, &err);
    free(path);
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    problem_dir_release(&dir);
    return 0;
}

// The chosen cases as bits, or the error's code.
static int chosen(const char *wanted, struct err *err)
{
    bool found[PROBLEM_CASE_MAX];
    int rc = tune_select(found, dir.problem, wanted, err), bits = 0;
    for (size_t i = 0; rc == 0 && i < PROBLEM_CASE_MAX; i++) {
        bits |= found[i] << i;
    }
    return rc == 0 ? bits : rc;
}

// The problem has M=256 N=256 K=256 and M=288 N=192 K=200.
static void test_cases_are_named_by_values(void **state)
{
    (void)state;
    assert_int_equal(dir.problem->bench_count, 2);
    struct err err = ERR_INIT;
    assert_int_equal(chosen(NULL, &err), 3);
    assert_int_equal(chosen("M=256", &err), 1);
    assert_int_equal(chosen(" N=192  M=288 ", &err), 2);
    assert_int_equal(chosen("K=200,K=256", &err), 3);
    assert_int_equal(chosen("M=256 N=192", &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "M=288 N=192 K=200")); // says which there are
    const char *const wrong[] = {"", "M", "M=", "M=2x", "Q=1", "M=256,", "MM=256", "=256"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(chosen(wrong[i], NULL), ERR_INVALID);
    }
}

static void test_a_narrowed_problem_has_one_case(void **state)
{
    struct problem_dir one = {0}, all = {0};
    (void)state;
    const struct bytes kernel = {(unsigned char *)(uintptr_t) "text", 4};
    struct err err = ERR_INIT;
    assert_int_equal(tune_narrow(&one, &dir, &kernel, 1, &err), 0);
    assert_int_equal(one.problem->bench_count, 1);
    assert_int_equal(one.problem->bench[0].i[1], 192);
    assert_true(one.problem->bench[0].weight > 0.999);
    assert_int_equal(one.problem->check_count, dir.problem->check_count);
    assert_true(one.problem->has_hidden);
    assert_string_equal(one.problem->name, "sgemm");
    assert_false(digest_equal(&one.json_digest, &dir.json_digest));
    assert_memory_equal(one.template_source.data, "text", 4);
    assert_int_equal(tune_narrow(&all, &dir, &kernel, TUNE_ALL, &err), 0);
    assert_true(digest_equal(&all.json_digest, &dir.json_digest));
    assert_int_equal(all.problem->bench_count, 2);
    problem_dir_release(&one);
    problem_dir_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_are_named_by_values),
        cmocka_unit_test(test_a_narrowed_problem_has_one_case),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
