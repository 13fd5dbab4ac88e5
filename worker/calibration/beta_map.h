// The probability of an event from what was stated, by beta calibration (Kull, Silva Filho & Flach 2017,
// AISTATS): logit p' = a ln p - b ln (1 - p) + c with a, b >= 0. Three parameters follow few outcomes
// better than an isotonic fit does, but only to maps of this family. Pure numbers.
#ifndef WORKER_CALIBRATION_BETA_MAP_H
#define WORKER_CALIBRATION_BETA_MAP_H

#include <stdbool.h>
#include <stddef.h>

struct beta_map {
    double a, b, c; // as it is: 1, 1, 0
};
extern const struct beta_map beta_map_identity;

// The maximum of the posterior: parameters normal about those of `prior`, with standard deviations 0.7 (the
// mean of a and b), 0.2 (half their difference) and 0.7 (c). Points i = 0 … count - 1: stated probability, weight > 0, whether the event happened.
void beta_map_fit(struct beta_map *map, const struct beta_map *prior, const double *stated,
                  const double *weight, const bool *event, size_t count);
double beta_map_apply(const struct beta_map *map, double stated); // in (0, 1); not decreasing

#endif
