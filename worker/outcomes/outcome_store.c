// Design note. Each outcome is kept as the packed message that brought it, with the facts that came
// along. What a model makes of the facts can therefore change without a migration of the file.
// A group is the pair of identity and device class (worker/outcomes/outcome.h). A file is examined
// before anything is written to it, so that another program's file, a damaged file or a newer one
// is left as it is.
#include "worker/outcomes/outcome_store.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID 0x6b637764     // "kcwd"
#define MESSAGE_MAX ((size_t)1 << 20) // bytes of one packed outcome

// Migration n brings a file from user_version n to n + 1.
static const char *const migration[] = {
    "CREATE TABLE problem_group ("
    "  id INTEGER PRIMARY KEY,"
    "  identity TEXT NOT NULL," // of the problem, as outcome_identity writes it
    "  device_class TEXT NOT NULL,"
    "  problem TEXT NOT NULL," // name, for people to read
    "  UNIQUE (identity, device_class)"
    ") STRICT;"
    "CREATE TABLE outcome ("
    "  id INTEGER PRIMARY KEY," // order of telling
    "  group_id INTEGER NOT NULL REFERENCES problem_group (id),"
    "  key TEXT NOT NULL,"
    "  body BLOB NOT NULL," // packed observe with one outcome
    "  UNIQUE (group_id, key)"
    ") STRICT;"
    "CREATE INDEX outcome_by_group ON outcome (group_id, id);",
};

struct outcome_store {
    sqlite3 *db;
    char *path;
};

static int failed(struct outcome_store *store, struct err *err)
{
    int rc = sqlite3_errcode(store->db) & 0xff;
    const char *text = sqlite3_errmsg(store->db);
    if (rc == SQLITE_NOTADB || rc == SQLITE_CORRUPT) {
        return err_set(err, ERR_CORRUPT, "%s is damaged (%s); it was left as it is", store->path,
                       text);
    }
    if (rc == SQLITE_FULL) {
        return err_set(err, ERR_NO_SPACE, "%s cannot grow: %s", store->path, text);
    }
    return err_set(err, ERR_SYSTEM, "%s: %s", store->path, text);
}

static int execute(struct outcome_store *store, const char *sql, struct err *err)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(store, err);
}

static int prepare(struct outcome_store *store, sqlite3_stmt **ret, const char *sql,
                   struct err *err)
{
    return sqlite3_prepare_v2(store->db, sql, -1, ret, NULL) == SQLITE_OK ? 0 : failed(store, err);
}

// Gives the first column of the query's first row as a number.
static int query_number(struct outcome_store *store, const char *sql, int64_t *ret, struct err *err)
{
    sqlite3_stmt *query = NULL;
    int rc = prepare(store, &query, sql, err);
    if (rc == 0 && sqlite3_step(query) != SQLITE_ROW) {
        rc = failed(store, err);
    }
    if (rc == 0) {
        *ret = sqlite3_column_int64(query, 0);
    }
    sqlite3_finalize(query);
    return rc;
}

static int check_integrity(struct outcome_store *store, struct err *err)
{
    sqlite3_stmt *check = NULL;
    int rc = prepare(store, &check, "PRAGMA quick_check(1)", err);
    if (rc == 0 && sqlite3_step(check) != SQLITE_ROW) {
        rc = failed(store, err);
    }
    if (rc == 0 && strcmp((const char *)sqlite3_column_text(check, 0), "ok") != 0) {
        rc = err_set(err, ERR_CORRUPT, "%s is damaged (%s); it was left as it is", store->path,
                     (const char *)sqlite3_column_text(check, 0));
    }
    sqlite3_finalize(check);
    return rc;
}

// Refuses a file that is damaged, another program's or newer. Changes nothing.
static int examine(struct outcome_store *store, int64_t *ret_version, struct err *err)
{
    int64_t application = 0, tables = 0;
    int rc = query_number(store, "PRAGMA user_version", ret_version, err);
    if (rc != 0) {
        return rc;
    }
    rc = query_number(store, "PRAGMA application_id", &application, err);
    if (rc != 0) {
        return rc;
    }
    rc = query_number(store, "SELECT count(*) FROM sqlite_schema", &tables, err);
    if (rc != 0) {
        return rc;
    }
    if (application != APPLICATION_ID && (tables > 0 || *ret_version > 0)) {
        return err_set(err, ERR_CORRUPT, "%s is not a kcast-worker's file; it was left as it is",
                       store->path);
    }
    if (*ret_version < 0 || (size_t)*ret_version > ARRAY_LEN(migration)) {
        return err_set(err, ERR_VERSION,
                       "%s was written by a newer kcast-worker (schema %lld, this one knows %zu)",
                       store->path, (long long)*ret_version, ARRAY_LEN(migration));
    }
    return check_integrity(store, err);
}

static int migrate(struct outcome_store *store, int64_t version, struct err *err)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "PRAGMA application_id = %d", APPLICATION_ID);
    int rc = version == 0 ? execute(store, sql, err) : 0;
    for (size_t i = (size_t)version; rc == 0 && i < ARRAY_LEN(migration); i++) {
        rc = execute(store, "BEGIN IMMEDIATE", err);
        if (rc == 0) {
            rc = execute(store, migration[i], err);
        }
        snprintf(sql, sizeof(sql), "PRAGMA user_version = %zu; COMMIT", i + 1);
        if (rc == 0) {
            rc = execute(store, sql, err);
        }
        if (rc < 0) {
            sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
        }
    }
    return rc;
}

// Opens the file at store->path.
static int open_file(struct outcome_store *store, struct err *err)
{
    if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                        NULL) != SQLITE_OK) {
        return failed(store, err);
    }
    int rc = execute(store, "PRAGMA busy_timeout = 2000", err);
    if (rc != 0) {
        return rc;
    }
    int64_t version = 0;
    rc = examine(store, &version, err);
    if (rc != 0) {
        return rc;
    }
    rc = execute(store,
                 "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON",
                 err);
    if (rc != 0) {
        return rc;
    }
    return migrate(store, version, err);
}

int outcome_store_open(struct outcome_store **ret, const char *path, struct err *err)
{
    struct outcome_store *store = xcalloc(1, sizeof(*store));
    store->path = xstrdup(path);
    int rc = open_file(store, err);
    if (rc != 0) {
        outcome_store_close(store);
        return rc;
    }
    *ret = store;
    return 0;
}

void outcome_store_close(struct outcome_store *store)
{
    if (!store) {
        return;
    }
    sqlite3_close(store->db);
    free(store->path);
    free(store);
}

int outcome_store_group(struct outcome_store *store, const char *identity, const char *problem,
                        const char *device_class, int64_t *ret, struct err *err)
{
    sqlite3_stmt *insert = NULL, *find = NULL;
    int rc =
        prepare(store, &insert,
                "INSERT INTO problem_group (identity, device_class, problem) VALUES (?1, ?2, ?3)"
                " ON CONFLICT DO NOTHING",
                err);
    if (rc == 0) {
        rc = prepare(store, &find,
                     "SELECT id FROM problem_group WHERE identity = ?1 AND device_class = ?2", err);
    }
    if (rc < 0) {
        goto out;
    }
    sqlite3_bind_text(insert, 1, identity, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 2, device_class, -1, SQLITE_STATIC);
    sqlite3_bind_text(insert, 3, problem, -1, SQLITE_STATIC);
    sqlite3_bind_text(find, 1, identity, -1, SQLITE_STATIC);
    sqlite3_bind_text(find, 2, device_class, -1, SQLITE_STATIC);
    if (sqlite3_step(insert) != SQLITE_DONE || sqlite3_step(find) != SQLITE_ROW) {
        rc = failed(store, err);
    } else {
        *ret = sqlite3_column_int64(find, 0);
    }
out:
    sqlite3_finalize(insert);
    sqlite3_finalize(find);
    return rc;
}

int outcome_store_each_group(struct outcome_store *store, outcome_store_group_visit *visit,
                             void *owner, struct err *err)
{
    sqlite3_stmt *query = NULL;
    int rc =
        prepare(store, &query,
                "SELECT id, identity, problem, device_class FROM problem_group ORDER BY id", err);
    int step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(query)) == SQLITE_ROW) {
        const char *text[3];
        for (int i = 0; i < 3; i++) {
            text[i] = (const char *)sqlite3_column_text(query, i + 1);
        }
        rc = visit(owner, sqlite3_column_int64(query, 0), text[0], text[1], text[2], err);
    }
    if (rc == 0 && step != SQLITE_DONE) {
        rc = failed(store, err);
    }
    sqlite3_finalize(query);
    return rc;
}

// Packs outcome i of observe with its context, without the source.
static int pack_outcome(const struct observe *observe, size_t i, struct strbuf *out,
                        struct err *err)
{
    struct outcome outcome = observe->outcomes[i];
    struct candidate_facts candidate = *outcome.candidate;
    struct observe one = *observe;
    candidate.source = (struct bytes){.data = NULL};
    outcome.candidate = &candidate;
    one.outcomes = &outcome;
    one.outcomes_count = 1;
    return message_pack(&observe_message, &one, out, err);
}

static int insert_outcome(struct outcome_store *store, sqlite3_stmt *insert,
                          const struct observe *observe, size_t i, bool *added, struct err *err)
{
    struct strbuf body;
    char hex[DIGEST_HEX_LEN + 1], key[DIGEST_HEX_LEN + 2];
    strbuf_init(&body, MESSAGE_MAX);
    int rc = pack_outcome(observe, i, &body, err);
    if (rc == 0 && body.truncated) {
        rc = err_set(err, ERR_LIMIT, "outcome %zu is larger than %zu bytes", i, MESSAGE_MAX);
    }
    if (rc == 0) {
        struct digest digest = digest_of(body.data, body.len);
        digest_hex(&digest, hex);
        snprintf(key, sizeof(key), "=%s", hex);
        const char *given = observe->outcomes[i].key;
        sqlite3_bind_text(insert, 2, given ? given : key, -1, SQLITE_TRANSIENT);
        sqlite3_bind_blob64(insert, 3, body.data, body.len, SQLITE_TRANSIENT);
        if (sqlite3_step(insert) != SQLITE_DONE) {
            rc = failed(store, err);
        } else {
            *added = sqlite3_changes(store->db) == 1;
        }
        sqlite3_reset(insert);
    }
    strbuf_release(&body);
    return rc;
}

int outcome_store_add(struct outcome_store *store, int64_t group, const struct observe *observe,
                      const bool *take, bool *added, struct err *err)
{
    sqlite3_stmt *insert = NULL;
    bool *fresh = xcalloc(observe->outcomes_count + 1, sizeof(*fresh));
    int rc = prepare(
        store, &insert,
        "INSERT INTO outcome (group_id, key, body) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        err);
    if (rc == 0) {
        rc = execute(store, "BEGIN IMMEDIATE", err);
    }
    if (rc < 0) {
        goto out;
    }
    sqlite3_bind_int64(insert, 1, group);
    for (size_t i = 0; rc == 0 && i < observe->outcomes_count; i++) {
        if (take[i]) {
            rc = insert_outcome(store, insert, observe, i, &fresh[i], err);
        }
    }
    if (rc == 0) {
        rc = execute(store, "COMMIT", err);
    }
    if (rc < 0) {
        sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    } else {
        memcpy(added, fresh, observe->outcomes_count * sizeof(*added));
    }
out:
    sqlite3_finalize(insert);
    free(fresh);
    return rc;
}

int outcome_store_count(struct outcome_store *store, int64_t group, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *query = NULL;
    int rc = prepare(store, &query, "SELECT count(*) FROM outcome WHERE group_id = ?1", err);
    if (rc != 0) {
        goto out;
    }
    sqlite3_bind_int64(query, 1, group);
    if (sqlite3_step(query) != SQLITE_ROW) {
        rc = failed(store, err);
        goto out;
    }
    *ret = (uint64_t)sqlite3_column_int64(query, 0);
out:
    sqlite3_finalize(query);
    return rc;
}

// The bytes came from a disk, not from a peer.
static int damaged(const struct outcome_store *store, struct err *err)
{
    struct err why = *err;

    *err = (struct err)ERR_INIT;
    return err_set(
        err, ERR_CORRUPT,
        "%s: an outcome is damaged (%.500s); move the file away to begin without what was "
        "learnt",
        store->path, why.text);
}

// Visits the outcomes that the query finds, and finalizes it.
static int visit_outcomes(struct outcome_store *store, sqlite3_stmt *query,
                          outcome_store_outcome_visit *visit, void *owner, struct err *err)
{
    int rc = 0, step = SQLITE_DONE;
    while (rc == 0 && (step = sqlite3_step(query)) == SQLITE_ROW) {
        struct observe observe;
        const void *body = sqlite3_column_blob(query, 0);
        rc = message_read(&observe_message, &observe, body, (size_t)sqlite3_column_bytes(query, 0),
                          err);
        if (rc < 0) {
            rc = damaged(store, err);
            break;
        }
        if (observe.outcomes_count == 1) {
            visit(owner, &observe);
        }
        message_clear(&observe_message, &observe);
    }
    if (rc == 0 && step != SQLITE_DONE) {
        rc = failed(store, err);
    }
    sqlite3_finalize(query);
    return rc;
}

int outcome_store_each_outcome(struct outcome_store *store, int64_t group, uint64_t limit,
                               outcome_store_outcome_visit *visit, void *owner, struct err *err)
{
    sqlite3_stmt *query = NULL;
    int rc = prepare(store, &query,
                     "SELECT body FROM (SELECT id, body FROM outcome WHERE group_id = ?1 ORDER BY "
                     "id DESC LIMIT ?2)"
                     " ORDER BY id",
                     err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_int64(query, 1, group);
    sqlite3_bind_int64(query, 2, (int64_t)limit);
    return visit_outcomes(store, query, visit, owner, err);
}

int outcome_store_each(struct outcome_store *store, uint64_t limit,
                       outcome_store_outcome_visit *visit, void *owner, struct err *err)
{
    sqlite3_stmt *query = NULL;
    int rc = prepare(store, &query,
                     "SELECT outcome.body FROM outcome JOIN"
                     " (SELECT id, row_number() OVER (PARTITION BY group_id ORDER BY id DESC)"
                     "  AS back FROM outcome) AS recent"
                     " ON recent.id = outcome.id WHERE recent.back <= ?1 ORDER BY outcome.id",
                     err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_int64(query, 1, (int64_t)limit);
    return visit_outcomes(store, query, visit, owner, err);
}
