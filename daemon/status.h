// What the daemon says of itself: the STATUS message, and whether it is well. Reads everything and
// changes nothing.
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/state/parts.h"
#include "net/auth/caller.h"
#include "proto/messages.h"

#define STATUS_ILLNESS_MAX 512

// Fills *ret (message_clear) with what the caller may know: searches, shares and jobs of his
// tenant, or everybody's for an administrator. The jobs that request names or asks for, at most
// ANSWER_INFOS_MAX.
void status_fill(struct status *ret, const struct daemon_parts *parts, const struct caller *caller,
                 const struct status_request *request);

// Whether it can do what it is there for: false when no device can take a job, now or after what
// runs or hinders it is over, or when results or compilations wait because the disk is full. reason
// then says so in one sentence.
bool status_is_well(const struct daemon_parts *parts, char reason[STATUS_ILLNESS_MAX]);

#endif
