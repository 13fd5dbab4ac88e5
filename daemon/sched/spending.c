#include "daemon/sched/spending.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "proto/verdict.h"
#include <stdlib.h>

// The account that has nothing left for it. Compilations take no device time.
static const struct account *spent_by(const struct job *job)
{
    return job->kind == JOB_MEASURE ? account_spent(job->search->account) : NULL;
}

static void end_over_budget(const struct spending *spending, struct job *job,
                            const struct account *spent)
{
    char *reason = account_sentence(spent);

    log_event(LOG_INFO, "job-over-budget job=%llu account=%s", (unsigned long long)job->id,
              spent->path);
    spending->cancel(spending->owner, job, reason);
    free(reason);
}

bool spending_refuses(const struct spending *spending, struct job *job)
{
    const struct account *spent = spent_by(job);

    if (spent) {
        end_over_budget(spending, job, spent);
    }
    return spent;
}

void spending_enqueue(struct queue *queue, struct job *job)
{
    const struct account *account = job->search->account;
    struct fair_who who = {
        .tenant = account->tenant->id,
        .search = account->id,
        .tenant_weight = account->tenant->weight,
        .weight = account->weight,
    };
    enum queue_class in = job->wanted_class;

    if (in == QUEUE_INTERACTIVE && job->setup->held_s > QUEUE_INTERACTIVE_S) {
        in = QUEUE_NORMAL;
    }
    queue_add(queue, &job->queued, in, &who, job->priority, job->id, 1);
}

bool spending_may_begin(void *owner, uint64_t search)
{
    const struct spending *spending = owner;
    struct account *account = accounts_find_id(spending->accounts, search);

    return !account || account_may_begin(account, clock_seconds(clock_now_ns(&clock_system)));
}

static void save_account(void *owner, struct account *account)
{
    const struct spending *spending = owner;

    ledger_keep_account(spending->ledger, account, NULL, NULL);
}

void spending_save(const struct spending *spending)
{
    account_visit_changed(spending->accounts, save_account, (void *)(uintptr_t)spending);
}

static void charge_runs(const struct spending *spending)
{
    const struct devices *devices = spending->devices;

    for (size_t i = 0; i < devices->count; i++) {
        uint64_t id = devices->device[i].job;
        struct job *job = id != 0 ? job_table_find(spending->jobs, id) : NULL;

        if (job && job->run) {
            run_charge(job->run);
        }
    }
}

// Those that run are left alone.
static void end_hopeless(const struct spending *spending)
{
    struct job *job = job_table_first(spending->jobs);

    for (; job; job = job->by_id.next) {
        const struct account *spent =
            job_state_is_terminal(job->state) || job->run ? NULL : spent_by(job);

        if (spent) {
            end_over_budget(spending, job, spent);
        }
    }
}

void spending_tick(const struct spending *spending)
{
    charge_runs(spending);
    if (accounts_take_over(spending->accounts)) {
        end_hopeless(spending);
    }
    spending_save(spending);
}
