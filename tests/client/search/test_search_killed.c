// Searches that are killed at their events and resumed. The decisions must be those of the
// undisturbed search, and no job may run that the undisturbed search did not run.
#include "tests/client/search/search_fixture.h"

#include "client/policy/allocation.h"

// A search with batches that become wide, and a policy that compares forecasts.
static void search_wide(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {
        "search", f->problem, "--run", path,           "--seed", "11",      "--policy",
        "budget", "--share",  "0.3",   "--batch",      "3",      "--wide",  "16",
        "--json", "--audit",  "0.3",   "--candidates", "50",     "--quiet", NULL};
    forget(f);
    expect(f, status, fault, argument);
}

// A search with many small batches under way at a time.
static void search_deep(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {
        "search", f->problem, "--run",   path,      "--seed",  "11", "--candidates",
        "56",     "--json",   "--audit", "0.3",     "--batch", "2",  "--wide",
        "2",      "--lag",    "9",       "--quiet", NULL};
    forget(f);
    expect(f, status, fault, argument);
}

// A search with a policy whose threshold follows from all outcomes.
static void search_risk(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {
        "search", f->problem,     "--run", path,      "--seed",  "11",      "--policy",
        "risk",   "--candidates", "70",    "--alpha", "0.3",     "--delta", "0.3",
        "--json", "--audit",      "0.3",   "--quiet", "--batch", "3",       NULL};
    forget(f);
    expect(f, status, fault, argument);
}

// A search with three generators, one of which is the worker.
static void search_list(struct fixture *f, int status, const char *fault, const char *path)
{
    char *pool = useless_pool(f), *names = xasprintf("tunable,llm,pool:%s", pool);
    const char *const argument[] = {
        "search", f->problem, "--run", path,     "--seed", "11",      "--candidates",
        "60",     "--batch",  "4",     "--wide", "4",      "--audit", "0.3",
        "--json", "--quiet",  "-g",    names,    NULL};
    forget(f);
    expect(f, status, fault, argument);
    free(pool);
    free(names);
}

typedef void searching(struct fixture *f, int status, const char *fault, const char *path);

// Checks that the search, killed once and resumed, decides the same and runs as many jobs in all.
static void killed_and_resumed(struct fixture *f, searching *begin, const char *fault,
                               const struct run_state *expected, uint64_t jobs)
{
    char *killed = run_path(f, "killed");
    uint64_t before = jobs_run(f);
    begin(f, -SIGKILL, fault, killed);
    resume(f, 0, killed);
    struct run_state run_state;
    load(&run_state, killed);
    assert_true(run_state.finished);
    assert_same_decisions(expected, &run_state, fault);
    if (jobs_run(f) - before != jobs) {
        fail_msg("%s: %llu jobs ran instead of %llu", fault,
                 (unsigned long long)(jobs_run(f) - before), (unsigned long long)jobs);
    }
    run_state_release(&run_state);
    (void)unlink(killed);
    free(killed);
}

static void killed_at_every_event_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "undisturbed");
    uint64_t before = jobs_run(f);
    search(f, 0, NULL, path);
    uint64_t jobs = jobs_run(f) - before;
    struct run_state expected;
    load(&expected, path);
    assert_true(expected.trusted > 0 && expected.audited > 0 && expected.incumbent_count > 0);
    // Every event in an ordinary build, and some of them in slow builds.
    const char *variant = getenv("KCAST_VARIANT");
    bool slow = variant && strcmp(variant, "debug") != 0 && strcmp(variant, "release") != 0;
    for (uint64_t n = 2; n < expected.last_sequence; n += slow ? 7 : 1) {
        char *fault = xasprintf("%s:%llu", n % 3 == 0 ? "before" : "event", (unsigned long long)n);
        killed_and_resumed(f, search, fault, &expected, jobs);
        free(fault);
    }
    run_state_release(&expected);
    free(path);
}

static void killed_among_wide_batches_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "wide");
    uint64_t before = jobs_run(f);
    search_wide(f, 0, NULL, path);
    uint64_t jobs = jobs_run(f) - before;
    struct run_state expected;
    load(&expected, path);
    assert_int_equal(expected.candidate_count, 50);
    assert_true(expected.trusted > 5 && expected.audited > 0);
    for (uint64_t n = 5; n < expected.last_sequence; n += 19) {
        char *fault = xasprintf("event:%llu", (unsigned long long)n);
        killed_and_resumed(f, search_wide, fault, &expected, jobs);
        free(fault);
    }
    run_state_release(&expected);
    free(path);
}

static void killed_with_many_batches_under_way_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "deep");
    uint64_t before = jobs_run(f);
    search_deep(f, 0, NULL, path);
    uint64_t jobs = jobs_run(f) - before;
    struct run_state expected;
    load(&expected, path);
    assert_int_equal(expected.started.lag, 9);
    assert_int_equal(expected.candidate_count, 56);
    assert_true(expected.trusted > 0 && expected.audited > 0 && expected.incumbent_count > 0);
    for (uint64_t n = 5; n < expected.last_sequence; n += 13) {
        char *fault = xasprintf("%s:%llu", n % 3 == 0 ? "before" : "event", (unsigned long long)n);
        killed_and_resumed(f, search_deep, fault, &expected, jobs);
        free(fault);
    }
    run_state_release(&expected);
    free(path);
}

static void
killed_while_thresholds_are_certified_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "risk");
    uint64_t before = jobs_run(f);
    search_risk(f, 0, NULL, path);
    uint64_t jobs = jobs_run(f) - before;
    struct run_state expected;
    load(&expected, path);
    assert_true(expected.certifications > 0 && expected.trusted > 5 && expected.audited > 0);
    for (uint64_t n = 9; n < expected.last_sequence; n += 37) {
        char *fault = xasprintf("event:%llu", (unsigned long long)n);
        killed_and_resumed(f, search_risk, fault, &expected, jobs);
        free(fault);
    }
    run_state_release(&expected);
    free(path);
}

static void killed_with_several_generators_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "list");
    uint64_t before = jobs_run(f);
    search_list(f, 0, NULL, path);
    uint64_t jobs = jobs_run(f) - before;
    struct run_state expected;
    load(&expected, path);
    assert_int_equal(expected.candidate_count, 60);
    struct allocation_share share[3];
    allocation_shares(&expected, 60, 3, share);
    assert_true(share[0].considered > 0 && share[1].considered > 0 && share[2].considered > 0);
    assert_true(share[1].tokens > 0 && share[1].cost > 0.1);
    for (size_t i = 0; i < expected.candidate_count; i++) {
        const struct run_proposed *proposed = &expected.candidate[i].proposed;
        assert_int_equal(!!proposed->model, proposed->generator == 1);
        assert_int_equal(proposed->point == 0, proposed->generator == 1);
    }
    for (uint64_t n = 7; n < expected.last_sequence; n += 11) {
        char *fault = xasprintf("%s:%llu", n % 3 == 0 ? "before" : "event", (unsigned long long)n);
        killed_and_resumed(f, search_list, fault, &expected, jobs);
        free(fault);
    }
    run_state_release(&expected);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_every_event_it_goes_on_as_if_nothing_had_happened),
        cmocka_unit_test(killed_among_wide_batches_it_goes_on_as_if_nothing_had_happened),
        cmocka_unit_test(killed_with_many_batches_under_way_it_goes_on_as_if_nothing_had_happened),
        cmocka_unit_test(
            killed_while_thresholds_are_certified_it_goes_on_as_if_nothing_had_happened),
        cmocka_unit_test(killed_with_several_generators_it_goes_on_as_if_nothing_had_happened),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
