#include "daemon/store/ledger_damage.h"
#include "common/log.h"
#include "common/mem.h"
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>

static bool run(struct ledger_damage *damage, const char *sql)
{
    return sqlite3_exec(damage->db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// Makes the indexes of a table again. What the caller tries again says whether it has helped.
static void reindex(struct ledger_damage *damage, const char *table)
{
    char *sql = xasprintf("REINDEX %s", table);
    bool made = run(damage, sql);

    log_event(LOG_ERROR, "ledger-index-damaged file=\"%s\" table=%s reason=\"%s\"", damage->path,
              table, made ? "made again" : sqlite3_errmsg(damage->db));
    free(sql);
}

void ledger_damage_tell(struct ledger_damage *damage, const char *table, const char *name,
                        const char *what_now)
{
    damage->rows_found++;
    log_event(LOG_ERROR,
              "ledger-row-damaged file=\"%s\" table=%s row=\"%s\" reason=\"it is not as it was "
              "written, so it is not used: %s\"",
              damage->path, table, name, what_now);
}

void ledger_damage_remove(struct ledger_damage *damage, const char *table, int64_t rowid,
                          const char *name, const char *what_now)
{
    char *sql = xasprintf("DELETE FROM %s WHERE rowid = %lld", table, (long long)rowid);

    ledger_damage_tell(damage, table, name, what_now);
    if (!run(damage, sql)) {
        reindex(damage, table);
        if (!run(damage, sql)) {
            log_event(LOG_ERROR, "ledger-row-kept file=\"%s\" table=%s row=\"%s\" reason=\"%s\"",
                      damage->path, table, name, sqlite3_errmsg(damage->db));
        }
    }
    free(sql);
}

int ledger_damage_step(struct ledger_damage *damage, const char *table,
                       struct sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);

    if ((code & 0xff) == SQLITE_CORRUPT) { // an extended code has more bits
        (void)sqlite3_reset(statement);
        reindex(damage, table);
        code = sqlite3_step(statement);
    }
    return code;
}
