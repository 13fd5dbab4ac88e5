// The ledger's schema as a list of migrations. Migration i brings user_version i to i + 1. A
// migration is never changed once it is released; new ones are appended. Used by ledger_db.c, and
// by tests that make ledgers of before.
#ifndef DAEMON_STORE_LEDGER_SCHEMA_H
#define DAEMON_STORE_LEDGER_SCHEMA_H

#include <stddef.h>

extern const char *const ledger_migration[];
extern const size_t ledger_migration_count;

#define LEDGER_APPLICATION_ID 0x6b63616c // "kcal"

#endif
