// What is done about rows of the ledger that are not as they were written: they are told, counted
// and removed, and never used. Called by the parts of ledger_sql.c, on the ledger's thread or
// before it exists.
#ifndef DAEMON_STORE_LEDGER_DAMAGE_H
#define DAEMON_STORE_LEDGER_DAMAGE_H

#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct ledger_damage {
    struct sqlite3 *db;  // the ledger's connection
    const char *path;    // of its file, for the log
    uint64_t rows_found; // damaged rows since the ledger was opened
};

// Tells that a row is damaged, and counts it.
void ledger_damage_tell(struct ledger_damage *damage, const char *table, const char *name,
                        const char *what_now);
// Tells that a row is damaged and deletes it. table is the table's name, rowid its row there, and
// `name` what people call the row. what_now says what follows from it. When the row cannot be
// deleted because an index disagrees with it, the table's indexes are made again first.
void ledger_damage_remove(struct ledger_damage *damage, const char *table, int64_t rowid,
                          const char *name, const char *what_now);
// Steps a statement that changes rows of a table and returns SQLite's code. When an index disagrees
// with the rows, the table's indexes are made again, and the statement is tried once more.
int ledger_damage_step(struct ledger_damage *damage, const char *table,
                       struct sqlite3_stmt *statement);

#endif
