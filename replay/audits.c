#include "replay/audits.h"

#include "client/policy/false_omission.h"
#include "client/run/improvement.h"
#include <math.h>

static bool beats(double log2, double incumbent_log2)
{
    return log2 > (isfinite(incumbent_log2) ? incumbent_log2 : 0) + IMPROVEMENT_MARGIN_LOG2;
}

// The true log2 speedup of a candidate of the run; NaN when it has none.
static double truth_of(const struct recorded_space *recorded,
                       const struct run_state_candidate *candidate)
{
    const struct space_candidate *found =
        recorded_space_find(recorded, &candidate->proposed.source);
    return found ? space_log2(found) : NAN;
}

// Whether audits were drawn at the end, from points that had not been proposed.
static bool drew_points(const struct run_state *run_state)
{
    bool ret = false;
    for (size_t i = 0; run_state->draws > 0 && i < run_state->candidate_count; i++) {
        ret |= run_state->candidate[i].proposed.draw > 0;
    }
    return ret;
}

// The incumbent when audits were drawn. A drawn point that does not compile was never decided
// about, and has none. Where that is so of all, nothing has been measured since.
static double incumbent_of_draws(const struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        if ((candidate->proposed.draw > 0 || candidate->decided.draw > 0) &&
            candidate->decided.decision != 0) {
            double log2 = candidate->decided.incumbent_log2;
            return isfinite(log2) ? log2 : 0;
        }
    }
    return run_state_incumbent_log2(run_state);
}

// Candidates of the run that were trusted or audited, and beat this incumbent, or, when it is NaN,
// the one of their decision.
static uint64_t improvers_of_run(const struct recorded_space *recorded,
                                 const struct run_state *run_state, double incumbent_log2)
{
    uint64_t ret = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        uint64_t decision = candidate->decided.decision;
        // With an incumbent, audits that were not drawn then had been measured before.
        bool counts =
            decision == DECISION_TRUST ||
            (decision == DECISION_AUDIT && (isnan(incumbent_log2) || candidate->decided.draw > 0));
        ret += counts && candidate->proposed.draw == 0 &&
               beats(truth_of(recorded, candidate),
                     isnan(incumbent_log2) ? candidate->decided.incumbent_log2 : incumbent_log2);
    }
    return ret;
}

// Counts the points that had not been proposed when audits were drawn, and their improvers.
static void count_points(const struct recorded_space *recorded, const struct run_state *run_state,
                         double incumbent_log2, struct search_audits *ret)
{
    const struct space *space = recorded_space_data(recorded);
    ret->among = space->head.candidates;
    for (uint64_t i = 0; i < space->head.candidates; i++) {
        ret->improvers += beats(space_log2(&space->candidate[i]), incumbent_log2);
    }
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        if (candidate->proposed.draw == 0 && candidate->proposed.duplicate_of == 0) {
            ret->among--;
            ret->improvers -= beats(truth_of(recorded, candidate), incumbent_log2);
        }
    }
}

void audits_count(const struct recorded_space *recorded, const struct run_state *run_state,
                  struct search_outcome *ret)
{
    struct false_omission omission = false_omission_of_run(run_state);

    ret->audits = (struct search_audits){.population = omission.discarded,
                                         .among = omission.discarded,
                                         .audited = omission.audited,
                                         .found = omission.improvers,
                                         .share = omission.share,
                                         .upper = omission.upper};
    double incumbent = run_state->draws > 0 ? incumbent_of_draws(run_state) : NAN;
    if (drew_points(run_state)) {
        count_points(recorded, run_state, incumbent, &ret->audits);
    } else {
        ret->audits.improvers = improvers_of_run(recorded, run_state, incumbent);
    }
}
