#include "client/run/run_state_end.h"

#include "client/run/run_state_time.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

void run_state_clear_end(struct run_state *run_state)
{
    message_clear(&run_surveyed_message, &run_state->surveyed);
    message_clear(&run_play_off_message, &run_state->play_off);
    message_clear(&run_played_off_message, &run_state->played_off);
    run_state->surveyed = (struct run_surveyed){0};
    run_state->play_off = (struct run_play_off){0};
    run_state->played_off = (struct run_played_off){0};
}

void run_state_release_end(struct run_state *run_state)
{
    run_state_clear_end(run_state);
    for (size_t i = 0; i < run_state->game_count; i++) {
        message_clear(&run_game_message, &run_state->game[i]);
    }
    free(run_state->game);
}

double run_state_propensity(const struct run_state *run_state,
                            const struct run_state_candidate *candidate)
{
    double propensity = candidate->decided.propensity;
    if (candidate->decided.draw == 0) {
        return propensity;
    }
    if (candidate->drawn_before > 0) {
        return candidate->drawn_before;
    }
    return candidate->proposed.draw > 0 ? 1 : 1 - pow(1 - propensity, (double)run_state->drawn);
}

static int apply_surveyed(struct run_state *run_state, struct run_surveyed *event, struct err *err)
{
    if (event->after != run_state->candidate_count) {
        return err_set(err, ERR_CORRUPT, "a survey is of other candidates");
    }
    if (event->beyond_log2_count != event->expected_count) {
        return err_set(err, ERR_CORRUPT, "a survey lacks numbers");
    }
    if (run_state->surveys++ == 0) {
        run_state->searched = event->after;
        run_state->draws = event->audits;
        run_state->draw_population = event->population;
        run_state->draw_uniform = event->uniform;
    }
    message_clear(&run_surveyed_message, &run_state->surveyed);
    run_state->surveyed = *event;
    *event = (struct run_surveyed){0};
    return 0;
}

// Whether the candidate was measured and takes part in the play-off.
static bool takes_part(const struct run_play_off *play_off, uint64_t candidate)
{
    for (size_t i = 0; i < play_off->candidates_count; i++) {
        if (play_off->candidates[i] == candidate) {
            return true;
        }
    }
    return false;
}

static int apply_play_off(struct run_state *run_state, struct run_play_off *event, struct err *err)
{
    if (run_state->play_off.candidates_count > 0) {
        return err_set(err, ERR_CORRUPT, "there are two play-offs");
    }
    for (size_t i = 0; i < event->candidates_count; i++) {
        uint64_t id = event->candidates[i];
        if (id == 0 || id > run_state->candidate_count || !run_state->candidate[id - 1].result) {
            return err_set(err, ERR_CORRUPT, "candidate %llu plays without a measurement",
                           (unsigned long long)id);
        }
    }
    run_state->play_off = *event;
    *event = (struct run_play_off){0};
    return 0;
}

static int apply_game(struct run_state *run_state, struct run_game *event, struct err *err)
{
    const struct run_play_off *play_off = &run_state->play_off;
    size_t before = run_state->game_count - run_state->first_game;
    if (event->game != before + 1 || run_state->has_played_off) {
        return err_set(err, ERR_CORRUPT, "game %llu comes after game %zu",
                       (unsigned long long)event->game, before);
    }
    if (event->candidate == event->against || !takes_part(play_off, event->candidate) ||
        !takes_part(play_off, event->against)) {
        return err_set(err, ERR_CORRUPT, "game %llu is not one of the play-off",
                       (unsigned long long)event->game);
    }
    // The array has room for 2^k - 1 games and doubles when it is full.
    size_t count = run_state->game_count;
    if ((count & (count + 1)) == 0) {
        run_state->game = xrealloc(run_state->game, 2 * count + 1, sizeof(*run_state->game));
    }
    run_state->game[run_state->game_count++] = *event;
    if (event->result) {
        double held = run_state_held_seconds(event->result);
        run_state->device_seconds += held;
        run_state->play_off_seconds += held;
        run_state_add_run(run_state, event->pool, event->result);
    }
    *event = (struct run_game){0};
    return 0;
}

static int apply_played_off(struct run_state *run_state, struct run_played_off *event,
                            struct err *err)
{
    if (run_state->play_off.candidates_count == 0 || run_state->has_played_off) {
        return err_set(err, ERR_CORRUPT, "a play-off ends that is not under way");
    }
    if (event->winner != 0 && !takes_part(&run_state->play_off, event->winner)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu wins a play-off without taking part",
                       (unsigned long long)event->winner);
    }
    run_state->played_off = *event;
    run_state->has_played_off = true;
    *event = (struct run_played_off){0};
    return 0;
}

int run_state_apply_end(struct run_state *run_state, struct run_event *event, struct err *err)
{
    switch (event->kind) {
    case RUN_SURVEYED:
        return apply_surveyed(run_state, event->body, err);
    case RUN_PLAY_OFF:
        return apply_play_off(run_state, event->body, err);
    case RUN_GAME:
        return apply_game(run_state, event->body, err);
    default:
        return apply_played_off(run_state, event->body, err);
    }
}
