// Opens the ledger's file: recognises it, checks it and brings it to the newest schema. Called by
// ledger_sql.c and ledger_cache.c alone.
#ifndef DAEMON_STORE_LEDGER_DB_H
#define DAEMON_STORE_LEDGER_DB_H

#include "common/err.h"
#include <stdint.h>

struct sqlite3;

// Opens or creates path and migrates it, with the errors of ledger_open. A file that is refused is
// not changed. The caller closes *ret with sqlite3_close.
MUST_CHECK int ledger_db_open(struct sqlite3 **ret, const char *path, uint64_t page_max,
                              struct err *err);
// Sets *ret to the only value of the only row that a statement returns.
MUST_CHECK int ledger_db_number(struct sqlite3 *db, const char *text, int64_t *ret,
                                struct err *err);
// Turns the last error of the connection into a struct err and returns its code: ERR_NO_SPACE,
// ERR_CORRUPT or ERR_SYSTEM.
int ledger_db_failed(struct sqlite3 *db, struct err *err);

#endif
