// Files of Kernel Tuner as spaces: every field that counts, every refusal.
#include "tests/client/space/space_reader.h"

#define TUNER_HEAD                                                                                 \
    "{\n\"device_name\": \"NVIDIA A100\",\n\"kernel_name\": \"vector_add\",\n"                     \
    "\"problem_size\": [4096, 2],\n\"tune_params_keys\": [\n\"block\",\n\"kind\",\n\"fast\"\n],\n" \
    "\"tune_params\": {\n\"block\": [\n32,\n64\n],\n\"kind\": [\n\"b\",\n\"a\"\n],\n"              \
    "\"fast\": [false, true]\n},\n\"objective\": [\n\"time\"\n],\n\"cache\": {"
#define TUNER_ROWS                                                                                 \
    "\n\"32,a,True\": {\"block\": 32, \"kind\": \"a\", \"fast\": true, \"time\": 2.0, "            \
    "\"times\": [1.9, 2.0, 2.1], \"compile_time\": 150, \"verification_time\": 20.5, "             \
    "\"benchmark_time\": 30, \"GFLOP/s\": NaN, \"timestamp\": \"x\"},"                             \
    "\n\"64,a,True\": {\"block\": 64, \"kind\": \"a\", \"fast\": true, \"time\": 1.0, "            \
    "\"times\": [0.98, 1.0, 1.02], \"compile_time\": 100, \"benchmark_time\": 10},"                \
    "\n\"64,b,False\": {\"block\": 64, \"kind\": \"b\", \"fast\": false, \"time\": 8},"            \
    "\n\"32,b,False\": {\"block\": 32, \"kind\": \"b\", \"fast\": false, "                         \
    "\"__error__\": \"CompilationFailedConfig\", \"compile_time\": 7},"                            \
    "\n\"32,b,True\": {\"block\": 32, \"kind\": \"b\", \"fast\": true, "                           \
    "\"time\": \"RuntimeFailedConfig\", \"compile_time\": 90},"                                    \
    "\n\"64,b,True\": {\"block\": 64, \"kind\": \"b\", \"fast\": true, \"time\": "                 \
    "\"InvalidConfig\"},"                                                                          \
    "\n\"64,a,False\": {\"block\": 64, \"kind\": \"a\", \"fast\": false, \"time\": 1e20}"

static void look_at_tuner(const struct space *space)
{
    assert_int_equal(space->head.candidates, 7);
    assert_string_equal(space->head.problem, "vector_add");
    assert_string_equal(space->head.device_class, "NVIDIA A100");
    assert_non_null(strstr(space->head.origin, "3 correct"));
    assert_non_null(strstr(space->head.origin, "median time, block=32 kind=a fast=True"));
    assert_non_null(strstr(space->head.origin, "problem size [4096,2]"));
    const struct space_candidate *base = find(space, "block=32 kind=a fast=True");
    assert_true(space_log2(base) == 0 && base->result->verdict == VERDICT_EQUIVALENT);
    assert_int_equal(base->params_count, 3);
    assert_true(base->params[0].value == 32 && base->params[1].value == 1 &&
                base->params[2].value == 1);
    assert_near(base->compiled->seconds, 0.15);
    assert_near(base->result->seconds->compile, 0.15);
    assert_near(base->result->seconds->verify, 0.0205);
    assert_near(base->result->seconds->time, 0.03);
    assert_near(base->result->seconds->held, 0.0505);
    assert_near(base->result->candidate_ns->p50, 2e6);
    const struct space_candidate *best = find(space, "block=64 kind=a fast=True");
    assert_near(space_log2(best), 1);
    assert_int_equal(best->result->verdict, VERDICT_FASTER);
    assert_int_equal(best->result->launches, 3);
    // The means are those of log2(1.9, 2, 2.1) and of log2(0.98, 1, 1.02), with standard deviations
    // 0.0722025 and 0.0288582. So Welch's standard error is 0.0448924 with 2.62309 degrees of
    // freedom, whose quantile at 0.975 is 3.45763 (SciPy).
    assert_true(fabs(best->result->speedup->hi - 1 - 0.155222) < 1e-5);
    assert_true(best->result->speedup->lo < 1 && best->result->speedup->blocks == 3);
    const struct space_candidate *slow = find(space, "block=64 kind=b fast=False");
    assert_near(space_log2(slow), -2);
    assert_true(slow->result->speedup->blocks == 0 && slow->params[1].value == 0);
    assert_near(slow->result->seconds->held, 0.008); // only one launch is known
}

static void a_cache_file_becomes_a_space(void **state)
{
    (void)state;
    struct space space = taken(space_import_kernel_tuner, TUNER_HEAD TUNER_ROWS "}\n}", NULL);
    look_at_tuner(&space);
    const struct space_candidate *c = find(&space, "block=32 kind=b fast=False");
    assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
    assert_string_equal(c->compiled->reason, "Kernel Tuner: CompilationFailedConfig");
    assert_near(c->compiled->seconds, 0.007);
    c = find(&space, "block=64 kind=b fast=True");
    assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
    c = find(&space, "block=32 kind=b fast=True");
    assert_true(c->result->verdict == VERDICT_CRASH && c->compiled->verdict == VERDICT_NONE);
    assert_near(c->result->seconds->compile, 0.09);
    assert_true(c->result->seconds->held == 0);
    c = find(&space, "block=64 kind=a fast=False");
    assert_int_equal(c->result->verdict, VERDICT_CRASH);
    space_release(&space);
}

static void an_unfinished_cache_file_is_read(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "", ",", ",\n", "}\n}\n", ",\n\"32,a,Fal", ",\n\"32,a,False\": {\"block\": 32, \"ki"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char *text = xasprintf("%s%s", TUNER_HEAD TUNER_ROWS, ends[i]);
        struct space space = taken(space_import_kernel_tuner, text, NULL);
        look_at_tuner(&space);
        space_release(&space);
        free(text);
    }
    refused(space_import_kernel_tuner, TUNER_HEAD, NULL, "0 configurations");
}

// A cache file of two configurations, with these fields after "time".
#define COSTS(one, two)                                                                            \
    "{\"device_name\": \"d\", \"kernel_name\": \"k\", \"tune_params_keys\": [\"a\"], "             \
    "\"problem_size\": 7, \"cache\": {\"1\": {\"a\": 1, \"time\": 1" one                           \
    "}, \"2\": {\"a\": 2, \"time\": 2" two "}, \"3\": {\"a\": 3, \"time\": \"InvalidConfig\"}}}"

static void costs_of_one_launch_are_flagged(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t flagged;
    } table[] = {
        {COSTS("", ""), 2},
        {COSTS("", ", \"times\": [2, 2]"), 1},
        {COSTS(", \"times\": [1]", ", \"benchmark_time\": 30"), 1},
        {COSTS(", \"times\": [1, 1]", ", \"benchmark_time\": 30"), 0},
        {COSTS(", \"times\": null, \"verification_time\": 3", ", \"benchmark_time\": null"), 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct space space = taken(space_import_kernel_tuner, table[i].text, NULL);
        struct strbuf sentence = STRBUF_INIT;
        assert_int_equal(space.head.launch_costs, table[i].flagged);
        space_add_cost_warning(&space, "k.space", &sentence);
        const char *told = strstr(space.head.origin, " are those of one launch; problem size 7");
        bool flagged = table[i].flagged > 0;
        assert_true((sentence.len > 0) == flagged && (told ? flagged : !flagged));
        if (i == 0) {
            assert_string_equal(sentence.data,
                                "k.space: for 2 of 3 candidates a search is charged one kernel "
                                "launch, because nothing else was recorded; measuring them takes "
                                "far longer, so do not compare searches of this space by device "
                                "time");
        }
        strbuf_release(&sentence);
        space_release(&space);
    }
}

static void a_baseline_is_found_by_its_parameters(void **state)
{
    (void)state;
    const char *text = TUNER_HEAD TUNER_ROWS "}\n}";
    struct space_import how = {.baseline = "kind=b"};
    struct space space = taken(space_import_kernel_tuner, text, &how);
    assert_near(space_log2(find(&space, "block=64 kind=a fast=True")), 3);
    assert_non_null(strstr(space.head.origin, "the chosen block=64 kind=b fast=False"));
    space_release(&space);
    how.baseline = "fast=True,block=64";
    space = taken(space_import_kernel_tuner, text, &how);
    assert_near(space_log2(find(&space, "block=32 kind=a fast=True")), -1);
    assert_int_equal(find(&space, "block=32 kind=a fast=True")->result->verdict, VERDICT_SLOWER);
    space_release(&space);
    how.baseline = "kind=a";
    refused(space_import_kernel_tuner, text, &how,
            "2 correct configurations have kind=a; name more");
    how.baseline = "kind=b,block=32"; // a configuration that failed
    refused(space_import_kernel_tuner, text, &how, "no correct configuration has kind=b,block=32");
    how.baseline = "block";
    refused(space_import_kernel_tuner, text, &how, "no correct configuration has block");
    how = (struct space_import){.problem = "other"};
    refused(space_import_kernel_tuner, text, &how, "of \"vector_add\", not of --problem \"other\"");
    how = (struct space_import){.device = "NVIDIA H200"};
    refused(space_import_kernel_tuner, text, &how, "of \"NVIDIA A100\", not of --device");
}

#define T4(invalidity, more)                                                                       \
    "{\"configuration\": {\"n\": " more ", \"times\": {\"compilation\": 100, \"benchmark\": 50, "  \
    "\"validation\": 25, \"runtimes\": []}, \"invalidity\": \"" invalidity                         \
    "\", \"correctness\": 1, \"measurements\": [{\"name\": \"power\", \"value\": 7}, "
#define TIME(value, unit) "{\"name\": \"time\", \"value\": " value ", \"unit\": \"" unit "\"}]}"

static void t4_results_become_a_space(void **state)
{
    (void)state;
    const char *text = "{\"results\": [" T4("correct", "1}")
        TIME("4", "ms") ", " T4("correct", "2}") TIME("2000", "us") ", " T4("correctness", "3}")
            TIME("1", "ms") ", " T4("timeou"
                                    "t",
                                    "4}") TIME("1", "ms") ", " T4("constraints", "5}")
                TIME("1", "ms") ", " T4("runtime", "6}")
                    TIME("1", "ms") "], \"schema_version\": \"1.0.0\"}";
    const struct space_import how = {.problem = "gemm", .device = "MI250X", .baseline = "n=1"};
    struct space space = taken(space_import_kernel_tuner, text, &how);
    static const enum verdict verdicts[] = {VERDICT_EQUIVALENT, VERDICT_FASTER, VERDICT_WRONG,
                                            VERDICT_TIMEOUT,    VERDICT_NONE,   VERDICT_CRASH};
    assert_int_equal(space.head.candidates, 6);
    assert_string_equal(space.head.problem, "gemm");
    assert_string_equal(space.head.device_class, "MI250X");
    for (size_t i = 0; i < 6; i++) {
        const struct space_candidate *c = &space.candidate[i];
        assert_true(c->params[0].value == (double)i + 1);
        if (verdicts[i] == VERDICT_NONE) {
            assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
            continue;
        }
        assert_int_equal(c->result->verdict, verdicts[i]);
        assert_near(c->result->seconds->held, 0.075);
    }
    assert_near(space_log2(&space.candidate[1]), 1);
    assert_true(isnan(space_log2(&space.candidate[2])));
    space_release(&space);
    refused(space_import_kernel_tuner, text, NULL,
            "does not name its problem; say it with --problem");
    const struct space_import half = {.problem = "gemm"};
    refused(space_import_kernel_tuner, text, &half,
            "does not name its device; say it with --device");
    refused(space_import_kernel_tuner,
            "{\"results\": [" T4("correct", "1}") TIME("4", "hours") "]}", &how,
            "configuration 1: its \"unit\" is \"hours\", which is no unit of time");
    refused(space_import_kernel_tuner, "{\"results\": [" T4("odd", "1}") TIME("4", "ms") "]}", &how,
            "\"invalidity\" is none of T4's");
    refused(space_import_kernel_tuner, "{\"results\": [" T4("correct", "1}") "1]}]}", &how,
            "configuration 1 has no \"time\"");
}

// What is in the unit of the file is in that unit: the times of one row that a launch took 4 of,
// with the unit of the launch if it has one.
static char *t4_in_unit(const char *unit, const char *of_launch)
{
    return xasprintf(
        "{\"results\": [" T4("correct",
                             "1}") "{\"name\": \"time\", \"value\": 4%s}]}], \"metadata\": {%s}}",
        of_launch, unit);
}

static void t4_results_have_a_unit_of_time(void **state)
{
    (void)state;
    static const struct {
        const char *unit, *of_launch;
        double ms, launch_ms;
    } table[] = {
        {"\"timeunit\": \"miliseconds\"", ", \"unit\": \"miliseconds\"", 1, 1},
        {"\"timeunit\": \"milliseconds\"", ", \"unit\": \"us\"", 1, 1e-3},
        {"\"timeunit\": \"Microseconds\"", "", 1e-3, 1e-3},
        {"\"timeunit\": \"seconds\"", ", \"unit\": \"\"", 1e3, 1e3},
        {"\"timeunit\": \"nanoseconds\"", ", \"unit\": null", 1e-6, 1e-6},
        {"\"timeunit\": null", ", \"unit\": \"ns\"", 1, 1e-6},
        {"", "", 1, 1},
    };
    const struct space_import how = {.problem = "gemm", .device = "A100"};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char *text = t4_in_unit(table[i].unit, table[i].of_launch);
        struct space space = taken(space_import_kernel_tuner, text, &how);
        const struct result *result = space.candidate[0].result;
        assert_near(result->seconds->held, 0.075 * table[i].ms);
        assert_near(result->seconds->compile, 0.1 * table[i].ms);
        assert_near(result->candidate_ns->p50, 4e6 * table[i].launch_ms);
        space_release(&space);
        free(text);
    }
    char *text = t4_in_unit("\"timeunit\": \"fortnights\"", "");
    refused(space_import_kernel_tuner, text, &how,
            "f.json: its \"timeunit\" is \"fortnights\", which is no unit of time that is known; "
            "nanoseconds, microseconds, milliseconds and seconds are");
    free(text);
    text = t4_in_unit("\"timeunit\": 1000", "");
    refused(space_import_kernel_tuner, text, &how, "its \"timeunit\" is 1000, which is no unit");
    free(text);
}

static void what_is_no_file_of_the_tuner_is_refused(void **state)
{
    (void)state;
#define ROW(row) "{\"tune_params_keys\": [\"a\"], \"cache\": {\"k\": " row "}}"
    static const struct {
        const char *text, *says;
    } table[] = {
        {"", "no JSON of Kernel Tuner"},
        {"[1", "no JSON of Kernel Tuner"},
        {"[]", "neither a cache file"},
        {"{\"Results\": []}", "`kcast import ktt` reads them"},
        {"{\"cache\": {}}", "\"tune_params_keys\" are no list"},
        {"{\"tune_params_keys\": [7], \"cache\": {\"k\": {}}}", "something that is no text"},
        {"{\"tune_params_keys\": [], \"cache\": {\"k\": {}}}", "have no parameters"},
        {ROW("7"), "configuration k is no object"},
        {ROW("{\"a\": 1}"), "configuration k has no \"time\" above 0"},
        {ROW("{\"a\": 1, \"time\": 0}"), "configuration k has no \"time\" above 0"},
        {ROW("{\"a\": 1, \"time\": NaN}"), "configuration k has no \"time\" above 0"},
        {ROW("{\"a\": 1, \"time\": \"soon\"}"), "\"time\" is no number from 0"},
        {ROW("{\"a\": 1, \"time\": 1, \"compile_time\": -1}"), "\"compile_time\" is no number"},
        {ROW("{\"a\": 1, \"time\": 1, \"times\": 3}"), "its times are no list"},
        {ROW("{\"b\": 1, \"time\": 1}"), "configuration k has no \"a\""},
        {ROW("{\"a\": 1, \"__error__\": \"InvalidConfig\"}"), "no configuration is correct"},
        {ROW("{\"a\": 1, \"time\": 1}"), "does not name its problem"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        refused(space_import_kernel_tuner, table[i].text, NULL, table[i].says);
    }
    const struct space_import how = {.problem = "p", .device = "d"};
    refused(space_import_kernel_tuner,
            "{\"tune_params_keys\": [\"a\"], \"cache\": {\"k\": {\"a\": 1, \"time\": 1}, "
            "\"l\": {\"a\": 1, \"time\": 2}}}",
            &how, "two candidates are called \"a=1\"");
}

static void candidates_are_lines_of_json(void **state)
{
    (void)state;
    struct space space = taken(space_import_kernel_tuner, TUNER_HEAD TUNER_ROWS "}\n}", NULL);
    for (size_t i = 0; i < space.head.candidates; i++) {
        struct strbuf line = STRBUF_INIT;
        space_json_candidate(&line, &space, i);
        assert_true(strchr(line.data, '\n') == line.data + line.len - 1);
        json_auto_t *object = json_loads(line.data, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(json_string_value(json_object_get(object, "name")),
                            space.candidate[i].name);
        const char *verdict = json_string_value(json_object_get(object, "verdict"));
        const json_t *speedup = json_object_get(object, "speedup");
        assert_non_null(verdict);
        if (isnan(space_log2(&space.candidate[i]))) {
            assert_true(json_is_null(speedup));
            assert_non_null(json_string_value(json_object_get(object, "reason")));
        } else {
            assert_near(log2(json_number_value(speedup)), space_log2(&space.candidate[i]));
            assert_true(json_is_array(json_object_get(object, "ci95")) ==
                        (space.candidate[i].result->speedup->blocks > 0));
        }
        assert_int_equal(json_object_size(json_object_get(object, "params")), 3);
        strbuf_release(&line);
    }
    space_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_file_becomes_a_space),
        cmocka_unit_test(an_unfinished_cache_file_is_read),
        cmocka_unit_test(costs_of_one_launch_are_flagged),
        cmocka_unit_test(a_baseline_is_found_by_its_parameters),
        cmocka_unit_test(t4_results_become_a_space),
        cmocka_unit_test(t4_results_have_a_unit_of_time),
        cmocka_unit_test(what_is_no_file_of_the_tuner_is_refused),
        cmocka_unit_test(candidates_are_lines_of_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
