#include "daemon/store/ledger_account.h"
#include "common/clock.h"
#include "daemon/store/ledger_damage.h"
#include "daemon/store/ledger_db.h"
#include "daemon/store/ledger_schema.h"
#include <math.h>
#include <stdlib.h>

static const char accounts_text[] =
    "SELECT tenant, search, weight, limit_s, per_hour_s, used_s, tokens_s, at, rowid,"
    " digest IS " LEDGER_ACCOUNT_DIGEST " FROM account ORDER BY tenant, search";
static const char orders_text[] = "SELECT device, kind, reason, rowid,"
                                  " digest IS " LEDGER_ORDER_DIGEST " FROM device_order";

#define DRAIN_REASON "an operator's order for it was damaged in the ledger"

// A row that is not as it was written, until it can be removed.
struct damaged {
    int64_t rowid;
    char *name;
};

// Those of a table.
struct damaged_rows {
    struct damaged *row;
    size_t count;
};

static void note(struct damaged_rows *rows, int64_t rowid, char *name_taken)
{
    rows->row = xgrow(rows->row, rows->count, sizeof(*rows->row));
    rows->row[rows->count++] = (struct damaged){.rowid = rowid, .name = name_taken};
}

static void release(struct damaged_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->row[i].name);
    }
    free(rows->row);
}

// SQLite stores NaN as NULL, which is what an absent limit is in the table.
void ledger_account_bind(sqlite3_stmt *insert, const struct ledger_account *account)
{
    (void)sqlite3_bind_text(insert, 1, account->tenant, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(insert, 2, account->search, -1, SQLITE_STATIC);
    (void)sqlite3_bind_double(insert, 3, account->weight);
    (void)sqlite3_bind_double(insert, 4, account->limit_s);
    (void)sqlite3_bind_double(insert, 5, account->per_hour_s);
    (void)sqlite3_bind_double(insert, 6, account->used_s);
    (void)sqlite3_bind_double(insert, 7, account->tokens_s);
    (void)sqlite3_bind_int64(insert, 8, account->at_s);
}

static double column_limit(sqlite3_stmt *row, int column)
{
    return sqlite3_column_type(row, column) == SQLITE_NULL ? (double)NAN
                                                           : sqlite3_column_double(row, column);
}

// The texts are valid as long as the row is.
static struct ledger_account account_of_row(sqlite3_stmt *row)
{
    const char *search = (const char *)sqlite3_column_text(row, 1);

    return (struct ledger_account){
        .tenant = (const char *)sqlite3_column_text(row, 0),
        .search = search && search[0] ? search : NULL,
        .weight = sqlite3_column_double(row, 2),
        .limit_s = column_limit(row, 3),
        .per_hour_s = column_limit(row, 4),
        .used_s = sqlite3_column_double(row, 5),
        .tokens_s = sqlite3_column_double(row, 6),
        .at_s = sqlite3_column_int64(row, 7),
    };
}

static int prepare(sqlite3 *db, sqlite3_stmt **ret, const char *text, struct err *err)
{
    return sqlite3_prepare_v2(db, text, -1, ret, NULL) == SQLITE_OK ? 0 : ledger_db_failed(db, err);
}

static int forget_accounts(struct ledger_damage *damage, int64_t before_s, struct err *err)
{
    static const char text[] = "DELETE FROM account WHERE search <> '' AND at < ?1";
    sqlite3_stmt *statement = NULL;
    int rc = prepare(damage->db, &statement, text, err);

    if (rc == 0) {
        (void)sqlite3_bind_int64(statement, 1, before_s);
        rc = ledger_damage_step(damage, "account", statement) == SQLITE_DONE
                 ? 0
                 : ledger_db_failed(damage->db, err);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

int ledger_accounts_load(struct ledger_damage *damage, int64_t forget_before_s,
                         void (*visit)(void *owner, const struct ledger_account *row), void *owner,
                         struct err *err)
{
    struct damaged_rows damaged = {0};
    sqlite3_stmt *row = NULL;
    int code = SQLITE_DONE;
    int rc = prepare(damage->db, &row, accounts_text, err);

    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct ledger_account account = account_of_row(row);

        if (sqlite3_column_int(row, 9) == 0) {
            note(&damaged, sqlite3_column_int64(row, 8),
                 xasprintf("%s/%s", account.tenant ? account.tenant : "",
                           account.search ? account.search : ""));
        } else if (!account.search || account.at_s >= forget_before_s) {
            visit(owner, &account);
        }
    }
    if (rc == 0 && code != SQLITE_DONE) {
        rc = ledger_db_failed(damage->db, err);
    }
    (void)sqlite3_finalize(row);
    for (size_t i = 0; i < damaged.count; i++) {
        ledger_damage_remove(damage, "account", damaged.row[i].rowid, damaged.row[i].name,
                             "its weight and budget have to be set again with kcast budget");
    }
    release(&damaged);
    return rc == 0 ? forget_accounts(damage, forget_before_s, err) : rc;
}

// Replaces a damaged order by one to drain the same device.
static int drain_instead(struct ledger_damage *damage, const struct damaged *row, struct err *err)
{
    sqlite3_stmt *statement = NULL;

    ledger_damage_remove(damage, "device_order", row->rowid, row->name,
                         "a device of this name is drained instead");
    int rc = prepare(damage->db, &statement, LEDGER_ORDER_KEEP, err);
    if (rc == 0) {
        (void)sqlite3_bind_text(statement, 1, row->name, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 2, LEDGER_DRAIN);
        (void)sqlite3_bind_text(statement, 3, DRAIN_REASON, -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(statement, 4, clock_wall_ns(&clock_system) / (int64_t)NS_PER_S);
        rc = ledger_damage_step(damage, "device_order", statement) == SQLITE_DONE
                 ? 0
                 : ledger_db_failed(damage->db, err);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

int ledger_orders_load(struct ledger_damage *damage,
                       void (*visit)(void *owner, const char *device, uint64_t kind,
                                     const char *reason),
                       void *owner, struct err *err)
{
    struct damaged_rows damaged = {0};
    sqlite3_stmt *row = NULL;
    int code = SQLITE_DONE;
    int rc = prepare(damage->db, &row, orders_text, err);

    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        const char *device = (const char *)sqlite3_column_text(row, 0);

        if (sqlite3_column_int(row, 4) == 0) {
            note(&damaged, sqlite3_column_int64(row, 3), xstrdup(device ? device : ""));
        } else {
            visit(owner, device, (uint64_t)sqlite3_column_int64(row, 1),
                  (const char *)sqlite3_column_text(row, 2));
        }
    }
    if (rc == 0 && code != SQLITE_DONE) {
        rc = ledger_db_failed(damage->db, err);
    }
    (void)sqlite3_finalize(row);
    for (size_t i = 0; i < damaged.count && rc == 0; i++) {
        rc = drain_instead(damage, &damaged.row[i], err);
        if (rc == 0) {
            visit(owner, damaged.row[i].name, LEDGER_DRAIN, DRAIN_REASON);
        }
    }
    release(&damaged);
    return rc;
}
