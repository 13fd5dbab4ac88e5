// Beta calibration (Kull, Silva Filho & Flach 2017, AISTATS): maps a stated probability p of an
// event to a calibrated one, p', by logit p' = a ln p - b ln (1 - p) + c with a, b >= 0. With few
// outcomes its three parameters are better known than an isotonic fit, but it can only express maps
// of this family. Called by the recalibration. Pure numbers.
#ifndef WORKER_CALIBRATION_BETA_MAP_H
#define WORKER_CALIBRATION_BETA_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct beta_map {
    double a, b, c;
};

// Leaves probabilities as they are: 1, 1, 0.
extern const struct beta_map beta_map_identity;

// Fits *map to points i = 0 ... count - 1: the stated probability, a weight > 0 and whether the
// event happened. The result is the maximum of the posterior. A priori the parameters are normal
// about those of `prior`, with standard deviations 0.7 (the mean of a and b), 0.2 (half their
// difference) and 0.7 (c).
void beta_map_fit(struct beta_map *map, const struct beta_map *prior, const double *stated,
                  const double *weight, const bool *event, size_t count);
// The calibrated probability, in (0, 1). It does not decrease with the stated one.
double beta_map_apply(const struct beta_map *map, double stated);

#endif
