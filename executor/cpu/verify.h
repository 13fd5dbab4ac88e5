// Compares outputs with those of the reference: |got - y| <= tolerance * u * S must hold for every
// element (docs/problems.md), where u is the unit roundoff of the dtype and S the error scale. The
// harness calls this. It must not know which arm computed them.
#ifndef EXECUTOR_CPU_VERIFY_H
#define EXECUTOR_CPU_VERIFY_H

#include "problem/problem.h"
#include <stdbool.h>
#include <stddef.h>

struct verify_outcome {
    size_t wrong;     // number of elements outside the bound
    size_t first;     // index of the first of them
    double got;       // its value
    double expected;  // the value by the reference
    double max_error; // largest |error| / (u S) over all elements (u = 1, S = 1 for integers);
                      // infinite when S is 0 and the values differ
};

// Verifies got[0 .. count), elements of dtype; y and scale are the reference's. A NaN or an
// infinity passes only where y, rounded to dtype, is the same. Integers with tolerance 0 must be
// equal; their scale is ignored.
void verify_tensor(enum dtype dtype, double tolerance, const void *got, const double *y,
                   const double *scale, size_t count, struct verify_outcome *ret);

#endif
