#include "daemon/reload.h"
#include "common/log.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/submission.h"
#include "daemon/state/job_table.h"
#include "daemon/store/ledger.h"
#include "proto/verdict.h"
#include <stdlib.h>

// Reads the specification of a job from its row of the ledger and acquires its measurement setup.
static int apply_row(const struct daemon_parts *parts, struct job *job,
                     const struct ledger_job *row, struct err *err)
{
    struct job_spec spec;
    int rc = message_read(&job_spec_message, &spec, row->spec.data, row->spec.len, err);

    if (rc != 0) {
        return rc;
    }
    job->spec = submission_spec_digest(&spec);
    submission_apply_spec(parts, job, &spec);
    message_clear(&job_spec_message, &spec);
    return 0;
}

static int reload_job(void *owner, const struct ledger_job *row, struct err *err)
{
    const struct daemon_parts *parts = owner;
    bool finished = job_state_is_terminal(row->state);

    if (row->state >= JOB_STATE_COUNT || !row->tenant || !row->search || !row->key) {
        return err_set(err, ERR_CORRUPT, "%s: job %llu is in no known state", parts->state_dir,
                       (unsigned long long)row->id);
    }
    struct job *job = job_table_add(parts->jobs, row->id, row->tenant, row->search, row->key,
                                    finished ? (enum job_state)row->state : JOB_QUEUED);
    job->priority = row->priority;
    job->wanted_class = (uint8_t)(row->wanted_class < QUEUE_CLASS_COUNT ? row->wanted_class : 0);
    job->attempt = (uint8_t)(row->attempt < UINT8_MAX ? row->attempt : UINT8_MAX);
    job->finished_s = row->finished_s;
    job->reason = row->reason ? xstrdup(row->reason) : NULL;
    job->cause = (uint8_t)(row->cause < JOB_CAUSE_COUNT ? row->cause : JOB_CAUSE_NONE);
    job->journalled = true;
    job->restarted = true;
    struct err defect = ERR_INIT;
    if (apply_row(parts, job, row, &defect) != 0 && !finished) {
        // reload_requeue buries it; the ledger's thread is not there yet.
        free(job->reason);
        job->reason = xstrdup(defect.text);
        job->cause = JOB_CAUSE_UNREADABLE;
    }
    if (row->state == JOB_RUNNING) {
        job->attempt++;
        job->unsaved = true; // marks it for reload_requeue, which writes the new attempt
    }
    return 0;
}

static void bury(const struct daemon_parts *parts, struct job *job)
{
    bool unreadable = job->cause == JOB_CAUSE_UNREADABLE;
    char *reason =
        job->reason ? job->reason : xstrdup("the daemon went down with it on a device too often");

    job->reason = NULL;
    job->cause = JOB_CAUSE_NONE;
    complete_buried(parts->completions, job,
                    unreadable ? JOB_CAUSE_UNREADABLE : JOB_CAUSE_LOST_DAEMON, reason);
    free(reason);
}

void reload_requeue(const struct daemon_parts *parts)
{
    struct job *job = job_table_first(parts->jobs);
    size_t unfinished = 0;
    size_t finished = 0;

    for (; job; job = job->by_id.next) {
        bool was_running = job->unsaved;

        job->unsaved = false;
        if (job_state_is_terminal(job->state)) {
            finished++;
            continue;
        }
        unfinished++;
        if (job->cause == JOB_CAUSE_UNREADABLE || job->attempt >= JOB_RESTART_LOST_MAX) {
            bury(parts, job);
            continue;
        }
        if (was_running) {
            ledger_move(parts->ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
        }
        lifecycle_admit(parts->lifecycle, job);
    }
    if (unfinished + finished > 0) {
        log_event(LOG_NOTICE, "jobs-reloaded unfinished=%zu finished=%zu", unfinished, finished);
    }
}

int reload_jobs(const struct daemon_parts *parts, struct err *err)
{
    // The cast removes const; reload_job only reads the parts.
    return ledger_load(parts->ledger, reload_job, (void *)(uintptr_t)parts, err);
}
