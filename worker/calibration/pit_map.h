// Where outcomes fell in the distributions that were forecast for them: the weighted distribution
// of u = F(y), the probability integral transform. Uniform for a calibrated forecaster; what it is
// instead is the correction (Gneiting, Balabdaoui & Raftery 2007, JRSS B 69; Kuleshov, Fenner &
// Ermon 2018, ICML). Pure numbers.
#ifndef WORKER_CALIBRATION_PIT_MAP_H
#define WORKER_CALIBRATION_PIT_MAP_H

#include <stddef.h>

// Embedded by value; zeroed memory is a map without points.
struct pit_map {
    double *u;     // ascending
    double *below; // [k]: weight of points 0 … k - 1; count + 1 numbers
    size_t count;
    double weight;        // of all
    double weight_square; // sum of squares
};

// Points i = 0 … count - 1: u in [0, 1] in ascending order, weights > 0. Replaces what was there.
void pit_map_fit(struct pit_map *map, const double *u, const double *weight, size_t count);
void pit_map_release(struct pit_map *map);

// The weight of the points up to and including u. O(log n).
double pit_map_below(const struct pit_map *map, double u);

#endif
