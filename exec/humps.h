// Times of short launches on a GPU come in humps: the end of a kernel is seen with a period (170 ns
// on an H200), so that a launch takes t, t + P, t + 2 P and so on, with probabilities that are the
// same for two kernels of about one length. Two samples of such times are compared in two steps: by
// how much they are shifted within the period, where every launch counts, whichever hump it fell
// into; and by how many periods, where the shares of the humps decide.
#ifndef EXEC_HUMPS_H
#define EXEC_HUMPS_H

#include "common/stats.h"
#include <stddef.h>

#define HUMPS_LEAST 16 // launches of each arm
#define HUMPS_MOST 512

// The shift b - a in the unit of the samples (nanoseconds), with its interval of z standard
// deviations. Without a period that both samples show, or as long as the shares do not decide, this
// is stats_shift. a and b are not changed.
struct stats_shift humps_shift(const double *a, const double *b, size_t count, double z);

#endif
