// What came of one search of a recorded space, as plain numbers that processes pass to each other
// through shared memory. replay/sim_search.h and the methods of replay/search_methods.h fill it;
// replay/compare.h and the summaries read it.
#ifndef REPLAY_SEARCH_OUTCOME_H
#define REPLAY_SEARCH_OUTCOME_H

#include "client/policy/guarantee.h"
#include <stdint.h>

#define SEARCH_STEPS_MAX 64

// A new incumbent, with what the search had used until then.
struct search_step {
    double device_seconds;
    double log2; // speedup of the incumbent
    uint64_t considered;
    uint64_t measured;
};

// What audits say of the candidates that they were drawn from (replay/audits.h).
struct search_audits {
    uint64_t population; // candidates that the audits stand for
    uint64_t audited;    // audits
    uint64_t found;      // of these, improvers
    uint64_t among;     // of so many the next is the truth: all that the population is a sample of,
                        // where a space has more points than a survey takes
    uint64_t improvers; // among these, which only a replay knows
    double share, upper; // the estimated share of improvers, and its upper bound; see
                         // struct false_omission of client/policy/certify.h
};

struct search_outcome {
    uint64_t considered, measured, audited, trusted, records; // candidates, as the run counts them
    uint64_t improvers; // considered candidates that beat the incumbent of their decision
    uint64_t missed;    // improvers that were not measured
    // Of the candidates of the space that a screening has compared or a decision was about
    // (replay/looks.h); beating an incumbent is by the margin of client/run/improvement.h.
    uint64_t looked_at;
    uint64_t improvers_looked_at; // that beat the incumbent against which they were looked at first
    uint64_t passed_over;         // of these, the ones that were never measured
    uint64_t passed_over_better;  // of these, the ones that beat the last incumbent, too
    uint64_t left;                // correct candidates of the space that were not measured
    uint64_t left_better;         // of these, the ones that beat the last incumbent
    double left_log2;             // by which the best of them beats it; -infinite: none is left
    double
        survey[GUARANTEE_LEVELS]; // `expected` of the last survey; the first is NaN: there is none
    struct search_audits audits;
    double promised, kept;           // improvements by screened candidates: forecast, measured
    double beyond_log2, stated_log2; // of client/policy/guarantee.h; NaN: nothing was said
    double device_seconds;           // used
    double compile_seconds;          // used
    double given_seconds;            // the budget of device time; what was used when there was none
    double seconds;                  // simulated time
    double best_log2;                // speedup of the last incumbent; 0 is the baseline
    // The incumbents in order. When there are more than SEARCH_STEPS_MAX, each further one replaces
    // the last.
    struct search_step step[SEARCH_STEPS_MAX];
    uint64_t steps;
};

// Appends an incumbent to the steps.
void search_outcome_add_step(struct search_outcome *outcome, const struct search_step *step);
// Returns the first step whose speedup was at least log2. NULL when there is none, and when the
// baseline, with a log2 of 0, is enough.
const struct search_step *search_outcome_step(const struct search_outcome *outcome, double log2);
// Returns the device seconds that were used when the speedup first was at least log2: 0 when the
// baseline is enough, infinite when it never was.
double search_outcome_reached(const struct search_outcome *outcome, double log2);

#endif
