// The ledger's file: opened, recognised, checked, brought to the newest schema. Belongs to
// ledger_sql.c.
#ifndef DAEMON_STORE_LEDGER_DB_H
#define DAEMON_STORE_LEDGER_DB_H

#include "common/err.h"
#include <stdint.h>

struct sqlite3;

// Opens or creates path and migrates it. As ledger_open: a file that is refused is not changed.
// *ret is closed with sqlite3_close.
MUST_CHECK int ledger_db_open(struct sqlite3 **ret, const char *path, uint64_t page_max,
                              struct err *err);
// The one value of a statement's one row.
MUST_CHECK int ledger_db_number(struct sqlite3 *db, const char *text, int64_t *ret,
                                struct err *err);
// Turns the connection's last error into ours. Returns its code.
int ledger_db_failed(struct sqlite3 *db, struct err *err);

#endif
