// Measurements of a tiny problem with the real sandbox and compiler: the verdict of each kind of
// candidate. No verdict here depends on how fast the machine is.
#include "tests/executor/fixture.h"

#define BIT(id) (1U << VERDICT_##id)
#define ANY UINT32_MAX

struct expectation {
    const char *candidate;
    uint32_t verdicts;  // bits of the verdicts that are right
    const char *reason; // part of the reason; NULL: any
    bool short_limit;   // with a short limit for a launch, which it is expected to exceed
};

static const struct expectation expectation[] = {
    {"faster", BIT(FASTER), NULL, false},
    {"slower", BIT(SLOWER), NULL, false},
    {"prints", BIT(FASTER), NULL, false},
    {"flood", BIT(SLOWER) | BIT(FASTER), NULL, false},
    {"longjmp", ANY, NULL, true}, // its behaviour is undefined: any verdict is right
    {"wrong", BIT(WRONG), "expected", false},
    {"wrong_last", BIT(WRONG), "y[0] is", false},
    {"nothing", BIT(WRONG), "y[0] is", false},
    {"memo", BIT(WRONG), "expected", false},
    {"memo_contents", BIT(SLOWER) | BIT(EQUIVALENT) | BIT(INCONCLUSIVE), NULL, false},
    {"overrun", BIT(WRONG), "outside y", false},
    {"underrun", BIT(WRONG), "outside y", false},
    {"far", BIT(CRASH), "SIGSEGV", false},
    {"segv", BIT(CRASH), "SIGSEGV", false},
    {"divide", BIT(CRASH), "SIGFPE", false},
    {"abort", BIT(CRASH), "abort", false},
    {"deep", BIT(CRASH), "SIGSEGV", false},
    {"exit", BIT(CRASH), "exit status 0", false},
    {"exit_later", BIT(CRASH), "exit status 7", false},
    {"write_input", BIT(CRASH), "SIGSEGV", false},
    {"hang", BIT(TIMEOUT), "longer than", true},
    {"futex_sleep", BIT(TIMEOUT), "longer than", true},
    // It computes after it has reported "done": that is charged, and right if it is in time.
    {"forge_done", BIT(WRONG) | BIT(FASTER), NULL, true},
    {"forge_only", BIT(WRONG) | BIT(TIMEOUT), NULL, true},
    {"scribble", BIT(TIMEOUT) | BIT(CRASH), NULL, true},
    {"late", BIT(SLOWER) | BIT(QUARANTINED) | BIT(WRONG), NULL, false},
};

// Candidates that only the sandbox refuses.
static const struct expectation confined[] = {
    {"fork", BIT(REJECTED), "called clone", false},
    {"thread", BIT(REJECTED), "system call", false},
    {"socket", BIT(REJECTED), "called socket", false},
    {"open_shadow", BIT(REJECTED), "called openat", false},
    {"exec", BIT(REJECTED), "called execve", false},
    {"sleep", BIT(REJECTED), "called clock_nanosleep", false},
    {"affinity", BIT(REJECTED), "called sched_setaffinity", false},
    {"unprotect_input", BIT(CRASH), "SIGSEGV", false},
    {"eat_memory", BIT(CRASH) | BIT(TIMEOUT), NULL, true},
};

static struct measure_outcome measure_file(const struct fixture *fixture, const char *name,
                                           bool short_limit)
{
    char *file = xasprintf("candidates/%s.c", name);
    struct bytes object = fixture_object(fixture, file, false);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);

    plan.launch_seconds = short_limit ? 0.2 : 5;
    struct measure_outcome outcome = fixture_measure(fixture, &plan);
    bytes_clear(&object);
    free(file);
    return outcome;
}

static void expect(const struct fixture *fixture, const struct expectation *expected)
{
    struct measure_outcome outcome =
        measure_file(fixture, expected->candidate, expected->short_limit);
    const struct result *result = outcome.result;

    if ((expected->verdicts >> result->verdict & 1) == 0) {
        fail_msg("%s: %s (%s)", expected->candidate, verdict_name(result->verdict),
                 result->reason ? result->reason : "-");
    }
    if (expected->reason && (!result->reason || !strstr(result->reason, expected->reason))) {
        fail_msg("%s: the reason is \"%s\", expected \"%s\" in it", expected->candidate,
                 result->reason ? result->reason : "-", expected->reason);
    }
    if (!verdict_is_ratio(result->verdict)) {
        assert_non_null(result->reason);
    }
    message_clear(&measure_outcome_message, &outcome);
}

static void every_kind_of_candidate_gets_its_verdict(void **state)
{
    for (size_t i = 0; i < ARRAY_LEN(expectation); i++) {
        expect(*state, &expectation[i]);
    }
}

static void confined_candidates_are_rejected_by_name_of_the_call(void **state)
{
    fixture_need_sandbox(*state);
    for (size_t i = 0; i < ARRAY_LEN(confined); i++) {
        expect(*state, &confined[i]);
    }
}

static void result_is_complete_and_packs(void **state)
{
    struct measure_outcome outcome = measure_file(*state, "faster", false);
    struct result *result = outcome.result;

    assert_int_equal(result->verdict, VERDICT_FASTER);
    assert_non_null(result->speedup);
    assert_true(result->speedup->lo > 0 && result->speedup->lo <= result->speedup->log2);
    assert_true(result->speedup->hi >= result->speedup->log2);
    assert_true(result->speedup->blocks >= 8);
    assert_int_equal(result->cases_count, 1);
    assert_string_equal(result->cases[0].params, "N=4096");
    assert_true(result->cases[0].weight == 1);
    assert_true(result->candidate_ns->p10 > 0 &&
                result->candidate_ns->p10 <= result->candidate_ns->p90);
    assert_true(result->baseline_ns->p50 > result->candidate_ns->p50);
    assert_int_equal(result->launches, 2 * result->speedup->blocks);
    // Two contents of each check, hidden and benchmark case, and at least one timed launch of the
    // first superblock. Timed launches that were only compared with the baseline's do not count.
    const uint64_t verified = 2 * (2 + 4 + 1);
    assert_true(result->checks > verified);
    assert_true(result->checks < verified + result->launches);
    assert_true(result->max_error >= 0 && result->max_error <= result->error_bound);
    assert_true(result->error_bound == 24);
    assert_int_equal(result->seed, 20240607);
    assert_true(result->overhead_ns > 0);
    assert_string_equal(result->trust, "c, unsealed");
    assert_string_equal(result->clock, MEASURE_CLOCK);
    assert_non_null(result->sandbox);
    assert_true(result->seconds->held > 0 && result->seconds->time > 0);
    assert_null(result->control);
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(message_pack(&measure_outcome_message, &outcome, &packed, &err), 0);
    strbuf_release(&packed);
    message_clear(&measure_outcome_message, &outcome);
}

// On a loaded machine intervals are wide, and estimates are as far off as the intervals say.
static bool is_about_zero(const struct estimate *estimate)
{
    return estimate->lo < 0.1 && estimate->hi > -0.1;
}

static void equal_code_is_not_called_different(void **state)
{
    const struct fixture *fixture = *state;
    struct bytes object = fixture_object(fixture, "candidates/equal.c", false);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);

    plan.control = true;
    plan.max_seconds = 3;
    struct measure_outcome outcome = fixture_measure(fixture, &plan);
    // Both arms run the same code.
    assert_true(verdict_is_ratio(outcome.result->verdict));
    assert_true(is_about_zero(outcome.result->speedup));
    assert_non_null(outcome.result->control);
    assert_true(is_about_zero(outcome.result->control));
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&object);
}

static void what_a_candidate_prints_is_kept_and_cut(void **state)
{
    struct measure_outcome outcome = measure_file(*state, "prints", false);

    assert_non_null(outcome.result->output_tail);
    assert_non_null(strstr(outcome.result->output_tail, "hello from the candidate\n"));
    message_clear(&measure_outcome_message, &outcome);
    outcome = measure_file(*state, "flood", false);
    assert_true(strlen(outcome.result->output_tail) <= 4096);
    message_clear(&measure_outcome_message, &outcome);
}

static void faster_than_physics_is_quarantined(void **state)
{
    const struct fixture *fixture = *state;
    struct bytes object = fixture_object(fixture, "candidates/faster.c", false);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);

    plan.peak_bytes = 1; // bytes per second
    struct measure_outcome outcome = fixture_measure(fixture, &plan);
    assert_int_equal(outcome.result->verdict, VERDICT_QUARANTINED);
    assert_non_null(strstr(outcome.result->reason, "less than"));
    assert_true(outcome.result->cases[0].floor_ns > 1e9);
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&object);
}

static void time_is_capped(void **state)
{
    const struct fixture *fixture = *state;
    struct bytes object = fixture_object(fixture, "candidates/equal.c", false);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);

    plan.max_seconds = 1e-6;
    struct measure_outcome outcome = fixture_measure(fixture, &plan);
    assert_true(verdict_is_ratio(outcome.result->verdict));
    assert_true(outcome.result->cases[0].speedup->blocks >= 3); // an estimate, though a poor one
    assert_true(outcome.result->cases[0].speedup->blocks < 8);
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&object);
}

// A baseline or reference that fails says nothing about the candidate.
static void failures_of_others_are_errors(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const name[] = {"candidates/segv.c", "candidates/wrong.c",
                                       "candidates/exit.c"};
    struct bytes object = fixture_object(fixture, "candidates/faster.c", false);

    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        struct measure_plan plan = fixture_measure_plan(fixture, &object);
        struct bytes bad = fixture_object(fixture, name[i], false);

        plan.baseline = bad;
        struct measure_outcome outcome;
        struct err err = ERR_INIT;
        assert_int_equal(fixture_try_measure(fixture, &plan, &outcome, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "baseline"));
        bytes_clear(&bad);
    }
    bytes_clear(&object);
}

static void damaged_objects_are_rejected(void **state)
{
    const struct fixture *fixture = *state;
    struct bytes garbage = bytes_copy("no object at all", 16);
    struct measure_plan plan = fixture_measure_plan(fixture, &garbage);
    struct measure_outcome outcome = fixture_measure(fixture, &plan);

    assert_int_equal(outcome.result->verdict, VERDICT_REJECTED);
    assert_non_null(strstr(outcome.result->reason, "cannot be loaded"));
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&garbage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_candidate_gets_its_verdict),
        cmocka_unit_test(confined_candidates_are_rejected_by_name_of_the_call),
        cmocka_unit_test(result_is_complete_and_packs),
        cmocka_unit_test(equal_code_is_not_called_different),
        cmocka_unit_test(what_a_candidate_prints_is_kept_and_cut),
        cmocka_unit_test(faster_than_physics_is_quarantined),
        cmocka_unit_test(time_is_capped),
        cmocka_unit_test(failures_of_others_are_errors),
        cmocka_unit_test(damaged_objects_are_rejected),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
