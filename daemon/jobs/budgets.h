// Weights and budgets as callers see them: answers the operation BUDGET, fills the rows about
// shares in STATUS, and reloads the accounts from the ledger. Called by dispatch.c, status.c,
// submission.c and daemon.c. Charges nothing; charging.c does.
#ifndef DAEMON_JOBS_BUDGETS_H
#define DAEMON_JOBS_BUDGETS_H

#include "daemon/devices/device.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger.h"
#include "net/auth/caller.h"
#include "net/rpc/service.h"

struct budgets;

// All arguments outlive the budgets. on_change is called when a weight or a budget has been
// changed, so that jobs may be able to begin that were not before.
struct budgets *budgets_create(struct account_table *accounts, struct ledger *ledger,
                               void (*on_change)(void *owner), void *owner);
void budgets_free(struct budgets *budgets);            // none may be pending; NULL is fine
size_t budgets_pending(const struct budgets *budgets); // exchanges that wait for the ledger

// Answers the exchange once: at once, or after the ledger has written a change. Only an
// administrator may change something; other callers are shown the accounts of their own tenant.
void budgets_request(struct budgets *budgets, struct exchange *exchange,
                     const struct request *request);
// Adds a row to the reply for every search that waits for devices or holds some, if the caller may
// see it.
void budgets_fill_status(const struct budgets *budgets, const struct devices *devices,
                         const struct caller *caller, struct status *reply);

// Checks a weight, a budget in device-seconds and a budget per hour; NaN means absent and is valid.
// Returns ERR_INVALID when one is out of range.
MUST_CHECK int budgets_check(double weight, double seconds, double hour_seconds, struct err *err);
// Loads the accounts of the ledger. To be called before jobs are loaded. Errors are those of
// ledger_load_accounts.
MUST_CHECK int budgets_load(struct account_table *accounts, struct ledger *ledger, struct err *err);

#endif
