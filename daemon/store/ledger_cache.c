// Design note. The column `used` holds a number that grows with every use, so that an index finds
// the entry to delete without looking at the others. Entries of ledgers that had no such column
// have 0 and are deleted first, in the order of their rows. The entries are counted once, when the
// file is opened, and their number is kept up to date from then on; it is restored when a
// transaction fails. A hit in a batch that only reads must not cost a commit. It is noted, and
// written with the next batch that writes. When NOTED_MAX hits are noted, further ones are dropped.
#include "daemon/store/ledger_cache.h"
#include "daemon/store/ledger_damage.h"
#include "daemon/store/ledger_db.h"
#include "daemon/store/ledger_schema.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define NOTED_MAX 256  // uses that wait to be written
#define TRIM_MAX 1000U // entries that one new entry pushes out

enum statement { FIND, INSERT, REFRESH, USE, DROP, TRIM, STATEMENT_COUNT };

#define NEXT_USE(table) "(SELECT ifnull(max(used), 0) + 1 FROM " table ")"
#define USE_TEXT(table) "UPDATE " table " SET used = " NEXT_USE(table) " WHERE key = ?1"
#define RESULT_DIGEST_NEW "row_digest('result', ?1, ?2, ?4, ?3)"
#define COMPILED_DIGEST_NEW "row_digest('compiled', ?1, ?2, ?3)"
#define DROP_TEXT(table) "DELETE FROM " table " WHERE key = ?1"
#define TRIM_TEXT(table)                                                                           \
    "DELETE FROM " table " WHERE rowid IN (SELECT rowid FROM " table                               \
    " ORDER BY used, rowid LIMIT ?1)"

static const char *const text[LEDGER_CACHE_COUNT][STATEMENT_COUNT] = {
    [LEDGER_CACHE_RESULT] =
        {
            [FIND] = "SELECT result, rowid, digest IS " LEDGER_RESULT_DIGEST ", cap_s"
                     " FROM result WHERE key = ?1",
            [INSERT] = "INSERT INTO result (key, created_at, result, cap_s, digest, used)"
                       " VALUES (?1, ?2, ?3, ?4," RESULT_DIGEST_NEW "," NEXT_USE("result") ")",
            [REFRESH] =
                "UPDATE result SET created_at = ?2, result = ?3, cap_s = ?4,"
                " digest = " RESULT_DIGEST_NEW ", used = " NEXT_USE("result") " WHERE key = ?1",
            [USE] = USE_TEXT("result"),
            [DROP] = DROP_TEXT("result"),
            [TRIM] = TRIM_TEXT("result"),
        },
    [LEDGER_CACHE_COMPILED] =
        {
            [FIND] = "SELECT compiled, rowid, digest IS " LEDGER_COMPILED_DIGEST ", 0.0"
                     " FROM compiled WHERE key = ?1",
            [INSERT] = "INSERT INTO compiled (key, created_at, compiled, digest, used)"
                       " VALUES (?1, ?2, ?3," COMPILED_DIGEST_NEW "," NEXT_USE("compiled") ")",
            [REFRESH] =
                "UPDATE compiled SET created_at = ?2, compiled = ?3,"
                " digest = " COMPILED_DIGEST_NEW ", used = " NEXT_USE("compiled") " WHERE key = ?1",
            [USE] = USE_TEXT("compiled"),
            [DROP] = DROP_TEXT("compiled"),
            [TRIM] = TRIM_TEXT("compiled"),
        },
};

static const char *const count_text[LEDGER_CACHE_COUNT] = {
    [LEDGER_CACHE_RESULT] = "SELECT count(*) FROM result",
    [LEDGER_CACHE_COMPILED] = "SELECT count(*) FROM compiled",
};

static const char *const table[LEDGER_CACHE_COUNT] = {
    [LEDGER_CACHE_RESULT] = "result",
    [LEDGER_CACHE_COMPILED] = "compiled",
};

struct use {
    enum ledger_cache_kind kind;
    struct digest key;
};

struct ledger_caches {
    sqlite3 *db;                  // the caller's
    struct ledger_damage *damage; // the caller's
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

int ledger_caches_open(struct ledger_caches **ret, struct ledger_damage *damage, struct err *err)
{
    struct ledger_caches *caches = xcalloc(1, sizeof(*caches));

    caches->db = damage->db;
    caches->damage = damage;
    for (enum ledger_cache_kind kind = 0; kind < LEDGER_CACHE_COUNT; kind++) {
        int64_t count = 0;
        int rc = prepare(caches, kind, err);

        if (rc == 0) {
            rc = ledger_db_number(damage->db, count_text[kind], &count, err);
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
static int run(struct ledger_caches *caches, enum ledger_cache_kind kind, sqlite3_stmt *statement,
               uint64_t *ret_changed, struct err *err)
{
    int code = ledger_damage_step(caches->damage, table[kind], statement);
    int rc = code == SQLITE_DONE ? 0 : ledger_db_failed(caches->db, err);

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

    return run(caches, kind, bind_key(caches, kind, USE, key), &changed, err);
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

static const char *const what_now[LEDGER_CACHE_COUNT] = {
    [LEDGER_CACHE_RESULT] = "it is measured again when it is asked for",
    [LEDGER_CACHE_COMPILED] = "it is compiled again when it is asked for",
};

// Deletes an entry that is not as it was written. rowid is 0 when not even that can be read.
static void remove_damaged(struct ledger_caches *caches, enum ledger_cache_kind kind, int64_t rowid,
                           const struct digest *key)
{
    char name[DIGEST_HEX_LEN + 1];
    int before = sqlite3_total_changes(caches->db);

    digest_hex(key, name);
    if (rowid == 0) {
        ledger_damage_tell(caches->damage, table[kind], name, what_now[kind]);
        return;
    }
    ledger_damage_remove(caches->damage, table[kind], rowid, name, what_now[kind]);
    caches->count[kind] -= sqlite3_total_changes(caches->db) > before;
}

int ledger_cache_find(struct ledger_caches *caches, enum ledger_cache_kind kind,
                      const struct digest *key, struct bytes *ret, double *ret_cap_s,
                      struct err *err)
{
    sqlite3_stmt *statement = bind_key(caches, kind, FIND, key);
    int code = sqlite3_step(statement);
    bool damaged = code == SQLITE_ROW && sqlite3_column_int(statement, 2) == 0;
    int64_t rowid = damaged ? sqlite3_column_int64(statement, 1) : 0;

    *ret = (struct bytes){0};
    int rc = 0;
    if (code == SQLITE_ROW && !damaged) {
        const void *data = sqlite3_column_blob(statement, 0);
        int len = sqlite3_column_bytes(statement, 0);

        *ret = data && len > 0 ? bytes_copy(data, (size_t)len) : (struct bytes){0};
        if (ret_cap_s) {
            *ret_cap_s = sqlite3_column_double(statement, 3);
        }
    } else if ((code & 0xff) == SQLITE_CORRUPT) { // an extended code has more bits
        damaged = true;
    } else if (code != SQLITE_ROW && code != SQLITE_DONE) {
        rc = ledger_db_failed(caches->db, err);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (damaged) {
        remove_damaged(caches, kind, rowid, key);
    }
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
    int rc = run(caches, kind, statement, &deleted, err);
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
        int rc = run(caches, kind, statement, &changed, err);
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
    int rc = run(caches, kind, bind_key(caches, kind, DROP, key), &deleted, err);

    caches->count[kind] -= deleted;
    return rc;
}
