// What the worker has been told, in STATE/worker.db: outcomes, each once by its key, in the order
// of telling. SQLite, WAL, synchronous=FULL: what store_add returned from is on the disk. One
// thread at a time.
#ifndef WORKER_STORE_H
#define WORKER_STORE_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

#define STORE_IDENTITY_MAX 256

struct store;

// What names a problem: its digest, or its name where there is none.
void store_identity(const char *problem, const struct digest *digest,
                    char ret[static STORE_IDENTITY_MAX]);

// Opens or creates path. ERR_CORRUPT when the file is damaged or is no worker's (it is left as it
// is), ERR_VERSION when a newer kcast-worker wrote it.
MUST_CHECK int store_open(struct store **ret, const char *path, struct err *err);
void store_close(struct store *store);

// The number of the group with this identity (the problem's digest or name) and device class; made
// if it is missing.
MUST_CHECK int store_group(struct store *store, const char *identity, const char *problem,
                           const char *device_class, int64_t *ret, struct err *err);

// Visits every group, oldest first; the texts are valid during the visit. Stops at the visit's
// first error, returns it.
typedef int store_group_visit(void *owner, int64_t group, const char *identity, const char *problem,
                              const char *device_class, struct err *err);
MUST_CHECK int store_each_group(struct store *store, store_group_visit *visit, void *owner,
                                struct err *err);

// Adds those outcomes of observe for which take[i] is set, without their sources, in one
// transaction. Sets added[i] when the outcome was not there yet: its key (absent: a digest of its
// content) is new in this group. On failure nothing was added.
MUST_CHECK int store_add(struct store *store, int64_t group, const struct observe *observe,
                         const bool *take, bool *added, struct err *err);

MUST_CHECK int store_count(struct store *store, int64_t group, uint64_t *ret, struct err *err);

// Visits the newest `limit` outcomes of a group, oldest first, each as an observe with this one
// outcome, valid during the visit.
typedef void store_outcome_visit(void *owner, const struct observe *observe);
MUST_CHECK int store_each_outcome(struct store *store, int64_t group, uint64_t limit,
                                  store_outcome_visit *visit, void *owner, struct err *err);

#endif
