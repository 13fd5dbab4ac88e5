// Where outcomes fell in the distributions that were forecast for them: the weighted empirical
// distribution of u = F(y), the probability integral transform (PIT). For a calibrated forecaster
// it is uniform; its deviation from uniform is the correction (Gneiting, Balabdaoui & Raftery 2007,
// JRSS B 69; Kuleshov, Fenner & Ermon 2018, ICML). Called by the recalibration. Pure numbers.
#ifndef WORKER_CALIBRATION_PIT_MAP_H
#define WORKER_CALIBRATION_PIT_MAP_H

#include <stddef.h>

// Embedded by value; zeroed memory is a map without points.
struct pit_map {
    double *u;            // ascending
    double *below;        // [k]: weight of points 0 ... k - 1; count + 1 numbers
    size_t count;         // points
    double weight;        // of all points
    double weight_square; // sum of the squared weights
};

// Replaces the map by points i = 0 ... count - 1: u in [0, 1] in ascending order, weights > 0.
void pit_map_fit(struct pit_map *map, const double *u, const double *weight, size_t count);
void pit_map_release(struct pit_map *map);

// The weight of the points up to and including u. O(log n).
double pit_map_below(const struct pit_map *map, double u);

#endif
