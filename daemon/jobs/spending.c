#include "daemon/jobs/spending.h"
#include "common/log.h"
#include "daemon/devices/device.h"
#include "daemon/run/measure.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/store/ledger.h"
#include "proto/verdict.h"

char *spending_refusal(const struct job *job)
{
    const struct account *spent =
        job->kind == JOB_MEASURE ? account_spent(job->search->account) : NULL;

    if (!spent) {
        return NULL;
    }
    log_event(LOG_INFO, "job-over-budget job=%llu account=%s", (unsigned long long)job->id,
              spent->path);
    return account_sentence(spent);
}

static void save_account(void *owner, struct account *account)
{
    ledger_keep_account(owner, account, NULL, NULL);
}

void spending_save(const struct daemon_parts *parts)
{
    account_visit_changed(parts->accounts, save_account, parts->ledger);
}

void spending_charge(const struct daemon_parts *parts)
{
    const struct devices *devices = parts->devices;

    for (size_t i = 0; i < devices->count; i++) {
        uint64_t id = devices->device[i].job;
        const struct job *job = id != 0 ? job_table_find(parts->jobs, id) : NULL;

        if (job && job->run) {
            run_charge(job->run);
        }
    }
}
