// The object that a wisdom file has for a search: with a best candidate, without one, and as a
// question whether the file has it already.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/tune/tune.h"
#include "common/mem.h"
#include "common/version.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static double number_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static bool is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

// A run of sgemm whose second candidate is the best.
struct made {
    struct problem_dir dir;
    struct bytes kernel;
    struct tune tune;
    struct fact params[2];
    struct case_result cases[1];
    struct estimate estimate;
    struct quantiles slow, fast;
    struct result record;
    struct compiled baseline;
    struct run_state_candidate candidate[2];
    struct run_state_incumbent incumbent;
    struct run_state run_state;
};

static char *literal(const char *text)
{
    return (char *)(uintptr_t)text;
}

static int set_up(void **state)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/problems/cpu/sgemm", root ? root : ".");
    struct made *made = xcalloc(1, sizeof(*made));
    struct err err = ERR_INIT;
    int rc = problem_dir_load(&made->dir, path, &err);
    free(path);
    made->kernel = (struct bytes){.data = (unsigned char *)literal("text"), .len = 4};
    made->tune = (struct tune){.dir = &made->dir,
                               .kernel_path = "some/folder/fast.c",
                               .kernel = &made->kernel,
                               .device_class = "cpu: x"};
    made->params[0] = (struct fact){.name = literal("MB"), .value = 32};
    made->params[1] = (struct fact){.name = literal("OFF"), .value = -1};
    made->estimate = (struct estimate){.log2 = 1, .lo = 0.5, .hi = 2, .blocks = 40};
    made->slow.p50 = 8e9;
    made->fast.p50 = 4e9;
    made->cases[0] = (struct case_result){.params = literal("M=288 N=192 K=200"),
                                          .speedup = &made->estimate,
                                          .baseline_ns = &made->slow,
                                          .candidate_ns = &made->fast};
    made->record = (struct result){.verdict = VERDICT_FASTER,
                                   .speedup = &made->estimate,
                                   .cases = made->cases,
                                   .cases_count = 1,
                                   .device = literal("core3")};
    made->baseline.toolchain = literal("gcc 12.2.0");
    made->candidate[1] = (struct run_state_candidate){
        .proposed = {.candidate = 2, .params = made->params, .params_count = 2},
        .record = &made->record};
    made->incumbent.event = (struct run_incumbent){.candidate = 2, .speedup = &made->estimate};
    made->run_state = (struct run_state){.candidate = made->candidate,
                                         .candidate_count = 2,
                                         .incumbent = &made->incumbent,
                                         .incumbent_count = 1,
                                         .baseline = &made->baseline,
                                         .considered = 30,
                                         .device_seconds = 1.5,
                                         .last_at = 1767225599.9,
                                         .started = {.seed = UINT64_MAX},
                                         .session = {.device = literal("core0")}};
    *state = made;
    return rc;
}

static int tear_down(void **state)
{
    struct made *made = *state;
    problem_dir_release(&made->dir);
    free(made);
    return 0;
}

static json_t *entry(const struct made *made, const char *path)
{
    return tune_entry(&made->tune, made->dir.problem, &made->run_state, path);
}

// What is made for the file is what the file's strict reader takes.
static struct wisdom_entry *read_take(json_t *object)
{
    struct wisdom_entry *ret = NULL;
    struct err err = ERR_INIT;
    if (wisdom_entry_read(&ret, object, "w.json", "$", &err) != 0) {
        fail_msg("%s", err.text);
    }
    json_decref(object);
    return ret;
}

static void the_best_candidates_parameters_become_a_configuration(void **state)
{
    struct made *made = *state;
    json_t *object = entry(made, "a.run");
    assert_string_equal(text_at(object, "define"), "-DMB=32 -DOFF=-1");
    const json_t *params = json_object_get(object, "params");
    assert_int_equal(json_object_size(params), 2);
    assert_int_equal(json_integer_value(json_object_get(params, "OFF")), -1);
    assert_true(number_at(object, "log2_speedup") == 1 && number_at(object, "speedup") == 2);
    assert_int_equal(number_at(object, "blocks"), 40);
    const json_t *interval = json_object_get(object, "ci95");
    assert_true(json_number_value(json_array_get(interval, 1)) == 4);
    assert_string_equal(text_at(object, "kernel"), "fast.c");
    assert_string_equal(text_at(object, "device"), "core3"); // where it was measured
    assert_string_equal(text_at(object, "release"), KCAST_VERSION);
    struct wisdom_entry *read = read_take(object);
    assert_true(read->configured);
    assert_string_equal(read->define, "-DMB=32 -DOFF=-1");
    assert_int_equal(read->shape_count, 2);
    assert_true(read->log2 == 1);
    wisdom_entry_free(read);
}

static void a_case_has_times_where_it_was_measured(void **state)
{
    struct made *made = *state;
    json_t *object = entry(made, "a.run");
    const json_t *cases = json_object_get(object, "cases");
    assert_int_equal(json_array_size(cases), 2);
    const json_t *first = json_array_get(cases, 0), *second = json_array_get(cases, 1);
    assert_string_equal(text_at(first, "name"), "M=256 N=256 K=256");
    assert_null(json_object_get(first, "speedup"));
    assert_true(number_at(second, "seconds") == 4 && number_at(second, "baseline_seconds") == 8);
    assert_true(number_at(second, "speedup") == 2);
    assert_int_equal(number_at(json_object_get(second, "params"), "N"), 192);
    assert_string_equal(text_at(json_object_get(object, "dtypes"), "C"), "f32");
    json_decref(object);
}

static void times_and_seeds_are_texts_that_lose_nothing(void **state)
{
    struct made *made = *state;
    json_t *object = entry(made, "a.run");
    assert_string_equal(text_at(object, "tuned_at"), "2025-12-31T23:59:59Z");
    const json_t *search = json_object_get(object, "search");
    assert_string_equal(text_at(search, "seed"), "18446744073709551615");
    assert_int_equal(number_at(search, "considered"), 30);
    assert_true(number_at(search, "device_seconds") == 1.5);
    assert_true(is_null(search, "ended"));
    json_decref(object);
}

static void a_search_that_found_nothing_has_the_baseline(void **state)
{
    struct made *made = *state;
    made->run_state.incumbent_count = 0;
    json_t *object = entry(made, "a.run");
    assert_true(is_null(object, "params") && is_null(object, "define"));
    assert_true(is_null(object, "ci95") && is_null(object, "blocks"));
    assert_true(number_at(object, "log2_speedup") == 0 && number_at(object, "speedup") == 1);
    assert_string_equal(text_at(object, "device"), "core0"); // the session's
    struct wisdom_entry *read = read_take(object);
    assert_false(read->configured);
    assert_null(read->define);
    wisdom_entry_free(read);
}

static void a_candidate_without_parameters_is_a_configuration_without_defines(void **state)
{
    struct made *made = *state;
    made->candidate[1].proposed.params_count = 0;
    json_t *object = entry(made, "a.run");
    assert_string_equal(text_at(object, "define"), "");
    assert_true(json_is_object(json_object_get(object, "params")));
    assert_int_equal(json_object_size(json_object_get(object, "params")), 0);
    json_decref(object);
}

// Asked before a search, to see whether the file has it: the key is the same, the rest is missing.
static void a_question_has_the_key_of_the_answer(void **state)
{
    struct made *made = *state;
    json_t *object = tune_entry(&made->tune, made->dir.problem, NULL, NULL);
    assert_null(json_object_get(object, "search"));
    assert_null(json_object_get(object, "device"));
    assert_string_equal(text_at(object, "tuned_at"), "1970-01-01T00:00:00Z");
    struct wisdom_entry *question = read_take(object), *answer = read_take(entry(made, "a.run"));
    assert_true(wisdom_same(question, answer));
    wisdom_entry_free(question);
    struct bytes other = {.data = (unsigned char *)literal("texT"), .len = 4};
    made->tune.kernel = &other;
    question = read_take(tune_entry(&made->tune, made->dir.problem, NULL, NULL));
    assert_false(wisdom_same(question, answer));
    wisdom_entry_free(question);
    made->tune.kernel = &made->kernel;
    made->tune.device_class = "cpu: y";
    question = read_take(tune_entry(&made->tune, made->dir.problem, NULL, NULL));
    assert_false(wisdom_same(question, answer));
    wisdom_entry_free(question);
    wisdom_entry_free(answer);
}

static void a_narrowed_problem_is_another_thing_than_all_its_cases(void **state)
{
    struct made *made = *state;
    struct problem_dir one = {0};
    assert_int_equal(tune_narrow(&one, &made->dir, &made->kernel, 0, NULL), 0);
    struct wisdom_entry *narrow = read_take(tune_entry(&made->tune, one.problem, NULL, NULL));
    struct wisdom_entry *all = read_take(tune_entry(&made->tune, made->dir.problem, NULL, NULL));
    assert_int_equal(narrow->shape_count, 1);
    assert_string_equal(narrow->problem_digest, all->problem_digest);
    assert_false(wisdom_same(narrow, all));
    wisdom_entry_free(narrow);
    wisdom_entry_free(all);
    problem_dir_release(&one);
}

static void paths_that_are_no_utf_8_are_still_json(void **state)
{
    struct made *made = *state;
    made->tune.kernel_path = "x/fa\xffst.c";
    json_t *object = entry(made, "runs/\xc3(.run");
    assert_non_null(text_at(object, "kernel"));
    assert_non_null(strstr(text_at(object, "kernel"), "st.c"));
    assert_non_null(strstr(text_at(json_object_get(object, "search"), "run"), "(.run"));
    char *text = json_dumps(object, 0);
    assert_non_null(text);
    free(text);
    json_decref(object);
}

static void results_have_names_and_outcomes_are_released_once(void **state)
{
    (void)state;
    assert_string_equal(tune_result_name(TUNE_TUNED), "tuned");
    assert_string_equal(tune_result_name(TUNE_NONE), "none");
    json_t *object = json_object();
    struct tune_outcome outcome = {.entry = json_incref(object), .run = xstrdup("a.run")};
    tune_outcome_release(&outcome);
    assert_true(!outcome.entry && !outcome.run);
    assert_int_equal(object->refcount, 1);
    tune_outcome_release(&outcome);
    json_decref(object);
}

int main(void)
{
#define OF_A_RUN(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        OF_A_RUN(the_best_candidates_parameters_become_a_configuration),
        OF_A_RUN(a_case_has_times_where_it_was_measured),
        OF_A_RUN(times_and_seeds_are_texts_that_lose_nothing),
        OF_A_RUN(a_search_that_found_nothing_has_the_baseline),
        OF_A_RUN(a_candidate_without_parameters_is_a_configuration_without_defines),
        OF_A_RUN(a_question_has_the_key_of_the_answer),
        OF_A_RUN(a_narrowed_problem_is_another_thing_than_all_its_cases),
        OF_A_RUN(paths_that_are_no_utf_8_are_still_json),
        cmocka_unit_test(results_have_names_and_outcomes_are_released_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
