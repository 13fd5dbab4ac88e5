// Keeps the folder of the blobs within a number of bytes of the disk: what was used longest ago is
// removed. Files are used when they are put, read or asked for (daemon/store/blob.h), and their time says
// when. One walk through the folder on a thread of libuv's; knows nothing of jobs.
#ifndef DAEMON_STORE_BLOB_SWEEP_H
#define DAEMON_STORE_BLOB_SWEEP_H

#include "common/digest.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define BLOB_SWEEP_ROOM_MIN 4096 // bytes of the disk that a file counts at least

struct blob_sweep {
    const char *root;    // of the store; outlives the sweep
    uint64_t max_bytes;  // nothing is removed up to here, and down to nine tenths of it beyond
    bool full;           // the disk is: down to nine tenths of what is there in any case
    uint64_t grace_s;    // what was used within so long stays
    struct digest *keep; // malloc'd; taken, and sorted: these stay too
    size_t keep_count;
    const atomic_bool *stop; // set: ends at the next file; outlives the sweep
};

struct blob_swept {
    uint64_t files;   // that are left
    uint64_t bytes;   // of the disk, that they take
    uint64_t removed; // files
    uint64_t removed_bytes;
};

// Runs on the loop thread.
typedef void blob_sweep_done(void *owner, const struct blob_swept *swept);

// What cannot be looked at or removed is left alone. A sweep that is stopped has told only of what
// it has seen until then.
void blob_sweep(uv_loop_t *loop, const struct blob_sweep *sweep, blob_sweep_done *done,
                void *owner);

#endif
