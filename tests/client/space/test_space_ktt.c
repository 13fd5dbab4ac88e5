// Files of KTT as spaces: every field that counts, every refusal.
#include "tests/client/space/space_reader.h"

#define KTT(unit, results)                                                                         \
    "{\"Metadata\": {\"ComputeApi\": \"CUDA\", \"Device\": \"NVIDIA A100\", \"KttVersion\": "      \
    "\"2.1.0\", \"TimeUnit\": \"" unit "\"}, \"Results\": [" results "]}"
#define PAIR(name, value) "{\"Name\": \"" name "\", \"Value\": " value "}"
#define CONFIG(pairs) "\"KernelName\": \"add\", \"Configuration\": [" pairs "]"
#define AND(result, more) result ", " more
// A result of block b, for which KTT needed 100 of the file's unit besides its kernel; the search
// had 5 and validation 15 of these.
#define RESULT(b, status, duration, more)                                                          \
    "{" CONFIG(AND(                                                                                \
        PAIR("BLOCK", b),                                                                          \
        PAIR("KIND", "\"float\""))) ", \"Status\": \"" status "\", \"TotalDuration\": " duration   \
                                    ", \"TotalOverhead\": 100, \"SearcherOverhead\": 5, "          \
                                    "\"ValidationOverhead\": 15, \"DataMovementOverhead\": 30, "   \
                                    "\"ExtraDuration\": 0, "                                       \
                                    "\"ComputationResults\": [{\"Duration\": " duration            \
                                    ", \"Overhead\": 50}]" more "}"
// A result with no more than there must be.
#define LEAST(b, more) "{" CONFIG(PAIR("BLOCK", b)) ", \"Status\": \"Ok\", " more "}"
#define OF_WHICH_COMPILING ", \"CompilationOverhead\": 60"

static void results_become_a_space(void **state)
{
    (void)state;
    const char *text =
        KTT("Milliseconds", AND(RESULT("32", "Ok", "4", ""), RESULT("64", "Ok", "2", "")));
    struct space space = taken(space_import_ktt, text, NULL);
    assert_string_equal(space.head.problem, "add");
    assert_string_equal(space.head.device_class, "NVIDIA A100");
    assert_string_equal(space.head.origin, "KTT results f.json: 2 configurations, 2 correct; "
                                           "speedups over the correct one of median time, "
                                           "BLOCK=64 KIND=float");
    const struct space_candidate *base = find(&space, "BLOCK=64 KIND=float");
    assert_true(space_log2(base) == 0 && base->result->verdict == VERDICT_EQUIVALENT);
    const struct space_candidate *slow = find(&space, "BLOCK=32 KIND=float");
    assert_near(space_log2(slow), -1);
    assert_int_equal(slow->result->verdict, VERDICT_SLOWER);
    assert_true(slow->result->speedup->blocks == 0); // one launch has no interval
    assert_near(slow->result->candidate_ns->p50, 4e6);
    assert_true(slow->params_count == 2 && slow->params[0].value == 32 &&
                slow->params[1].value == 0);
    assert_int_equal(slow->compiled->features_count, 0);
    space_release(&space);
}

// What KTT did besides running the kernel is charged, but not what the search needed.
static void costs_are_what_ktt_needed_for_a_configuration(void **state)
{
    (void)state;
    const char *text =
        KTT("Milliseconds", AND(RESULT("32", "Ok", "4", ""),
                                AND(RESULT("64", "Ok", "2", OF_WHICH_COMPILING),
                                    RESULT("96", "CompilationFailed", "0", OF_WHICH_COMPILING))));
    struct space space = taken(space_import_ktt, text, NULL);
    const struct accounts *seconds = space.candidate[0].result->seconds;
    assert_near(seconds->verify, 0.015);
    assert_near(seconds->time, 0.084); // 4 + 100 - 5 - 15
    assert_near(seconds->held, 0.099);
    assert_true(isnan(seconds->compile));
    seconds = space.candidate[1].result->seconds;
    assert_near(seconds->held, 0.037); // 2 + 100 - 5 - 60
    assert_near(seconds->compile, 0.06);
    assert_near(space.candidate[1].compiled->seconds, 0.06);
    assert_near(space.candidate[2].compiled->seconds, 0.08); // all but searching and validating
    space_release(&space);
}

// The time that is minimised counts the host's part, too. What a file does not tell is not needed.
static void an_overhead_that_is_not_told_is_not_guessed(void **state)
{
    (void)state;
    const char *text = KTT(
        "Milliseconds",
        AND(LEAST("1", "\"TotalDuration\": 5, \"ExtraDuration\": 2"),
            LEAST("2", "\"TotalDuration\": 10, \"TotalOverhead\": 3, \"SearcherOverhead\": 5")));
    struct space space = taken(space_import_ktt, text, NULL);
    assert_near(space.candidate[0].result->seconds->held, 0.005);
    assert_near(space.candidate[1].result->seconds->held, 0.01); // no less than what ran
    assert_near(space_log2(&space.candidate[1]), -1);
    assert_int_equal(space.head.launch_costs, 1);
    space_release(&space);
}

static void a_status_becomes_a_verdict(void **state)
{
    (void)state;
    const char *text =
        KTT("Microseconds",
            AND(AND(RESULT("1", "Ok", "4", ""), AND(RESULT("2", "ValidationFailed", "4", ""),
                                                    RESULT("3", "ComputationFailed", "0", ""))),
                AND(RESULT("4", "CompilationFailed", "0", ""),
                    RESULT("5", "DeviceLimitsExceeded", "0", ""))));
    static const enum verdict verdicts[] = {VERDICT_EQUIVALENT, VERDICT_WRONG, VERDICT_CRASH,
                                            VERDICT_NONE, VERDICT_NONE};
    struct space space = taken(space_import_ktt, text, NULL);
    assert_int_equal(space.head.candidates, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct space_candidate *c = &space.candidate[i];
        assert_true(isnan(space_log2(c)) == (i > 0));
        if (verdicts[i] == VERDICT_NONE) {
            assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
            continue;
        }
        assert_int_equal(c->result->verdict, verdicts[i]);
        assert_int_equal(c->compiled->verdict, VERDICT_NONE);
        assert_true(c->result->seconds->held > 0);
    }
    assert_string_equal(space.candidate[1].result->reason, "KTT: ValidationFailed");
    assert_string_equal(space.candidate[4].compiled->reason, "KTT: DeviceLimitsExceeded");
    space_release(&space);
    refused(space_import_ktt, KTT("Microseconds", RESULT("1", "Sulking", "4", "")), NULL,
            "configuration 1: its \"Status\" is \"Sulking\", which is none of KTT's");
}

static void times_are_in_the_unit_of_the_file(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } table[] = {{KTT("Nanoseconds", RESULT("1", "Ok", "4", "")), 1e-9},
                 {KTT("Microseconds", RESULT("1", "Ok", "4", "")), 1e-6},
                 {KTT("Milliseconds", RESULT("1", "Ok", "4", "")), 1e-3},
                 {KTT("Seconds", RESULT("1", "Ok", "4", "")), 1}};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct space space = taken(space_import_ktt, table[i].text, NULL);
        assert_near(space.candidate[0].result->candidate_ns->p50, 4e9 * table[i].seconds);
        assert_near(space.candidate[0].result->seconds->held, 99 * table[i].seconds);
        space_release(&space);
    }
    refused(space_import_ktt, KTT("Jiffies", RESULT("1", "Ok", "4", "")), NULL,
            "its \"TimeUnit\" is \"Jiffies\", which is no unit of time");
    refused(space_import_ktt, KTT("", RESULT("1", "Ok", "4", "")), NULL,
            "its \"Metadata\" have no \"TimeUnit\"");
}

static void what_is_no_file_of_ktt_is_refused(void **state)
{
    (void)state;
#define OTHER_KERNEL "{\"KernelName\": \"mul\", \"Configuration\": [], \"Status\": \"Ok\"}"
#define OK(config) KTT("Seconds", "{" config ", \"Status\": \"Ok\", \"TotalDuration\": 1}")
    static const struct {
        const char *text, *says;
    } table[] = {
        {"", "no JSON of KTT"},
        {"{\"Metadata\": {}, \"Results\": [}", "f.json:1: no JSON of KTT"},
        {"[]", "no results of KTT"},
        {"{\"Metadata\": {}}", "no results of KTT"},
        {"{\"Metadata\": [], \"Results\": []}", "no results of KTT"},
        {"{\"Metadata\": {}, \"Results\": []}", "no \"TimeUnit\""},
        {KTT("Seconds", "7"), "configuration 1: its \"Configuration\" is no list"},
        {KTT("Seconds", "{}"), "configuration 1: its \"Configuration\" is no list"},
        {OK(CONFIG("7")), "configuration 1: its \"Configuration\" is no list of objects"},
        {OK(CONFIG("{\"Name\": \"A\"}")), "\"Configuration\" is no list of objects"},
        {OK(CONFIG("{\"Value\": 1}")), "\"Configuration\" is no list of objects"},
        {OK(CONFIG("")), "configurations have no parameters"},
        {KTT("Seconds", "{" CONFIG(PAIR("A", "1")) "}"), "its \"Status\" is \"\""},
        {KTT("Seconds", "{" CONFIG(PAIR("A", "1")) ", \"Status\": \"Ok\"}"),
         "configuration 1 has no \"TotalDuration\" above 0"},
        {KTT("Seconds", RESULT("1", "Ok", "-1", "")), "\"TotalDuration\" is no number from 0"},
        {KTT("Seconds", RESULT("1", "Ok", "1e306", "")), "\"TotalDuration\" is no number from 0"},
        {KTT("Seconds", RESULT("1", "Ok", "0", "")), "has no \"TotalDuration\" above 0"},
        {KTT("Seconds", RESULT("1", "ComputationFailed", "0", "")), "no configuration is correct"},
        {KTT("Seconds", AND(RESULT("1", "Ok", "1", ""), RESULT("1", "Ok", "1", ""))),
         "two candidates are called \"BLOCK=1 KIND=float\""},
        {KTT("Seconds", AND(RESULT("1", "Ok", "1", ""), LEAST("2", "\"TotalDuration\": 1"))),
         "configuration 2 has no \"KIND\""},
        {KTT("Seconds", AND(RESULT("1", "Ok", "1", ""), OTHER_KERNEL)),
         "configuration 2 is of kernel \"mul\", the first one of \"add\""},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        refused(space_import_ktt, table[i].text, NULL, table[i].says);
    }
}

static void what_the_file_does_not_name_is_given(void **state)
{
    (void)state;
#define BARE(a, seconds)                                                                           \
    "{\"Configuration\": [" PAIR("A", a) "], \"Status\": \"Ok\", \"TotalDuration\": " seconds "}"
    const char *text = "{\"Metadata\": {\"TimeUnit\": \"Seconds\"}, \"Results\": [" AND(
        BARE("true", "1"), BARE("false", "2")) "]}";
    refused(space_import_ktt, text, NULL, "does not name its problem; say it with --problem");
    struct space_import how = {.problem = "add", .device = "A100", .baseline = "A=False"};
    struct space space = taken(space_import_ktt, text, &how);
    assert_string_equal(space.head.problem, "add");
    assert_string_equal(space.head.device_class, "A100");
    assert_true(space.candidate[0].params[0].value == 1);
    assert_near(space_log2(&space.candidate[0]), 1);
    space_release(&space);
    how.device = NULL;
    refused(space_import_ktt, text, &how, "does not name its device; say it with --device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_become_a_space),
        cmocka_unit_test(costs_are_what_ktt_needed_for_a_configuration),
        cmocka_unit_test(an_overhead_that_is_not_told_is_not_guessed),
        cmocka_unit_test(a_status_becomes_a_verdict),
        cmocka_unit_test(times_are_in_the_unit_of_the_file),
        cmocka_unit_test(what_is_no_file_of_ktt_is_refused),
        cmocka_unit_test(what_the_file_does_not_name_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
