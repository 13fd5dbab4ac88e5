// The source of an mutant of a sealed problem, for client/problem_mutant.c only.
#ifndef CLIENT_PROBLEM_MUTANT_CUDA_H
#define CLIENT_PROBLEM_MUTANT_CUDA_H

#include "client/problem/mutant.h"

// As mutant_source; the problem is a cuda problem.
void mutant_cuda_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                        struct strbuf *out);

// What problem_mutant.c and problem_applies.c lend it: the input that an output is forged from
// (tensor_count without one), and whether 1 % is more than a unit in the last place of the tensor.
size_t mutant_copy_source(const struct problem *problem, size_t output);
bool mutant_percent_shows(const struct tensor *tensor);

#endif
