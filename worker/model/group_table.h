// The groups of the static engine, by problem and device class. A group stays until the table is
// freed. Called by engine_static.c. Groups are added by the thread that learns; any thread finds
// them.
#ifndef WORKER_MODEL_GROUP_TABLE_H
#define WORKER_MODEL_GROUP_TABLE_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"
#include "worker/model/group.h"
#include "worker/outcomes/outcome_store.h"
#include <stdbool.h>
#include <stdint.h>

struct group_table;

// recalibrates: as group_recalibrate, for every group.
struct group_table *group_table_create(bool recalibrates);
void group_table_free(struct group_table *table); // NULL is fine

// Reads all groups with their outcomes from the store, without fitting them.
MUST_CHECK int group_table_load(struct group_table *table, struct outcome_store *store,
                                struct err *err);
// The group; NULL when there is none.
struct group *group_table_find(struct group_table *table, const char *problem,
                               const struct digest *digest, const char *device_class);
// Finds the group of an observation, or makes it in the table and in the store. *ret_id is its
// number there. ERR_LIMIT when there are too many.
MUST_CHECK int group_table_ensure(struct group_table *table, struct outcome_store *store,
                                  const struct observe *observe, struct group **ret,
                                  int64_t *ret_id, struct err *err);
// What STATUS says of each group, malloc'd; the caller's to clear.
void group_table_infos(struct group_table *table, struct model_info **ret, size_t *ret_count);

#endif
