// Rows of the ledger's table of accounts. Belongs to ledger_sql.c, which has the statements.
#ifndef DAEMON_STORE_LEDGER_ACCOUNT_H
#define DAEMON_STORE_LEDGER_ACCOUNT_H

#include "daemon/store/ledger.h"
#include <sqlite3.h>

// Columns as in the table. The texts are bound without being copied.
void ledger_account_bind(sqlite3_stmt *insert, const struct ledger_account *account);
// The same columns, read; valid as long as the row is.
struct ledger_account ledger_account_of_row(sqlite3_stmt *row);

#endif
