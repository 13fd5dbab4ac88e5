// Bytes stored under their SHA-256: sources, problems, compiled objects. Files under ROOT/ab/cdef…;
// a reader checks the digest again, and a file that fails the check is as good as missing. File
// work happens on libuv's threads.
#ifndef DAEMON_STORE_BLOB_H
#define DAEMON_STORE_BLOB_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define BLOB_MAX ((size_t)32 << 20) // bytes of one blob

struct blob_store;

// root is created when missing. What an earlier process was writing when it was killed is removed;
// no other process uses the root.
MUST_CHECK int blob_store_create(struct blob_store **ret, uv_loop_t *loop, const char *root,
                                 struct err *err);
// No put or load may be under way. NULL is fine.
void blob_store_free(struct blob_store *store);
const char *blob_store_root(const struct blob_store *store);
// Where a store keeps this blob: ROOT/ab/cdef…; malloc'd.
#define BLOB_FOLDER_LEN 2 // "ab"
char *blob_path(const char *root, const struct digest *digest);

// Whether a file of this name is there (its content is not looked at); it counts as used. Does not
// wait for a disk in practice: one look at its entry.
bool blob_have(const struct blob_store *store, const struct digest *digest);

// missing[0..count): those that are not there, in the order in which they were given; valid during
// the call. Runs on the loop thread, never inside blob_check.
typedef void blob_check_done(void *owner, const struct digest *missing, size_t count);
// blob_have for any number of blobs, on another thread.
void blob_check(struct blob_store *store, const struct digest *digests, size_t count,
                blob_check_done *done, void *owner);

// error is NULL on success. Runs on the loop thread, never inside blob_put.
typedef void blob_put_done(void *owner, const struct err *error);
// Stores *data_taken under digest. ERR_INVALID when the bytes have another digest, ERR_NO_SPACE,
// ERR_SYSTEM. durable: on the disk before done runs.
void blob_put(struct blob_store *store, const struct digest *digest, struct bytes *data_taken,
              bool durable, blob_put_done *done, void *owner);
// How many puts have ended with ERR_NO_SPACE until now.
uint64_t blob_store_full(const struct blob_store *store);

// blobs[0..count) belong to the callee when error is NULL; it takes what it needs and zeroes it,
// the rest is freed. failed: index of the blob that error is about.
typedef void blob_load_done(void *owner, const struct err *error, size_t failed,
                            struct bytes *blobs, size_t count);
// Reads and verifies all of them, in order. ERR_NOT_FOUND or ERR_CORRUPT (the file is then
// removed), ERR_SYSTEM.
void blob_load(struct blob_store *store, const struct digest *digests, size_t count,
               blob_load_done *done, void *owner);

#endif
