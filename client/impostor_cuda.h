// The source of an impostor of a sealed problem, for client/problem_impostor.c only.
#ifndef CLIENT_IMPOSTOR_CUDA_H
#define CLIENT_IMPOSTOR_CUDA_H

#include "client/problem_impostor.h"

// As impostor_source; the problem is a cuda problem.
void impostor_cuda_source(enum impostor impostor, const struct problem *problem,
                          const char *baseline, struct strbuf *out);

// What problem_impostor.c and problem_applies.c lend it: the input that an output is forged from
// (tensor_count without one), and whether 1 % is more than a unit in the last place of the tensor.
size_t impostor_copy_source(const struct problem *problem, size_t output);
bool impostor_percent_shows(const struct tensor *tensor);

#endif
