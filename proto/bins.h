// The bins of speedups, over y = log2(baseline time / candidate time), and distributions over them.
// Labels of measured results, the bins of forecasts and the tables of the HTML report all use this
// one table, so that they cannot disagree. Worker and client call it.
#ifndef PROTO_BINS_H
#define PROTO_BINS_H

#include <stddef.h>

#define BIN_COUNT 15
#define BIN_TAIL_RATE 2.0 // the outer bins are exponential with this rate per unit of y

// Bin b holds bin_edge[b] <= y < bin_edge[b + 1]. The first edge is -infinity, the last +infinity.
extern const double bin_edge[BIN_COUNT + 1];

// The bin of y, which may be infinite but not NaN.
size_t bin_of(double y);
// The middle of a bin. Of an outer bin: its inner edge moved outwards by 1 / BIN_TAIL_RATE.
double bin_midpoint(size_t bin);
// Writes the bin's speedups, such as "1.25x to 1.6x".
void bin_name(size_t bin, char out[static 32]);

// Y is distributed with bin probabilities p, which sum to 1: uniform inside a bin, with exponential
// tails.
double bins_cdf(const double p[static BIN_COUNT], double y); // P(Y <= y)
double bins_mean(const double p[static BIN_COUNT]);
double bins_quantile(const double p[static BIN_COUNT], double q);
double bins_expected_excess(const double p[static BIN_COUNT], double y); // E max(Y - y, 0)

#endif
