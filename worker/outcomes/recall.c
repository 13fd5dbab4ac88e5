#include "worker/outcomes/recall.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include "worker/outcomes/outcome.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

// A configuration of a group.
struct row {
    double log2;
    UT_hash_handle hh;
    double value[]; // key: of the parameters, in the order of the request
};

struct recalling {
    struct outcome_store *store;
    const struct recall_request *request;
    char own[OUTCOME_GROUP_KEY_MAX]; // the group of the request itself
    struct row *rows;                // uthash of the group at hand, in the order of their outcomes
    struct recalled group[RECALL_GROUPS_MAX]; // the latest last
    size_t count;
};

// ---- a group ----

static const struct fact *find(const struct candidate_facts *candidate, const char *name)
{
    for (size_t i = 0; i < candidate->params_count; i++) {
        if (strcmp(candidate->params[i].name, name) == 0) {
            return &candidate->params[i];
        }
    }
    return NULL;
}

// Makes the row of a candidate; NULL when it has other parameters.
static struct row *row_of(const struct recall_request *request,
                          const struct candidate_facts *candidate)
{
    if (candidate->params_count != request->params_count) {
        return NULL;
    }
    struct row *row = xcalloc(1, sizeof(*row) + request->params_count * sizeof(row->value[0]));
    for (size_t i = 0; i < request->params_count; i++) {
        const struct fact *fact = find(candidate, request->params[i]);
        if (!fact || !isfinite(fact->value)) {
            free(row);
            return NULL;
        }
        row->value[i] = fact->value + 0.0; // -0 becomes 0
    }
    return row;
}

// A configuration whose later outcome is visited takes its place at the end.
static void visit_outcome(void *owner, const struct observe *observe)
{
    struct recalling *recalling = owner;
    const struct outcome *outcome = &observe->outcomes[0];
    size_t size = recalling->request->params_count * sizeof(double);
    struct row *row = outcome->candidate ? row_of(recalling->request, outcome->candidate) : NULL,
               *before = NULL;
    if (!row) {
        return;
    }
    row->log2 =
        outcome_is_usable(outcome) && verdict_is_ratio(outcome->verdict) ? outcome->log2 : NAN;
    HASH_FIND(hh, recalling->rows, row->value, size, before);
    if (before) {
        HASH_DEL(recalling->rows, before);
        free(before);
    }
    HASH_ADD(hh, recalling->rows, value, size, row);
}

static void clear_rows(struct recalling *recalling)
{
    struct row *row, *next;
    HASH_ITER (hh, recalling->rows, row, next) {
        HASH_DEL(recalling->rows, row);
        free(row);
    }
}

// Writes the latest rows into the group. Returns whether one of them is correct.
static bool fill_group(const struct recalling *recalling, struct recalled *group)
{
    size_t params = recalling->request->params_count, all = HASH_COUNT(recalling->rows), skip = 0;
    size_t most = RECALL_VALUES_MAX / params;
    bool correct = false;
    most = most < RECALL_ROWS_MAX ? most : RECALL_ROWS_MAX;
    skip = all > most ? all - most : 0;
    group->log2 = xcalloc(most, sizeof(*group->log2));
    group->values = xcalloc(most * params, sizeof(*group->values));
    for (const struct row *row = recalling->rows; row; row = row->hh.next) {
        if (skip > 0) {
            skip--;
            continue;
        }
        memcpy(&group->values[group->values_count], row->value, params * sizeof(row->value[0]));
        group->values_count += params;
        group->log2[group->log2_count++] = row->log2;
        correct = correct || !isnan(row->log2);
    }
    return correct;
}

// ---- all groups ----

// Makes room for a group by dropping the one whose turn was first.
static struct recalled *add_group(struct recalling *recalling)
{
    if (recalling->count == RECALL_GROUPS_MAX) {
        message_clear(&recalled_message, &recalling->group[0]);
        recalling->count--;
        memmove(&recalling->group[0], &recalling->group[1],
                recalling->count * sizeof(recalling->group[0]));
    }
    struct recalled *group = &recalling->group[recalling->count++];
    *group = (struct recalled){.problem = NULL};
    return group;
}

static int visit_group(void *owner, int64_t id, const char *identity, const char *problem,
                       const char *device_class, struct err *err)
{
    struct recalling *recalling = owner;
    char key[OUTCOME_GROUP_KEY_MAX];
    outcome_group_key(identity, device_class, key);
    if (strcmp(key, recalling->own) == 0) {
        return 0;
    }
    int rc = outcome_store_each_outcome(recalling->store, id, RECALL_OUTCOMES_MAX, visit_outcome,
                                        recalling, err);
    struct recalled found = {.problem = NULL};
    if (rc == 0 && recalling->rows && fill_group(recalling, &found)) {
        found.problem = xstrdup(problem);
        found.device_class = xstrdup(device_class);
        *add_group(recalling) = found;
    } else {
        message_clear(&recalled_message, &found);
    }
    clear_rows(recalling);
    return rc;
}

int recall_make(struct outcome_store *store, const struct recall_request *request,
                struct recall_reply *ret, struct err *err)
{
    struct recalling recalling = {.store = store, .request = request};
    char identity[OUTCOME_IDENTITY_MAX];
    outcome_identity(request->problem, &request->problem_digest, identity);
    outcome_group_key(identity, request->device_class, recalling.own);
    int rc = request->params_count > 0
                 ? outcome_store_each_group(store, visit_group, &recalling, err)
                 : 0;
    if (rc == 0) {
        *ret = (struct recall_reply){.groups = xcalloc(recalling.count + 1, sizeof(*ret->groups))};
        for (size_t i = recalling.count; i > 0; i--) {
            ret->groups[ret->groups_count++] = recalling.group[i - 1];
        }
        return 0;
    }
    for (size_t i = 0; i < recalling.count; i++) {
        message_clear(&recalled_message, &recalling.group[i]);
    }
    return rc;
}
