// Calls about jobs, and what follows from the answers to all calls.
#include "client/pool_state.h"
#include "common/mem.h"
#include "contract/verdict.h"
#include <stdlib.h>
#include <string.h>

#define WAIT_MS 10000     // of a long poll
#define WAIT_SHORT_MS 200 // of the last one
#define CANCEL_MS 15000   // the daemon answers when what ran has ended
#define WAITS_MAX 6       // long polls at a time
#define SUBMITS_MAX 16    // at a time
#define NEED_BLOB_MAX 8   // a daemon that asks for the same blobs more often is broken

static struct pool_job *find_job(struct pool *pool, uint64_t id)
{
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        if (job->phase == PHASE_OUT && job->id == id) {
            return job;
        }
    }
    return NULL;
}

static void uncover(struct pool *pool, const uint64_t *id, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct pool_job *job = find_job(pool, id[i]);
        if (job != NULL) {
            job->covered = false;
        }
    }
}

// ---- starting calls ----

struct call *pool_new_call(struct pool *pool, enum op op)
{
    struct call *call = xcalloc(1, sizeof(*call));
    call->pool = pool;
    call->op = op;
    DL_APPEND(pool->call, call);
    pool->calls[op]++;
    return call;
}

static void free_call(struct call *call)
{
    if (call->pool != NULL) {
        call->pool->calls[call->op]--;
        DL_DELETE(call->pool->call, call);
    }
    free(call->digest);
    free(call->id);
    free(call);
}

static void submit_jobs(struct pool *pool)
{
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        if (pool->calls[OP_SUBMIT] >= SUBMITS_MAX) {
            return;
        }
        if (job->phase == PHASE_NEW && (job->unwanted || pool_blobs_known(pool, &job->spec))) {
            struct submit submit = {.search = pool->search,
                                    .key = job->key,
                                    .spec = &job->spec,
                                    .priority = job->priority,
                                    .queue_class = pool->terms.in,
                                    .weight = pool->terms.weight,
                                    .budget_seconds = pool->terms.budget_seconds};
            struct call *call = pool_new_call(pool, OP_SUBMIT);
            call->job = job;
            job->phase = PHASE_SUBMITTING;
            job->tried = true;
            remote_call(pool->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message,
                        CALL_MS, pool_on_answer, call);
        }
    }
}

static void wait_for_jobs(struct pool *pool)
{
    if (pool->calls[OP_WAIT] >= WAITS_MAX) {
        return;
    }
    uint64_t *id = NULL;
    size_t count = 0;
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        if (job->phase == PHASE_OUT && !job->covered && count < WAIT_JOBS_MAX) {
            id = xrealloc(id, count + 1, sizeof(*id));
            id[count++] = job->id;
            job->covered = true;
        }
    }
    if (count > 0) {
        struct call *call = pool_new_call(pool, OP_WAIT);
        call->id = id;
        call->id_count = count;
        bool last = pool->calls[OP_WAIT] == WAITS_MAX;
        struct wait wait = {
            .jobs = id, .jobs_count = count, .max_ms = last ? WAIT_SHORT_MS : WAIT_MS};
        remote_call(pool->remote, OP_WAIT, &wait_message, &wait, &waited_message,
                    wait.max_ms + CALL_MS, pool_on_answer, call);
    }
}

static void cancel_jobs(struct pool *pool)
{
    uint64_t *id = NULL;
    size_t count = 0;
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        if (job->unwanted && job->phase == PHASE_OUT && !job->cancelled && count < WAIT_JOBS_MAX) {
            id = xrealloc(id, count + 1, sizeof(*id));
            id[count++] = job->id;
            job->cancelled = true;
        }
    }
    if (count > 0) {
        struct call *call = pool_new_call(pool, OP_CANCEL);
        call->id = id;
        call->id_count = count;
        struct job_ids ids = {.jobs = id, .jobs_count = count};
        remote_call(pool->remote, OP_CANCEL, &job_ids_message, &ids, &job_infos_message, CANCEL_MS,
                    pool_on_answer, call);
    }
}

static void send_acks(struct pool *pool)
{
    if (pool->ack_count == 0 || pool->calls[OP_ACK] > 0) {
        return;
    }
    struct call *call = pool_new_call(pool, OP_ACK);
    struct job_ids ids = {.jobs = pool->ack, .jobs_count = pool->ack_count};
    remote_call(pool->remote, OP_ACK, &job_ids_message, &ids, &empty_message, CALL_MS,
                pool_on_answer, call);
    free(pool->ack);
    pool->ack = NULL;
    pool->ack_count = 0;
}

void pool_advance(struct pool *pool)
{
    if (pool->backoff_ms != 0 || pool->error.code != ERR_NONE) {
        return;
    }
    pool_ask_for_blobs(pool);
    pool_send_blobs(pool);
    send_acks(pool); // first: what is acknowledged may be submitted again
    submit_jobs(pool);
    wait_for_jobs(pool);
    cancel_jobs(pool);
}

// ---- answers ----

static void on_missing(struct pool *pool, const struct call *call, const struct blob_missing *reply)
{
    for (size_t i = 0; i < call->digest_count; i++) {
        pool_find_blob(pool, &call->digest[i])->state = BLOB_KNOWN;
    }
    for (size_t i = 0; i < reply->digests_count; i++) {
        pool_find_blob(pool, &reply->digests[i])->state = BLOB_MISSING;
    }
}

// A job without blobs goes back; one whose blobs are asked for again and again fails.
static void need_blobs(struct pool *pool, struct pool_job *job)
{
    struct err error = ERR_INIT;
    if (job->unwanted) {
        pool_forget_job(pool, job);
        return;
    }
    job->phase = PHASE_NEW;
    pool_forget_blobs(pool, &job->spec);
    if (++job->need_blobs > NEED_BLOB_MAX) {
        err_set(&error, ERR_PROTOCOL,
                "the daemon keeps asking for blobs of job \"%s\" that it was sent", job->key);
        pool_finish_job(pool, job, NULL, &error);
    }
}

static void on_submitted(struct pool *pool, const struct call *call, const struct submitted *reply)
{
    struct pool_job *job = call->job;
    if (job == NULL) {
        return;
    }
    if (reply->missing_count > 0) {
        need_blobs(pool, job);
        return;
    }
    job->phase = PHASE_OUT;
    job->id = reply->job;
    job->known = reply->duplicate;
    job->covered = false;
}

bool pool_is_over_budget(const struct job_info *info)
{
    return info->state == JOB_CANCELLED && info->reason != NULL &&
           strncmp(info->reason, "BUDGET: ", 8) == 0;
}

// One that ended so before it was submitted here is tried again: the budget may have been raised.
static void over_budget(struct pool *pool, struct pool_job *job, const struct job_info *info)
{
    struct err error = ERR_INIT;
    pool_ack(pool, info->job);
    if (job->known && !job->unwanted) {
        job->phase = PHASE_NEW;
    } else {
        err_set(&error, ERR_BUDGET, "%s", info->reason);
        pool_finish_job(pool, job, NULL, &error);
    }
}

static void on_waited(struct pool *pool, const struct call *call, struct waited *reply)
{
    uncover(pool, call->id, call->id_count);
    for (size_t i = 0; i < reply->unknown_count; i++) {
        struct pool_job *job = find_job(pool, reply->unknown[i]);
        if (job != NULL && job->unwanted) {
            pool_forget_job(pool, job);
        } else if (job != NULL) {
            job->phase = PHASE_NEW;
            pool_forget_blobs(pool, &job->spec);
        }
    }
    for (size_t i = 0; i < reply->jobs_count; i++) {
        struct pool_job *job = find_job(pool, reply->jobs[i].job);
        if (job != NULL && pool_is_over_budget(&reply->jobs[i])) {
            over_budget(pool, job, &reply->jobs[i]);
        } else if (job != NULL && job_state_is_terminal(reply->jobs[i].state)) {
            pool_finish_job(pool, job, &reply->jobs[i], NULL);
        }
    }
}

// What a call that failed was about goes back by one state.
static void put_back(struct pool *pool, const struct call *call)
{
    for (size_t i = 0; i < call->digest_count; i++) {
        pool_find_blob(pool, &call->digest[i])->state =
            call->op == OP_BLOB_PUT ? BLOB_MISSING : BLOB_UNKNOWN;
    }
    if (call->job != NULL) {
        call->job->phase = PHASE_NEW;
    }
    if (call->op == OP_WAIT) {
        uncover(pool, call->id, call->id_count);
    }
    for (size_t i = 0; i < call->id_count && call->op == OP_CANCEL; i++) {
        struct pool_job *job = find_job(pool, call->id[i]);
        if (job != NULL) {
            job->cancelled = false;
        }
    }
}

static void on_failure(struct pool *pool, const struct call *call, const struct err *error,
                       uint64_t retry_after_ms)
{
    // "stopped" is a daemon's word while it ends; it may come back.
    bool transient = error->code == ERR_UNREACHABLE || error->code == ERR_TIMED_OUT ||
                     error->code == ERR_BUSY || error->code == ERR_STOPPED;
    if (call->op == OP_ACK || (call->op == OP_CANCEL && !transient)) {
        return; // the daemon forgets by itself; a job that is not cancelled runs to its end
    }
    put_back(pool, call);
    if (transient) {
        pool_back_off(pool, error, retry_after_ms);
    } else if (call->op == OP_SUBMIT && error->code == ERR_NEED_BLOB && call->job != NULL) {
        need_blobs(pool, call->job);
    } else if (call->op == OP_SUBMIT && call->job != NULL) {
        pool_finish_job(pool, call->job, NULL, error);
    } else {
        pool_give_up(pool, error);
    }
}

void pool_on_answer(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct call *call = owner;
    struct pool *pool = call->pool;
    if (pool == NULL) {
        free_call(call);
        return;
    }
    // Counted down first: what the answer sets free may be used by pool_advance().
    if (error != NULL) {
        on_failure(pool, call, error, retry_after_ms);
    } else {
        pool_trouble_is_over(pool);
        switch (call->op) {
        case OP_BLOB_HAVE:
            on_missing(pool, call, reply);
            break;
        case OP_BLOB_PUT:
            pool_find_blob(pool, &call->digest[0])->state = BLOB_KNOWN;
            break;
        case OP_SUBMIT:
            on_submitted(pool, call, reply);
            break;
        case OP_WAIT:
            on_waited(pool, call, reply);
            break;
        default:
            break;
        }
    }
    free_call(call);
    pool_kick(pool);
}
