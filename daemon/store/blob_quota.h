// How much room the blobs may take on the disk: all together, and those that one tenant has sent.
// Pure arithmetic on the loop thread; blob.c asks before it writes, and tells what has been
// written. The counts come from the walks of blob_sweep.c. Knows no files.
#ifndef DAEMON_STORE_BLOB_QUOTA_H
#define DAEMON_STORE_BLOB_QUOTA_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob_quota;

// A tenant and the bytes of its blobs.
struct blob_owner {
    const char *tenant;
    uint64_t bytes;
};

// Makes one without limits.
struct blob_quota *blob_quota_create(void);
void blob_quota_free(struct blob_quota *quota); // NULL is fine
// Sets the limits in bytes. Nothing can be reserved until what there is has been counted.
void blob_quota_limit(struct blob_quota *quota, uint64_t max, uint64_t tenant_max);
// A walk begins that counts what there is.
void blob_quota_begin_count(struct blob_quota *quota);
// It has found so many bytes altogether, of which tenants have sent these. What was stored since
// the walk began is added, also what the walk has seen already: the next count corrects that.
void blob_quota_counted(struct blob_quota *quota, uint64_t bytes, const struct blob_owner *owners,
                        size_t count);
bool blob_quota_is_counted(const struct blob_quota *quota);
// Returns the bytes that a blob of this length takes: whole pages, at least one.
uint64_t blob_quota_room(size_t len);
// Reserves room for a blob of this tenant; tenant is NULL for what the daemon itself makes, which
// has an eighth of the room for itself. ERR_NO_SPACE says whose limit is reached and what to do;
// *ret_own then says whether it is the tenant's own limit.
MUST_CHECK int blob_quota_reserve(struct blob_quota *quota, const char *tenant, uint64_t room,
                                  bool *ret_own, struct err *err);
// The blob has been written, or has not and the room is free again.
void blob_quota_settle(struct blob_quota *quota, const char *tenant, uint64_t room, bool written);
// Returns the bytes that are stored or reserved altogether.
uint64_t blob_quota_used(const struct blob_quota *quota);

#endif
