// Holds jobs to the budgets of their search and tenant: which may begin, which have no hope, what
// those that run are charged, and that the ledger knows it.
#ifndef DAEMON_SCHED_SPENDING_H
#define DAEMON_SCHED_SPENDING_H

#include "daemon/devices/device.h"
#include "daemon/jobs/job_table.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger.h"

struct spending {
    struct job_table *jobs;
    struct devices *devices;
    struct account_table *accounts;
    struct ledger *ledger;
    // Ends a job wherever it is.
    void (*cancel)(void *owner, struct job *job, const char *reason);
    void *owner;
};

// Whether there is no budget left for this job, which is then ended. It is in no queue and has
// neither preparation nor run.
bool spending_refuses(const struct spending *spending, struct job *job);
// Into the queue, as the search's account and the job's class say. An interactive job that is
// expected to be long is a normal one.
void spending_enqueue(struct queue *queue, struct job *job);
// fair_terms.may, with the spending as owner; search is its account's id.
bool spending_may_begin(void *spending, uint64_t search);
// Writes down every account that changed. What is posted to the ledger afterwards is committed
// later or together with it.
void spending_save(const struct spending *spending);
// Once a second: charges what runs, ends what has no hope, saves.
void spending_tick(const struct spending *spending);

#endif
