// A C problem with every feature of problem.json, for tests that change one place of it.
#ifndef TESTS_SUPPORT_SAMPLES_PROBLEM_SAMPLE_H
#define TESTS_SUPPORT_SAMPLES_PROBLEM_SAMPLE_H

#include "problem/problem.h"

// The JSON text of the problem, with the first `from` replaced by `to`. Both write ' for ". The
// test fails when the text has no `from`. The caller frees the result.
char *problem_sample_text(const char *from, const char *to);
// The same, parsed. The test fails when the problem is refused. The caller frees the result.
struct problem *problem_sample_with(const char *from, const char *to);

#endif
