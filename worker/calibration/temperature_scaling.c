// Design note. Hypothesis h has the shift h / TEMPERATURE_SCALING_DEGREES - 2 and temperature
// number h % TEMPERATURE_SCALING_DEGREES. A shift of +1 means that outcomes fall one bin above the
// forecast; probability that would leave the table stays in the outer bin.
#include "worker/calibration/temperature_scaling.h"

#include <math.h>

// The hypothesis that leaves the forecast as it is: shift 0, temperature 1.
#define AS_IT_IS (TEMPERATURE_SCALING_SHIFTS / 2 * TEMPERATURE_SCALING_DEGREES + 1)
#define PRIOR_AS_IT_IS 0.98
#define WEIGHT_MIN 1e-4 // hypotheses of smaller weight are left out of the mixture

static const double temperature[TEMPERATURE_SCALING_DEGREES] = {0.67, 1, 1.5, 2.2, 3.3, 4.7, 6.6};

bool temperature_scaling_prepare(struct tempered *ret, const double p[static BIN_COUNT])
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        sum += p[i];
        most = fmax(most, p[i]);
    }
    if (!(sum > 0) || !isfinite(sum)) {
        return false;
    }
    for (size_t t = 0; t < TEMPERATURE_SCALING_DEGREES; t++) {
        double power[BIN_COUNT], total = 0;
        for (size_t i = 0; i < BIN_COUNT; i++) {
            total += power[i] = p[i] > 0 ? pow(p[i] / most, 1 / temperature[t]) : 0;
        }
        for (size_t i = 0; i < BIN_COUNT; i++) {
            ret->p[t][i] = (float)(power[i] / total);
        }
    }
    return true;
}

// The bin that `bin` moves to with shift number `shift`.
static size_t shifted(size_t bin, size_t shift)
{
    size_t to = bin + shift;
    if (to < TEMPERATURE_SCALING_SHIFTS / 2) {
        return 0;
    }
    to -= TEMPERATURE_SCALING_SHIFTS / 2;
    return to < BIN_COUNT ? to : BIN_COUNT - 1;
}

// Adds the floor to one bin of a distribution over BIN_COUNT bins, and normalises.
static double floored(double p)
{
    return (p + TEMPERATURE_SCALING_FLOOR) / (1 + BIN_COUNT * TEMPERATURE_SCALING_FLOOR);
}

void temperature_scaling_evidence(double ret[static TEMPERATURE_SCALING_COUNT],
                                  const struct tempered *forecast, size_t bin)
{
    for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT; h++) {
        double p = 0;
        for (size_t i = 0; i < BIN_COUNT; i++) {
            if (shifted(i, h / TEMPERATURE_SCALING_DEGREES) == bin) {
                p += (double)forecast->p[h % TEMPERATURE_SCALING_DEGREES][i];
            }
        }
        ret[h] = log(floored(p));
    }
}

void temperature_scaling_weights(double ret[static TEMPERATURE_SCALING_COUNT],
                                 const double evidence[static TEMPERATURE_SCALING_COUNT])
{
    double most = -INFINITY, sum = 0;
    for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT; h++) {
        most = fmax(most, evidence[h]);
    }
    for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT; h++) {
        double prior =
            h == AS_IT_IS ? PRIOR_AS_IT_IS : (1 - PRIOR_AS_IT_IS) / (TEMPERATURE_SCALING_COUNT - 1);
        ret[h] = prior * exp(evidence[h] - most);
        sum += ret[h];
    }
    for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT; h++) {
        ret[h] /= sum;
    }
}

void temperature_scaling_mix(double ret[static BIN_COUNT], const struct tempered *forecast,
                             const double weight[static TEMPERATURE_SCALING_COUNT])
{
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret[i] = 0;
    }
    for (size_t h = 0; h < TEMPERATURE_SCALING_COUNT; h++) {
        if (weight[h] < WEIGHT_MIN) {
            continue;
        }
        for (size_t i = 0; i < BIN_COUNT; i++) {
            ret[shifted(i, h / TEMPERATURE_SCALING_DEGREES)] +=
                weight[h] * (double)forecast->p[h % TEMPERATURE_SCALING_DEGREES][i];
        }
    }
    double total = 0;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        total += ret[i];
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        ret[i] = floored(ret[i] / total);
    }
}
