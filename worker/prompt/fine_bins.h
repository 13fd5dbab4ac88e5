// The bins of the second question of a forecast: how fast the candidate is against the best so far.
// They are narrower around 1 than those of proto/bins.h, which are an octave wide where a search
// has come far and cannot tell 7.9 from 7.6. Pure numbers.
#ifndef WORKER_PROMPT_FINE_BINS_H
#define WORKER_PROMPT_FINE_BINS_H

#include <stddef.h>

#define FINE_BIN_COUNT 8

// Writes the bin's ratios of times (best so far / candidate), such as "0.95x to 1.05x".
void fine_bin_name(size_t bin, char out[static 32]);
// P(the candidate is faster than the best by at least y = log2 of the ratio), for bin probabilities
// p that sum to 1: uniform in the logarithm inside a bin, with exponential tails as in
// proto/bins.h.
double fine_bins_above(const double p[static FINE_BIN_COUNT], double y);

#endif
