#include "replay/looks.h"

#include "client/run/improvement.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

struct looks {
    const struct recorded_space *recorded;
    double
        *incumbent_log2; // [candidates] the lowest one against which it was looked at; NaN: never
};

static size_t candidates_of(const struct looks *looks)
{
    return (size_t)recorded_space_data(looks->recorded)->head.candidates;
}

struct looks *looks_create(const struct recorded_space *recorded)
{
    struct looks *looks = xcalloc(1, sizeof(*looks));

    looks->recorded = recorded;
    looks->incumbent_log2 = xcalloc(candidates_of(looks), sizeof(*looks->incumbent_log2));
    for (size_t i = 0; i < candidates_of(looks); i++) {
        looks->incumbent_log2[i] = NAN;
    }
    return looks;
}

void looks_free(struct looks *looks)
{
    if (looks) {
        free(looks->incumbent_log2);
        free(looks);
    }
}

// The number of a candidate in its space.
static size_t number_of(const struct looks *looks, const struct space_candidate *candidate)
{
    return (size_t)(candidate - recorded_space_data(looks->recorded)->candidate);
}

static void look(const struct looks *looks, double *lowest, const struct space_candidate *candidate,
                 double incumbent_log2)
{
    if (candidate) {
        double *low = &lowest[number_of(looks, candidate)];
        *low = fmin(*low, incumbent_log2); // the other one where one is NaN
    }
}

void looks_add(struct looks *looks, const struct forecast_request *request)
{
    double incumbent = isnan(request->incumbent_log2) ? 0 : request->incumbent_log2;

    for (size_t i = 0; i < request->candidates_count && request->beyond_log2_count == 0; i++) {
        look(looks, looks->incumbent_log2,
             recorded_space_of_facts(looks->recorded, &request->candidates[i]), incumbent);
    }
}

static const struct space_candidate *proposed(const struct looks *looks,
                                              const struct run_state_candidate *candidate)
{
    return recorded_space_find(looks->recorded, &candidate->proposed.source);
}

// Adds one candidate of the space to the counts.
static void count_one(double log2, double looked_log2, bool known, struct search_outcome *ret)
{
    bool looked_at = !isnan(looked_log2);
    bool left = !known && !isnan(log2);
    bool better = left && log2 > ret->best_log2 + IMPROVEMENT_MARGIN_LOG2;
    // Of what was never looked at nobody knows when it would have been.
    bool improver = looked_at && log2 > looked_log2 + IMPROVEMENT_MARGIN_LOG2;

    ret->looked_at += looked_at;
    ret->improvers_looked_at += improver;
    ret->passed_over += improver && left;
    ret->passed_over_better += improver && better;
    ret->left += left;
    ret->left_better += better;
    ret->left_log2 = left ? fmax(ret->left_log2, log2 - ret->best_log2) : ret->left_log2;
}

void looks_count(const struct looks *looks, const struct run_state *run_state,
                 struct search_outcome *ret)
{
    const struct space *space = recorded_space_data(looks->recorded);
    size_t count = candidates_of(looks);
    double *lowest = xmemdup(looks->incumbent_log2, count * sizeof(*lowest));
    bool *known = xcalloc(count, sizeof(*known));

    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *c = &run_state->candidate[i];
        const struct space_candidate *truth = proposed(looks, c);

        if (truth && (c->result || c->object_duplicate_of != 0)) {
            known[number_of(looks, truth)] = true;
        }
        if (c->decided.decision != 0 && c->decided.draw == 0) {
            look(looks, lowest, truth, c->decided.incumbent_log2);
        }
    }
    ret->left_log2 = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        count_one(space_log2(&space->candidate[i]), lowest[i], known[i], ret);
    }
    free(lowest);
    free(known);
}
