// Design note. The column `used` holds a number that grows with every use, so that an index finds
// the entry to delete without looking at the others. Entries of ledgers that had no such column
// have 0 and are deleted first, in the order of their rows. The entries are counted once, when the
// file is opened, and their number is kept up to date from then on; it is restored when a
// transaction fails. A hit in a batch that only reads must not cost a commit. It is noted, and
// written with the next batch that writes. When NOTED_MAX hits are noted, further ones are dropped.
#include "daemon/store/ledger_cache.h"
#include "daemon/store/ledger_db.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define NOTED_MAX 256  // uses that wait to be written
#define TRIM_MAX 1000U // entries that one new entry pushes out

enum statement { FIND, INSERT, REFRESH, USE, DROP, TRIM, STATEMENT_COUNT };

#define NEXT_USE(table) "(SELECT ifnull(max(used), 0) + 1 FROM " table ")"
#define USE_TEXT(table) "UPDATE " table " SET used = " NEXT_USE(table) " WHERE key = ?1"
#define DROP_TEXT(table) "DELETE FROM " table " WHERE key = ?1"
#define TRIM_TEXT(table)                                                                           \
    "DELETE FROM " table " WHERE rowid IN (SELECT rowid FROM " table                               \
    " ORDER BY used, rowid LIMIT ?1)"

static const char *const text[LEDGER_CACHE_COUNT][STATEMENT_COUNT] = {
    [LEDGER_CACHE_RESULT] =
        {
            [FIND] = "SELECT result, cap_s FROM result WHERE key = ?1",
            [INSERT] = "INSERT INTO result (key, created_at, result, cap_s, used)"
                       " VALUES (?1,?2,?3,?4," NEXT_USE("result") ")",
            [REFRESH] = "UPDATE result SET created_at = ?2, result = ?3, cap_s = ?4,"
                        " used = " NEXT_USE("result") " WHERE key = ?1",
            [USE] = USE_TEXT("result"),
            [DROP] = DROP_TEXT("result"),
            [TRIM] = TRIM_TEXT("result"),
        },
    [LEDGER_CACHE_COMPILED] =
        {
            [FIND] = "SELECT compiled, 0.0 FROM compiled WHERE key = ?1",
            [INSERT] = "INSERT INTO compiled (key, created_at, compiled, used)"
                       " VALUES (?1,?2,?3," NEXT_USE("compiled") ")",
            [REFRESH] = "UPDATE compiled SET created_at = ?2, compiled = ?3,"
                        " used = " NEXT_USE("compiled") " WHERE key = ?1",
            [USE] = USE_TEXT("compiled"),
            [DROP] = DROP_TEXT("compiled"),
            [TRIM] = TRIM_TEXT("compiled"),
        },
};

static const char *const count_text[LEDGER_CACHE_COUNT] = {
    [LEDGER_CACHE_RESULT] = "SELECT count(*) FROM result",
    [LEDGER_CACHE_COMPILED] = "SELECT count(*) FROM compiled",
};

struct use {
    enum ledger_cache_kind kind;
    struct digest key;
};

struct ledger_caches {
    sqlite3 *db; // the caller's
    sqlite3_stmt *statement[LEDGER_CACHE_COUNT][STATEMENT_COUNT];
    uint64_t count[LEDGER_CACHE_COUNT];  // entries, with the changes of the open transaction
    uint64_t before[LEDGER_CACHE_COUNT]; // entries, without these
    uint64_t limit;                      // entries of each cache; 0: no limit
    bool writing;                        // a batch that writes is under way
    struct use noted[NOTED_MAX];         // uses that are not written yet
    size_t noted_count;
};

static int prepare(struct ledger_caches *caches, enum ledger_cache_kind kind, struct err *err)
{
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(caches->db, text[kind][i], -1, SQLITE_PREPARE_PERSISTENT,
                               &caches->statement[kind][i], NULL) != SQLITE_OK) {
            return ledger_db_failed(caches->db, err);
        }
    }
    return 0;
}

int ledger_caches_open(struct ledger_caches **ret, struct sqlite3 *db, struct err *err)
{
    struct ledger_caches *caches = xcalloc(1, sizeof(*caches));

    caches->db = db;
    for (enum ledger_cache_kind kind = 0; kind < LEDGER_CACHE_COUNT; kind++) {
        int64_t count = 0;
        int rc = prepare(caches, kind, err);

        if (rc == 0) {
            rc = ledger_db_number(db, count_text[kind], &count, err);
        }
        if (rc != 0) {
            ledger_caches_close(caches);
            return rc;
        }
        caches->count[kind] = caches->before[kind] = (uint64_t)count;
    }
    *ret = caches;
    return 0;
}

void ledger_caches_close(struct ledger_caches *caches)
{
    if (!caches) {
        return;
    }
    for (size_t kind = 0; kind < LEDGER_CACHE_COUNT; kind++) {
        for (size_t i = 0; i < STATEMENT_COUNT; i++) {
            (void)sqlite3_finalize(caches->statement[kind][i]);
        }
    }
    free(caches);
}

void ledger_caches_limit(struct ledger_caches *caches, uint64_t entries)
{
    caches->limit = entries;
}

uint64_t ledger_cache_count(const struct ledger_caches *caches, enum ledger_cache_kind kind)
{
    return caches->count[kind];
}

static sqlite3_stmt *bind_key(struct ledger_caches *caches, enum ledger_cache_kind kind,
                              enum statement number, const struct digest *key)
{
    sqlite3_stmt *statement = caches->statement[kind][number];

    (void)sqlite3_bind_blob64(statement, 1, key->byte, DIGEST_LEN, SQLITE_STATIC);
    return statement;
}

// Runs a statement that returns no rows. *ret_changed is the number of rows that it has changed.
static int run(struct ledger_caches *caches, sqlite3_stmt *statement, uint64_t *ret_changed,
               struct err *err)
{
    int rc = sqlite3_step(statement) == SQLITE_DONE ? 0 : ledger_db_failed(caches->db, err);

    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (rc == 0) {
        *ret_changed = (uint64_t)sqlite3_changes(caches->db);
    }
    return rc;
}

static int write_use(struct ledger_caches *caches, enum ledger_cache_kind kind,
                     const struct digest *key, struct err *err)
{
    uint64_t changed;

    return run(caches, bind_key(caches, kind, USE, key), &changed, err);
}

int ledger_caches_begin(struct ledger_caches *caches, bool write, struct err *err)
{
    size_t count = write ? caches->noted_count : 0;

    caches->writing = write;
    caches->noted_count -= count; // also if it fails: the next try does without them
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = write_use(caches, caches->noted[i].kind, &caches->noted[i].key, err);
    }
    return rc;
}

void ledger_caches_end(struct ledger_caches *caches, bool committed)
{
    caches->writing = false;
    if (committed) {
        memcpy(caches->before, caches->count, sizeof(caches->before));
    } else {
        memcpy(caches->count, caches->before, sizeof(caches->count));
    }
}

int ledger_cache_find(struct ledger_caches *caches, enum ledger_cache_kind kind,
                      const struct digest *key, struct bytes *ret, double *ret_cap_s,
                      struct err *err)
{
    sqlite3_stmt *statement = bind_key(caches, kind, FIND, key);
    int code = sqlite3_step(statement);

    *ret = (struct bytes){0};
    int rc = 0;
    if (code == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(statement, 0);
        int len = sqlite3_column_bytes(statement, 0);

        *ret = data && len > 0 ? bytes_copy(data, (size_t)len) : (struct bytes){0};
        if (ret_cap_s) {
            *ret_cap_s = sqlite3_column_double(statement, 1);
        }
    } else if (code != SQLITE_DONE) {
        rc = ledger_db_failed(caches->db, err);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return rc;
}

int ledger_cache_use(struct ledger_caches *caches, enum ledger_cache_kind kind,
                     const struct digest *key, struct err *err)
{
    if (caches->writing) {
        return write_use(caches, kind, key, err);
    }
    if (caches->noted_count < NOTED_MAX) {
        caches->noted[caches->noted_count++] = (struct use){.kind = kind, .key = *key};
    }
    return 0;
}

static int trim(struct ledger_caches *caches, enum ledger_cache_kind kind, struct err *err)
{
    sqlite3_stmt *statement = caches->statement[kind][TRIM];
    uint64_t over = caches->count[kind] - caches->limit;

    if (caches->limit == 0 || caches->count[kind] <= caches->limit) {
        return 0;
    }
    (void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)(over < TRIM_MAX ? over : TRIM_MAX));
    uint64_t deleted = 0;
    int rc = run(caches, statement, &deleted, err);
    caches->count[kind] -= deleted;
    return rc;
}

int ledger_cache_keep(struct ledger_caches *caches, enum ledger_cache_kind kind,
                      const struct digest *key, int64_t now_s, double cap_s,
                      const struct bytes *value, struct err *err)
{
    static const enum statement way[] = {REFRESH, INSERT};
    uint64_t changed = 0;

    for (size_t i = 0; i < ARRAY_LEN(way) && changed == 0; i++) {
        sqlite3_stmt *statement = bind_key(caches, kind, way[i], key);

        (void)sqlite3_bind_int64(statement, 2, now_s);
        (void)sqlite3_bind_blob64(statement, 3, value->data, value->len, SQLITE_STATIC);
        if (kind == LEDGER_CACHE_RESULT) {
            (void)sqlite3_bind_double(statement, 4, cap_s);
        }
        int rc = run(caches, statement, &changed, err);
        if (rc != 0) {
            return rc;
        }
        caches->count[kind] += way[i] == INSERT;
    }
    return trim(caches, kind, err);
}

int ledger_cache_drop(struct ledger_caches *caches, enum ledger_cache_kind kind,
                      const struct digest *key, struct err *err)
{
    uint64_t deleted = 0;
    int rc = run(caches, bind_key(caches, kind, DROP, key), &deleted, err);

    caches->count[kind] -= deleted;
    return rc;
}
