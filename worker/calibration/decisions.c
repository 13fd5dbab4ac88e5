// Design note. The confidence in a decision of strength s = |logit p| is the mean of a
// beta-binomial model: the share R of right decisions among those of the same kind and similar
// strength, shrunk to a pessimistic prior m, which believes only a part of what p claims:
//
//   confidence = (n R + PRIOR_DECISIONS m) / (n + PRIOR_DECISIONS)
//   m = 1/2 + PRIOR_TRUST (max(p, 1 - p) - 1/2)
//
// R is weighted by four factors:
//   - 1 / propensity, so that candidates measured at random stand for those that were trusted and
//     never measured;
//   - age, since old decisions were made by another model;
//   - a kernel in the phase: near the end of a search "does not improve" is right of nearly all
//     candidates, at its beginning of half of them;
//   - a kernel k in s. There is one exception, since strength is informative: a weaker decision
//     that was right and a stronger one that was wrong count in full.
//
// n is the effective number of decisions, (sum w k)^2 / sum w^2 k (Kish 1965): ten decisions of
// weight ten are worth ten, not a hundred. With few decisions the confidence stays near m, below
// any useful threshold. It rises as decisions prove right, and one wrong decision of large weight
// lowers it much.
#include "worker/calibration/decisions.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define PRIOR_DECISIONS 5.0
#define PRIOR_TRUST 0.72
#define STRENGTH_BANDWIDTH 1.0 // of logit p
#define PHASE_BANDWIDTH 0.5    // of the incumbent's log2 speedup
#define STRENGTH_MAX 4.6       // p = 0.01: stronger claims are treated alike
#define HALF_LIFE 100.0        // decisions until a weight is halved
#define NEGLIGIBLE 1e-9 // of the weights: what older decisions may have together and not count

struct decision {
    double strength; // |logit p|
    double weight;   // 1 / propensity
    double phase;    // the incumbent's log2 speedup
    bool improves;   // what was decided
    bool right;
};

struct decisions {
    struct decision *decision;
    size_t count, size;
};

struct decisions *decisions_create(void)
{
    return xcalloc(1, sizeof(struct decisions));
}

void decisions_free(struct decisions *decisions)
{
    if (!decisions) {
        return;
    }
    free(decisions->decision);
    free(decisions);
}

struct decisions *decisions_copy(const struct decisions *decisions)
{
    struct decisions *copy = decisions_create();
    copy->count = copy->size = decisions->count;
    if (copy->count > 0) {
        copy->decision = xmemdup(decisions->decision, copy->count * sizeof(*copy->decision));
    }
    return copy;
}

static double strength_of(double p)
{
    double strength = fabs(log(p / (1 - p)));
    return strength < STRENGTH_MAX ? strength : STRENGTH_MAX; // also where p is 0 or 1
}

void decisions_add(struct decisions *decisions, double p, bool improved, double propensity,
                   double phase)
{
    if (decisions->count == decisions->size) {
        decisions->size = decisions->size ? 2 * decisions->size : 64;
        decisions->decision =
            xrealloc(decisions->decision, decisions->size, sizeof(struct decision));
    }
    decisions->decision[decisions->count++] = (struct decision){
        .strength = strength_of(p),
        .weight = fmin(1 / propensity, DECISION_WEIGHT_MAX),
        .phase = phase,
        .improves = p >= 0.5,
        .right = (p >= 0.5) == improved,
    };
}

// From the newest to the oldest, until all older ones together cannot matter. Age alone does not
// say when that is: those of the phase may be old. Incumbents stay for long, so that most decisions
// have the phase of the one before.
double decisions_confidence(const struct decisions *decisions, double p, double phase)
{
    double strength = strength_of(p), right = 0, sum = 0, square = 0;
    double age = 1, younger = exp2(-1 / HALF_LIFE), of_phase = NAN, near = 0;
    for (size_t i = decisions->count; i > 0; i--, age *= younger) {
        const struct decision *decision = &decisions->decision[i - 1];
        if (age * DECISION_WEIGHT_MAX / (1 - younger) < NEGLIGIBLE * sum) {
            break;
        }
        if (decision->improves != (p >= 0.5)) {
            continue;
        }
        double distance = (decision->strength - strength) / STRENGTH_BANDWIDTH;
        double kernel = decision->right == (distance < 0) ? 1 : exp(-0.5 * distance * distance);
        if (decision->phase != of_phase) {
            double apart = (decision->phase - phase) / PHASE_BANDWIDTH;
            near = exp(-0.5 * apart * apart);
            of_phase = decision->phase;
        }
        double weight = decision->weight * near * age;
        sum += weight * kernel;
        square += weight * weight * kernel;
        right += decision->right ? weight * kernel : 0;
    }
    double prior = 0.5 + PRIOR_TRUST * (fmax(p, 1 - p) - 0.5);
    if (!(square > 0)) { // none, or none that counts in this phase
        return prior;
    }
    double effective = sum * sum / square;
    return (effective * right / sum + PRIOR_DECISIONS * prior) / (effective + PRIOR_DECISIONS);
}

size_t decisions_count(const struct decisions *decisions)
{
    return decisions->count;
}

double decisions_accuracy(const struct decisions *decisions)
{
    double right = 0, sum = 0;
    for (size_t i = 0; i < decisions->count; i++) {
        sum += decisions->decision[i].weight;
        right += decisions->decision[i].right ? decisions->decision[i].weight : 0;
    }
    return sum > 0 ? right / sum : NAN;
}
