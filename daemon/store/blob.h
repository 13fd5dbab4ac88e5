// Blobs: bytes stored under their SHA-256, such as sources, problems and compiled objects. The
// files are ROOT/ab/cdef…. A reader checks the digest again, and a file that fails the check is as
// good as missing. Files are read and written on libuv's threads. Called by submission, compiler.c,
// setup.c, measure.c and the operations on blobs. Knows nothing of what is in them.
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

// root is created when missing. Half-written files of an earlier process that was killed are
// removed, so no other process may use the root. ERR_SYSTEM or ERR_NO_SPACE.
MUST_CHECK int blob_store_create(struct blob_store **ret, uv_loop_t *loop, const char *root,
                                 struct err *err);
// No put, check or load may be under way. NULL is fine.
void blob_store_free(struct blob_store *store);
const char *blob_store_root(const struct blob_store *store);
// The file of this blob in a store: ROOT/ab/cdef…; malloc'd.
#define BLOB_FOLDER_LEN 2 // "ab"
char *blob_path(const char *root, const struct digest *digest);

// Whether there is a file for this blob; its content is not looked at. The blob counts as used now.
// Looks at one directory entry and does not wait for a disk in practice.
bool blob_have(const struct blob_store *store, const struct digest *digest);

// missing[0..count) are the blobs that are not there, in the order in which they were given; valid
// during the call. Called on the loop thread, never inside blob_check.
typedef void blob_check_done(void *owner, const struct digest *missing, size_t count);
// Does blob_have for any number of blobs on another thread.
void blob_check(struct blob_store *store, const struct digest *digests, size_t count,
                blob_check_done *done, void *owner);

// error is NULL on success. Called on the loop thread, never inside blob_put.
typedef void blob_put_done(void *owner, const struct err *error);
// Stores *data_taken under digest. ERR_INVALID when the bytes have another digest, ERR_NO_SPACE,
// ERR_SYSTEM. durable: the blob is on the disk before done is called.
void blob_put(struct blob_store *store, const struct digest *digest, struct bytes *data_taken,
              bool durable, blob_put_done *done, void *owner);
// How many puts have ended with ERR_NO_SPACE so far.
uint64_t blob_store_full(const struct blob_store *store);

// When error is NULL, blobs[0..count) belong to the callee, which takes and zeroes what it needs;
// the rest is freed. Otherwise error is about the blob of index `failed`. Called on the loop
// thread, never inside blob_load.
typedef void blob_load_done(void *owner, const struct err *error, size_t failed,
                            struct bytes *blobs, size_t count);
// Reads and checks the blobs, in order. ERR_NOT_FOUND, ERR_CORRUPT (the file has been removed
// then), ERR_BUSY when the process or the host has no file descriptors left and it should be tried
// again later, ERR_SYSTEM.
void blob_load(struct blob_store *store, const struct digest *digests, size_t count,
               blob_load_done *done, void *owner);

#endif
