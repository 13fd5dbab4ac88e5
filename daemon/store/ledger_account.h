// The ledger's tables `account` and `device_order`, which are read when the daemon starts. Called
// by ledger_sql.c alone, which has the statements that write them.
#ifndef DAEMON_STORE_LEDGER_ACCOUNT_H
#define DAEMON_STORE_LEDGER_ACCOUNT_H

#include "daemon/store/ledger.h"
#include <sqlite3.h>

struct ledger_damage;

// Stores an account, by the values that ledger_account_bind binds.
#define LEDGER_ACCOUNT_KEEP                                                                        \
    "INSERT OR REPLACE INTO account (tenant, search, weight, limit_s, per_hour_s, used_s,"         \
    " tokens_s, at, digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"                               \
    " row_digest('account', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))"
// Stores an order: device, kind, reason, time.
#define LEDGER_ORDER_KEEP                                                                          \
    "INSERT OR REPLACE INTO device_order (device, kind, reason, created_at, digest)"               \
    " VALUES (?1, ?2, ?3, ?4, row_digest('device_order', ?1, ?2, ?3, ?4))"

// Binds the columns in the order of the table. The texts are not copied and must live until the
// statement has run.
void ledger_account_bind(sqlite3_stmt *insert, const struct ledger_account *account);

// Deletes accounts of searches that were written before forget_before_s, and visits the others. An
// account that is not as it was written is told, deleted and not visited: its tenant or search has
// no weight or budget of its own until somebody sets it again.
MUST_CHECK int ledger_accounts_load(struct ledger_damage *damage, int64_t forget_before_s,
                                    void (*visit)(void *owner, const struct ledger_account *row),
                                    void *owner, struct err *err);
// Visits every order of an operator. One that is not as it was written is told, and becomes an
// order to drain the device that it names: a device that somebody has taken out of service must not
// come back by itself.
MUST_CHECK int ledger_orders_load(struct ledger_damage *damage,
                                  void (*visit)(void *owner, const char *device, uint64_t kind,
                                                const char *reason),
                                  void *owner, struct err *err);

#endif
