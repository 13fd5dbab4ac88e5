// Weights and budgets as callers see them: answers BUDGET, and says in STATUS who has which share.
#ifndef DAEMON_JOBS_BUDGETS_H
#define DAEMON_JOBS_BUDGETS_H

#include "daemon/devices/device.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger.h"
#include "net/auth/caller.h"
#include "net/rpc/service.h"

struct budgets;

// What is given outlives the budgets. on_change: something may begin that could not, or the other
// way round.
struct budgets *budgets_create(struct account_table *accounts, struct ledger *ledger,
                               void (*on_change)(void *owner), void *owner);
void budgets_free(struct budgets *budgets);            // none may be pending; NULL is fine
size_t budgets_pending(const struct budgets *budgets); // exchanges that wait for the ledger

// Answers once, now or, when something was changed, after the ledger has it. Only an administrator
// may change something; others are shown the accounts of their own tenant.
void budgets_request(struct budgets *budgets, struct exchange *exchange,
                     const struct request *request);
// Puts a row into the reply for every search that waits for devices or holds some and that the
// caller may see.
void budgets_fill_status(const struct budgets *budgets, const struct devices *devices,
                         const struct caller *caller, struct status *reply);

// Whether weight and budget_seconds of a SUBMIT make sense (absent ones do). ERR_INVALID.
MUST_CHECK int budgets_check(double weight, double seconds, double hour_seconds, struct err *err);
// The accounts that the ledger has. Before there are jobs.
MUST_CHECK int budgets_load(struct account_table *accounts, struct ledger *ledger, struct err *err);

#endif
