// Charges jobs to the accounts of their search and tenant, and tells which jobs have no budget
// left. Called by lifecycle.c, which ends such jobs; this module ends none itself.
#ifndef DAEMON_JOBS_CHARGING_H
#define DAEMON_JOBS_CHARGING_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"

// Returns a sentence, to be freed by the caller, that says whose budget is used up; NULL when the
// job may go on. A COMPILE job takes no device time and needs no budget.
char *charging_refusal(const struct job *job);
// Posts every account that has changed to the ledger. Whatever is posted to the ledger afterwards
// is committed in the same transaction or a later one.
void charging_save(const struct daemon_parts *parts);
// Charges every run for the seconds that it has held its device until now.
void charging_charge_runs(const struct daemon_parts *parts);

#endif
