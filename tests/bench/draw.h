// New data for a tensor, as a program would get it that has never heard of kernelcast: values of
// the distribution that docs/problems.md documents, by generators and methods that have nothing in
// common with those of the executor (executor/inputs.h, executor/input_table.h). The benchmarks
// that stream new data (tests/bench/bench_stream.c, tests/gpu/stream.c) fill their inputs with it.
// It must not know where the data goes.
#ifndef TESTS_BENCH_DRAW_H
#define TESTS_BENCH_DRAW_H

#include "common/err.h"
#include "problem/problem.h"
#include <stddef.h>
#include <stdint.h>

#define DRAW_RANKS_MAX 1048576 // most values of a zipf distribution

// The source of one input tensor's data.
struct draw;

// ERR_UNSUPPORTED, with the tensor's name, for 8-bit floating-point types and for a zipf
// distribution of more than DRAW_RANKS_MAX values. The same seed gives the same data. *tensor must
// outlive the source. draw_free frees *ret.
MUST_CHECK int draw_create(struct draw **ret, const struct tensor *tensor, uint64_t seed,
                           struct err *err);
void draw_free(struct draw *draw); // NULL is fine

// Fills out[0 .. count) with elements of the tensor's type; each call gives new ones. last_extent
// is the length of the last axis, which is the row of a one-hot tensor; it divides count.
void draw_fill(struct draw *draw, size_t count, size_t last_extent, void *out);

#endif
