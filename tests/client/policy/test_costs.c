// The weights of costs as a user writes them and as a run file keeps them, and what a candidate is
// expected to cost.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/costs.h"
#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <string.h>

static void weights_are_read(void **state)
{
    (void)state;
    struct cost_weights weights;
    assert_int_equal(cost_weights_read(&weights, NULL, NULL), 0);
    assert_true(weights.device == 1 && weights.compile == 0.1 && weights.wall == 0);
    assert_true(weights.token == 0.001 && weights.money == 1000);
    assert_int_equal(cost_weights_read(&weights, "compile=0.5,wall=2,device=0", NULL), 0);
    assert_true(weights.device == 0 && weights.compile == 0.5 && weights.wall == 2);
    assert_true(weights.money == 1000);
}

// What those cost that were measured, with and without compiling.
static void the_usual_cost_is_a_mean(void **state)
{
    (void)state;
    struct accounts accounts[] = {{.held = 2}, {.held = 4}};
    struct result result[] = {{.verdict = VERDICT_WRONG, .seconds = &accounts[0]},
                              {.verdict = VERDICT_WRONG, .seconds = &accounts[1]}};
    struct compiled compiled = {.seconds = 10};
    struct accounts again = {.held = 3};
    struct result record = {.verdict = VERDICT_WRONG, .seconds = &again};
    struct run_state_candidate candidate[] = {{.compiled = &compiled, .result = &result[0]},
                                              {.compiled = &compiled},
                                              {.compiled = &compiled, .result = &result[1]}};
    struct run_state run_state = {.candidate = candidate, .candidate_count = 3};
    struct cost_weights weights = {.device = 1, .compile = 0.1};
    assert_true(cost_usual(&run_state, 0, &weights, false) == 0);
    assert_true(cost_usual(&run_state, 1, &weights, false) == 3);
    assert_true(cost_usual(&run_state, 3, &weights, false) == 4);
    assert_true(cost_usual(&run_state, 3, &weights, true) == 3);
    weights.wall = 1;
    assert_true(cost_usual(&run_state, 3, &weights, true) == 6);
    assert_true(cost_usual(&run_state, 3, &weights, false) == 17);
    candidate[0].record = &record; // it became a record, which is no part of measuring one
    assert_true(cost_usual(&run_state, 3, &weights, true) == 6);
    assert_true(cost_usual(&run_state, 3, &weights, false) == 20);
}

static void bad_weights_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"speed=1", "\"speed=1\""},
        {"device", "\"device\""},
        {"device=1,", "\"\""},
        {",", "\"\""},
        {"device=1,device=2", "device twice"},
        {"devic=1", "\"devic=1\""},
        {"devices=1", "\"devices=1\""},
        {"device=-1", "--weights"},
        {"device=nan", "--weights"},
        {"device=1e7", "--weights"},
        {"device=", "--weights"},
        {"device=0,compile=0", "more than 0"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cost_weights weights = {.device = 77};
        struct err err = ERR_INIT;
        assert_int_equal(cost_weights_read(&weights, cases[i].text, &err), ERR_USAGE);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        assert_true(weights.device == 77);
    }
}

static void a_run_file_keeps_them(void **state)
{
    (void)state;
    struct run_started started;
    message_init(&run_started_message, &started);
    struct cost_weights weights, again = cost_weights_of(&started);
    assert_true(again.device == 1 && again.compile == 0.1); // a file of before has none
    assert_int_equal(cost_weights_read(&weights, "device=0,wall=0.25,token=0", NULL), 0);
    cost_weights_put(&weights, &started);
    again = cost_weights_of(&started);
    assert_memory_equal(&again, &weights, sizeof(weights));
}

// A forecast of a speedup of 1, correct with this probability.
static struct forecast sure_of_one(double *bins, double p_correct, double p_compiles)
{
    memset(bins, 0, BIN_COUNT * sizeof(*bins));
    bins[bin_of(0.1)] = 1;
    return (struct forecast){
        .p_correct = p_correct, .p_compiles = p_compiles, .bins = bins, .bins_count = BIN_COUNT};
}

static void what_may_not_compile_may_not_hold_the_device(void **state)
{
    (void)state;
    double bins[BIN_COUNT];
    struct measure_cost cost = {.fixed = 0.4, .slope = 0, .failure = 2};
    struct cost_weights weights = {.device = 1, .compile = 0.5, .wall = 0};
    struct forecast forecast = sure_of_one(bins, 0.5, 0.75);
    // 0.5 of 0.4 s, 0.25 of 2 s; 0.25 does not compile.
    assert_true(fabs(measure_cost_expect(&cost, &weights, &forecast, 0) - 0.7) < 1e-9);
    assert_true(fabs(measure_cost_expect(&cost, &weights, &forecast, 3) - 2.2) < 1e-9);
    forecast.p_compiles = NAN; // it is compiled
    assert_true(fabs(measure_cost_expect(&cost, &weights, &forecast, 0) - 1.2) < 1e-9);
    forecast.p_compiles = 0; // not said
    assert_true(fabs(measure_cost_expect(&cost, &weights, &forecast, 0) - 1.2) < 1e-9);
    weights.wall = 1;
    assert_true(fabs(measure_cost_expect(&cost, &weights, &forecast, 3) - 1.2 - 1.5 - 4.2) < 1e-9);
    cost.fixed = 0; // nothing is known yet
    assert_true(measure_cost_expect(&cost, &weights, &forecast, 3) == 1);
}

static void a_candidate_has_cost_what_it_took(void **state)
{
    (void)state;
    struct compiled compiled = {.seconds = 4};
    struct accounts held = {.held = 0.5};
    struct result result = {.seconds = &held};
    struct cost_weights weights = {.device = 2, .compile = 0.25, .wall = 1};
    struct run_state_candidate candidate = {.compiled = &compiled};
    assert_true(fabs(cost_of_candidate(&candidate, &weights) - 5) < 1e-9);
    candidate.result = &result;
    assert_true(fabs(cost_of_candidate(&candidate, &weights) - 6.5) < 1e-9);
    candidate.record = &result;
    assert_true(fabs(cost_of_candidate(&candidate, &weights) - 8) < 1e-9);
    compiled.seconds = NAN;
    assert_true(fabs(cost_of_candidate(&candidate, &weights) - 3) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_read),
        cmocka_unit_test(the_usual_cost_is_a_mean),
        cmocka_unit_test(bad_weights_are_refused),
        cmocka_unit_test(a_run_file_keeps_them),
        cmocka_unit_test(what_may_not_compile_may_not_hold_the_device),
        cmocka_unit_test(a_candidate_has_cost_what_it_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
