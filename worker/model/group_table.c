#include "worker/model/group_table.h"

#include "common/mem.h"
#include "worker/outcomes/outcome.h"
#include <pthread.h>
#include <stdlib.h>
#include <uthash.h>

#define GROUPS_MAX 1024

struct entry {
    char key[OUTCOME_GROUP_KEY_MAX];
    int64_t id; // in the store
    struct group *group;
    UT_hash_handle hh;
};

struct group_table {
    bool recalibrates;
    pthread_mutex_t lock; // guards the hash table; entries do not change
    struct entry *entry;  // hash table by key
};

struct group_table *group_table_create(bool recalibrates)
{
    struct group_table *table = xcalloc(1, sizeof(*table));
    table->recalibrates = recalibrates;
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

void group_table_free(struct group_table *table)
{
    if (!table) {
        return;
    }
    struct entry *entry, *next;
    HASH_ITER (hh, table->entry, entry, next) {
        HASH_DEL(table->entry, entry);
        group_free(entry->group);
        free(entry);
    }
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static struct entry *find_entry(struct group_table *table, const char *problem,
                                const struct digest *digest, const char *device_class)
{
    char identity[OUTCOME_IDENTITY_MAX], key[OUTCOME_GROUP_KEY_MAX];
    outcome_identity(problem, digest, identity);
    outcome_group_key(identity, device_class, key);
    pthread_mutex_lock(&table->lock);
    struct entry *entry = NULL;
    HASH_FIND_STR(table->entry, key, entry);
    pthread_mutex_unlock(&table->lock);
    return entry;
}

static struct entry *add_entry(struct group_table *table, int64_t id, const char *identity,
                               const char *problem, const char *device_class)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));
    outcome_group_key(identity, device_class, entry->key);
    entry->id = id;
    entry->group = group_create(problem, device_class);
    if (table->recalibrates) {
        group_recalibrate(entry->group);
    }
    pthread_mutex_lock(&table->lock);
    HASH_ADD_STR(table->entry, key, entry);
    pthread_mutex_unlock(&table->lock);
    return entry;
}

struct group *group_table_find(struct group_table *table, const char *problem,
                               const struct digest *digest, const char *device_class)
{
    struct entry *entry = find_entry(table, problem, digest, device_class);
    return entry ? entry->group : NULL;
}

int group_table_ensure(struct group_table *table, struct outcome_store *store,
                       const struct observe *observe, struct group **ret, int64_t *ret_id,
                       struct err *err)
{
    struct entry *entry =
        find_entry(table, observe->problem, &observe->problem_digest, observe->device_class);
    if (!entry && HASH_COUNT(table->entry) >= GROUPS_MAX) {
        return err_set(err, ERR_LIMIT, "this worker knows %d problems on device classes already",
                       GROUPS_MAX);
    }
    if (!entry) {
        char identity[OUTCOME_IDENTITY_MAX];
        outcome_identity(observe->problem, &observe->problem_digest, identity);
        int64_t id = 0;
        int rc =
            outcome_store_group(store, identity, observe->problem, observe->device_class, &id, err);
        if (rc != 0) {
            return rc;
        }
        entry = add_entry(table, id, identity, observe->problem, observe->device_class);
    }
    *ret = entry->group;
    *ret_id = entry->id;
    return 0;
}

static int load_group(void *owner, int64_t id, const char *identity, const char *problem,
                      const char *device_class, struct err *err)
{
    (void)err;
    add_entry(owner, id, identity, problem, device_class);
    return 0;
}

static void load_outcome(void *owner, const struct observe *observe)
{
    if (outcome_is_usable(&observe->outcomes[0]) ||
        outcome_is_compile_failure(&observe->outcomes[0])) {
        group_add(owner, observe, &observe->outcomes[0]);
    }
}

static int load_outcomes(struct outcome_store *store, struct entry *entry, struct err *err)
{
    uint64_t count = 0;
    int rc = outcome_store_count(store, entry->id, &count, err);
    if (rc != 0) {
        return rc;
    }
    if (count > GROUP_ROWS_MAX) {
        group_skip(entry->group, count - GROUP_ROWS_MAX);
    }
    return outcome_store_each_outcome(store, entry->id, GROUP_ROWS_MAX, load_outcome, entry->group,
                                      err);
}

int group_table_load(struct group_table *table, struct outcome_store *store, struct err *err)
{
    int rc = outcome_store_each_group(store, load_group, table, err);
    if (rc != 0) {
        return rc;
    }
    struct entry *entry, *next;
    HASH_ITER (hh, table->entry, entry, next) {
        rc = load_outcomes(store, entry, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

void group_table_infos(struct group_table *table, struct model_info **ret, size_t *ret_count)
{
    pthread_mutex_lock(&table->lock);
    size_t count = 0;
    struct model_info *infos = xcalloc(HASH_COUNT(table->entry) + 1, sizeof(*infos));
    struct entry *entry, *next;
    HASH_ITER (hh, table->entry, entry, next) {
        group_info(entry->group, &infos[count++]);
    }
    pthread_mutex_unlock(&table->lock);
    *ret = infos;
    *ret_count = count;
}
