// Keeps the folder of the blobs within a number of bytes on the disk by removing the least recently
// used ones. A blob is used when it is put, loaded or asked for (blob.h), and the time of its file
// says when that was. A sweep is one walk through the folder on a thread of libuv. Called by the
// daemon's sweeper. Knows nothing of jobs.
#ifndef DAEMON_STORE_BLOB_SWEEP_H
#define DAEMON_STORE_BLOB_SWEEP_H

#include "common/digest.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define BLOB_SWEEP_ROOM_MIN 4096                      // bytes that a file counts at least
#define BLOB_OWNER_ATTRIBUTE "user.kernelcast.tenant" // extended attribute: who has sent a blob
#define BLOB_OWNER_MAX 64                             // bytes of a tenant's name

struct blob_owner;

struct blob_sweep {
    const char *root;   // of the store; outlives the sweep
    uint64_t max_bytes; // when the blobs take more, they are removed down to nine tenths of this
    bool full;          // the disk is full: remove down to nine tenths of what is there in any case
    uint64_t tenant_max_bytes; // tenants that have more than nine tenths of this lose their oldest
                               // down to that; 0: no tenant does
    uint64_t grace_s;          // what was used within so many seconds stays
    struct digest *keep;       // these stay too; malloc'd, taken and sorted
    size_t keep_count;
    const atomic_bool *stop; // when it is set the sweep ends at the next file; outlives the sweep
};

struct blob_swept {
    uint64_t files;   // number of files that are left
    uint64_t bytes;   // bytes that they take on the disk
    uint64_t removed; // number of files that were removed
    uint64_t removed_bytes;
    const struct blob_owner *owners; // tenants and what is left of theirs
    size_t owner_count;
};

// Called on the loop thread, once. swept is valid during the call.
typedef void blob_sweep_done(void *owner, const struct blob_swept *swept);

// Begins a sweep. Files that cannot be looked at or removed are left alone. A sweep that was
// stopped tells only what it has seen until then.
void blob_sweep(uv_loop_t *loop, const struct blob_sweep *sweep, blob_sweep_done *done,
                void *owner);

#endif
