// What blob.c, blob_put.c and blob_check.c share. Only these files include it.
#ifndef DAEMON_STORE_BLOB_INSIDE_H
#define DAEMON_STORE_BLOB_INSIDE_H

#include "daemon/store/blob.h"
#include "daemon/store/blob_memory.h"
#include "daemon/store/blob_quota.h"
#include "daemon/store/line.h"
#include <uthash.h>

#define BLOB_TEMP_FOLDER "tmp"

struct check_batch;
struct put;

struct blob_store {
    uv_loop_t *loop;
    char *root;
    uint64_t full; // puts that found the disk full
    struct blob_quota *quota;
    uint64_t tenant_max; // 0: no limit
    struct blob_memory *memory;
    struct line *line;
    struct put *waiting; // list of puts that wait for a sweep
    bool may_wait;
    struct check_batch *gathering; // batches of checks that take further ones, by caller
};

// Marks a blob as used now. Returns false when it is not there or cannot be marked, so that it
// might be swept. The time is written at most every ten minutes, because writing may have to wait
// for the disk; the sweep's grace period is several times as long.
bool blob_touch(const char *path);
// Reads a blob and checks it; a damaged one is removed. Errors are those of blob_load. The caller
// clears *ret.
MUST_CHECK int blob_read_verified(const struct blob_store *store, const struct digest *digest,
                                  struct bytes *ret, struct err *err);
// Has libuv's threads do the work.
void blob_queue_work(struct blob_store *store, uv_work_t *work, uv_work_cb run,
                     uv_after_work_cb after);

#endif
