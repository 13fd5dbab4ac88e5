// Design note. Each row has the digest of its other columns, with its key and the name of its
// table, in the column `digest` (common/row_digest.h). It is written with the row and compared
// whenever the row is read (ledger_damage.h). The column `used` of the caches is left out: it
// changes with every use, and what it decides is only which entry goes first.
#include "daemon/store/ledger_schema.h"

// In all tables times are seconds since 1970, and spec, result and compiled are packed messages
// (proto/).
static const char migration_1[] =
    // A job is here from its SUBMIT until its result has been acknowledged. With AUTOINCREMENT no
    // number is used again.
    "CREATE TABLE job ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  search TEXT NOT NULL,"
    "  key TEXT NOT NULL,"
    "  spec BLOB NOT NULL,"
    "  priority INTEGER NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  attempt INTEGER NOT NULL,"
    "  reason TEXT,"
    "  submitted_at INTEGER NOT NULL,"
    "  finished_at INTEGER NOT NULL DEFAULT 0,"
    "  result BLOB,"
    "  UNIQUE (search, key)"
    ") STRICT;"
    // Results by what was measured, where and how (cache.h says what is in the key).
    "CREATE TABLE result ("
    "  key BLOB PRIMARY KEY,"
    "  created_at INTEGER NOT NULL,"
    "  cap_s REAL NOT NULL,"
    "  result BLOB NOT NULL"
    ") STRICT;"
    // Compilations by source, header, glue, flags, toolchain and target.
    "CREATE TABLE compiled ("
    "  key BLOB PRIMARY KEY,"
    "  created_at INTEGER NOT NULL,"
    "  compiled BLOB NOT NULL"
    ") STRICT;";

static const char migration_2[] =
    // Jobs have a tenant. A constraint cannot be changed in place, so the table is made again; its
    // numbers go on from where they were.
    "ALTER TABLE job RENAME TO job_1;"
    "CREATE TABLE job ("
    "  id INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  tenant TEXT NOT NULL,"
    "  search TEXT NOT NULL,"
    "  key TEXT NOT NULL,"
    "  spec BLOB NOT NULL,"
    "  priority INTEGER NOT NULL,"
    "  state INTEGER NOT NULL,"
    "  attempt INTEGER NOT NULL,"
    "  reason TEXT,"
    "  submitted_at INTEGER NOT NULL,"
    "  finished_at INTEGER NOT NULL DEFAULT 0,"
    "  result BLOB,"
    "  UNIQUE (tenant, search, key)"
    ") STRICT;"
    "INSERT INTO job (id, tenant, search, key, spec, priority, state, attempt, reason, "
    "submitted_at,"
    "  finished_at, result)"
    "  SELECT id, 'local', search, key, spec, priority, state, attempt, reason, submitted_at,"
    "  finished_at, result FROM job_1;"
    "DELETE FROM sqlite_sequence WHERE name = 'job';"
    "INSERT INTO sqlite_sequence (name, seq)"
    "  SELECT 'job', seq FROM sqlite_sequence WHERE name = 'job_1';"
    "DROP TABLE job_1;";

static const char migration_3[] =
    // The queue class that the client of a job wants, enum queue_class.
    "ALTER TABLE job ADD COLUMN class INTEGER NOT NULL DEFAULT 0;"
    // Tenants (search is empty) and searches that have a weight or a budget of their own. A limit
    // that does not exist is NULL. at is when the row was written.
    "CREATE TABLE account ("
    "  tenant TEXT NOT NULL,"
    "  search TEXT NOT NULL,"
    "  weight REAL NOT NULL,"
    "  limit_s REAL,"
    "  per_hour_s REAL,"
    "  used_s REAL NOT NULL,"
    "  tokens_s REAL NOT NULL,"
    "  at INTEGER NOT NULL,"
    "  PRIMARY KEY (tenant, search)"
    ") STRICT;";

static const char migration_4[] =
    // An operator's order for a device, until it is taken back. device is a GPU's UUID or a core's
    // name, kind is enum ledger_order_kind.
    "CREATE TABLE device_order ("
    "  device TEXT NOT NULL,"
    "  kind INTEGER NOT NULL,"
    "  reason TEXT,"
    "  created_at INTEGER NOT NULL,"
    "  PRIMARY KEY (device, kind)"
    ") STRICT;";

static const char migration_5[] =
    // A number that grows with every use of an entry (ledger_cache.c). Entries of before have 0.
    "ALTER TABLE result ADD COLUMN used INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX result_used ON result (used);"
    "ALTER TABLE compiled ADD COLUMN used INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX compiled_used ON compiled (used);";

static const char migration_6[] =
    // Why a job ended without a result, enum job_cause. Rows of before have only a sentence, from
    // which the cause is read here: 2 is an exceeded budget, 1 the wish of the client.
    "ALTER TABLE job ADD COLUMN cause INTEGER NOT NULL DEFAULT 0;"
    "UPDATE job SET cause = 2 WHERE state = 5 AND reason LIKE 'BUDGET: %';"
    "UPDATE job SET cause = 1 WHERE state = 5 AND reason = 'cancelled by its client';";

// Every row gets its digest at once, because a row without one is damaged: otherwise a changed bit
// that hides the last column would make a row look like one of before.
#define FILL_DIGESTS                                                                               \
    "UPDATE job SET digest = " LEDGER_JOB_DIGEST ";"                                               \
    "UPDATE result SET digest = " LEDGER_RESULT_DIGEST ";"                                         \
    "UPDATE compiled SET digest = " LEDGER_COMPILED_DIGEST ";"                                     \
    "UPDATE account SET digest = " LEDGER_ACCOUNT_DIGEST ";"                                       \
    "UPDATE device_order SET digest = " LEDGER_ORDER_DIGEST ";"

const char ledger_fill_digests[] = FILL_DIGESTS;

static const char migration_7[] =
    // The digest of each row. A later migration that adds a column fills them again, with what the
    // macros say then.
    "ALTER TABLE job ADD COLUMN digest BLOB;"
    "ALTER TABLE result ADD COLUMN digest BLOB;"
    "ALTER TABLE compiled ADD COLUMN digest BLOB;"
    "ALTER TABLE account ADD COLUMN digest BLOB;"
    "ALTER TABLE device_order ADD COLUMN digest BLOB;" FILL_DIGESTS;

const char *const ledger_migration[] = {migration_1, migration_2, migration_3, migration_4,
                                        migration_5, migration_6, migration_7};
const size_t ledger_migration_count = sizeof(ledger_migration) / sizeof(ledger_migration[0]);
