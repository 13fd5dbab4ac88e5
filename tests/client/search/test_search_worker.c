// Searches by the real kcast whose worker comes late, goes away and comes back as another one, and
// one whose worker is too old to say in HELLO what it can do.
#include "tests/client/search/search_fixture.h"

// A fixture like f whose daemon and worker behave like this.
static struct fixture with_manner(const struct fixture *f, const struct fake_behaviour *behaviour)
{
    struct fixture other = *f;
    fake_start_as(&other.fake, 7, own_url(), behaviour);
    return other;
}

static void search_40(struct fixture *f, const char *fault, const char *path,
                      struct kcast_result *ret)
{
    const char *const argument[] = {
        "search",       f->problem, "--run",    path,        "--seed", "11",
        "--candidates", "40",       "--batch",  "4",         "--wide", "4",
        "--audit",      "0.3",      "--policy", "threshold", NULL};
    collect(f, spawn(f, fault, argument), ret);
}

static size_t forecasts_on(const struct run_state *run_state, const char *rung)
{
    size_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct forecast *forecast = run_state->candidate[i].forecast;
        count += forecast && strcmp(forecast->rung, rung) == 0;
    }
    return count;
}

static size_t times_said(const struct kcast_result *outcome, const char *words)
{
    size_t count = 0;
    for (const char *at = outcome->err; (at = strstr(at, words)); at++) {
        count++;
    }
    return count;
}

// The worker comes with the first measurement, so that the first two batches have no forecasts. It
// leaves during a request. When it is back it reads sources, which it said only in HELLO.
static void a_worker_that_comes_late_or_again_is_used_from_then_on(void **state)
{
    const struct fake_behaviour late = {.late = true};
    struct fixture f = with_manner(*state, &late);
    char *path = run_path(&f, "late");
    struct kcast_result outcome;
    search_40(&f, NULL, path, &outcome);
    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    struct run_state run_state;
    load(&run_state, path);
    assert_true(run_state.finished);
    assert_int_equal(run_state.candidate_count, 40);
    for (size_t i = 0; i < 4; i++) {
        assert_null(run_state.candidate[i].forecast);
    }
    if (forecasts_on(&run_state, "features") == 0 || forecasts_on(&run_state, "sources") == 0) {
        fail_msg("%zu forecasts before it went, %zu afterwards: %s",
                 forecasts_on(&run_state, "features"), forecasts_on(&run_state, "sources"),
                 outcome.err);
    }
    assert_int_equal(times_said(&outcome, "no forecasts, so everything is measured"), 2);
    assert_int_equal(times_said(&outcome, "the worker answers again"), 1);
    assert_int_equal(times_said(&outcome, "the worker answers"), 2);
    for (size_t i = (size_t)run_state.observed_candidates; i < run_state.candidate_count; i++) {
        assert_null(run_state.candidate[i]
                        .result); // it was told all outcomes, also those from before it came
    }
    run_state_release(&run_state);
    clear(&outcome);
    fake_stop(&f.fake);
    free(path);
}

// Decisions made with and without the worker stay the same when the search is killed and resumed.
static void killed_beside_a_late_worker_it_keeps_its_decisions(void **state)
{
    for (unsigned event = 40; event <= 160; event += 60) {
        const struct fake_behaviour late = {.late = true};
        struct fixture f = with_manner(*state, &late);
        char *path = run_path(&f, "late-killed"), *fault = xasprintf("event:%u", event);
        struct kcast_result outcome;
        struct run_state before, after;
        search_40(&f, fault, path, &outcome);
        assert_int_equal(outcome.status, -SIGKILL);
        load(&before, path);
        resume(&f, 0, path);
        load(&after, path);
        assert_true(after.finished);
        assert_int_equal(after.candidate_count, 40);
        for (size_t i = 0; i < before.candidate_count; i++) {
            const struct run_state_candidate *x = &before.candidate[i], *y = &after.candidate[i];
            assert_true(digest_equal(&x->proposed.source, &y->proposed.source));
            assert_true(!x->forecast_done || (!x->forecast) == (!y->forecast));
            if (x->decided.decision != 0 && x->decided.draw == y->decided.draw) { // no late audit
                assert_int_equal(x->decided.decision, y->decided.decision);
                assert_string_equal(x->decided.reason, y->decided.reason);
            }
        }
        run_state_release(&before);
        run_state_release(&after);
        clear(&outcome);
        fake_stop(&f.fake);
        (void)unlink(path);
        free(path);
        free(fault);
    }
}

static void worker_that_only_names_its_engine_gets_sources(void **state)
{
    const struct fake_behaviour old = {.old = true};
    struct fixture f = with_manner(*state, &old);
    char *path = run_path(&f, "old");
    struct kcast_result outcome;
    search_40(&f, NULL, path, &outcome);
    assert_int_equal(outcome.status, 0);
    struct run_state run_state;
    load(&run_state, path);
    assert_string_equal(run_state.session.engine, "llm");
    assert_true(forecasts_on(&run_state, "sources") > 0);
    assert_int_equal(forecasts_on(&run_state, "features"), 0);
    run_state_release(&run_state);
    clear(&outcome);
    fake_stop(&f.fake);
    free(path);
}

static void search_rank(struct fixture *f, const char *fault, const char *path,
                        struct kcast_result *ret)
{
    const char *const argument[] = {
        "search",       f->problem, "--run",   path, "--seed",  "11", "--lag", "6",
        "--candidates", "60",       "--batch", "4",  "--audit", "0",  NULL};
    collect(f, spawn(f, fault, argument), ret);
}

// The events of a run, an array in their order.
static json_t *events_of(struct fixture *f, const char *path)
{
    const char *const argument[] = {"export", "--events", path, NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, 0);
    json_t *events = json_array();
    for (char *rest = outcome.out, *line; (line = strsep(&rest, "\n"));) {
        if (line[0] != '\0') {
            json_array_append_new(events, json_loads(line, 0, NULL));
        }
    }
    clear(&outcome);
    return events;
}

// The place of the candidate's first event of this kind; the number of events where there is none.
static size_t place_of(const json_t *events, const char *kind, uint64_t candidate)
{
    size_t i = 0;
    for (; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *body = json_object_get(event, "body");
        if (strcmp(json_string_value(json_object_get(event, "kind")), kind) == 0 &&
            (uint64_t)json_integer_value(json_object_get(body, "candidate")) == candidate) {
            break;
        }
    }
    return i;
}

// Of what was chosen when the worker could say nothing of any point it is not asked again, and all
// of it is measured; whatever is chosen later is screened. So it is when the search is killed.
static void a_worker_that_knows_too_little_keeps_nobody_waiting(void **state)
{
    const struct fake_behaviour ignorant = {.ignorant = 30};
    struct fixture f = with_manner(*state, &ignorant);
    char *path = run_path(&f, "ignorant");
    struct kcast_result outcome;
    struct run_state run_state, again;
    size_t unknown = 0, screened = 0;
    search_rank(&f, NULL, path, &outcome);
    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    load(&run_state, path);
    json_auto_t *events = events_of(&f, path);
    for (uint64_t id = 1; id <= run_state.searched; id++) {
        const struct run_state_candidate *candidate = &run_state.candidate[id - 1];
        size_t forecast = place_of(events, "forecast", id);
        screened += candidate->proposed.screened > 0;
        if (candidate->forecast_done && !candidate->forecast) {
            unknown++;
            assert_non_null(strstr(candidate->forecast_reason, "outcomes so far; 30 are needed"));
            assert_true(forecast < place_of(events, "compiled", id));
            assert_true(candidate->decided.decision == DECISION_MEASURE || !candidate->compiled ||
                        candidate->compiled->verdict != VERDICT_NONE ||
                        candidate->object_duplicate_of != 0);
        }
    }
    if (unknown < 8 || screened < 4) {
        fail_msg("%zu without a forecast and %zu screened", unknown, screened);
    }
    clear(&outcome);
    fake_stop(&f.fake);
    f = with_manner(*state, &ignorant);
    char *killed = run_path(&f, "ignorant-killed");
    search_rank(&f, "event:110", killed, &outcome);
    assert_int_equal(outcome.status, -SIGKILL);
    resume(&f, 0, killed);
    load(&again, killed);
    assert_same_decisions(&run_state, &again, "event:110");
    run_state_release(&run_state);
    run_state_release(&again);
    clear(&outcome);
    fake_stop(&f.fake);
    free(path);
    free(killed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_comes_late_or_again_is_used_from_then_on),
        cmocka_unit_test(killed_beside_a_late_worker_it_keeps_its_decisions),
        cmocka_unit_test(worker_that_only_names_its_engine_gets_sources),
        cmocka_unit_test(a_worker_that_knows_too_little_keeps_nobody_waiting),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
