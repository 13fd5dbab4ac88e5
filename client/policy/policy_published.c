// How others decide, for comparing by replay. Not offered for searching.
//
// published: the rule of "GPU Forecasters" (arXiv 2605.31464, its surrogate search): of the candidates
// of one round those are measured that rank highest by the expected index of a forecast's bin of
// speedup over the seed, a quarter of them (4 of 16 children); the others, and those without a forecast,
// are discarded for good. No confidence, no incumbent, no audit.
#include "client/policy/policy.h"
#include "common/mem.h"
#include "proto/bins.h"
#include <math.h>
#include <stdio.h>

#define ROUND 16            // children of a parent
#define MEASURED_OF_BATCH 4 // one in so many

// The eight bins of the published label: half octaves from 1/2 to 4.
static double published_bin(double log2)
{
    return fmin(fmax(floor(2 * log2) + 4, 1), 8);
}

// -1: not to be ranked.
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
    if (own && own->trained_rows == 0) { // this forecaster, unlike theirs, has to begin
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
