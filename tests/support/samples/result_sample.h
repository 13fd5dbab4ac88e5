// A result that everybody believes, for tests that change one thing in it.
#ifndef TESTS_SUPPORT_SAMPLES_RESULT_SAMPLE_H
#define TESTS_SUPPORT_SAMPLES_RESULT_SAMPLE_H

#include "proto/messages.h"

// Fills *ret with a result of two cases, of a candidate that is faster by a log2 of 0.5. Its
// problem and candidate are the digests of these words. The caller clears it.
void result_sample(struct result *ret);
// Moves the speedup of the result and of its cases to another log2, and the candidate's times and
// the verdict with it. The intervals stay as wide.
void result_sample_move(struct result *result, double log2);
// Gives the result and its cases intervals of this half-width.
void result_sample_widen(struct result *result, double half_log2);

#endif
