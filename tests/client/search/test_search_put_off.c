// Searches in which one compilation takes much longer than the others: it is put off, and comes
// again when it has ended. The daemon ends it only when others have ended, so that it depends on no
// clock what is put off.
#include "client/report/run_counts.h"
#include "tests/client/search/search_fixture.h"

static const struct fake_behaviour one_is_slow = {
    .devices = 8, .compile_slots = 64, .slow = 1, .slow_after = 30};
static const struct fake_behaviour one_never_ends = {
    .devices = 8, .compile_slots = 64, .slow = 1, .slow_after = UINT64_MAX};

static void search_rank(struct fixture *f, int status, const char *fault, const char *path,
                        const char *limit)
{
    const char *const argument[] = {"search", f->problem, "--run",   path, "--seed",
                                    "11",     limit,      "--audit", "0",  "--play-off",
                                    "0",      "--json",   "--quiet", NULL};
    forget(f);
    expect(f, status, fault, argument);
}

// Checks what holds whatever was put off: each new source counts once, and no source is measured
// twice. Returns how many candidates were put off and have come again.
static uint64_t check_run(const struct run_state *run_state)
{
    uint64_t again = 0, rows = 0;
    struct run_counts counts = run_counts_of(run_state);
    assert_true(run_state->finished);
    for (enum run_count_row row = 0; row < RUN_COUNT_ROW_COUNT; row++) {
        rows += counts.row[row];
    }
    assert_int_equal(counts.considered, run_state->considered);
    assert_int_equal(rows, counts.considered);
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        const struct run_proposed *proposed = &candidate->proposed;
        assert_true(!candidate->put_off || (!candidate->compiled && !candidate->result));
        if (proposed->again != 0) {
            const struct run_state_candidate *first = &run_state->candidate[proposed->again - 1];
            again++;
            assert_true(first->put_off && !first->forecast);
            assert_int_equal(first->proposed.duplicate_of, proposed->candidate);
            assert_int_equal(first->proposed.point, proposed->point);
            assert_string_equal(first->proposed.name, proposed->name);
            assert_non_null(candidate->compiled);
        }
        for (size_t other = 0; candidate->result && other < i; other++) {
            assert_false(
                run_state->candidate[other].result &&
                digest_equal(&run_state->candidate[other].proposed.source, &proposed->source));
        }
    }
    assert_int_equal(run_state->considered, run_state->candidate_count - again);
    return again;
}

// A search that nothing disturbs. *ret is its run.
static void search_whole(struct fixture *f, const struct fake_behaviour *behaviour,
                         const char *limit, struct run_state *ret)
{
    char *path = run_path(f, "whole");
    serve_as(f, behaviour);
    search_rank(f, 0, NULL, path, limit);
    load(ret, path);
    free(path);
}

static void what_compiles_slowly_comes_again(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    search_whole(f, &one_is_slow, "--candidates=60", &run_state);
    assert_int_equal(check_run(&run_state), 1);
    assert_int_equal(run_state.considered, 60);
    const struct run_state_candidate *first = &run_state.candidate[0];
    assert_true(first->put_off);
    const struct run_state_candidate *again =
        &run_state.candidate[first->proposed.duplicate_of - 1];
    assert_true(again->proposed.candidate > 25);
    assert_true(again->decided.decision != 0 || again->compiled->verdict != VERDICT_NONE);
    // One compilation for each source, under the number it had first.
    uint64_t jobs = jobs_run(f), measured = run_state.measured + run_state.records;
    assert_true(jobs >= run_state.considered + measured);
    run_state_release(&run_state);
}

static void killed_at_any_event_it_goes_on(void **state)
{
    struct fixture *f = *state;
    struct run_state whole, run_state;
    char *killed = run_path(f, "killed");
    search_whole(f, &one_is_slow, "--candidates=60", &whole);
    for (uint64_t n = 30; n < whole.last_sequence; n += 17) {
        char *fault = xasprintf("event:%llu", (unsigned long long)n);
        serve_as(f, &one_is_slow);
        search_rank(f, -SIGKILL, fault, killed, "--candidates=60");
        resume(f, 0, killed);
        load(&run_state, killed);
        assert_true(check_run(&run_state) <= 1);
        assert_int_equal(run_state.considered, 60);
        assert_int_equal(run_state.compiled_ok + run_state.compile_failed, 60);
        run_state_release(&run_state);
        (void)unlink(killed);
        free(fault);
    }
    run_state_release(&whole);
    free(killed);
}

static void a_limit_ends_it_without_what_is_put_off(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    search_whole(f, &one_never_ends, "--budget=4s", &run_state);
    assert_int_equal(check_run(&run_state), 0);
    assert_true(run_state.candidate[0].put_off);
    assert_int_equal(run_state.candidate[0].proposed.duplicate_of, 0);
    assert_non_null(strstr(run_state.finish_reason, "budget"));
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_compiles_slowly_comes_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(killed_at_any_event_it_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_limit_ends_it_without_what_is_put_off, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
