// The outcomes that a worker was told, in one SQLite file. Each outcome is kept once per key and
// group, in the order of telling. The static engine has one such file and the history of the
// language-model engine another. Journal mode WAL, synchronous=FULL: what outcome_store_add
// returned success for is on the disk. Knows nothing of models. One thread at a time.
#ifndef WORKER_OUTCOMES_OUTCOME_STORE_H
#define WORKER_OUTCOMES_OUTCOME_STORE_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

struct outcome_store;

// Opens or creates the file at path. ERR_CORRUPT when it is damaged or another program's, and
// ERR_VERSION when a newer kcast-worker wrote it; the file is then left as it is.
MUST_CHECK int outcome_store_open(struct outcome_store **ret, const char *path, struct err *err);
void outcome_store_close(struct outcome_store *store); // NULL is fine

// Gives the number of the group with this identity (outcome_identity) and device class. A missing
// group is made, with the problem's name for people to read.
MUST_CHECK int outcome_store_group(struct outcome_store *store, const char *identity,
                                   const char *problem, const char *device_class, int64_t *ret,
                                   struct err *err);

// Visits every group, oldest first. The texts are valid during the visit. Stops at the first visit
// that fails and returns its error.
typedef int outcome_store_group_visit(void *owner, int64_t group, const char *identity,
                                      const char *problem, const char *device_class,
                                      struct err *err);
MUST_CHECK int outcome_store_each_group(struct outcome_store *store,
                                        outcome_store_group_visit *visit, void *owner,
                                        struct err *err);

// Adds the outcomes of observe for which take[i] is set, without their sources, in one transaction.
// Sets added[i] when outcome i was not there yet: its key is new in this group. An outcome without
// a key gets a digest of its content as key. On failure nothing was added, and added is unchanged.
MUST_CHECK int outcome_store_add(struct outcome_store *store, int64_t group,
                                 const struct observe *observe, const bool *take, bool *added,
                                 struct err *err);

// How many outcomes the group has.
MUST_CHECK int outcome_store_count(struct outcome_store *store, int64_t group, uint64_t *ret,
                                   struct err *err);

// Visits the newest `limit` outcomes of a group, oldest first. Each comes as an observe with this
// one outcome, valid during the visit.
typedef void outcome_store_outcome_visit(void *owner, const struct observe *observe);
MUST_CHECK int outcome_store_each_outcome(struct outcome_store *store, int64_t group,
                                          uint64_t limit, outcome_store_outcome_visit *visit,
                                          void *owner, struct err *err);
// The same for all groups, in the order in which the outcomes were told.
MUST_CHECK int outcome_store_each(struct outcome_store *store, uint64_t limit,
                                  outcome_store_outcome_visit *visit, void *owner, struct err *err);

#endif
