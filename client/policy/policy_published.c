// The policy `published`: the rule of another project, for comparison in replays. It is not offered
// for searching.
//
// It is the surrogate search of "GPU Forecasters" (arXiv 2605.31464). The candidates of one round
// are ranked by the expected index of the bin in which their speedup over the seed is forecast to
// lie. The best quarter is measured (4 of 16 children). The others, and those without a forecast,
// are discarded for good. The rule uses no confidence, no incumbent and no audits.
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

// The expected index of the candidate's bin. -1 when there is no usable forecast to rank it by.
static double expected_bin(const struct forecast *forecast)
{
    if (!policy_usable(forecast) || forecast->bins_count != BIN_COUNT) {
        return -1;
    }
    double sum = 0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        sum += forecast->bins[bin] * published_bin(bin_midpoint(bin));
    }
    return sum;
}

static void decide_published(const struct policy_view *view, struct policy_decision *ret)
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
        double theirs = expected_bin(all[id - 1].forecast), mine = expected_bin(own);
        ranked += theirs >= 0;
        better += theirs > mine || (theirs == mine && id < view->candidate);
    }
    if (expected_bin(own) < 0 || MEASURED_OF_BATCH * better >= ranked) {
        ret->decision = DECISION_TRUST;
        ret->propensity = 0;
    }
    (void)snprintf(ret->reason, sizeof(ret->reason), "%llu of %llu rank higher",
                   (unsigned long long)better, (unsigned long long)ranked);
}

const struct policy policy_published = {
    .name = "published",
    .help = "of each batch the quarter with the highest expected bin",
    .decide = decide_published,
    .replay_only = true,
    .batch = ROUND};
