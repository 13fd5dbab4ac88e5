// What the outcomes of other problems and devices tell a search that begins (RECALL): the
// configurations of the same parameters, with their log2 speedups. Called by the static engine.
// Reads the store and changes nothing.
#ifndef WORKER_OUTCOMES_RECALL_H
#define WORKER_OUTCOMES_RECALL_H

#include "common/err.h"
#include "proto/messages.h"
#include "worker/outcomes/outcome_store.h"

#define RECALL_GROUPS_MAX 16
#define RECALL_ROWS_MAX 4096       // configurations of a group, the latest
#define RECALL_VALUES_MAX 65536    // values of a group's parameters
#define RECALL_OUTCOMES_MAX 100000 // outcomes of a group that are looked at, the latest

// Fills *ret with the groups of the store, but for the request's own, that have a correct candidate
// whose parameters are those of the request, in any order. Of several outcomes of a configuration
// the latest counts. Errors are the store's. The caller clears *ret on success.
MUST_CHECK int recall_make(struct outcome_store *store, const struct recall_request *request,
                           struct recall_reply *ret, struct err *err);

#endif
