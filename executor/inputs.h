// Input tensors from a seed. The value of an element depends on (key, tensor, distribution, index)
// only, so that whoever has the seed in the report can make the very same inputs again.
#ifndef EXECUTOR_INPUTS_H
#define EXECUTOR_INPUTS_H

#include "problem/problem.h"
#include <stddef.h>
#include <stdint.h>

// The key of one tensor's contents: Philox of the plan's seed and the place (case, content,
// tensor).
uint64_t inputs_key(uint64_t seed, uint64_t shape_index, uint64_t content, uint64_t tensor);

// 64 uniform bits for a counter: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over key +
// counter * odd constant.
uint64_t inputs_bits(uint64_t key, uint64_t counter);

// Fills out[0 .. count) of tensor->dtype as docs/problems.md says. last_extent is the length of the
// last axis (rows of one-hot); it divides count. Values beyond the range of an integer dtype are
// clamped to it.
void inputs_fill(const struct tensor *tensor, uint64_t key, size_t count, size_t last_extent,
                 void *out);

#endif
