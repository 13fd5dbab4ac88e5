// The sources of mutants of baselines in Python. Private to mutants: mutant.c calls it.
#ifndef CLIENT_PROBLEM_MUTANT_PYTHON_H
#define CLIENT_PROBLEM_MUTANT_PYTHON_H

#include "client/problem/mutant.h"

// mutant_source for a baseline in Python.
void mutant_python_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                          struct strbuf *out);

#endif
