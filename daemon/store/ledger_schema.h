// The ledger's schema as a list of migrations. Migration i brings user_version i to i + 1. A
// migration is never changed once it is released; new ones are appended. Used by ledger_db.c, and
// by tests that make ledgers of before. Also the SQL of the rows' digests, for the modules that
// have the statements.
#ifndef DAEMON_STORE_LEDGER_SCHEMA_H
#define DAEMON_STORE_LEDGER_SCHEMA_H

#include <stddef.h>

extern const char *const ledger_migration[];
extern const size_t ledger_migration_count;
// Gives every row of every table its digest, on a connection that has row_digest.
extern const char ledger_fill_digests[];

#define LEDGER_APPLICATION_ID 0x6b63616c // "kcal"

// The digest of a row by the names of its columns, or by what is to be stored in them. Here a job's
// constant columns come first, then those that change.
#define LEDGER_JOB_DIGEST_OF(state, attempt, reason, finished_at, result, cause)                   \
    "row_digest('job', id, tenant, search, key, spec, priority, class, submitted_at, " state       \
    ", " attempt ", " reason ", " finished_at ", " result ", " cause ")"
#define LEDGER_JOB_DIGEST                                                                          \
    LEDGER_JOB_DIGEST_OF("state", "attempt", "reason", "finished_at", "result", "cause")
#define LEDGER_RESULT_DIGEST "row_digest('result', key, created_at, cap_s, result)"
#define LEDGER_COMPILED_DIGEST "row_digest('compiled', key, created_at, compiled)"
#define LEDGER_ACCOUNT_DIGEST                                                                      \
    "row_digest('account', tenant, search, weight, limit_s, per_hour_s, used_s, tokens_s, at)"
#define LEDGER_ORDER_DIGEST "row_digest('device_order', device, kind, reason, created_at)"

#endif
