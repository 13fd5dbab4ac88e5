// How much the daemons of --pool can do for a search: asked once, before the search begins. Called
// by client/search/search_start.c. Knows nothing of jobs; a search that runs uses
// client/pool/daemon_pool.h.
#ifndef CLIENT_POOL_POOL_SIZE_H
#define CLIENT_POOL_POOL_SIZE_H

#include "client/session.h"
#include "common/err.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include <stdint.h>

struct pool_size {
    uint64_t devices;       // of the class, that take jobs now
    uint64_t compile_slots; // compilations at a time by the daemons that have such devices; 0: none
                            // of them says
};

// Asks all daemons of --pool for their status, at the same time. *ret_device is the first device in
// service that runs problems of this language, in the order of --pool, and the caller's
// (message_clear with device_info_message). *ret counts the devices of its class. Fails with the
// first daemon's reason when there is no such device.
MUST_CHECK int pool_size_ask(struct session *session, const struct problem *problem,
                             struct device_info *ret_device, struct pool_size *ret,
                             struct err *err);

#endif
