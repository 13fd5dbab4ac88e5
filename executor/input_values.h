// Which distribution the values of an input are drawn from: one rule for everyone who makes inputs
// or speaks of them, so that a core, a GPU and the GPU's oracle, a process of its own, make the
// same. It must not know how values are made.
//
// All contents of a case are drawn from a tensor's `values`, but for the last one of verification:
// if the tensor has further distributions (`also` in problem.json), that is drawn from one of them,
// and the cases take turns. With which the first case begins follows from the measurement's seed,
// so that nobody knows which one a case will meet. A candidate must be right for all of them, and
// is never timed on them.
#ifndef EXECUTOR_INPUT_VALUES_H
#define EXECUTOR_INPUT_VALUES_H

#include "executor/measurement.h"
#include "problem/problem.h"
#include <stdbool.h>
#include <stdint.h>

// Returns the distribution of an in or inout tensor in this content of the case. seed is the
// measurement's; case_index is the case's number among all its cases, as in the key of contents.
const struct values *input_values(const struct tensor *tensor, uint64_t seed, uint64_t case_index,
                                  uint64_t content);

// Whether some input of this content is drawn from a further distribution.
bool input_values_are_further(const struct problem *problem, uint64_t content);

// Returns the name of the case and, where inputs are drawn from further distributions, which they
// are: "R=7 N=33", "R=7 N=33 with x from uniform(low=-200, high=-190)". The caller frees it.
char *input_values_where(const struct problem *problem, const struct measure_case *of,
                         uint64_t seed, uint64_t content);

#endif
