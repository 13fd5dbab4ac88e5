// Compares outputs with what the reference gave: |got - y| <= tolerance * u * S for every element
// (docs/problems.md).
#ifndef EXECUTOR_CPU_VERIFY_H
#define EXECUTOR_CPU_VERIFY_H

#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>

struct verify_outcome {
    size_t wrong;     // elements outside the bound
    size_t first;     // index of the first of them
    double got;       // its value
    double expected;  // and what it should be
    double max_error; // largest |error| / (u S) over all elements (u = 1, S = 1 for integers);
                      // infinite when S is 0 and the value differs
};

// got[0 .. count) of dtype; y and scale by the reference. A NaN or an infinity passes only where y,
// rounded to dtype, is the same. For integers with tolerance 0 the scale is ignored and values must
// be equal.
void verify_tensor(enum dtype dtype, double tolerance, const void *got, const double *y,
                   const double *scale, size_t count, struct verify_outcome *ret);

#endif
