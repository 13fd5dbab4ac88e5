// Corrects the two most common faults of a forecast over bins: its bins are all off by some number,
// and it is overconfident or underconfident. A hypothesis is a combination of a shift in bins and a
// temperature T, which turns p into p^(1/T), normalised (temperature scaling; Guo et al. 2017,
// ICML). The answer is the mixture of all hypotheses, each weighted by how well it would have
// forecast the outcomes so far. Leaving the forecast as it is has 98 % of the prior, so that in log
// score the mixture loses at most 0.02 in all against it, over any series of outcomes. Called by
// the recalibration. Pure numbers.
#ifndef WORKER_CALIBRATION_TEMPERATURE_SCALING_H
#define WORKER_CALIBRATION_TEMPERATURE_SCALING_H

#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>

#define TEMPERATURE_SCALING_SHIFTS 5  // from -2 to 2 bins
#define TEMPERATURE_SCALING_DEGREES 7 // temperatures
#define TEMPERATURE_SCALING_COUNT (TEMPERATURE_SCALING_SHIFTS * TEMPERATURE_SCALING_DEGREES)
#define TEMPERATURE_SCALING_FLOOR 5e-4 // added to each bin, since nothing is impossible

// One forecast at every temperature.
struct tempered {
    float p[TEMPERATURE_SCALING_DEGREES][BIN_COUNT];
};

// Computes *ret from p, whose numbers are >= 0 and need not sum to 1. Returns false, and writes
// nothing, when the sum is not positive and finite.
bool temperature_scaling_prepare(struct tempered *ret, const double p[static BIN_COUNT]);

// Writes the logarithm of the probability that each hypothesis gives to this bin.
void temperature_scaling_evidence(double ret[static TEMPERATURE_SCALING_COUNT],
                                  const struct tempered *forecast, size_t bin);

// Writes the posterior weights of the hypotheses (sum 1), given the sums of their logarithms over
// the outcomes.
void temperature_scaling_weights(double ret[static TEMPERATURE_SCALING_COUNT],
                                 const double evidence[static TEMPERATURE_SCALING_COUNT]);

// Writes the mixture of the hypotheses with these weights; its sum is 1 and no bin is 0.
void temperature_scaling_mix(double ret[static BIN_COUNT], const struct tempered *forecast,
                             const double weight[static TEMPERATURE_SCALING_COUNT]);

#endif
