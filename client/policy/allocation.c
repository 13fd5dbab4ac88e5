// The shares and the choice are both computed anew from the run's events. gains() finds the
// candidates that became the incumbent; the costs are read from results, compilations and asks.
#include "client/policy/allocation.h"

#include "client/policy/costs.h"
#include "common/bandit.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>

#define STREAM_COIN 0x616c6c6f74ULL

static double seconds_of(double seconds)
{
    return seconds > 0 ? seconds : 0; // NaN says that the time is not known
}

static double device_seconds(const struct run_state_candidate *candidate)
{
    return run_state_held_seconds(candidate->result) + run_state_held_seconds(candidate->record);
}

static double compile_seconds(const struct run_state_candidate *candidate)
{
    return candidate->compiled ? seconds_of(candidate->compiled->seconds) : 0;
}

static double candidate_cost(const struct run_state_candidate *candidate,
                             const struct cost_weights *weights)
{
    return ALLOCATION_CANDIDATE_SECONDS + cost_of_candidate(candidate, weights);
}

static double ask_cost(const struct run_state_ask *ask, const struct cost_weights *weights)
{
    return ask->cost > 0 ? ask->cost * weights->money : (double)ask->tokens * weights->token;
}

// The log2 by which each of candidates 1 to last raised the incumbent, 0 for those that did not.
// malloc'd; candidate i is at i - 1.
static double *gains(const struct run_state *run_state, uint64_t last)
{
    double *gain = xcalloc((size_t)last + 1, sizeof(*gain)), before = 0;
    for (size_t i = 0; i < run_state->incumbent_count; i++) {
        const struct run_incumbent *event = &run_state->incumbent[i].event;
        if (event->candidate <= last) {
            gain[event->candidate - 1] = event->speedup->log2 - before;
        }
        before = event->speedup->log2;
    }
    return gain;
}

void allocation_shares(const struct run_state *run_state, uint64_t last, size_t count,
                       struct allocation_share *ret)
{
    struct cost_weights weights = cost_weights_of(&run_state->started);
    double *gain = gains(run_state, last);
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct allocation_share){0};
    }
    for (uint64_t id = 1; id <= last; id++) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        if (candidate->proposed.generator < count) {
            struct allocation_share *share = &ret[candidate->proposed.generator];
            share->considered += !run_state_is_replaced(candidate);
            share->measured += candidate->result ? 1 : 0;
            share->improvements += gain[id - 1] > 0;
            share->gain_log2 += gain[id - 1];
            share->device_seconds += device_seconds(candidate);
            share->compile_seconds += compile_seconds(candidate);
            share->cost += candidate_cost(candidate, &weights);
        }
    }
    for (size_t i = 0; i < run_state->ask_count; i++) {
        const struct run_state_ask *ask = &run_state->ask[i];
        if (ask->generator < count && ask->first <= last + 1) {
            ret[ask->generator].tokens += ask->tokens;
            ret[ask->generator].money += ask->cost;
            ret[ask->generator].cost += ask_cost(ask, &weights);
        }
    }
    free(gain);
}

// Adds the outcomes of candidates 1 to visible to the bandit, each with the cost of the request to
// a language model that it came from. Later candidates count as pending.
static void learn(struct bandit *bandit, const struct run_state *run_state, uint64_t visible)
{
    struct cost_weights weights = cost_weights_of(&run_state->started);
    double *gain = gains(run_state, visible);
    size_t ask = 0;
    for (uint64_t id = 1; id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        uint64_t number = candidate->proposed.generator;
        if (number >= bandit->count) {
            continue;
        }
        if (id > visible) {
            bandit->option[number].pending++;
            continue;
        }
        for (; ask < run_state->ask_count && run_state->ask[ask].first <= id; ask++) {
            if (run_state->ask[ask].generator < bandit->count) {
                bandit_credit(bandit, run_state->ask[ask].generator, 0,
                              ask_cost(&run_state->ask[ask], &weights));
            }
        }
        bandit_add(bandit, number, gain[id - 1], candidate_cost(candidate, &weights));
    }
    free(gain);
}

size_t allocation_choose(const struct run_state *run_state, uint64_t visible, size_t count,
                         const bool *gone, const uint64_t *planned, uint64_t slot)
{
    struct bandit bandit;
    uint64_t random = stats_philox(run_state->started.seed, STREAM_COIN, slot);
    bandit_init(&bandit, count, BANDIT_KEEP);
    learn(&bandit, run_state, visible);
    for (size_t i = 0; i < count; i++) {
        bandit.option[i].gone = gone[i];
        bandit.option[i].pending += planned[i];
    }
    size_t choice = bandit_choose(&bandit, (double)(random >> 11) * 0x1p-53);
    return choice != SIZE_MAX ? choice : count;
}
