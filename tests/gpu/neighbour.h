// What a crash costs others: it is measured, followed by an honest candidate of another search. The
// battery (tests/gpu/battery.c) does this with each candidate that crashes.
#ifndef TESTS_GPU_NEIGHBOUR_H
#define TESTS_GPU_NEIGHBOUR_H

#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "common/digest.h"
#include <stdbool.h>

// Measures the candidate `crashing`, whose source the daemon has already, in a search of its own
// and the baseline of the problem in another one. Prints what came out; name is that of the crash.
// Returns whether the baseline got a ratio at most a second after the verdict of the crash.
bool neighbour_is_served(struct session *session, const struct problem_dir *dir,
                         const struct digest *crashing, const char *name);

#endif
