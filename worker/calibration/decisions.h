// How far the engine's calls can be believed, by its own record. A call is "improves the incumbent"
// (p >= 1/2) or "does not"; the record holds calls that were made before their outcome was known.
#ifndef WORKER_CALIBRATION_CALIBRATE_H
#define WORKER_CALIBRATION_CALIBRATE_H

#include <stdbool.h>
#include <stddef.h>

struct decisions;

struct decisions *decisions_create(void);
void decisions_free(struct decisions *calibration);

// Notes one call, in the order of the outcomes. p: the stated probability of an improvement, in [0,
// 1]. propensity: the probability with which the candidate was chosen for measuring, in (0, 1]; the
// call stands for 1 / propensity calls (at most DECISION_WEIGHT_MAX).
#define DECISION_WEIGHT_MAX 20.0
void decisions_add(struct decisions *calibration, double p, bool improved, double propensity);

// The probability that the call of a candidate with stated probability p is right, in [0, 1]. See
// calibrate.c.
double decisions_confidence(const struct decisions *calibration, double p);

size_t decisions_count(const struct decisions *calibration);
// Weighted share of right calls; NaN when there are none.
double decisions_accuracy(const struct decisions *calibration);

#endif
