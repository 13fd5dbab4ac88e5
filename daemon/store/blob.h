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
struct blob_swept;

// Who sends or asks for blobs; the texts are borrowed during the call. Callers take turns by name.
struct blob_caller {
    const char *tenant; // whose room a blob takes
    const char *name;   // the tenant again, or the connection where all are one tenant
};

// root is created when missing. Half-written files of an earlier process that was killed are
// removed, so no other process may use the root. ERR_SYSTEM or ERR_NO_SPACE.
MUST_CHECK int blob_store_create(struct blob_store **ret, uv_loop_t *loop, const char *root,
                                 struct err *err);
// No put, check or load may be under way. NULL is fine.
void blob_store_free(struct blob_store *store);
// Keeps what has been used lately in so many bytes of memory (daemon/store/blob_memory.h), so that
// its files are not looked at each time. Without this call every load and check looks at them.
void blob_store_remember(struct blob_store *store, size_t max_bytes);
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
// Does blob_have for any number of blobs on another thread, when it is the caller's turn. What one
// caller asks while earlier questions of it wait or are under way is looked at together.
void blob_check(struct blob_store *store, const struct blob_caller *caller,
                const struct digest *digests, size_t count, blob_check_done *done, void *owner);

// error is NULL on success. Called on the loop thread, never inside blob_put.
typedef void blob_put_done(void *owner, const struct err *error);
// Stores *data_taken under digest, when it is the caller's turn; caller is NULL for the daemon
// itself, which has no turn. ERR_INVALID when the bytes have another digest, ERR_NO_SPACE when the
// disk is full or a limit is reached, ERR_SYSTEM. A blob that is there already needs no room.
// durable: the blob is on the disk before done is called.
void blob_put(struct blob_store *store, const struct blob_caller *caller,
              const struct digest *digest, struct bytes *data_taken, bool durable,
              blob_put_done *done, void *owner);
// How many puts have found the disk full so far.
uint64_t blob_store_full(const struct blob_store *store);

// Limits the bytes of all blobs and of those that one tenant has sent. Puts wait until a sweep has
// counted what there is. One that finds no room waits for the next sweep, where there may be one.
void blob_store_limit(struct blob_store *store, uint64_t max_bytes, uint64_t tenant_max_bytes);
uint64_t blob_store_tenant_max(const struct blob_store *store); // 0: no limit
// What puts wait for, if any do.
enum blob_need {
    BLOB_NEED_NOTHING,
    BLOB_NEED_COUNT = 1,       // the first count
    BLOB_NEED_ROOM = 2,        // old blobs to go, whosesoever they are
    BLOB_NEED_TENANT_ROOM = 4, // old blobs of tenants that have reached their limit
};
unsigned blob_store_needs(const struct blob_store *store); // a set of enum blob_need
// Whether a put that finds no room may wait for a sweep. If not, those that wait end.
void blob_store_let_wait(struct blob_store *store, bool may_wait);
// A sweep begins, and has ended: the puts that wait are tried once more.
void blob_store_sweep_begins(struct blob_store *store);
void blob_store_swept(struct blob_store *store, const struct blob_swept *swept);

// When error is NULL, blobs[0..count) belong to the callee, which takes and zeroes what it needs;
// the rest is freed. A NUL follows the bytes of each. Otherwise error is about the blob of index
// `failed`. Called on the loop thread, never inside blob_load.
typedef void blob_load_done(void *owner, const struct err *error, size_t failed,
                            struct bytes *blobs, size_t count);
// Reads and checks the blobs, in order. ERR_NOT_FOUND, ERR_CORRUPT (the file has been removed
// then), ERR_BUSY when the process or the host has no file descriptors left and it should be tried
// again later, ERR_SYSTEM.
void blob_load(struct blob_store *store, const struct digest *digests, size_t count,
               blob_load_done *done, void *owner);

#endif
