// SQLite in its write-ahead mode, with each change in a transaction. The log is written with the
// request, so that it survives the process; it is not synced, since power that fails does not
// spend.
#include "worker/endpoint/endpoint_store.h"

#include "common/log.h"
#include "common/mem.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APPLICATION_ID "0x6b636570" // "kcep"

struct endpoint_store {
    sqlite3 *db;
    sqlite3_stmt *style, *set_style, *spent, *add_spent, *reserve, *release;
};

static bool execute(struct endpoint_store *store, const char *sql)
{
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool prepare(struct endpoint_store *store, sqlite3_stmt **ret, const char *sql)
{
    return sqlite3_prepare_v2(store->db, sql, -1, ret, NULL) == SQLITE_OK;
}

static bool prepare_all(struct endpoint_store *store)
{
    return prepare(store, &store->style, "SELECT text FROM style WHERE key = ?1") &&
           prepare(store, &store->set_style,
                   "INSERT INTO style (key, text) VALUES (?1, ?2)"
                   " ON CONFLICT (key) DO UPDATE SET text = excluded.text") &&
           prepare(store, &store->spent, "SELECT tokens, cost FROM spent WHERE name = ?1") &&
           prepare(
               store, &store->add_spent,
               "INSERT INTO spent (name, tokens, cost) VALUES (?1, ?2, ?3) ON CONFLICT (name)"
               " DO UPDATE SET tokens = tokens + excluded.tokens, cost = cost + excluded.cost") &&
           prepare(store, &store->reserve,
                   "INSERT INTO reserved (names, tokens, cost) VALUES (?1, ?2, ?3)") &&
           prepare(store, &store->release, "DELETE FROM reserved WHERE id = ?1");
}

// Runs a statement that returns no rows. Returns whether it succeeded.
static bool run(struct endpoint_store *store, sqlite3_stmt *statement)
{
    bool ok = sqlite3_step(statement) == SQLITE_DONE;

    if (!ok) {
        log_event(LOG_ERROR, "spending-not-kept reason=\"%s\"", sqlite3_errmsg(store->db));
    }
    sqlite3_reset(statement);
    return ok;
}

// Adds an amount under each of the names.
static bool add_spent(struct endpoint_store *store, const char *names,
                      struct endpoint_amount amount)
{
    bool ok = true;

    for (const char *name = names; *name != '\0' && ok;) {
        size_t len = strcspn(name, "\n");

        sqlite3_bind_text(store->add_spent, 1, name, (int)len, SQLITE_TRANSIENT);
        sqlite3_bind_double(store->add_spent, 2, amount.tokens);
        sqlite3_bind_double(store->add_spent, 3, amount.cost);
        ok = run(store, store->add_spent);
        name += len + (name[len] == '\n');
    }
    return ok;
}

// Counts what was reserved as spent: the requests were open when the worker was killed.
static bool charge_reserved(struct endpoint_store *store)
{
    sqlite3_stmt *all = NULL;
    bool ok = prepare(store, &all, "SELECT names, tokens, cost FROM reserved");

    while (ok && sqlite3_step(all) == SQLITE_ROW) {
        const char *names = (const char *)sqlite3_column_text(all, 0);
        struct endpoint_amount amount = {.tokens = sqlite3_column_double(all, 1),
                                         .cost = sqlite3_column_double(all, 2)};

        log_event(LOG_NOTICE,
                  "request-charged tokens=%.0f cost=%g reason=\"it was open when the "
                  "worker was killed\"",
                  amount.tokens, amount.cost);
        ok = add_spent(store, names ? names : "", amount);
    }
    sqlite3_finalize(all);
    return ok && execute(store, "DELETE FROM reserved");
}

int endpoint_store_open(struct endpoint_store **ret, const char *path, struct err *err)
{
    struct endpoint_store *store = xcalloc(1, sizeof(*store));
    char trim[200];

    (void)snprintf(trim, sizeof(trim),
                   "DELETE FROM spent WHERE name LIKE 's:%%' AND rowid <= (SELECT rowid FROM spent"
                   " WHERE name LIKE 's:%%' ORDER BY rowid DESC LIMIT 1 OFFSET %d)",
                   ENDPOINT_STORE_SEARCHES_MAX);
    bool ok =
        sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) ==
            SQLITE_OK &&
        execute(store,
                "PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL;"
                "PRAGMA synchronous = OFF; PRAGMA application_id = " APPLICATION_ID ";"
                "CREATE TABLE IF NOT EXISTS style (key TEXT PRIMARY KEY, text TEXT NOT NULL)"
                " STRICT;"
                "CREATE TABLE IF NOT EXISTS spent (name TEXT PRIMARY KEY, tokens REAL NOT NULL,"
                " cost REAL NOT NULL) STRICT;"
                "CREATE TABLE IF NOT EXISTS reserved (id INTEGER PRIMARY KEY, names TEXT NOT NULL,"
                " tokens REAL NOT NULL, cost REAL NOT NULL) STRICT") &&
        prepare_all(store) && execute(store, "BEGIN") && execute(store, trim) &&
        charge_reserved(store) && execute(store, "COMMIT");
    if (!ok) {
        (void)err_set(
            err, ERR_SYSTEM,
            "%s, which holds what was spent, cannot be used (%s); put it right, or delete "
            "it to count anew",
            path, sqlite3_errmsg(store->db));
        endpoint_store_close(store);
        return ERR_SYSTEM;
    }
    *ret = store;
    return 0;
}

void endpoint_store_close(struct endpoint_store *store)
{
    if (!store) {
        return;
    }
    sqlite3_stmt *const all[] = {store->style,     store->set_style, store->spent,
                                 store->add_spent, store->reserve,   store->release};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        sqlite3_finalize(all[i]);
    }
    sqlite3_close(store->db);
    free(store);
}

bool endpoint_store_style(struct endpoint_store *store, const char *key, struct strbuf *out)
{
    sqlite3_bind_text(store->style, 1, key, -1, SQLITE_STATIC);
    bool found = sqlite3_step(store->style) == SQLITE_ROW;
    if (found) {
        strbuf_adds(out, (const char *)sqlite3_column_text(store->style, 0));
    }
    sqlite3_reset(store->style);
    return found;
}

void endpoint_store_set_style(struct endpoint_store *store, const char *key, const char *text)
{
    sqlite3_bind_text(store->set_style, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(store->set_style, 2, text, -1, SQLITE_STATIC);
    (void)run(store, store->set_style); // it is learnt again otherwise
}

struct endpoint_amount endpoint_store_spent(struct endpoint_store *store, const char *name)
{
    struct endpoint_amount amount = {.tokens = 0};

    sqlite3_bind_text(store->spent, 1, name, -1, SQLITE_STATIC);
    if (sqlite3_step(store->spent) == SQLITE_ROW) {
        amount.tokens = sqlite3_column_double(store->spent, 0);
        amount.cost = sqlite3_column_double(store->spent, 1);
    }
    sqlite3_reset(store->spent);
    return amount;
}

int64_t endpoint_store_reserve(struct endpoint_store *store, const char *names,
                               struct endpoint_amount most)
{
    sqlite3_bind_text(store->reserve, 1, names, -1, SQLITE_STATIC);
    sqlite3_bind_double(store->reserve, 2, most.tokens);
    sqlite3_bind_double(store->reserve, 3, most.cost);
    return run(store, store->reserve) ? sqlite3_last_insert_rowid(store->db) : 0;
}

void endpoint_store_settle(struct endpoint_store *store, int64_t reservation, const char *names,
                           struct endpoint_amount spent)
{
    bool ok = execute(store, "BEGIN");

    sqlite3_bind_int64(store->release, 1, reservation);
    ok = ok && run(store, store->release) && add_spent(store, names, spent);
    if (!execute(store, ok ? "COMMIT" : "ROLLBACK")) {
        log_event(LOG_ERROR, "spending-not-kept reason=\"%s\"", sqlite3_errmsg(store->db));
    }
}
