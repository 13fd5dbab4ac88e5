// What a search may say at its end of everything that it never measured: "none of it is more than
// 3 % faster, with 90 % confidence". It rests on the last survey (run_surveyed in proto/run.def),
// in which a model forecast all of it, and on how such surveys have come true in searches whose
// spaces are known altogether. Called by the pipeline, by summaries, by reports and by replays.
// Pure functions of the run state.
#ifndef CLIENT_POLICY_GUARANTEE_H
#define CLIENT_POLICY_GUARANTEE_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUARANTEE_LEVELS 24 // margins beyond the incumbent for which a survey asks probabilities
#define GUARANTEE_CONFIDENCE 0.9    // of what is said
#define GUARANTEE_MEASURED_LEAST 30 // with fewer measurements nothing is said
#define GUARANTEE_LEAST_PERCENT 1   // what is said, in whole percent, does not go below this

// Writes the margins, log2, in rising order from 0.
void guarantee_levels(double beyond_log2[static GUARANTEE_LEVELS]);

// Counts, of candidates 1 to last, the improvements that screened ones promised, as the sum of
// their P(improves), and those that were measured. Audits at the end do not count.
void guarantee_promises(const struct run_state *run_state, uint64_t last, double *ret_promised,
                        double *ret_kept);
// By what a screening's probabilities of an improvement are to be multiplied, when so many were
// promised and kept before: (kept + 2) / (promised + 2).
double guarantee_correction(double promised, double kept);

struct guarantee {
    bool said;           // something can be said
    uint64_t unmeasured; // points and candidates without a measurement
    uint64_t forecast;   // of these, those of which something is said
    double beyond_log2;  // none of them beats the incumbent by more than this; NaN: nothing is said
    double stated_log2;  // the same, as it is said: in whole percent, rounded up
    char text[400];      // one sentence without a full stop; "" when there was no survey
};

// Of each margin the survey tells how many of the unmeasured candidates are expected to lie beyond
// it, if their forecasts were independent and right. Neither is so. How far this search's own
// promises have come true corrects it: the expected number is multiplied by (kept + 2) / (promised
// + 2). Beyond is the margin at which the corrected number falls to GUARANTEE_EXPECTED
// (client/policy/guarantee.c), which was chosen so that in searches of other spaces the best
// unmeasured candidate lies below with probability GUARANTEE_CONFIDENCE (docs/evaluation.md).
struct guarantee guarantee_of_run(const struct run_state *run_state);
// The margin as it is said, in whole percent of speed: 5 for "not more than 5 % faster". Something
// must have been said.
double guarantee_percent(const struct guarantee *guarantee);

#endif
