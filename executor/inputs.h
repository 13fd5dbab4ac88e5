// Input tensors from a seed. The value of an element depends on key, distribution and index only,
// so that whoever has the seed of a result can make the same inputs again. The harness of a core
// and the oracle of a GPU call this. It must not know where the values are used.
#ifndef EXECUTOR_INPUTS_H
#define EXECUTOR_INPUTS_H

#include "problem/problem.h"
#include <stddef.h>
#include <stdint.h>

// Returns the key of one tensor's values: Philox of the plan's seed and the place (case, content,
// tensor).
uint64_t inputs_key(uint64_t seed, uint64_t shape_index, uint64_t content, uint64_t tensor);

// Returns 64 uniform bits for a counter: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over
// key + counter * odd constant.
uint64_t inputs_bits(uint64_t key, uint64_t counter);

// Returns the quantile of the standard normal distribution at p, 0 < p < 1.
double inputs_normal(double p);

// Fills out[0 .. count), elements of dtype, with values of the distribution, as docs/problems.md
// says. last_extent is the length of the last axis, which is the row of a one-hot tensor; it
// divides count. Values beyond the range of an integer dtype are clamped to it.
void inputs_fill(enum dtype dtype, const struct values *values, uint64_t key, size_t count,
                 size_t last_extent, void *out);

#endif
