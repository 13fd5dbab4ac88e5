// Chooses the device of a daemon that a problem is measured on, and counts the ones that take jobs.
// Pure functions of a daemon's status; called by searches, commands and the daemon pool.
#ifndef CLIENT_POOL_DEVICE_CHOICE_H
#define CLIENT_POOL_DEVICE_CHOICE_H

#include "common/err.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

// Chooses the first device that runs the problem's language, has class device_class when that is
// not NULL, and is in service. *ret is the caller's (message_clear with device_info_message).
// ERR_NO_DEVICE or ERR_INVALID with a sentence about "the daemon" that says why there is none.
MUST_CHECK int device_choose(const struct status *status, const char *device_class,
                             const struct problem *problem, struct device_info *ret,
                             struct err *err);
// Whether the device begins jobs now or will in a moment.
bool device_takes_jobs(const struct device_info *device);
// The number of devices of the class that take jobs now. ret_all, which may be NULL, receives the
// number of all devices of the class.
size_t device_count(const struct status *status, const char *device_class, size_t *ret_all);
// Why no device of the class works for the search or could begin to: "cpu0 is draining (reason)",
// for each device; malloc'd. NULL when one works for it, is idle, or when there is no device of the
// class.
char *device_waiting(const struct status *status, const char *device_class, const char *search);

#endif
