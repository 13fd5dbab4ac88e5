#include "daemon/ledger_schema.h"

// Times are seconds since 1970. spec, result and compiled are packed messages (proto/).
static const char migration_1[] =
    // A job from its SUBMIT until its result has been acknowledged. AUTOINCREMENT: numbers are
    // never used again.
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
    // Results by what was measured, where and how (daemon/cache.h says what is in the key).
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
    // What an operator wants of a device (daemon/orders.h), until he takes it back. device: a GPU's
    // UUID, a core's name. kind: enum ledger_order_kind.
    "CREATE TABLE device_order ("
    "  device TEXT NOT NULL,"
    "  kind INTEGER NOT NULL,"
    "  reason TEXT,"
    "  created_at INTEGER NOT NULL,"
    "  PRIMARY KEY (device, kind)"
    ") STRICT;";

const char *const ledger_migration[] = {migration_1, migration_2};
const size_t ledger_migration_count = sizeof(ledger_migration) / sizeof(ledger_migration[0]);
