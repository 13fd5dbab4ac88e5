#include "client/run/run_extend.h"

#include "client/run/run_state_end.h"
#include "common/mem.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int check_seconds(const char *option, double limit, double used, const char *what,
                         struct err *err)
{
    return limit > 0 && limit <= used
               ? err_set(err, ERR_USAGE, "option %s: the search has used %.1f s of %s; give more",
                         option, used, what)
               : 0;
}

static int check_count(const char *option, uint64_t limit, uint64_t used, const char *what,
                       struct err *err)
{
    return limit > 0 && limit <= used
               ? err_set(err, ERR_USAGE, "option %s: the search has %s %llu; give more", option,
                         what, (unsigned long long)used)
               : 0;
}

static int check_target(double target, const struct run_state *run_state, struct err *err)
{
    return target > 0 && run_state_reached(run_state, target)
               ? err_set(err, ERR_USAGE, "option --target: the search has %.4gx; give more",
                         exp2(run_state_incumbent_log2(run_state)))
               : 0;
}

int run_extend(struct run_extended *ret, const struct run_state *run_state,
               const struct run_limits *limits, struct err *err)
{
    const struct run_started *started = &run_state->started;
    double wall = run_state->wall_seconds - run_state->start_up_seconds;
    int rc = check_seconds("--budget", limits->budget_seconds, run_state->device_seconds,
                           "device time", err);
    if (rc != 0) {
        goto out;
    }
    rc = check_seconds("--max-time", limits->wall_seconds, wall, "time in all", err);
    if (rc != 0) {
        goto out;
    }
    rc = check_count("--measurements", limits->measurements, run_state->measured, "measured", err);
    if (rc != 0) {
        goto out;
    }
    rc = check_count("--candidates", limits->candidates, run_state->considered, "considered", err);
    if (rc != 0) {
        goto out;
    }
    rc = check_target(limits->target, run_state, err);
    if (rc != 0) {
        goto out;
    }
    *ret = (struct run_extended){
        .budget_seconds =
            limits->budget_seconds > 0 ? limits->budget_seconds : started->budget_seconds,
        .measurements_max =
            limits->measurements > 0 ? limits->measurements : started->measurements_max,
        .candidates_max = limits->candidates > 0 ? limits->candidates : started->candidates_max,
        .wall_limit_seconds =
            limits->wall_seconds > 0 ? limits->wall_seconds : started->wall_limit_seconds,
        .target = limits->target > 0                              ? limits->target
                  : run_state_reached(run_state, started->target) ? NAN
                                                                  : started->target,
    };
out:
    return rc;
}

// What was drawn at the end before this extension is known of for ever by its probability. The next
// end draws anew, from what is left then.
static void settle_draws(struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        struct run_state_candidate *candidate = &run_state->candidate[i];
        bool drawn = candidate->proposed.draw > 0 || candidate->decided.draw > 0;
        if (drawn && candidate->drawn_before == 0) {
            candidate->drawn_before =
                candidate->proposed.draw > 0 ? 1 : run_state_propensity(run_state, candidate);
        }
    }
    run_state->searched = 0;
    run_state->drawn = 0;
    run_state->draws = 0;
    run_state->draw_population = 0;
    run_state->draw_uniform = 0;
}

void run_state_extend(struct run_state *run_state, const struct run_extended *event)
{
    struct run_started *started = &run_state->started;
    started->budget_seconds = event->budget_seconds;
    started->measurements_max = event->measurements_max;
    started->candidates_max = event->candidates_max;
    started->wall_limit_seconds = event->wall_limit_seconds;
    started->target = event->target;
    // The closing begins anew when the search ends again: another survey and another play-off.
    settle_draws(run_state);
    run_state_clear_end(run_state);
    run_state->surveys = 0;
    run_state->first_game = run_state->game_count;
    run_state->play_off_seconds = 0;
    run_state->has_played_off = false;
    run_state->extended_after = xrealloc(run_state->extended_after, run_state->extensions + 1,
                                         sizeof(*run_state->extended_after));
    run_state->extended_after[run_state->extensions++] = run_state->candidate_count;
    run_state->finished = false;
    free(run_state->finish_reason);
    run_state->finish_reason = NULL;
}
