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

// Whether one more game fits into what is left of the budget.
static bool is_affordable(const struct pipeline *p)
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
    return isnan(most) || run_state->play_off_seconds + mean <= most;
}

static void on_game(void *owner, uint64_t number, struct job_ref ref, struct job_info *info,
                    const struct err *error)
{
    struct pipeline *p = owner;
    uint64_t candidate = p->playing.candidate;
    if (error) {
        err_set(&p->failure, error->code, "job g%llu: %s", (unsigned long long)number, error->text);
        return;
    }
    const char *url = p->jobs->where(p->jobs, ref);
    struct run_game event = {.game = number,
                             .candidate = candidate,
                             .against = p->playing.against,
                             .job = ref.job,
                             .pool = url ? xstrdup(url) : NULL,
                             .times = pipeline_times(p, candidate, info),
                             .result = info->result};
    info->result = NULL;
    p->playing = (struct playing){.game = 0};
    if (!event.result) {
        event.reason =
            xasprintf("the daemon gave the job up (%s): %.2000s", job_state_name(info->state),
                      info->reason ? info->reason : "no reason given");
    } else if (event.result->compiled) { // the candidate's own compilation is recorded already
        message_clear(&compiled_message, event.result->compiled);
        free(event.result->compiled);
        event.result->compiled = NULL;
    }
    if (pipeline_append(p, RUN_GAME, &event, &p->failure) == 0) {
        p->jobs->ack(p->jobs, ref);
    }
}

static void play(struct pipeline *p, uint64_t candidate, uint64_t against)
{
    struct job_spec spec;
    char key[64];
    p->playing = (struct playing){.game = p->run_state->game_count - p->run_state->first_game + 1,
                                  .candidate = candidate,
                                  .against = against};
    pipeline_job_spec(p, candidate, JOB_MEASURE, &spec);
    spec.baseline = candidate_of(p, against)->proposed.source;
    spec.fresh = true;
    spec.repeat = p->playing.game;
    if (p->run_state->extensions == 0) {
        snprintf(key, sizeof(key), "g%llu", (unsigned long long)p->playing.game);
    } else { // an earlier play-off has used these keys
        snprintf(key, sizeof(key), "g%llu.%llu", (unsigned long long)p->run_state->extensions,
                 (unsigned long long)p->playing.game);
    }
    p->candidate_jobs[candidate - 1].submitted_at = pipeline_now(p);
    p->jobs->submit(p->jobs, key, &spec, 0, on_game, p, p->playing.game);
}

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

// Plays the next game or ends it all.
static int go_on(struct pipeline *p, struct err *err)
{
    struct play_off play_off;
    uint64_t candidate, against;
    play_off_standings(p->run_state, &play_off);
    bool left = play_off_next(p->run_state, &play_off, &candidate, &against);
    if (left && !p->cut && is_affordable(p)) {
        play(p, candidate, against);
        return 0;
    }
    if (!p->cut && wants_replication(p, &play_off)) {
        pipeline_replicate(p, play_off.contestant[play_off.leader].candidate);
        return 0;
    }
    char *reason = !left    ? NULL
                   : p->cut ? xstrdup(p->stop)
                            : xstrdup("what was left of the budget of device-seconds is used");
    return finish(p, &play_off, reason, err);
}

int pipeline_play_off(struct pipeline *p, bool *progress, bool *ret_over, struct err *err)
{
    const struct run_state *run_state = p->run_state;
    bool any = run_state->play_off.candidates_count > 0;
    *ret_over = (!any && (p->cut || run_state->started.play_off < 2)) || run_state->has_played_off;
    if (*ret_over || p->playing.game != 0 || p->replicating != 0) {
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
