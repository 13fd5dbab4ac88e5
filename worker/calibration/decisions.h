// The decisions that follow from forecasts, and how often they were right. A decision is "improves
// the incumbent" (stated probability p >= 1/2) or "does not". Holds the decisions of one forecaster
// on one group whose outcome is known, each with its phase: the log2 speedup of the incumbent that
// was to be improved on. Estimates from them how probably the next one, in its phase, is right.
// Being right is not skill: that is a search's to find out (client/policy/trust.h). Called by the
// group and by the history. Pure numbers.
#ifndef WORKER_CALIBRATION_DECISIONS_H
#define WORKER_CALIBRATION_DECISIONS_H

#include <stdbool.h>
#include <stddef.h>

#define DECISION_WEIGHT_MAX 20.0 // most decisions that one may stand for

struct decisions;

struct decisions *decisions_create(void);
void decisions_free(struct decisions *decisions); // NULL is fine
// The decisions as they are now, the caller's.
struct decisions *decisions_copy(const struct decisions *decisions);

// Adds one decision, in the order of the outcomes. p: the probability of an improvement that was
// stated before the outcome was known, in [0, 1]. propensity: the probability with which the
// candidate was chosen for measuring, in (0, 1]. The decision stands for 1 / propensity decisions,
// at most DECISION_WEIGHT_MAX (inverse propensity weighting). phase: finite.
void decisions_add(struct decisions *decisions, double p, bool improved, double propensity,
                   double phase);

// The confidence: the probability that the decision on a candidate with the stated probability p is
// right in this phase, in [0, 1]. decisions.c has the formula.
double decisions_confidence(const struct decisions *decisions, double p, double phase);

size_t decisions_count(const struct decisions *decisions);
// The weighted share of right decisions; NaN when there are none.
double decisions_accuracy(const struct decisions *decisions);

#endif
