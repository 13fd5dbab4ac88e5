// Holds jobs to the budgets of their search and tenant: which have no hope, what those that run are
// charged, and that the ledger knows it. Ends no job itself.
#ifndef DAEMON_JOBS_SPENDING_H
#define DAEMON_JOBS_SPENDING_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"

// Why there is no budget left for this job, as a sentence, malloc'd; NULL when there is some. A
// compilation takes no device time and needs none.
char *spending_refusal(const struct job *job);
// Writes down every account that changed. What is posted to the ledger afterwards is committed
// later or together with it.
void spending_save(const struct daemon_parts *parts);
// Charges every run for the time that it has held its device until now.
void spending_charge(const struct daemon_parts *parts);

#endif
