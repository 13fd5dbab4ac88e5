// Which of a daemon's devices a problem is measured on.
#ifndef CLIENT_POOL_DEVICE_CHOICE_H
#define CLIENT_POOL_DEVICE_CHOICE_H

#include "common/err.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

// The first device that runs the problem's language, of class device_class when that is not NULL,
// and is not out of service. *ret is the caller's. ERR_UNREACHABLE or ERR_INVALID with a sentence
// about "the daemon" that says why there is none.
MUST_CHECK int device_choose(const struct status *status, const char *device_class,
                             const struct problem *problem, struct device_info *ret,
                             struct err *err);
// Whether it begins jobs now, or will in a moment.
bool device_takes_jobs(const struct device_info *device);
// Devices of the class that take jobs now; *ret_all, which may be NULL, also counts those that
// rest.
size_t device_count(const struct status *status, const char *device_class, size_t *ret_all);

#endif
