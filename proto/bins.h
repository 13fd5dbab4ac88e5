// The one table of speedup bins, over y = log2(baseline time / candidate time). Labels of measured results, the bins of a
// forecast, their midpoints and the tables in reports all come from edge[], so they cannot disagree.
#ifndef PROTO_BINS_H
#define PROTO_BINS_H

#include <stddef.h>

#define BIN_COUNT 15

// Bin b holds bin_edge[b] <= y < bin_edge[b + 1]; the first edge is -infinity, the last +infinity.
extern const double bin_edge[BIN_COUNT + 1];

size_t bin_of(double y);         // y finite or infinite; NaN is a defect of the caller
double bin_midpoint(size_t bin); // of the outer two: their inner edge moved by 1 / BIN_TAIL_RATE
void bin_name(size_t bin, char out[static 32]); // "1.41x to 2x"

#define BIN_TAIL_RATE 2.0 // outer bins are exponential with this rate per unit of y

// The distribution with these bin probabilities (piecewise uniform inside, exponential tails). p sums to 1.
double bins_cdf(const double p[static BIN_COUNT], double y); // P(Y <= y)
double bins_mean(const double p[static BIN_COUNT]);
double bins_quantile(const double p[static BIN_COUNT], double q);
double bins_expected_excess(const double p[static BIN_COUNT], double y); // E max(Y - y, 0)

#endif
