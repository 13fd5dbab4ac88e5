// The shift between two samples of short GPU launches. Such times have several modes: the end of a
// kernel is noticed with a period (170 ns on an H200), so that a launch takes t, t + P, t + 2 P and
// so on, with nearly the same probabilities for two kernels of about one length. Two samples are
// compared in two steps. Their shift within the period uses every launch, whichever mode it fell
// into. Their shift in whole periods is decided by the shares of the modes. executor/timing.c calls
// this; it must know nothing but numbers.
#ifndef EXECUTOR_MULTIMODAL_H
#define EXECUTOR_MULTIMODAL_H

#include "common/stats.h"
#include <stddef.h>

#define MODES_LEAST 16 // launches of each arm below which no period is looked for
#define MODES_MOST 512 // launches of each arm that are used

// Returns the shift b - a in the unit of the samples (nanoseconds), with its interval of z standard
// deviations. It is stats_shift's when the samples show no common period, or when the shares of the
// modes do not decide. a and b are not changed. Of more than MODES_MOST launches the first are
// used: an estimate from a part of the launches is less precise and no less true.
struct stats_shift multimodal_shift(const double *a, const double *b, size_t count, double z);

#endif
