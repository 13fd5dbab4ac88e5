// The two commonest faults of a forecaster, undone: it names bins that are off by some, and it is
// too sure or not sure enough. Every combination of a shift and a temperature T (p becomes p^(1/T),
// the inverse of a softmax that is too hot or too cold; Guo et al. 2017, ICML) is a hypothesis; the
// answer is their mixture, each weighted by how well it would have forecast the outcomes so far.
// In log score the mixture loses at most 0.02 in all, over any record, against "as it is", which
// has 98 % of the prior. Pure numbers.
#ifndef WORKER_TEMPER_H
#define WORKER_TEMPER_H

#include "contract/bins.h"
#include <stdbool.h>
#include <stddef.h>

#define TEMPER_SHIFTS 5 // -2 … 2 bins
#define TEMPER_DEGREES 7
#define TEMPER_COUNT (TEMPER_SHIFTS * TEMPER_DEGREES)
#define TEMPER_FLOOR 5e-4 // added to each bin: what is called impossible may come

// One forecast at every temperature.
struct tempered {
    float p[TEMPER_DEGREES][BIN_COUNT];
};

// p >= 0 sums to something positive; false, and nothing is written, when it does not.
bool temper_prepare(struct tempered *ret, const double p[static BIN_COUNT]);

// The probability that each hypothesis gives to this bin, as logarithms.
void temper_evidence(double ret[static TEMPER_COUNT], const struct tempered *forecast, size_t bin);

// Weights (sum 1) of the hypotheses from the sums of their logarithms.
void temper_weights(double ret[static TEMPER_COUNT], const double evidence[static TEMPER_COUNT]);

// The mixture with these weights; sum 1, no bin 0.
void temper_mix(double ret[static BIN_COUNT], const struct tempered *forecast,
                const double weight[static TEMPER_COUNT]);

#endif
