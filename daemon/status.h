// What the daemon says about itself: the message STATUS, and whether it can do its work. Called by
// dispatch.c, monitor.c, metrics.c and daemon.c. Reads all parts and changes none.
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include "daemon/state/parts.h"
#include "net/auth/caller.h"
#include "proto/messages.h"

#define STATUS_ILLNESS_MAX 512 // bytes of the sentence of status_is_well

// Fills *ret with what the caller may see, but no jobs, which daemon/jobs/listing.h lists. With
// `searches` it has searches and shares: those of the caller's tenant, or of all tenants for an
// administrator. They are as many as there are searches, so who asks about jobs does without. The
// caller clears *ret by message_clear.
void status_fill(struct status *ret, const struct daemon_parts *parts, const struct caller *caller,
                 bool searches);

// Returns whether the daemon can do its work. It cannot when no device takes jobs now or will do so
// by itself soon, or when results or compilations wait because the disk is full. `reason` then gets
// one sentence that says why.
bool status_is_well(const struct daemon_parts *parts, char reason[STATUS_ILLNESS_MAX]);

#endif
