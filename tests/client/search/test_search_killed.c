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
        "search",       f->problem, "--run",   path,  "--seed",  "11",  "--policy", "risk",
        "--candidates", "70",       "--alpha", "0.3", "--delta", "0.3", "--json",   "--audit",
        "0.3",          "--quiet",  "--batch", "3",   "--lag",   "2",   NULL};
    forget(f);
    expect(f, status, fault, argument);
}

// A search that looks back at what it trusted.
static void search_back(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {"search",  f->problem,     "--run",     path,      "--seed",
                                    "7",       "--policy",     "threshold", "--batch", "3",
                                    "-c",      "0.93",         "--audit",   "0.1",     "--json",
                                    "--quiet", "--candidates", "60",        NULL};
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

// Candidates that the compiler makes the object of an earlier one of: some of them are measured in
// vain, when they have compiled first.
static uint64_t twins(const struct run_state *run_state)
{
    uint64_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        count += run_state->candidate[i].object_duplicate_of != 0;
    }
    return count;
}

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
    uint64_t ran = jobs_run(f) - before, spare = twins(expected);
    if (ran > jobs + spare || ran + spare < jobs) {
        fail_msg("%s: %llu jobs ran instead of %llu", fault, (unsigned long long)ran,
                 (unsigned long long)jobs);
    }
    run_state_release(&run_state);
    (void)unlink(killed);
    free(killed);
}

// A search that nothing disturbs. *ret is its run. Returns how many jobs it ran.
static uint64_t undisturbed(struct fixture *f, searching *begin, const char *name,
                            struct run_state *ret)
{
    char *path = run_path(f, name);
    uint64_t before = jobs_run(f);
    begin(f, 0, NULL, path);
    uint64_t jobs = jobs_run(f) - before;
    load(ret, path);
    free(path);
    return jobs;
}

// Kills the search at events first, first + step … of the undisturbed one, before some of them are
// written where `before`, and releases that one's run.
static void killed_along(struct fixture *f, searching *begin, struct run_state *expected,
                         uint64_t jobs, uint64_t first, uint64_t step, bool before)
{
    for (uint64_t n = first; n < expected->last_sequence; n += step) {
        char *fault =
            xasprintf("%s:%llu", before && n % 3 == 0 ? "before" : "event", (unsigned long long)n);
        killed_and_resumed(f, begin, fault, expected, jobs);
        free(fault);
    }
    run_state_release(expected);
}

static void killed_at_every_event_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    struct run_state expected;
    uint64_t jobs = undisturbed(f, search, "undisturbed", &expected);
    assert_true(expected.trusted > 0 && expected.audited > 0 && expected.incumbent_count > 0);
    // Every event in an ordinary build, and some of them in slow builds.
    const char *variant = getenv("KCAST_VARIANT");
    bool slow = variant && strcmp(variant, "debug") != 0 && strcmp(variant, "release") != 0;
    killed_along(f, search, &expected, jobs, 2, slow ? 7 : 1, true);
}

static void killed_among_wide_batches_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    struct run_state expected;
    uint64_t jobs = undisturbed(f, search_wide, "wide", &expected);
    assert_int_equal(expected.candidate_count, 50);
    assert_true(expected.measured > 10 && expected.trust_events > 1);
    killed_along(f, search_wide, &expected, jobs, 5, 19, false);
}

static void killed_with_many_batches_under_way_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    struct run_state expected;
    uint64_t jobs = undisturbed(f, search_deep, "deep", &expected);
    assert_int_equal(expected.started.lag, 9);
    assert_int_equal(expected.candidate_count, 56);
    assert_true(expected.trust_events > 0 && expected.incumbent_count > 0);
    killed_along(f, search_deep, &expected, jobs, 5, 13, true);
}

static void
killed_while_thresholds_are_certified_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    struct run_state expected;
    uint64_t jobs = undisturbed(f, search_risk, "risk", &expected);
    assert_true(expected.certifications > 0 && expected.trust_events > 1);
    killed_along(f, search_risk, &expected, jobs, 9, 37, false);
}

static void killed_before_and_after_looks_back_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    struct run_state expected;
    const struct fake_behaviour blind = {.blind = true}; // who reads sources is asked once
    fake_stop(&f->fake);
    fake_start_as(&f->fake, 7, own_url(), &blind);
    uint64_t jobs = undisturbed(f, search_back, "back", &expected);
    assert_true(expected.looks > 0 && expected.reconsidered > 0);
    killed_along(f, search_back, &expected, jobs, 40, 23, true);
}

static void killed_with_several_generators_it_goes_on_as_if_nothing_had_happened(void **state)
{
    struct fixture *f = *state;
    struct run_state expected;
    uint64_t jobs = undisturbed(f, search_list, "list", &expected);
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
    killed_along(f, search_list, &expected, jobs, 7, 11, true);
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
        cmocka_unit_test(killed_before_and_after_looks_back_it_goes_on_as_if_nothing_had_happened),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
