// Searches that a limit ends while candidates are being compiled, which are dropped then. The
// daemon never ends the compilations of candidates beyond a certain one, so that they are always
// under way.
#include "tests/client/search/search_fixture.h"

static const struct fake_behaviour endless = {.compiles = 12};

// A measurement of the daemon takes 0.25 s.
static void search_budget(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {"search",     f->problem, "--run",   path, "--seed", "11",
                                    "--batch",    "4",        "--lag",   "2",  "--json", "--quiet",
                                    "--budget",   "2s",       "--audit", "0",  "--wide", "4",
                                    "--play-off", "0",        NULL};
    forget(f);
    expect(f, status, fault, argument);
}

static void search_measurements(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {
        "search",         f->problem,  "--run",   path, "--seed", "11",
        "--batch",        "4",         "--lag",   "6",  "--json", "--quiet",
        "--measurements", "9",         "--audit", "0",  "--wide", "4",
        "--policy",       "threshold", NULL};
    forget(f);
    expect(f, status, fault, argument);
}

typedef void searching(struct fixture *f, int status, const char *fault, const char *path);

// Counts the candidates that were dropped, and checks that none of them was decided about.
static uint64_t count_dropped(const struct run_state *run_state)
{
    uint64_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        bool dropped = !candidate->compiled && candidate->proposed.duplicate_of == 0;
        assert_true(!dropped || candidate->decided.decision == 0);
        count += dropped;
    }
    return count;
}

// Kills the search at each of its last events.
static void killed_at_its_end(struct fixture *f, searching *begin,
                              const struct fake_behaviour *behaviour)
{
    struct run_state expected;
    char *path = run_path(f, "whole"), *killed = run_path(f, "killed");
    serve_as(f, behaviour);
    begin(f, 0, NULL, path);
    load(&expected, path);
    assert_true(expected.finished);
    assert_true(behaviour->compiles == 0 || count_dropped(&expected) > 0);
    uint64_t from = expected.last_sequence - 12;
    for (uint64_t n = from; n < expected.last_sequence; n++) {
        char *fault = xasprintf("event:%llu", (unsigned long long)n);
        serve_as(f, behaviour);
        begin(f, -SIGKILL, fault, killed);
        resume(f, 0, killed);
        struct run_state run_state;
        load(&run_state, killed);
        assert_true(run_state.finished);
        assert_string_equal(run_state.finish_reason, expected.finish_reason);
        assert_same_decisions(&expected, &run_state, fault);
        assert_int_equal(count_dropped(&run_state), count_dropped(&expected));
        run_state_release(&run_state);
        (void)unlink(killed);
        free(fault);
    }
    run_state_release(&expected);
    (void)unlink(path);
    free(killed);
    free(path);
}

static void killed_at_the_end_of_its_budget_it_ends_the_same(void **state)
{
    killed_at_its_end(*state, search_budget, &endless);
}

static void killed_at_its_last_measurement_it_ends_the_same(void **state)
{
    killed_at_its_end(*state, search_measurements, &endless);
}

// The last batch is decided before the one is settled for which another would be proposed. When the
// search is resumed both are possible, and nothing is proposed then either.
static void killed_while_its_last_candidates_are_measured_it_proposes_no_more(void **state)
{
    const struct fake_behaviour slow = {.measure_ms = 60};
    killed_at_its_end(*state, search_measurements, &slow);
}

// What was dropped is compiled and decided about when there is more budget, at the daemon that has
// cancelled it.
static void what_was_dropped_is_compiled_when_the_search_is_given_more(void **state)
{
    struct fixture *f = *state;
    struct run_state before, after;
    char *path = run_path(f, "extended");
    serve_as(f, &endless);
    search_budget(f, 0, NULL, path);
    load(&before, path);
    assert_true(count_dropped(&before) > 0);
    kill(f->fake.pid, SIGHUP); // from now on all compilations end
    expect(f, 0, NULL, (const char *[]){"resume", path, "--budget", "9s", "--json", NULL});
    load(&after, path);
    assert_true(after.finished && after.extensions == 1);
    assert_true(after.candidate_count > before.candidate_count && after.measured > before.measured);
    for (size_t i = 0; i < before.candidate_count; i++) {
        const struct run_state_candidate *candidate = &after.candidate[i];
        assert_true(
            digest_equal(&before.candidate[i].proposed.source, &candidate->proposed.source));
        if (candidate->proposed.duplicate_of == 0) {
            assert_non_null(candidate->compiled);
            const char *reason = candidate->compiled->reason;
            assert_true(!reason || !strstr(reason, "gave the compilation up"));
            assert_true(candidate->compiled->verdict != VERDICT_NONE ||
                        candidate->decided.decision != 0);
        }
    }
    run_state_release(&before);
    run_state_release(&after);
    free(path);
}

// What the fake daemon's measurements take is as long as they may take.
static void one_measurement_takes_an_eighth_of_a_budget_at_most(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    char *path = run_path(f, "eighth");
    const char *const argument[] = {"search", f->problem, "--run",    path, "--seed", "11",
                                    "--json", "--quiet",  "--budget", "1s", NULL};
    serve_as(f, &(struct fake_behaviour){.blind = false});
    forget(f);
    expect(f, 0, NULL, argument);
    load(&run_state, path);
    assert_true(run_state.started.timing_seconds == 0.125 && run_state.measured > 4);
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct result *result = run_state.candidate[i].result;
        assert_true(!result || result->seconds->held == 0.125);
    }
    run_state_release(&run_state);
    free(path);
    char *large = run_path(f, "large"); // an eighth of it is no limit that a daemon knows
    const char *const days[] = {"search",         f->problem, "--run",  large,      "--seed", "11",
                                "--measurements", "9",        "--json", "--budget", "99h",    NULL};
    expect(f, 0, NULL, days);
    load(&run_state, large);
    assert_true(isnan(run_state.started.timing_seconds));
    run_state_release(&run_state);
    free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_the_end_of_its_budget_it_ends_the_same),
        cmocka_unit_test(killed_at_its_last_measurement_it_ends_the_same),
        cmocka_unit_test(killed_while_its_last_candidates_are_measured_it_proposes_no_more),
        cmocka_unit_test(what_was_dropped_is_compiled_when_the_search_is_given_more),
        cmocka_unit_test(one_measurement_takes_an_eighth_of_a_budget_at_most),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
