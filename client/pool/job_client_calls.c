// Starts the calls about jobs, and draws the consequences of the answers to all calls.
#include "client/pool/job_client_state.h"

#include "common/mem.h"
#include "proto/result_check.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 10000     // length of a long poll
#define WAIT_SHORT_MS 200 // length of the last one of WAITS_MAX
#define CANCEL_MS 15000   // deadline of CANCEL, which is answered when the job has stopped running
#define WAITS_MAX 6       // long polls at the same time
#define SUBMITS_MAX 16    // submissions at the same time
#define NEED_BLOB_MAX 8   // a daemon that asks for the same blobs more often is broken

static struct job_client_job *find_job(struct job_client *job_client, uint64_t id)
{
    struct job_client_job *job;
    DL_FOREACH (job_client->job, job) {
        if (job->phase == PHASE_SUBMITTED && job->id == id) {
            return job;
        }
    }
    return NULL;
}

static void end_wait(struct job_client *job_client, const uint64_t *id, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct job_client_job *job = find_job(job_client, id[i]);
        if (job) {
            job->awaited = false;
        }
    }
}

// ---- starting calls ----

struct call *job_client_new_call(struct job_client *job_client, enum op op)
{
    struct call *call = xcalloc(1, sizeof(*call));
    call->job_client = job_client;
    call->op = op;
    DL_APPEND(job_client->call, call);
    job_client->calls[op]++;
    return call;
}

static void free_call(struct call *call)
{
    if (call->job_client) {
        call->job_client->calls[call->op]--;
        DL_DELETE(call->job_client->call, call);
    }
    free(call->digest);
    free(call->id);
    free(call);
}

static void submit_jobs(struct job_client *job_client)
{
    struct job_client_job *job;
    DL_FOREACH (job_client->job, job) {
        if (job_client->calls[OP_SUBMIT] >= SUBMITS_MAX) {
            return;
        }
        if (job->phase == PHASE_NEW &&
            (job->unwanted || job_client_blobs_known(job_client, &job->spec))) {
            struct submit submit = {.search = job_client->search,
                                    .key = job->key,
                                    .spec = &job->spec,
                                    .priority = job->priority,
                                    .queue_class = job_client->terms.in,
                                    .weight = job_client->terms.weight,
                                    .budget_seconds = job_client->terms.budget_seconds,
                                    .planned = job_client->terms.planned,
                                    .planned_seconds = job_client->terms.planned_seconds > 0
                                                           ? job_client->terms.planned_seconds
                                                           : NAN};
            struct call *call = job_client_new_call(job_client, OP_SUBMIT);
            call->job = job;
            job->phase = PHASE_SUBMITTING;
            job->tried = true;
            remote_call(job_client->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message,
                        CALL_MS, job_client_on_answer, call);
        }
    }
}

static void wait_for_jobs(struct job_client *job_client)
{
    if (job_client->calls[OP_WAIT] >= WAITS_MAX) {
        return;
    }
    uint64_t *id = NULL;
    size_t count = 0;
    struct job_client_job *job;
    DL_FOREACH (job_client->job, job) {
        if (job->phase == PHASE_SUBMITTED && !job->awaited && count < WAIT_JOBS_MAX) {
            id = xrealloc(id, count + 1, sizeof(*id));
            id[count++] = job->id;
            job->awaited = true;
        }
    }
    if (count > 0) {
        struct call *call = job_client_new_call(job_client, OP_WAIT);
        call->id = id;
        call->id_count = count;
        bool last = job_client->calls[OP_WAIT] == WAITS_MAX;
        struct wait wait = {
            .jobs = id, .jobs_count = count, .max_ms = last ? WAIT_SHORT_MS : WAIT_MS};
        remote_call(job_client->remote, OP_WAIT, &wait_message, &wait, &waited_message,
                    wait.max_ms + CALL_MS, job_client_on_answer, call);
    }
}

static void cancel_jobs(struct job_client *job_client)
{
    uint64_t *id = NULL;
    size_t count = 0;
    struct job_client_job *job;
    DL_FOREACH (job_client->job, job) {
        if (job->unwanted && job->phase == PHASE_SUBMITTED && !job->cancelled &&
            count < WAIT_JOBS_MAX) {
            id = xrealloc(id, count + 1, sizeof(*id));
            id[count++] = job->id;
            job->cancelled = true;
        }
    }
    if (count > 0) {
        struct call *call = job_client_new_call(job_client, OP_CANCEL);
        call->id = id;
        call->id_count = count;
        struct job_ids ids = {.jobs = id, .jobs_count = count};
        remote_call(job_client->remote, OP_CANCEL, &job_ids_message, &ids, &job_infos_message,
                    CANCEL_MS, job_client_on_answer, call);
    }
}

static void send_acks(struct job_client *job_client)
{
    if (job_client->ack_count == 0 || job_client->calls[OP_ACK] > 0) {
        return;
    }
    struct call *call = job_client_new_call(job_client, OP_ACK);
    struct job_ids ids = {.jobs = job_client->ack, .jobs_count = job_client->ack_count};
    remote_call(job_client->remote, OP_ACK, &job_ids_message, &ids, &empty_message, CALL_MS,
                job_client_on_answer, call);
    free(job_client->ack);
    job_client->ack = NULL;
    job_client->ack_count = 0;
}

void job_client_advance(struct job_client *job_client)
{
    if (job_client->backoff_ms != 0 || job_client->error.code != ERR_NONE) {
        return;
    }
    job_client_ask_for_blobs(job_client);
    job_client_send_blobs(job_client);
    // Before the submissions, since an acknowledged job may be submitted again.
    send_acks(job_client);
    submit_jobs(job_client);
    wait_for_jobs(job_client);
    cancel_jobs(job_client);
}

// ---- answers ----

static void on_missing(struct job_client *job_client, const struct call *call,
                       const struct blob_missing *reply)
{
    for (size_t i = 0; i < call->digest_count; i++) {
        job_client_set_blob(job_client, &call->digest[i], BLOB_KNOWN);
    }
    for (size_t i = 0; i < reply->digests_count; i++) {
        job_client_set_blob(job_client, &reply->digests[i], BLOB_MISSING);
    }
}

// Puts a job whose blobs the daemon lacks back to NEW. It fails when that happens too often.
static void need_blobs(struct job_client *job_client, struct job_client_job *job)
{
    if (job->unwanted) {
        job_client_forget_job(job_client, job);
        return;
    }
    job->phase = PHASE_NEW;
    job_client_forget_blobs(job_client, &job->spec);
    struct err error = ERR_INIT;
    if (++job->need_blobs > NEED_BLOB_MAX) {
        err_set(&error, ERR_PROTOCOL,
                "the daemon keeps asking for blobs of job \"%s\" that it was sent", job->key);
        job_client_finish_job(job_client, job, NULL, &error);
    }
}

static void on_submitted(struct job_client *job_client, const struct call *call,
                         const struct submitted *reply)
{
    struct job_client_job *job = call->job;
    if (!job) {
        return;
    }
    if (reply->missing_count > 0) {
        need_blobs(job_client, job);
        return;
    }
    job->phase = PHASE_SUBMITTED;
    job->id = reply->job;
    job->known = reply->duplicate;
    job->was_cancelled = reply->duplicate && reply->state == JOB_CANCELLED;
    job->awaited = false;
}

bool job_client_is_over_budget(const struct job_info *info)
{
    return info->state == JOB_CANCELLED && info->cause == JOB_CAUSE_BUDGET;
}

// Finishes a job that has no budget left.
static void over_budget(struct job_client *job_client, struct job_client_job *job,
                        const struct job_info *info)
{
    job_client_ack(job_client, info->job);
    struct err error = ERR_INIT;
    err_set(&error, ERR_BUDGET, "%s",
            info->reason ? info->reason : "the budget of device time is used up");
    job_client_finish_job(job_client, job, NULL, &error);
}

// Whether the job is to be submitted anew, although the daemon has ended it: it was cancelled
// before it was submitted here, when nobody wanted it any more, or its budget, which may have been
// raised since, was used up.
static bool is_wanted_again(const struct job_client_job *job, const struct job_info *info)
{
    return !job->unwanted && info->state == JOB_CANCELLED &&
           (job->was_cancelled || (job->known && job_client_is_over_budget(info)));
}

// Has the daemon forget the job, and submits it anew.
static void submit_again(struct job_client *job_client, struct job_client_job *job)
{
    job_client_ack(job_client, job->id);
    job->phase = PHASE_NEW;
}

// Checks that what a daemon says of a finished job can be true, and is about this job.
static int check_info(const struct job_client_job *job, const struct job_info *info,
                      struct err *err)
{
    const struct result_expectation expectation = {.problem = job->spec.problem,
                                                   .candidate = job->spec.candidate,
                                                   .precision_log2 =
                                                       NAN}; // a cached one may be another's
    int rc = 0;

    if (info->result) {
        rc = result_check(info->result, &expectation, err);
    } else if (info->compiled) {
        rc = compiled_check(info->compiled, err);
    }
    return rc == 0 ? 0
                   : err_wrap(err, "the daemon's result of its job %llu cannot be true",
                              (unsigned long long)info->job);
}

static void finish_waited(struct job_client *job_client, struct job_client_job *job,
                          struct job_info *info)
{
    struct err defect = ERR_INIT;

    if (check_info(job, info, &defect) == 0) {
        job_client_finish_job(job_client, job, info, NULL);
    } else {
        job_client_finish_job(job_client, job, NULL, &defect);
    }
}

static void on_waited(struct job_client *job_client, const struct call *call, struct waited *reply)
{
    end_wait(job_client, call->id, call->id_count);
    for (size_t i = 0; i < reply->unknown_count; i++) {
        struct job_client_job *job = find_job(job_client, reply->unknown[i]);
        if (job && job->unwanted) {
            job_client_forget_job(job_client, job);
        } else if (job) {
            job->phase = PHASE_NEW;
            job_client_forget_blobs(job_client, &job->spec);
        }
    }
    for (size_t i = 0; i < reply->jobs_count; i++) {
        struct job_client_job *job = find_job(job_client, reply->jobs[i].job);
        if (job && is_wanted_again(job, &reply->jobs[i])) {
            submit_again(job_client, job);
        } else if (job && job_client_is_over_budget(&reply->jobs[i])) {
            over_budget(job_client, job, &reply->jobs[i]);
        } else if (job && job_state_is_terminal(reply->jobs[i].state)) {
            finish_waited(job_client, job, &reply->jobs[i]);
        }
    }
}

// Puts what a failed call was about back by one state.
static void put_back(struct job_client *job_client, const struct call *call)
{
    for (size_t i = 0; i < call->digest_count; i++) {
        job_client_set_blob(job_client, &call->digest[i],
                            call->op == OP_BLOB_PUT ? BLOB_MISSING : BLOB_UNKNOWN);
    }
    if (call->job) {
        call->job->phase = PHASE_NEW;
    }
    if (call->op == OP_WAIT) {
        end_wait(job_client, call->id, call->id_count);
    }
    for (size_t i = 0; i < call->id_count && call->op == OP_CANCEL; i++) {
        struct job_client_job *job = find_job(job_client, call->id[i]);
        if (job) {
            job->cancelled = false;
        }
    }
}

static void on_failure(struct job_client *job_client, const struct call *call,
                       const struct err *error, uint64_t retry_after_ms)
{
    // A daemon that is ending answers ERR_STOPPED; it may come back.
    bool transient = error->code == ERR_UNREACHABLE || error->code == ERR_TIMED_OUT ||
                     error->code == ERR_BUSY || error->code == ERR_STOPPED;
    if (call->op == OP_ACK || (call->op == OP_CANCEL && !transient)) {
        return; // the daemon forgets by itself; a job that is not cancelled runs to its end
    }
    put_back(job_client, call);
    if (transient) {
        job_client_back_off(job_client, error, retry_after_ms);
    } else if (call->op == OP_SUBMIT && error->code == ERR_NEED_BLOB && call->job) {
        need_blobs(job_client, call->job);
    } else if (call->op == OP_SUBMIT && call->job) {
        job_client_finish_job(job_client, call->job, NULL, error);
    } else {
        job_client_give_up(job_client, error);
    }
}

void job_client_on_answer(void *owner, const struct err *error, uint64_t retry_after_ms,
                          void *reply)
{
    struct call *call = owner;
    struct job_client *job_client = call->job_client;
    if (!job_client) {
        free_call(call);
        return;
    }
    if (error) {
        on_failure(job_client, call, error, retry_after_ms);
    } else {
        job_client_outage_is_over(job_client);
        switch (call->op) {
        case OP_BLOB_HAVE:
            on_missing(job_client, call, reply);
            break;
        case OP_BLOB_PUT:
            job_client_set_blob(job_client, &call->digest[0], BLOB_KNOWN);
            break;
        case OP_SUBMIT:
            on_submitted(job_client, call, reply);
            break;
        case OP_WAIT:
            on_waited(job_client, call, reply);
            break;
        default:
            break;
        }
    }
    free_call(call);
    job_client_schedule(job_client);
}
