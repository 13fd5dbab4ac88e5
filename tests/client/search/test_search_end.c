// How searches end: audits drawn from what was never measured, what is said of the rest, and the
// play-off of the best.
#include "tests/client/search/search_fixture.h"

#include "client/policy/false_omission.h"
#include "client/policy/guarantee.h"
#include "client/policy/play_off.h"
#include "client/report/run_counts.h"

static json_t *searched(struct fixture *f, struct run_state *run_state, const char *name,
                        const char *const *more)
{
    char *path = run_path(f, name);
    const char *argument[ARGUMENT_MAX] = {"search", f->problem, "--run", path,
                                          "--seed", "5",        "--json"};
    for (size_t i = 0; more[i]; i++) {
        argument[7 + i] = more[i];
    }
    forget(f);
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    json_t *object = summary_of(&outcome);
    assert_non_null(object);
    load(run_state, path);
    clear(&outcome);
    free(path);
    return object;
}

static uint64_t number_of(const json_t *object, const char *first, const char *second)
{
    const json_t *inner = json_object_get(object, first);
    return (uint64_t)json_integer_value(second ? json_object_get(inner, second) : inner);
}

// Audits are points that no screening chose, two fifths of the measurements at most, and in the log
// is with what probability each was drawn.
static void audits_are_drawn_at_the_end_from_what_was_never_measured(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--candidates", "40", "--audit", "0.4", NULL};
    json_auto_t *object = searched(f, &run_state, "drawn", more);
    if (run_state.draws < 4 || run_state.drawn == 0) {
        fail_msg("%llu draws, %llu decided, %llu measured, %s", (unsigned long long)run_state.draws,
                 (unsigned long long)run_state.drawn, (unsigned long long)run_state.measured,
                 run_state.finish_reason);
    }
    assert_int_equal(run_state.candidate_count, 40);
    assert_true((double)run_state.audited <= 0.4 * (double)run_state.measured + 1e-9);
    uint64_t next = 1;
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state.candidate[i];
        assert_int_equal(candidate->proposed.draw > 0, i >= run_state.searched);
        if (candidate->proposed.draw > 0) {
            assert_int_equal(candidate->proposed.draw, next++);
            double p = candidate->proposed.draw_probability;
            assert_true(p >= 0.5 / (double)run_state.draw_population && p <= 1);
        }
        if (candidate->decided.draw > 0 && candidate->decided.decision == DECISION_AUDIT) {
            assert_true(candidate->decided.propensity == candidate->proposed.draw_probability);
            assert_true(candidate->result || candidate->given_up);
        }
    }
    assert_int_equal(next, run_state.draws + 1);
    assert_int_equal(run_state.surveys, 2); // once to draw, once for what is left
    assert_int_equal(run_state.surveyed.audits, 0);
    assert_true(run_state.draw_population >= run_state.draws);
    struct false_omission omission = false_omission_of_run(&run_state);
    assert_int_equal(omission.discarded, run_state.draw_population);
    assert_true(omission.audited == run_state.draws && omission.estimated && !omission.shown);
    assert_int_equal(number_of(object, "risk", "audited"), omission.audited);
    assert_null(strstr(omission.text, "0.0 %"));
    run_state_release(&run_state);
}

static void every_candidate_is_in_one_row(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--candidates", "45", "--audit", "0.2", NULL};
    json_auto_t *object = searched(f, &run_state, "rows", more);
    struct run_counts counts = run_counts_of(&run_state);
    uint64_t sum = 0;
    for (enum run_count_row row = 0; row < RUN_COUNT_ROW_COUNT; row++) {
        sum += counts.row[row];
        assert_int_equal(number_of(object, "counts", run_count_name(row)), counts.row[row]);
    }
    assert_int_equal(sum, 45);
    assert_int_equal(sum, counts.considered);
    assert_int_equal(counts.measured, run_state.measured);
    assert_true(counts.row[RUN_COUNT_AUDIT] > 0 && run_state.game_count > 0);
    run_state_release(&run_state);
}

// Policy threshold has trusted candidates, of which audits are drawn. They are no candidates again.
static void trusted_candidates_are_drawn_where_nothing_is_screened(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--policy",     "threshold", "--seed",  "3",   "--batch", "4",
                                "--candidates", "60",        "--audit", "0.3", NULL};
    json_decref(searched(f, &run_state, "trusted", more));
    assert_int_equal(run_state.candidate_count, 60);
    assert_true(run_state.draws > 0 && run_state.drawn == run_state.draws);
    uint64_t trusted = 0;
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state.candidate[i];
        assert_true(candidate->proposed.draw == 0);
        trusted += candidate->decided.decision == DECISION_TRUST;
        assert_true(candidate->decided.draw == 0 || candidate->result);
        double propensity = run_state_propensity(&run_state, candidate);
        assert_true(candidate->decided.draw == 0 || (propensity > 0 && propensity <= 1));
    }
    assert_int_equal(trusted, run_state.trusted);
    assert_int_equal(run_state.draw_population, trusted + run_state.draws);
    assert_true((double)run_state.audited <= 0.3 * (double)run_state.measured + 1);
    for (size_t i = (size_t)run_state.observed_candidates; i < run_state.candidate_count; i++) {
        assert_null(run_state.candidate[i].result); // the worker was told all outcomes
    }
    run_state_release(&run_state);
}

static void the_best_play_against_each_other(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--candidates", "0",         "--policy", "all", "--play-off", "4",
                                "--strategy",   "best-of-n", NULL};
    json_auto_t *object = searched(f, &run_state, "played", more);
    assert_true(run_state.has_played_off && run_state.game_count >= 1);
    assert_int_equal(number_of(object, "play_off", "games"), run_state.game_count);
    assert_true(run_state.play_off.candidates_count >= 2 &&
                run_state.play_off.candidates_count <= 4);
    double held = 0;
    for (size_t i = 0; i < run_state.game_count; i++) {
        assert_non_null(run_state.game[i].result);
        assert_non_null(run_state.game[i].times);
        held += run_state_held_seconds(run_state.game[i].result);
    }
    assert_true(fabs(run_state.play_off_seconds - held) < 1e-9 && held > 0);
    double all = held;
    for (size_t i = 0; i < run_state.candidate_count; i++) {
        all += run_state_held_seconds(run_state.candidate[i].result) +
               run_state_held_seconds(run_state.candidate[i].record);
    }
    assert_true(fabs(all - run_state.device_seconds) < 1e-6); // games are paid for, too
    struct play_off play_off;
    play_off_standings(&run_state, &play_off);
    struct play_off_game due[PLAY_OFF_MAX];
    uint64_t winner = run_state.played_off.winner;
    assert_int_equal(winner, play_off.contestant[play_off.leader].candidate);
    assert_int_equal(winner, run_state_best(&run_state)->proposed.candidate);
    assert_int_equal(number_of(json_object_get(object, "best"), "candidate", NULL), winner);
    assert_false(play_off_due(&run_state, due));
    assert_true(held <= run_state.play_off.seconds_max + 1e-9);
    run_state_release(&run_state);
}

static const struct run_game *same_games(const struct run_state *a, const struct run_state *b)
{
    assert_int_equal(a->game_count, b->game_count);
    for (size_t i = 0; i < a->game_count; i++) {
        const struct run_game *x = &a->game[i], *y = &b->game[i];
        if (x->candidate != y->candidate || x->against != y->against || x->job == 0) {
            return x;
        }
    }
    return NULL;
}

// On four devices a round of games begins at once. They are recorded in their order, and a search
// that is killed in the middle goes on there.
static void games_are_played_side_by_side_on_several_devices(void **state)
{
    struct fixture *f = *state, many = *f;
    char *path = run_path(f, "side"), *killed = run_path(f, "side-killed");
    const char *argument[] = {"search", f->problem, "--run",      path,         "--seed",
                              "5",      "--policy", "all",        "--strategy", "best-of-n",
                              "--json", "--quiet",  "--play-off", "5",          NULL};
    struct run_state expected;
    fake_start_as(&many.fake, 7, own_url(), // every other device is drained
                  &(struct fake_behaviour){.devices = 7, .compile_slots = 64, .measure_ms = 20});
    expect(&many, 0, NULL, argument);
    load(&expected, path);
    assert_int_equal(expected.started.pool_devices, 4);
    size_t players = expected.play_off.candidates_count;
    assert_in_range(players, 3, 5);
    assert_true(expected.has_played_off && expected.game_count >= players - 1);
    for (size_t i = 0; i + 1 < players; i++) {
        assert_int_equal(expected.game[i].against, expected.play_off.candidates[0]);
        assert_true(expected.game[i].times->submitted < expected.game[0].times->answered);
    }
    argument[3] = killed;
    for (uint64_t back = 1; back < expected.game_count + 2; back += 2) {
        char fault[32];
        struct run_state run_state;
        (void)snprintf(fault, sizeof(fault), "event:%llu",
                       (unsigned long long)(expected.last_sequence - back));
        forget(&many);
        expect(&many, -SIGKILL, fault, argument);
        resume(&many, 0, killed);
        load(&run_state, killed);
        assert_same_decisions(&expected, &run_state, fault);
        assert_null(same_games(&expected, &run_state));
        assert_int_equal(run_state.played_off.winner, expected.played_off.winner);
        run_state_release(&run_state);
        (void)unlink(killed);
    }
    run_state_release(&expected);
    fake_stop(&many.fake);
    free(path);
    free(killed);
}

static void a_play_off_can_be_left_out(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--candidates", "40", "--play-off", "0", NULL};
    json_auto_t *object = searched(f, &run_state, "unplayed", more);
    assert_int_equal(run_state.game_count, 0);
    assert_int_equal(run_state.play_off.candidates_count, 0);
    assert_true(json_is_null(json_object_get(object, "play_off")));
    run_state_release(&run_state);
}

// A measurement of the daemon takes 0.25 s: of 8 s a twentieth is one game.
static void a_play_off_keeps_to_its_share_of_the_budget(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--candidates", "0", "--policy", "all", "--budget", "8s", NULL};
    json_auto_t *object = searched(f, &run_state, "budget", more);
    assert_true(run_state.device_seconds <= 8 + 1e-9);
    assert_true(run_state.play_off.seconds_max >= 0 && run_state.play_off.seconds_max <= 1);
    assert_true(run_state.play_off_seconds <= run_state.play_off.seconds_max + 1e-9);
    assert_true(run_state.has_played_off);
    assert_int_equal(!!run_state.played_off.reason,
                     !json_is_null(json_object_get(json_object_get(object, "play_off"), "reason")));
    run_state_release(&run_state);
}

// The worker does not say the probabilities, so that the search says that it can say nothing.
static void without_probabilities_nothing_is_said_of_the_rest(void **state)
{
    struct fixture *f = *state;
    struct run_state run_state;
    const char *const more[] = {"--candidates", "45", NULL};
    json_auto_t *object = searched(f, &run_state, "silent", more);
    const json_t *left = json_object_get(object, "left");
    assert_int_equal(json_integer_value(json_object_get(left, "forecast")), 0);
    assert_true(json_is_null(json_object_get(left, "none_faster_than")));
    const char *text = json_string_value(json_object_get(left, "text"));
    assert_non_null(strstr(text, "nothing can be said of the "));
    assert_non_null(strstr(text, "could not be forecast"));
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(audits_are_drawn_at_the_end_from_what_was_never_measured),
        cmocka_unit_test(every_candidate_is_in_one_row),
        cmocka_unit_test(trusted_candidates_are_drawn_where_nothing_is_screened),
        cmocka_unit_test(the_best_play_against_each_other),
        cmocka_unit_test(games_are_played_side_by_side_on_several_devices),
        cmocka_unit_test(a_play_off_can_be_left_out),
        cmocka_unit_test(a_play_off_keeps_to_its_share_of_the_budget),
        cmocka_unit_test(without_probabilities_nothing_is_said_of_the_rest),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
