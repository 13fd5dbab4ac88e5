// The play-off (client/policy/play_off.h), the last part of a search. Each game is a measurement in
// fresh processes whose baseline is the other candidate's source. A winner that was never
// replicated is, and becomes the incumbent by its second measurement against the baseline.
#include "client/policy/play_off.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double pipeline_play_off_share(const struct pipeline *p)
{
    return p->run_state->started.play_off > 1 ? PLAY_OFF_SHARE : 0;
}

// Records who plays. *ret_any: there is something to play.
static int begin(struct pipeline *p, bool *ret_any, struct err *err)
{
    const struct run_started *started = &p->run_state->started;
    uint64_t candidates[PLAY_OFF_MAX];
    size_t count = play_off_choose(p->run_state, (size_t)started->play_off, candidates);
    *ret_any = count > 1;
    if (!*ret_any) {
        return 0;
    }
    struct run_play_off event = {
        .candidates = xmemdup(candidates, count * sizeof(*candidates)),
        .candidates_count = count,
        .seconds_max = started->budget_seconds > 0
                           ? fmax(started->budget_seconds - p->run_state->device_seconds, 0)
                           : PLAY_OFF_FREE_SHARE * p->run_state->device_seconds};
    return pipeline_append(p, RUN_PLAY_OFF, &event, err);
}

// Whether one more game fits into what is left of the budget, beside those that are being played.
static bool is_affordable(const struct pipeline *p, size_t playing)
{
    const struct run_state *run_state = p->run_state;
    double games = (double)(run_state->game_count - run_state->first_game);
    double others = run_state->device_seconds;
    for (size_t i = 0; i < run_state->game_count; i++) {
        others -= run_state_held_seconds(run_state->game[i].result);
    }
    double all = (double)(run_state->measured + run_state->records);
    double mean = games > 0 ? run_state->play_off_seconds / games : all > 0 ? others / all : 0;
    double most = run_state->play_off.seconds_max;
    double expected = mean * (double)(playing + 1);
    return isnan(most) || run_state->play_off_seconds + expected <= most;
}

// ---- games ----

static uint64_t next_number(const struct pipeline *p)
{
    return p->run_state->game_count - p->run_state->first_game + 1;
}

// The game with this number, 0: a place that is free; NULL when there is none.
static struct playing *find_playing(struct pipeline *p, uint64_t number)
{
    for (size_t i = 0; i < PLAY_OFF_MAX; i++) {
        if (p->playing[i].number == number) {
            return &p->playing[i];
        }
    }
    return NULL;
}

static size_t count_playing(const struct pipeline *p)
{
    size_t count = 0;
    for (size_t i = 0; i < PLAY_OFF_MAX; i++) {
        count += p->playing[i].number != 0;
    }
    return count;
}

// Records the games that have an outcome, in their order, up to the first that has none.
static int record_games(struct pipeline *p, struct err *err)
{
    struct playing *playing;
    while ((playing = find_playing(p, next_number(p))) && playing->outcome) {
        struct job_ref job = playing->job;
        struct run_game event = *playing->outcome;
        free(playing->outcome);
        *playing = (struct playing){.number = 0};
        int rc = pipeline_append(p, RUN_GAME, &event, err);
        if (rc != 0) {
            return rc;
        }
        p->jobs->ack(p->jobs, job);
    }
    return 0;
}

static void on_game(void *owner, uint64_t number, struct job_ref ref, struct job_info *info,
                    const struct err *error)
{
    struct pipeline *p = owner;
    struct playing *playing = find_playing(p, number);
    if (error) {
        err_set(&p->failure, error->code, "job g%llu: %s", (unsigned long long)number, error->text);
        return;
    }
    const char *url = p->jobs->where(p->jobs, ref);
    struct run_game event = {.game = number,
                             .candidate = playing->game.candidate,
                             .against = playing->game.against,
                             .job = ref.job,
                             .pool = url ? xstrdup(url) : NULL,
                             .times = pipeline_times(p, playing->game.candidate, info),
                             .result = info->result};
    info->result = NULL;
    if (!event.result) {
        event.reason =
            xasprintf("the daemon gave the job up (%s): %.2000s", job_state_name(info->state),
                      info->reason ? info->reason : "no reason given");
    } else if (event.result->compiled) { // the candidate's own compilation is recorded already
        message_clear(&compiled_message, event.result->compiled);
        free(event.result->compiled);
        event.result->compiled = NULL;
    }
    playing->outcome = xmemdup(&event, sizeof(event));
    playing->job = ref;
    (void)!record_games(p, &p->failure);
}

static void play(struct pipeline *p, uint64_t number, const struct play_off_game *game)
{
    struct job_spec spec;
    char key[64];
    *find_playing(p, 0) = (struct playing){.number = number, .game = *game};
    pipeline_job_spec(p, game->candidate, JOB_MEASURE, &spec);
    spec.baseline = candidate_of(p, game->against)->proposed.source;
    spec.fresh = true;
    spec.repeat = number;
    if (p->run_state->extensions == 0) {
        snprintf(key, sizeof(key), "g%llu", (unsigned long long)number);
    } else { // an earlier play-off has used these keys
        snprintf(key, sizeof(key), "g%llu.%llu", (unsigned long long)p->run_state->extensions,
                 (unsigned long long)number);
    }
    p->candidate_jobs[game->candidate - 1].submitted_at = pipeline_now(p);
    p->jobs->submit(p->jobs, key, &spec, 0, on_game, p, number);
}

// Plays what is due and not being played yet, as far as the budget goes.
static void play_due(struct pipeline *p, const struct play_off_game *due, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t number = next_number(p) + i;
        if (find_playing(p, number)) {
            continue;
        }
        if (!is_affordable(p, count_playing(p))) {
            return;
        }
        play(p, number, &due[i]);
    }
}

void pipeline_clear_play_off(struct pipeline *p)
{
    for (size_t i = 0; i < PLAY_OFF_MAX; i++) {
        if (p->playing[i].outcome) {
            message_clear(&run_game_message, p->playing[i].outcome);
            free(p->playing[i].outcome);
        }
    }
}

// ---- the end ----

// Makes the winner the incumbent.
static int crown(struct pipeline *p, uint64_t winner, struct err *err)
{
    const struct run_state *run_state = p->run_state;
    const struct estimate *speedup = candidate_of(p, winner)->record->speedup;
    struct run_incumbent event = {.candidate = winner,
                                  .speedup = xmemdup(speedup, sizeof(*speedup)),
                                  .device_seconds = run_state->device_seconds,
                                  .wall_seconds = run_state->wall_seconds,
                                  .considered = run_state->considered,
                                  .measured = run_state->measured};
    return pipeline_append(p, RUN_INCUMBENT, &event, err);
}

static bool was_replicated(const struct run_state_candidate *candidate)
{
    return candidate->record && verdict_is_ratio(candidate->record->verdict) &&
           candidate->record->speedup;
}

// Records the end. reason, which is taken over, says why it is early; NULL: it is not.
static int finish(struct pipeline *p, const struct play_off *play_off, char *reason_take,
                  struct err *err)
{
    uint64_t incumbent = run_state_best(p->run_state)->proposed.candidate;
    struct run_played_off event = {.tied = xcalloc(PLAY_OFF_MAX, sizeof(*event.tied)),
                                   .reason = reason_take};
    if (play_off->leader < play_off->count) {
        event.winner = play_off->contestant[play_off->leader].candidate;
    }
    if (event.winner != 0 && !was_replicated(candidate_of(p, event.winner))) {
        free(event.reason);
        event.reason = xasprintf("candidate %llu, which led, was not correct again",
                                 (unsigned long long)event.winner);
        event.winner = incumbent;
    }
    for (size_t i = 0; i < play_off->count; i++) {
        if (play_off->contestant[i].place == PLAY_OFF_TIED ||
            play_off->contestant[i].place == PLAY_OFF_OPEN) {
            event.tied[event.tied_count++] = play_off->contestant[i].candidate;
        }
    }
    uint64_t winner = event.winner;
    int rc = run_begin(p->run, err);
    if (rc == 0) {
        rc = pipeline_append(p, RUN_PLAYED_OFF, &event, err);
    } else {
        message_clear(&run_played_off_message, &event);
    }
    if (rc == 0 && winner != 0 && winner != incumbent) {
        rc = crown(p, winner, err);
    }
    return pipeline_commit(p, rc, err);
}

// Whether the leader is to be measured against the baseline once more, as every incumbent is.
static bool wants_replication(const struct pipeline *p, const struct play_off *play_off)
{
    if (play_off->leader == play_off->count) {
        return false;
    }
    const struct run_state_candidate *leader =
        candidate_of(p, play_off->contestant[play_off->leader].candidate);
    return !leader->record && !leader->given_up;
}

// Plays the next games or ends it all.
static int go_on(struct pipeline *p, struct err *err)
{
    struct play_off play_off;
    struct play_off_game due[PLAY_OFF_MAX];
    size_t count = play_off_due(p->run_state, due);
    if (!p->cut) {
        play_due(p, due, count);
    }
    if (count_playing(p) > 0) {
        return 0;
    }
    play_off_standings(p->run_state, &play_off);
    if (!p->cut && wants_replication(p, &play_off)) {
        pipeline_replicate(p, play_off.contestant[play_off.leader].candidate);
        return 0;
    }
    char *reason = count == 0 ? NULL
                   : p->cut   ? xstrdup(p->stop)
                              : xstrdup("what was left of the budget of device-seconds is used");
    return finish(p, &play_off, reason, err);
}

int pipeline_play_off(struct pipeline *p, bool *progress, bool *ret_over, struct err *err)
{
    const struct run_state *run_state = p->run_state;
    bool any = run_state->play_off.candidates_count > 0;
    *ret_over = (!any && (p->cut || run_state->started.play_off < 2)) || run_state->has_played_off;
    if (*ret_over || p->replicating != 0) {
        return 0;
    }
    if (!any) {
        int rc = begin(p, &any, err);
        *ret_over = !any;
        *progress = any;
        return rc;
    }
    int rc = go_on(p, err);
    *progress = run_state->has_played_off;
    return rc;
}
