// Lists jobs for STATUS and CANCEL, a part at a time, so that a long list does not keep others from
// the loop. Jobs may come and go between the parts. Called by dispatch.c.
#ifndef DAEMON_JOBS_LISTING_H
#define DAEMON_JOBS_LISTING_H

#include "daemon/state/parts.h"
#include "net/auth/caller.h"
#include "proto/messages.h"

#define LISTING_ROWS_MAX 4096    // jobs in one list
#define LISTING_FULL_REASONS 64  // a list of more jobs has short reasons …
#define LISTING_REASON_SHORT 256 // … of so many bytes

struct listing;

// Begins a list of those jobs that `request` names or asks for and that the caller may see, each
// named one once, at most LISTING_ROWS_MAX. `parts` and the caller's tenant outlive the list.
struct listing *listing_create(const struct daemon_parts *parts, const struct caller *caller,
                               const struct status_request *request);
// Returns whether one step is enough, however many jobs there are.
bool listing_is_short(const struct listing *listing);
// Does a part of the work. Returns whether the list is complete.
bool listing_step(struct listing *listing);
// Gives the complete list away; the caller clears the rows.
void listing_take(struct listing *listing, struct job_info **ret, size_t *ret_count);
void listing_free(struct listing *listing); // NULL is fine

// Removes numbers that are there already from ids, and returns how many are left, in their order.
size_t listing_unique(uint64_t *ids, size_t count);

#endif
