// Translates between rows of the ledger's table `account` and struct ledger_account. Called by
// ledger_sql.c alone, which has the statements.
#ifndef DAEMON_STORE_LEDGER_ACCOUNT_H
#define DAEMON_STORE_LEDGER_ACCOUNT_H

#include "daemon/store/ledger.h"
#include <sqlite3.h>

// Binds the columns in the order of the table. The texts are not copied and must live until the
// statement has run.
void ledger_account_bind(sqlite3_stmt *insert, const struct ledger_account *account);
// Reads the same columns. The texts are valid as long as the row is.
struct ledger_account ledger_account_of_row(sqlite3_stmt *row);

#endif
