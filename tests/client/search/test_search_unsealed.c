// Whole searches where the fastest candidates have host code that cannot be recorded: they are
// rejected, or run unsealed and become no records, or become records, as the user asks.
#include "proto/verdict.h"
#include "tests/client/search/search_fixture.h"

static void search_hosted(struct fixture *f, const char *name, const char *option,
                          const char *other, struct run_state *ret,
                          struct kcast_result *ret_outcome)
{
    char *path = run_path(f, name);
    const char *const argument[] = {
        "search",   f->problem, "--run",        path, "--seed",      "3",    "--json",
        "--policy", "all",      "--candidates", "0",  "--no-worker", option, option ? other : NULL,
        NULL};
    fake_stop(&f->fake);
    fake_start_as(&f->fake, 7, own_url(), &(struct fake_behaviour){.hosted = true});
    collect(f, spawn(f, NULL, argument), ret_outcome);
    if (ret_outcome->status != 0) {
        fail_msg("%s", ret_outcome->err);
    }
    load(ret, path);
    free(path);
}

static bool is_hosted(const struct run_state_candidate *candidate)
{
    return candidate->proposed.name && strstr(candidate->proposed.name, "A=8 ");
}

// Checks which results say that they are unsealed, and returns how many do.
static size_t count_unsealed(const struct run_state *run_state)
{
    size_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        const struct result *result = candidate->result;
        bool unsealed = result && result->unsealed;

        assert_true(!unsealed || is_hosted(candidate));
        assert_int_equal(candidate->barred, unsealed && !run_state->started.accept_unsealed);
        count += unsealed;
    }
    return count;
}

static const char *said_unsealed(const json_t *summary)
{
    return json_string_value(json_object_get(json_object_get(summary, "unsealed"), "text"));
}

static void without_the_wish_they_are_rejected(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    struct kcast_result outcome;
    search_hosted(f, "sealed", NULL, NULL, &run_state, &outcome);
    size_t rejected = 0;
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state.candidate[i];
        bool compiled = candidate->compiled && candidate->compiled->verdict != VERDICT_REJECTED;

        assert_true(!is_hosted(candidate) || !compiled);
        rejected += is_hosted(candidate);
    }
    assert_true(rejected > 0);
    assert_int_equal(count_unsealed(&run_state), 0);
    assert_false(is_hosted(run_state_best(&run_state)));
    json_t *summary = summary_of(&outcome);
    assert_null(said_unsealed(summary));
    json_decref(summary);
    run_state_release(&run_state);
    clear(&outcome);
}

static void they_are_measured_and_become_no_records(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    struct kcast_result outcome;
    search_hosted(f, "unsealed", "--unsealed", NULL, &run_state, &outcome);
    assert_true(run_state.started.unsealed);
    assert_true(count_unsealed(&run_state) > 0);
    const struct run_state_candidate *best = run_state_best(&run_state);
    assert_non_null(best);
    assert_false(best->record->unsealed);
    size_t faster = 0;
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state.candidate[i];

        faster += candidate->barred && verdict_is_ratio(candidate->result->verdict) &&
                  candidate->result->speedup->log2 > best->record->speedup->log2;
        assert_true(!candidate->barred || !candidate->record); // none was measured once more
    }
    assert_true(faster > 0);
    for (size_t i = 0; i < run_state.play_off.candidates_count; i++) {
        assert_false(is_hosted(&run_state.candidate[run_state.play_off.candidates[i] - 1]));
    }
    json_t *summary = summary_of(&outcome);
    assert_non_null(strstr(said_unsealed(summary), "become no records without --accept-unsealed"));
    assert_true(json_is_false(json_object_get(json_object_get(summary, "best"), "unsealed")));
    assert_non_null(strstr(outcome.out, "\"unsealed\":true")); // of an event
    json_decref(summary);
    run_state_release(&run_state);
    clear(&outcome);
}

static void they_become_records_where_that_is_accepted(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    struct kcast_result outcome;
    search_hosted(f, "accepted", "--unsealed", "--accept-unsealed", &run_state, &outcome);
    assert_true(run_state.started.accept_unsealed);
    assert_true(count_unsealed(&run_state) > 0);
    const struct run_state_candidate *best = run_state_best(&run_state);
    assert_true(is_hosted(best) && best->record->unsealed);
    assert_int_equal(run_state.play_off.candidates_count, 0); // an unsealed one can be no baseline
    json_t *summary = summary_of(&outcome);
    assert_non_null(strstr(said_unsealed(summary), "lets such candidates become records"));
    assert_true(json_is_true(json_object_get(json_object_get(summary, "best"), "unsealed")));
    json_decref(summary);
    run_state_release(&run_state);
    clear(&outcome);
    char *path = run_path(f, "accepted");
    const char *const resume[] = {"resume", path, NULL};
    collect(f, spawn(f, NULL, resume), &outcome);
    assert_int_equal(outcome.status, 0);
    assert_non_null(strstr(outcome.out, " (unsealed: timed with host code in its process)"));
    assert_non_null(strstr(outcome.out, "unsealed    "));
    clear(&outcome);
    free(path);
}

// Measures the fastest candidate, and expects the words in what is printed.
static void measure(struct fixture *f, int status, const char *option, const char *other,
                    const char *words)
{
    char *source = xasprintf("%s/template.c", f->problem);
    const char *const argument[] = {"measure", f->problem, source, "-DA=8", "-DB=4",
                                    "-DC=1",   option,     other,  NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, status);
    if (!strstr(outcome.out, words)) {
        fail_msg("%s; expected: %s", outcome.out, words);
    }
    clear(&outcome);
    free(source);
}

static void a_single_measurement_says_that_it_is_unsealed(void **state)
{
    struct fixture *f = *state;
    fake_stop(&f->fake);
    fake_start_as(&f->fake, 7, own_url(), &(struct fake_behaviour){.hosted = true});
    measure(f, EXIT_NEGATIVE, NULL, NULL, ": rejected: ");
    measure(f, 0, "--unsealed", NULL,
            " the baseline (unsealed: timed with host code in its process) (baseline ");
    measure(f, 0, "--unsealed", "--json", "\"unsealed\":true");
}

static void what_is_not_run_cannot_be_accepted(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "neither");
    const char *const argument[] = {"search", f->problem, "--run", path, "--accept-unsealed", NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, EXIT_USAGE);
    assert_non_null(strstr(outcome.err, "--accept-unsealed is for what --unsealed lets run"));
    assert_false(file_exists(path));
    clear(&outcome);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_the_wish_they_are_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(they_are_measured_and_become_no_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(they_become_records_where_that_is_accepted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_single_measurement_says_that_it_is_unsealed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_run_cannot_be_accepted, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
