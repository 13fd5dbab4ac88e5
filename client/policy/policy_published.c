// The policies `published` and `published-correct`: the rule of another project, and that rule with
// a factor for failures, for comparison in replays. They are not offered for searching.
//
// It is the surrogate search of "GPU Forecasters" (arXiv 2605.31464). The candidates of one round
// are ranked by the expected index of the bin in which their speedup over the seed is forecast to
// lie. The best quarter is measured (4 of 16 children). The others, and those without a forecast,
// are discarded for good. The rule uses no confidence, no incumbent and no audits.
//
// The bins say how fast a candidate is if it is correct. The rule ranks one that is fast and
// probably wrong ahead of one that is slower and correct. `published-correct` multiplies the
// expected index by P(correct), so that a wrong candidate counts as index 0. All else is the same.
#include "client/policy/policy.h"
#include "common/mem.h"
#include "proto/bins.h"
#include <math.h>
#include <stdio.h>

#define ROUND 16            // candidates of one round: the children of one parent
#define MEASURED_OF_BATCH 4 // one candidate in so many is measured

// The index, 1 to 8, of the published bin of a log2 speedup: bins are half octaves, from 1/2 to 4.
static double published_bin(double log2)
{
    return fmin(fmax(floor(2 * log2) + 4, 1), 8);
}

// What a round is ranked by: of a usable forecast with bins.
typedef double published_rank(const struct forecast *forecast);

// The expected index of the candidate's bin.
static double rank_by_bin(const struct forecast *forecast)
{
    double sum = 0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        sum += forecast->bins[bin] * published_bin(bin_midpoint(bin));
    }
    return sum;
}

// The same, where a wrong candidate counts as index 0.
static double rank_by_bin_if_correct(const struct forecast *forecast)
{
    return forecast->p_correct * rank_by_bin(forecast);
}

// The rank of a candidate. -1 when there is no usable forecast to rank it by.
static double rank_of(const struct forecast *forecast, published_rank *rank)
{
    return policy_usable(forecast) && forecast->bins_count == BIN_COUNT ? rank(forecast) : -1;
}

static void decide_by(published_rank *rank, const struct policy_view *view,
                      struct policy_decision *ret)
{
    const struct run_state_candidate *all = view->run_state->candidate;
    const struct forecast *own = all[view->candidate - 1].forecast;
    uint64_t better = 0, ranked = 0;
    *ret = (struct policy_decision){.decision = DECISION_MEASURE,
                                    .propensity = 1,
                                    .threshold = NAN,
                                    .confidence = own ? own->confidence : NAN};
    if (own && own->trained_rows == 0) { // here, unlike there, the forecaster begins untrained
        (void)snprintf(ret->reason, sizeof(ret->reason), "the forecaster knows nothing yet");
        return;
    }
    for (uint64_t id = view->first; id <= view->last; id++) {
        double theirs = rank_of(all[id - 1].forecast, rank), mine = rank_of(own, rank);
        ranked += theirs >= 0;
        better += theirs > mine || (theirs == mine && id < view->candidate);
    }
    if (rank_of(own, rank) < 0 || MEASURED_OF_BATCH * better >= ranked) {
        ret->decision = DECISION_TRUST;
        ret->propensity = 0;
    }
    (void)snprintf(ret->reason, sizeof(ret->reason), "%llu of %llu rank higher",
                   (unsigned long long)better, (unsigned long long)ranked);
}

static void decide_published(const struct policy_view *view, struct policy_decision *ret)
{
    decide_by(rank_by_bin, view, ret);
}

static void decide_published_correct(const struct policy_view *view, struct policy_decision *ret)
{
    decide_by(rank_by_bin_if_correct, view, ret);
}

const struct policy policy_published = {
    .name = "published",
    .help = "of each batch the quarter with the highest expected bin",
    .decide = decide_published,
    .replay_only = true,
    .batch = ROUND};

const struct policy policy_published_correct = {.name = "published-correct",
                                                .help =
                                                    "the same by the expected bin times P(correct)",
                                                .decide = decide_published_correct,
                                                .replay_only = true,
                                                .batch = ROUND};
