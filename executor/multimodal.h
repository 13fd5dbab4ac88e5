// Times of short launches on a GPU come in modes: the end of a kernel is seen with a period (170 ns
// on an H200), so that a launch takes t, t + P, t + 2 P and so on, with probabilities that are the
// same for two kernels of about one length. Two samples of such times are compared in two steps: by
// how much they are shifted within the period, where every launch counts, whichever mode it fell
// into; and by how many periods, where the shares of the modes decide.
#ifndef EXECUTOR_MULTIMODAL_H
#define EXECUTOR_MULTIMODAL_H

#include "common/stats.h"
#include <stddef.h>

#define MODES_LEAST 16 // launches of each arm
#define MODES_MOST 512

// The shift b - a in the unit of the samples (nanoseconds), with its interval of z standard
// deviations. Without a period that both samples show, or as long as the shares do not decide, this
// is stats_shift. a and b are not changed. Of more than MODES_MOST launches the first are compared: an
// estimate from a part of the launches is less precise and no less true, so there is nothing to refuse.
struct stats_shift multimodal_shift(const double *a, const double *b, size_t count, double z);

#endif
