// What the daemon says of itself: the STATUS message, and whether it is well. Reads everything and
// changes nothing.
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/dispatch.h"
#include "net/auth/caller.h"

#define STATUS_ILLNESS_MAX 512

// Where it is read; what is pointed to outlives the reader.
struct status_source {
    struct dispatch_config parts;
    const struct service *service;
    const char *http; // url; NULL: not served
    uint64_t started_ns;
};

// Fills *ret (message_clear) with what the caller may know: searches, shares and jobs of his
// tenant, or everybody's for an administrator. The jobs that request names or asks for, at most
// ANSWER_INFOS_MAX.
void status_fill(struct status *ret, const struct status_source *source,
                 const struct caller *caller, const struct status_request *request);

// Whether it can do what it is there for: false when no device can take a job, now or after what
// runs or hinders it is over, or when results or compilations wait because the disk is full. reason
// then says so in one sentence.
bool status_is_well(const struct status_source *source, char reason[STATUS_ILLNESS_MAX]);

#endif
