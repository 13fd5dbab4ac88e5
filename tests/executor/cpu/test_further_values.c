// Whole measurements on a core of problems with further distributions: a softmax that subtracts
// what all inputs lie around instead of the maximum is right for `values` alone, and wrong.
#include "tests/executor/fixture.h"

#define SOFTMAX "../../../problems/cpu/softmax/" // of the sources of fixture_read
#define Y 1                                      // the second tensor of both problems

// Every loop of it is as long as the honest one's.
static const char constant_softmax[] =
    "#include <math.h>\n"
    "void softmax(const float *x, float *y, int64_t R, int64_t N)\n"
    "{\n"
    "    for (int64_t r = 0; r < R; r++) {\n"
    "        float sum = 0;\n"
    "        for (int64_t i = 0; i < N; i++)\n"
    "            sum += y[r * N + i] = expf(x[r * N + i] - 100);\n"
    "        for (int64_t i = 0; i < N; i++)\n"
    "            y[r * N + i] /= sum;\n"
    "    }\n"
    "}\n";

// Another order than the baseline's, so that its sums are others.
static const char backwards_window[] = "void window(const float *x, float *y, int64_t N)\n"
                                       "{\n"
                                       "    for (int64_t i = 0; i < N; i++) {\n"
                                       "        float sum = 0;\n"
                                       "        for (int64_t j = 16; j-- > 0;)\n"
                                       "            sum += x[i + j];\n"
                                       "        y[i] = sum;\n"
                                       "    }\n"
                                       "}\n";

// Makes the text the fixture's problem.
static void set_problem(struct fixture *fixture, const char *text)
{
    struct err err = ERR_INIT;

    bytes_clear(&fixture->json);
    problem_free(fixture->problem);
    fixture->problem = NULL;
    fixture->json = bytes_copy(text, strlen(text));
    if (problem_parse(&fixture->problem, text, strlen(text), "p", &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static struct bytes object_of(const struct fixture *fixture, const char *source)
{
    struct compile_plan plan = fixture_compile_plan(fixture, "candidates/equal.c", false);

    bytes_clear(&plan.source);
    plan.source = bytes_copy(source, strlen(source));
    struct compile_outcome outcome = fixture_compile(fixture, &plan);
    assert_int_equal(outcome.compiled->verdict, VERDICT_NONE);
    struct bytes object = outcome.object;
    outcome.object = (struct bytes){.data = NULL};
    message_clear(&compile_outcome_message, &outcome);
    return object;
}

// The shipped problem, and with also false without its further distributions.
static char *softmax_json(bool also)
{
    struct bytes json = fixture_read(SOFTMAX "problem.json");
    char *text = xstrndup((const char *)json.data, json.len);
    char *begin = strstr(text, "\"also\": ["), *end = strchr(begin, ']');

    if (!also) {
        while (*begin != ',') {
            begin--;
        }
        memset(begin, ' ', (size_t)(end + 1 - begin));
    }
    bytes_clear(&json);
    return text;
}

static struct measure_outcome measure_constant(struct fixture *fixture, bool also)
{
    char *json = softmax_json(also);

    set_problem(fixture, json);
    assert_int_equal(fixture->problem->tensor[0].also_count > 0, also);
    struct bytes object = object_of(fixture, constant_softmax);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);
    plan.max_seconds = 1e-6; // whether it is faster does not matter
    struct measure_outcome outcome = fixture_measure(fixture, &plan);
    bytes_clear(&object);
    free(json);
    return outcome;
}

static void a_constant_instead_of_the_maximum_is_wrong(void **state)
{
    struct fixture *fixture = *state;
    struct measure_outcome outcome = {.result = NULL};

    char *json = softmax_json(true);
    set_problem(fixture, json);
    free(json);
    bytes_clear(&fixture->reference);
    bytes_clear(&fixture->baseline);
    fixture->reference = fixture_object(fixture, SOFTMAX "reference.c", true);
    fixture->baseline = fixture_object(fixture, SOFTMAX "baseline.c", false);
    outcome = measure_constant(fixture, false);
    assert_true(verdict_is_ratio(outcome.result->verdict));
    message_clear(&measure_outcome_message, &outcome);
    outcome = measure_constant(fixture, true);
    const char *reason = outcome.result->reason;
    if (outcome.result->verdict != VERDICT_WRONG || !strstr(reason, " with x from uniform(low=-")) {
        fail_msg("%s: %s", verdict_name(outcome.result->verdict), reason ? reason : "-");
    }
    message_clear(&measure_outcome_message, &outcome);
}

// ---- what outputs are held against in timing ----

static double apart; // what a benchmark case has when its verification has ended

static int verify_and_look(void *machine, void *data, bool timed, struct err *err)
{
    int rc = measure_cpu.verify(machine, data, timed, err);

    apart = timed ? ((struct case_data *)data)->distance[Y] : apart;
    return rc;
}

static double distance_after(struct fixture *fixture, const char *values)
{
    struct bytes json = fixture_read("window/problem.json");
    static const char stddev[] = "\"stddev\": 1}";
    const char *text = (const char *)json.data, *at = strstr(text, stddev) + strlen(stddev);
    char *with =
        xasprintf("%.*s%s%.*s", (int)(at - text), text, values, (int)(text + json.len - at), at);

    set_problem(fixture, with);
    struct bytes object = object_of(fixture, backwards_window);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);
    struct measure_ops ops = measure_cpu;
    struct measure_outcome outcome;
    struct err err = ERR_INIT;
    plan.max_seconds = 1e-6;
    ops.verify = verify_and_look;
    if (fixture_try_ops(fixture, &ops, &plan, &outcome, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(verdict_is_ratio(outcome.result->verdict));
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&object);
    free(with);
    bytes_clear(&json);
    return apart;
}

// The last bits of values that are a hundred thousand times as large would hide anything.
static void distances_for_further_distributions_are_not_usual(void **state)
{
    double plain = distance_after(*state, "");
    double also = distance_after(
        *state, ", \"also\": [{\"distribution\": \"uniform\", \"low\": 1e5, \"high\": 2e5}]");

    assert_true(plain > 0 && plain < 1e-6);
    assert_true(also > 0 && also < 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_constant_instead_of_the_maximum_is_wrong, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(distances_for_further_distributions_are_not_usual,
                                        fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
