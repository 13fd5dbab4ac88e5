// The ledger's schema: migration i brings user_version i to i + 1. Never changed once released; new
// ones are appended.
#ifndef DAEMON_STORE_LEDGER_SCHEMA_H
#define DAEMON_STORE_LEDGER_SCHEMA_H

#include <stddef.h>

extern const char *const ledger_migration[];
extern const size_t ledger_migration_count;

#define LEDGER_APPLICATION_ID 0x6b63616c // "kcal"

#endif
