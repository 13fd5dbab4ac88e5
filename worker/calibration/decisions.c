// The confidence in a call of strength s = |logit p| is a beta-binomial mean: the share of right
// calls among those of the same kind and similar strength, shrunk to a pessimistic prior that
// believes only part of what p claims:
//
//   confidence = (n R + PRIOR_CALLS m) / (n + PRIOR_CALLS),   m = 1/2 + PRIOR_TRUST (max(p, 1 - p)
//   - 1/2)
//
// R is weighted by 1 / propensity, so that audits stand for the candidates that were trusted and
// never measured; by age, since the model that made old calls was another one; and by a kernel k in
// s, with one exception: strength means something, so a weaker call that was right and a stronger
// one that was wrong count in full. n is the effective number of calls, (sum w k)^2 / sum w^2 k
// (Kish 1965): ten audits of weight ten are ten calls, not a hundred. With a short record the
// confidence stays near m, below any useful threshold; it rises as calls prove right; one wrong
// audit costs it much.
#include "worker/calibration/decisions.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define PRIOR_CALLS 5.0
#define PRIOR_TRUST 0.72
#define STRENGTH_BANDWIDTH 1.0 // of logit p
#define STRENGTH_MAX 4.6       // p = 0.01: what claims more is not known any better
#define HALF_LIFE 100.0        // calls

struct call {
    double strength; // |logit p|
    double weight;   // 1 / propensity
    bool improves;   // what was called
    bool right;
};

struct decisions {
    struct call *call;
    size_t count, size;
};

struct decisions *decisions_create(void)
{
    return xcalloc(1, sizeof(struct decisions));
}

void decisions_free(struct decisions *calibration)
{
    if (!calibration) {
        return;
    }
    free(calibration->call);
    free(calibration);
}

static double strength_of(double p)
{
    double strength = fabs(log(p / (1 - p)));
    return strength < STRENGTH_MAX ? strength : STRENGTH_MAX; // also for p of 0 and 1
}

void decisions_add(struct decisions *calibration, double p, bool improved, double propensity)
{
    if (calibration->count == calibration->size) {
        calibration->size = calibration->size ? 2 * calibration->size : 64;
        calibration->call = xrealloc(calibration->call, calibration->size, sizeof(struct call));
    }
    calibration->call[calibration->count++] = (struct call){
        .strength = strength_of(p),
        .weight = fmin(1 / propensity, DECISION_WEIGHT_MAX),
        .improves = p >= 0.5,
        .right = (p >= 0.5) == improved,
    };
}

double decisions_confidence(const struct decisions *calibration, double p)
{
    double strength = strength_of(p), right = 0, sum = 0, square = 0;
    for (size_t i = 0; i < calibration->count; i++) {
        const struct call *call = &calibration->call[i];
        if (call->improves != (p >= 0.5)) {
            continue;
        }
        double distance = (call->strength - strength) / STRENGTH_BANDWIDTH;
        double kernel = call->right == (distance < 0) ? 1 : exp(-0.5 * distance * distance);
        double weight = call->weight * exp2(-(double)(calibration->count - 1 - i) / HALF_LIFE);
        sum += weight * kernel;
        square += weight * weight * kernel;
        right += call->right ? weight * kernel : 0;
    }
    double prior = 0.5 + PRIOR_TRUST * (fmax(p, 1 - p) - 0.5);
    if (sum <= 0) {
        return prior;
    }
    double calls = sum * sum / square;
    return (calls * right / sum + PRIOR_CALLS * prior) / (calls + PRIOR_CALLS);
}

size_t decisions_count(const struct decisions *calibration)
{
    return calibration->count;
}

double decisions_accuracy(const struct decisions *calibration)
{
    double right = 0, sum = 0;
    for (size_t i = 0; i < calibration->count; i++) {
        sum += calibration->call[i].weight;
        right += calibration->call[i].right ? calibration->call[i].weight : 0;
    }
    return sum > 0 ? right / sum : NAN;
}
