// The play-off: who takes part, who plays next, and what the games say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/play_off.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define COUNT 8
#define GAMES 64

struct made {
    struct run_state_candidate candidate[COUNT];
    struct result result[COUNT];
    struct estimate speedup[COUNT];
    struct run_state_incumbent incumbent;
    uint64_t players[PLAY_OFF_MAX];
    struct run_game game[GAMES];
    struct result game_result[GAMES];
    struct estimate game_speedup[GAMES];
    struct run_state run_state;
};

// Candidate i has a log2 speedup of 1 - (i - 1) / 100; the first is the incumbent.
static void make(struct made *made)
{
    memset(made, 0, sizeof(*made));
    for (size_t i = 0; i < COUNT; i++) {
        double y = 1 - 0.01 * (double)i;
        made->speedup[i] = (struct estimate){.log2 = y, .lo = y - 0.002, .hi = y + 0.002};
        made->result[i] = (struct result){.verdict = VERDICT_FASTER, .speedup = &made->speedup[i]};
        made->candidate[i] = (struct run_state_candidate){.proposed = {.candidate = i + 1},
                                                          .result = &made->result[i]};
    }
    made->incumbent =
        (struct run_state_incumbent){.event = {.candidate = 1, .speedup = &made->speedup[0]}};
    made->run_state = (struct run_state){.candidate = made->candidate,
                                         .candidate_count = COUNT,
                                         .incumbent = &made->incumbent,
                                         .incumbent_count = 1,
                                         .game = made->game};
}

static void enter(struct made *made, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        made->players[i] = i + 1;
    }
    made->run_state.play_off =
        (struct run_play_off){.candidates = made->players, .candidates_count = count};
}

static void add_game(struct made *made, uint64_t candidate, uint64_t against, double log2,
                     double half)
{
    size_t i = made->run_state.game_count++;
    made->game_speedup[i] = (struct estimate){.log2 = log2, .lo = log2 - half, .hi = log2 + half};
    made->game_result[i] =
        (struct result){.verdict = VERDICT_FASTER, .speedup = &made->game_speedup[i]};
    made->game[i] = (struct run_game){
        .game = i + 1, .candidate = candidate, .against = against, .result = &made->game_result[i]};
}

static void the_best_that_are_near_take_part(void **state)
{
    (void)state;
    struct made made;
    uint64_t chosen[PLAY_OFF_MAX];
    make(&made);
    assert_int_equal(play_off_choose(&made.run_state, 5, chosen), 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(chosen[i], i + 1);
    }
    made.speedup[2] =
        (struct estimate){.log2 = 0.8, .lo = 0.75, .hi = 0.85}; // further behind than 5 %
    made.result[3].verdict = VERDICT_WRONG;                     // not correct
    made.candidate[4].result = NULL;                            // not measured
    made.speedup[1].log2 = 1.5; // seemed better, but was not confirmed
    struct estimate again = {.log2 = 0.95, .lo = 0.948, .hi = 0.952};
    struct result record = {.verdict = VERDICT_FASTER, .speedup = &again};
    made.candidate[1].record = &record;
    static const uint64_t expected[] = {1, 2, 6, 7, 8}; // the first of two with 0.95 comes first
    assert_int_equal(play_off_choose(&made.run_state, 5, chosen), 5);
    assert_memory_equal(chosen, expected, sizeof(expected));
    assert_int_equal(play_off_choose(&made.run_state, 2, chosen), 2);
    made.speedup[2].hi = 1.1; // nobody knows
    assert_int_equal(play_off_choose(&made.run_state, 8, chosen), 6);
    assert_int_equal(chosen[5], 3);
    made.run_state.incumbent_count = 0;
    assert_int_equal(play_off_choose(&made.run_state, 5, chosen), 0);
}

// Plays a whole play-off in which candidate i is faster than the baseline by strength[i - 1].
static unsigned play(struct made *made, const double *strength, double half)
{
    struct play_off_game due[PLAY_OFF_MAX];
    while (play_off_due(&made->run_state, due) > 0) {
        uint64_t candidate = due[0].candidate, against = due[0].against;
        assert_true(made->run_state.game_count < GAMES);
        add_game(made, candidate, against, strength[candidate - 1] - strength[against - 1], half);
    }
    return (unsigned)made->run_state.game_count;
}

static void who_parts_from_the_leader_needs_one_game(void **state)
{
    (void)state;
    const double strength[] = {1, 0.95, 0.9, 0.94, 0.8};
    struct made made;
    make(&made);
    enter(&made, 5);
    assert_int_equal(play(&made, strength, 0.003), 4);
    struct play_off play_off;
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.leader, 0);
    for (size_t i = 1; i < 5; i++) {
        assert_int_equal(play_off.contestant[i].place, PLAY_OFF_SLOWER);
    }
}

static void who_is_faster_takes_the_lead_and_plays_the_others(void **state)
{
    (void)state;
    const double strength[] = {1, 0.95, 1.05, 1.02, 0.8};
    struct made made;
    make(&made);
    enter(&made, 5);
    play(&made, strength, 0.003);
    struct play_off play_off;
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.contestant[play_off.leader].candidate, 3);
    assert_int_equal(play_off.contestant[0].place, PLAY_OFF_SLOWER);
    assert_true(fabs(play_off.contestant[0].log2 - -0.05) < 1e-9);
    // The second one lost to the incumbent and never met the leader.
    assert_true(play_off.contestant[1].games == 0 || play_off.contestant[1].log2 < 0);
    assert_int_equal(play_off.contestant[play_off.leader].games, 0);
    assert_int_equal(play_off.contestant[3].place, PLAY_OFF_SLOWER);
    struct strbuf text = STRBUF_INIT;
    made.run_state.has_played_off = true;
    play_off_describe(&made.run_state, &text);
    assert_non_null(strstr(strbuf_text(&text), "candidate 3 leads, faster than 1, 2, 4 and 5"));
    strbuf_release(&text);
}

static void equals_tie_at_once_and_others_after_all_their_games(void **state)
{
    (void)state;
    const double strength[] = {1, 1.0001, 0.99};
    struct made made;
    make(&made);
    enter(&made, 2);
    assert_int_equal(play(&made, strength, 0.003), 1); // within half a percent
    make(&made);
    enter(&made, 3);
    made.run_state.game_count = 0;
    assert_int_equal(play(&made, strength, 0.05), 2 * PLAY_OFF_GAMES);
    // They change places from game to game.
    assert_int_equal(made.game[0].candidate, 2);
    assert_int_equal(made.game[2].candidate, 1);
    assert_int_equal(made.game[2].against, 2);
    struct play_off play_off;
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.contestant[1].place, PLAY_OFF_TIED);
    assert_int_equal(play_off.contestant[2].place, PLAY_OFF_TIED);
    struct strbuf text = STRBUF_INIT;
    play_off_describe(&made.run_state, &text);
    assert_non_null(strstr(strbuf_text(&text), "candidate 1 leads, tied with 2 and 3"));
    strbuf_release(&text);
}

// Games from both sides are put together: half-widths of 0.01 become 0.01 / sqrt(2), times 1.18.
static void games_of_a_pair_are_put_together(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    enter(&made, 2);
    add_game(&made, 2, 1, 0.02, 0.01);
    add_game(&made, 1, 2, -0.01, 0.01);
    struct play_off play_off;
    play_off_standings(&made.run_state, &play_off);
    // Two is the leader now; of one it is said by how much it is behind.
    assert_int_equal(play_off.contestant[play_off.leader].candidate, 2);
    make(&made);
    enter(&made, 2);
    add_game(&made, 2, 1, 0.004, 0.01);
    add_game(&made, 1, 2, 0.002, 0.01);
    play_off_standings(&made.run_state, &play_off);
    assert_true(fabs(play_off.contestant[1].log2 - 0.001) < 1e-9);
    assert_true(fabs(play_off.contestant[1].hi - 0.001 - 1.18 * 0.01 / sqrt(2)) < 1e-9);
    assert_int_equal(play_off.contestant[1].place, PLAY_OFF_OPEN);
}

static void who_is_not_correct_again_is_out(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    enter(&made, 3);
    add_game(&made, 2, 1, 0.1, 0.001);
    made.game_result[0].verdict = VERDICT_WRONG;
    struct play_off play_off;
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.contestant[1].place, PLAY_OFF_FAILED);
    assert_int_equal(play_off.leader, 0);
    add_game(&made, 1, 3, 0.1, 0.001);
    made.game_result[1].verdict = VERDICT_CRASH; // the leader itself
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.contestant[play_off.leader].candidate, 3);
    struct play_off_game due[PLAY_OFF_MAX];
    assert_int_equal(play_off_due(&made.run_state, due), 0);
    add_game(&made, 3, 1, 0.1, 0.001);
    made.game_result[2].verdict = VERDICT_TIMEOUT;
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.leader, play_off.count);
    assert_int_equal(play_off_due(&made.run_state, due), 0);
}

// A game that the daemon gave up says nothing and counts, so that the play-off ends.
static void games_without_a_result_end_too(void **state)
{
    (void)state;
    struct made made;
    make(&made);
    enter(&made, 2);
    for (size_t i = 0; i < PLAY_OFF_GAMES; i++) {
        made.game[made.run_state.game_count++] =
            (struct run_game){.game = i + 1, .candidate = 2, .against = 1};
    }
    struct play_off play_off;
    struct play_off_game due[PLAY_OFF_MAX];
    play_off_standings(&made.run_state, &play_off);
    assert_int_equal(play_off.contestant[1].place, PLAY_OFF_TIED);
    assert_true(isnan(play_off.contestant[1].log2));
    assert_int_equal(play_off_due(&made.run_state, due), 0);
}

static void as_many_games_are_due_as_there_are_devices(void **state)
{
    (void)state;
    struct made made;
    struct play_off_game due[PLAY_OFF_MAX];
    for (size_t devices = 0; devices < 8; devices++) {
        make(&made);
        enter(&made, 5);
        made.run_state.started.pool_devices = devices;
        size_t count = devices == 0 ? 1 : devices < 4 ? devices : 4;
        assert_int_equal(play_off_due(&made.run_state, due), count);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(due[i].candidate, i + 2);
            assert_int_equal(due[i].against, 1);
        }
    }
}

// While the games of a round come in, those that are due are the others of that round, whoever
// leads by now. The next round is against the new leader.
static void a_round_is_played_to_its_end(void **state)
{
    (void)state;
    struct made made;
    struct play_off_game due[PLAY_OFF_MAX];
    make(&made);
    enter(&made, 5);
    made.run_state.started.pool_devices = 4;
    add_game(&made, 2, 1, -0.1, 0.003);
    add_game(&made, 3, 1, 0.05, 0.003); // leads
    assert_int_equal(play_off_due(&made.run_state, due), 2);
    assert_int_equal(due[0].candidate, 4);
    assert_int_equal(due[0].against, 1);
    assert_int_equal(due[1].candidate, 5);
    add_game(&made, 4, 1, 0.02, 0.003);
    add_game(&made, 5, 1, -0.2, 0.003);
    // Candidates 2 and 5 lost to an earlier leader, which is enough.
    assert_int_equal(play_off_due(&made.run_state, due), 1);
    assert_int_equal(due[0].candidate, 4);
    assert_int_equal(due[0].against, 3);
    made.run_state.has_played_off = true;
    assert_int_equal(play_off_due(&made.run_state, due), 0);
}

// Rounds of any size name the same winner, and end.
static void games_side_by_side_find_the_same_winner(void **state)
{
    (void)state;
    static const double strength[] = {1, 0.95, 1.05, 1.02, 1.1, 0.8, 1.09, 0.99};
    for (size_t devices = 1; devices <= 8; devices++) {
        struct made made;
        struct play_off play_off;
        make(&made);
        enter(&made, 8);
        made.run_state.started.pool_devices = devices;
        play(&made, strength, 0.003);
        play_off_standings(&made.run_state, &play_off);
        assert_int_equal(play_off.contestant[play_off.leader].candidate, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_that_are_near_take_part),
        cmocka_unit_test(who_parts_from_the_leader_needs_one_game),
        cmocka_unit_test(who_is_faster_takes_the_lead_and_plays_the_others),
        cmocka_unit_test(equals_tie_at_once_and_others_after_all_their_games),
        cmocka_unit_test(games_of_a_pair_are_put_together),
        cmocka_unit_test(who_is_not_correct_again_is_out),
        cmocka_unit_test(games_without_a_result_end_too),
        cmocka_unit_test(as_many_games_are_due_as_there_are_devices),
        cmocka_unit_test(a_round_is_played_to_its_end),
        cmocka_unit_test(games_side_by_side_find_the_same_winner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
