// The sources of mutants of cuda problems. Private to mutants: mutant.c calls it, and it uses two
// functions of mutant.c and mutant_applicable.c.
#ifndef CLIENT_PROBLEM_MUTANT_CUDA_H
#define CLIENT_PROBLEM_MUTANT_CUDA_H

#include "client/problem/mutant.h"

// mutant_source for a cuda problem.
void mutant_cuda_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                        struct strbuf *out);

// mutant.c: the index of the input that an output is copied from: the first of the same type and
// shape, else of the same type, else of the same shape, else any. tensor_count when there is no
// tensor that is only an input.
size_t mutant_copy_source(const struct problem *problem, size_t output);
// mutant_applicable.c: whether a change of 1 % is more than a unit in the last place of the
// tensor's type.
bool mutant_percent_shows(const struct tensor *tensor);

#endif
