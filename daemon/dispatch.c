// Design note. Every request takes the same way:
//
//   1. dispatch_request, at the end of this file, finds the handler of the operation.
//   2. The handler reads the body of the request. When the body cannot be read,
//      exchange_read_body has answered the exchange already.
//   3. The handler answers the exchange at once, or hands it over to a module that will: to a
//      submission, a parked WAIT, the ledger or the blob store.
//
// An exchange is answered exactly once. `pending` counts the replies that this module owes when a
// submission, the ledger or the blob store calls back (struct deferred_reply); administration,
// answers and budgets count their own. When all these counts are zero, the service may be closed.
#include "daemon/dispatch.h"
#include "common/log.h"
#include "daemon/devices/device.h"
#include "daemon/jobs/answer.h"
#include "daemon/jobs/budgets.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/listing.h"
#include "daemon/jobs/submission.h"
#include "daemon/jobs/wait.h"
#include "daemon/list_reply.h"
#include "daemon/store/blob.h"
#include "daemon/upkeep/administration.h"
#include <stdlib.h>

#define FEATURE_MAX 5          // features that HELLO can name
#define STOPPING_RETRY_MS 1000 // told to a caller while the daemon stops

struct dispatch {
    const struct daemon_parts *parts;
    size_t pending;                // replies that are deferred
    bool refusing_jobs;            // dispatch_refuse_jobs was called
    bool stopping;                 // dispatch_stop was called
    struct list_replies *lists;    // answers that are lists of jobs
    struct log_limit blob_refused; // limits the log lines about blobs
};

// A reply that is sent when a submission, the ledger or the blob store has called back.
struct deferred_reply {
    struct dispatch *dispatch;
    struct exchange *exchange;
    uint64_t *jobs;   // numbers of the jobs that the reply to CANCEL is about
    size_t job_count; // length of jobs
};

static struct deferred_reply *defer_reply(struct dispatch *dispatch, struct exchange *exchange)
{
    struct deferred_reply *deferred = xcalloc(1, sizeof(*deferred));

    deferred->dispatch = dispatch;
    deferred->exchange = exchange;
    dispatch->pending++;
    return deferred;
}

static void deferred_reply_free(struct deferred_reply *deferred)
{
    deferred->dispatch->pending--;
    free(deferred->jobs);
    free(deferred);
}

static void reply_empty(struct exchange *exchange)
{
    struct empty reply;

    message_init(&empty_message, &reply);
    exchange_reply(exchange, &empty_message, &reply);
}

// --- HELLO, BLOB_PUT, BLOB_HAVE

static void handle_hello(struct dispatch *dispatch, struct exchange *exchange,
                         const struct request *request)
{
    const struct devices *devices = dispatch->parts->devices;
    const char *feature[FEATURE_MAX] = {"compile", "measure"};
    size_t count = 2;

    if (devices_class(devices, NULL, "c")) {
        feature[count++] = "cpu";
    }
    if (devices_class(devices, NULL, "cuda")) {
        feature[count++] = "cuda";
    }
    if (!dispatch->parts->limits.sandbox_off) {
        feature[count++] = "sandbox";
    }

    exchange_hello(exchange, request, "kcastd", feature, count, DISPATCH_WAIT_MAX_MS, NULL);
}

static struct blob_caller caller_of(const struct exchange *exchange)
{
    return (struct blob_caller){.tenant = exchange_caller(exchange)->tenant,
                                .name = exchange_turn_name(exchange)};
}

static void on_blob_put(void *owner, const struct err *error)
{
    struct deferred_reply *deferred = owner;

    uint64_t untold;

    if (error) {
        if (log_limit_passes(&deferred->dispatch->blob_refused, uv_hrtime(), &untold)) {
            log_event(LOG_WARNING, "blob-refused tenant=%s code=%s reason=\"%s\" untold=%llu",
                      exchange_caller(deferred->exchange)->tenant, err_name((int)error->code),
                      error->text, (unsigned long long)untold);
        }
        exchange_fail(deferred->exchange, error);
    } else {
        reply_empty(deferred->exchange);
    }
    deferred_reply_free(deferred);
}

static void handle_blob_put(struct dispatch *dispatch, struct exchange *exchange,
                            const struct request *request)
{
    struct blob_put body;

    if (!exchange_read_body(exchange, request, &blob_put_message, &body)) {
        return;
    }
    const struct blob_caller caller = caller_of(exchange);
    blob_put(dispatch->parts->blobs, &caller, &body.digest, &body.data, true, on_blob_put,
             defer_reply(dispatch, exchange));
    message_clear(&blob_put_message, &body);
}

static void on_blobs_checked(void *owner, const struct digest *missing, size_t count)
{
    struct deferred_reply *deferred = owner;
    const struct blob_missing reply = {.digests = (struct digest *)(uintptr_t)missing,
                                       .digests_count = count};

    exchange_reply(deferred->exchange, &blob_missing_message, &reply);
    deferred_reply_free(deferred);
}

static void handle_blob_have(struct dispatch *dispatch, struct exchange *exchange,
                             const struct request *request)
{
    struct blob_have body;

    if (exchange_read_body(exchange, request, &blob_have_message, &body)) {
        const struct blob_caller caller = caller_of(exchange);

        blob_check(dispatch->parts->blobs, &caller, body.digests, body.digests_count,
                   on_blobs_checked, defer_reply(dispatch, exchange));
        message_clear(&blob_have_message, &body);
    }
}

// --- SUBMIT, WAIT

static void on_submitted(void *owner, const struct submission_end *end)
{
    struct deferred_reply *deferred = owner;
    struct submitted reply;

    if (end->error) {
        exchange_fail_busy(deferred->exchange, end->error, end->retry_after_ms);
    } else {
        message_init(&submitted_message, &reply);
        reply.job = end->job->id;
        reply.state = end->job->state;
        reply.duplicate = end->duplicate;
        reply.cached = end->job->cached;
        exchange_reply(deferred->exchange, &submitted_message, &reply);
    }
    deferred_reply_free(deferred);
}

static void handle_submit(struct dispatch *dispatch, struct exchange *exchange,
                          const struct request *request)
{
    struct submit body;

    if (exchange_read_body(exchange, request, &submit_message, &body)) {
        submission_start(dispatch->parts->submissions, exchange_caller(exchange)->tenant, &body,
                         on_submitted, defer_reply(dispatch, exchange));
    }
}

// Fills `jobs` with the jobs that a WAIT asks about. Returns false when one of them is finished or
// unknown, because the WAIT is then answered at once.
static bool all_unfinished(const struct job_table *table, const struct exchange *exchange,
                           const struct wait *body, struct job **jobs)
{
    for (size_t i = 0; i < body->jobs_count; i++) {
        jobs[i] = answer_find(table, exchange, body->jobs[i]);
        if (!jobs[i] || job_state_is_terminal(jobs[i]->state)) {
            return false;
        }
    }
    return true;
}

static void handle_wait(struct dispatch *dispatch, struct exchange *exchange,
                        const struct request *request)
{
    uint64_t remaining_ms = exchange_remaining_ms(exchange);
    struct wait body;

    if (!exchange_read_body(exchange, request, &wait_message, &body)) {
        return;
    }
    body.jobs_count = listing_unique(body.jobs, body.jobs_count);
    uint64_t wait_ms = body.max_ms < DISPATCH_WAIT_MAX_MS ? body.max_ms : DISPATCH_WAIT_MAX_MS;
    // A tenth of the time is left for the way of the reply.
    remaining_ms -= remaining_ms / 10;
    wait_ms = wait_ms < remaining_ms ? wait_ms : remaining_ms;
    struct job **jobs = xcalloc(body.jobs_count + 1, sizeof(struct job *));
    if (wait_ms == 0 || body.jobs_count == 0 ||
        !all_unfinished(dispatch->parts->jobs, exchange, &body, jobs) ||
        !waits_park(dispatch->parts->waits, exchange, body.jobs, body.jobs_count, jobs,
                    body.jobs_count, wait_ms)) {
        answer_waited(dispatch->parts->answers, exchange, body.jobs, body.jobs_count);
    }
    free(jobs);
    message_clear(&wait_message, &body);
}

// --- CANCEL, ACK

static void on_cancelled(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct deferred_reply *deferred = owner;
    (void)error;
    (void)answer;
    (void)count;
    list_reply_jobs(deferred->dispatch->lists, deferred->exchange, deferred->jobs,
                    deferred->job_count);
    deferred_reply_free(deferred);
}

// Returns the caller's search of this name, or NULL. An administrator reaches the searches of other
// tenants by the numbers of their jobs only.
static const struct search *own_search(const struct dispatch *dispatch,
                                       const struct exchange *exchange, const char *name)
{
    return name ? job_table_find_search(dispatch->parts->jobs, exchange_caller(exchange)->tenant,
                                        name)
                : NULL;
}

static void cancel_one(struct dispatch *dispatch, struct deferred_reply *deferred, struct job *job)
{
    deferred->jobs[deferred->job_count++] = job->id;
    if (!job->journalled) {
        job->cancel_requested = true;
    } else {
        lifecycle_cancel(dispatch->parts->lifecycle, job, JOB_CAUSE_CLIENT,
                         "cancelled by its client");
    }
}

static void handle_cancel(struct dispatch *dispatch, struct exchange *exchange,
                          const struct request *request)
{
    struct job_ids body;

    if (!exchange_read_body(exchange, request, &job_ids_message, &body)) {
        return;
    }
    const struct search *search = own_search(dispatch, exchange, body.search);
    if (body.search) {
        submissions_cancel(dispatch->parts->submissions, exchange_caller(exchange)->tenant,
                           body.search);
    }
    struct deferred_reply *deferred = defer_reply(dispatch, exchange);
    deferred->jobs =
        xcalloc(body.jobs_count + (search ? search->unfinished : 0) + 1, sizeof(*deferred->jobs));
    struct job *job;
    for (size_t i = 0; i < body.jobs_count; i++) {
        job = answer_find(dispatch->parts->jobs, exchange, body.jobs[i]);
        if (job) {
            cancel_one(dispatch, deferred, job);
        }
    }
    for (job = search ? search->jobs : NULL; job; job = job->by_key.next) {
        if (!job_state_is_terminal(job->state)) {
            cancel_one(dispatch, deferred, job);
        }
    }
    // The ledger answers in order: when the barrier comes back, all jobs have their final state.
    ledger_barrier(dispatch->parts->ledger, on_cancelled, deferred);
    message_clear(&job_ids_message, &body);
}

static void on_forgotten(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct deferred_reply *deferred = owner;

    (void)answer;
    (void)count;
    if (error) {
        exchange_fail(deferred->exchange, error);
    } else {
        reply_empty(deferred->exchange);
    }
    deferred_reply_free(deferred);
}

static void handle_ack(struct dispatch *dispatch, struct exchange *exchange,
                       const struct request *request)
{
    struct job_ids body;

    if (!exchange_read_body(exchange, request, &job_ids_message, &body)) {
        return;
    }
    struct job **finished = xcalloc(body.jobs_count + 1, sizeof(struct job *));
    size_t count = 0;
    for (size_t i = 0; i < body.jobs_count; i++) {
        struct job *job = answer_find(dispatch->parts->jobs, exchange, body.jobs[i]);

        // Unfinished jobs are skipped. `completing` marks jobs that are in the list already, in
        // case the caller names one twice.
        if (job && job_state_is_terminal(job->state) && !job->completing) {
            job->completing = true;
            finished[count++] = job;
        }
    }
    completions_forget(dispatch->parts->completions, finished, count, on_forgotten,
                       defer_reply(dispatch, exchange));
    free(finished);
    message_clear(&job_ids_message, &body);
}

// --- DRAIN, QUARANTINE, PROBE

static void handle_drain(struct dispatch *dispatch, struct exchange *exchange,
                         const struct request *request)
{
    struct drain body;

    if (exchange_read_body(exchange, request, &drain_message, &body)) {
        administration_drain(dispatch->parts->administration, exchange, &body);
        message_clear(&drain_message, &body);
    }
}

static void handle_quarantine(struct dispatch *dispatch, struct exchange *exchange,
                              const struct request *request)
{
    struct quarantine body;

    if (exchange_read_body(exchange, request, &quarantine_message, &body)) {
        administration_quarantine(dispatch->parts->administration, exchange, &body);
        message_clear(&quarantine_message, &body);
    }
}

static void handle_probe(struct dispatch *dispatch, struct exchange *exchange,
                         const struct request *request)
{
    struct probe_request body;

    if (exchange_read_body(exchange, request, &probe_request_message, &body)) {
        administration_probe(dispatch->parts->administration, exchange, &body);
        message_clear(&probe_request_message, &body);
    }
}

// --- BUDGET

static void handle_budget(struct dispatch *dispatch, struct exchange *exchange,
                          const struct request *request)
{
    budgets_request(dispatch->parts->budgets, exchange, request);
}

// --- STATUS

static void handle_status(struct dispatch *dispatch, struct exchange *exchange,
                          const struct request *request)
{
    struct status_request body;

    if (exchange_read_body(exchange, request, &status_request_message, &body)) {
        list_reply_status(dispatch->lists, exchange, &body);
        message_clear(&status_request_message, &body);
    }
}

// --- all operations

static void refuse(struct exchange *exchange, enum err_code code, const char *text,
                   uint64_t retry_after_ms)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, code, "%s", text);
    exchange_fail_busy(exchange, &err, retry_after_ms);
}

void dispatch_request(void *owner, struct exchange *exchange, const struct request *request)
{
    static void (*const handler[])(struct dispatch *, struct exchange *, const struct request *) = {
        [OP_HELLO] = handle_hello,         [OP_BLOB_PUT] = handle_blob_put,
        [OP_BLOB_HAVE] = handle_blob_have, [OP_SUBMIT] = handle_submit,
        [OP_WAIT] = handle_wait,           [OP_STATUS] = handle_status,
        [OP_CANCEL] = handle_cancel,       [OP_ACK] = handle_ack,
        [OP_DRAIN] = handle_drain,         [OP_QUARANTINE] = handle_quarantine,
        [OP_PROBE] = handle_probe,         [OP_BUDGET] = handle_budget,
    };
    struct dispatch *dispatch = owner;

    if (request->op < COUNTERS_OPS) {
        dispatch->parts->counters->request[request->op]++;
    }
    if (dispatch->stopping) {
        refuse(exchange, ERR_BUSY, "kcastd is stopping", STOPPING_RETRY_MS);
    } else if (dispatch->refusing_jobs && request->op == OP_SUBMIT) {
        refuse(exchange, ERR_BUSY, "kcastd ends when its devices are idle", STOPPING_RETRY_MS);
    } else if (request->op >= ARRAY_LEN(handler) || !handler[request->op]) {
        refuse(exchange, ERR_UNSUPPORTED, "kcastd does not know this operation", 0);
    } else {
        handler[request->op](dispatch, exchange, request);
    }
}

void dispatch_refusal(void *owner, const char *peer, const char *reason, uint64_t untold)
{
    (void)owner;
    log_event(LOG_WARNING, "connection-refused peer=%s reason=\"%s\" untold=%llu", peer, reason,
              (unsigned long long)untold);
}

struct dispatch *dispatch_create(const struct daemon_parts *parts)
{
    struct dispatch *dispatch = xcalloc(1, sizeof(*dispatch));

    dispatch->parts = parts;
    dispatch->lists = list_replies_create(parts);
    return dispatch;
}

void dispatch_refuse_jobs(struct dispatch *dispatch)
{
    dispatch->refusing_jobs = true;
}

void dispatch_stop(struct dispatch *dispatch)
{
    if (!dispatch->stopping) {
        dispatch->stopping = true;
        waits_flush(dispatch->parts->waits);
    }
}

size_t dispatch_pending(const struct dispatch *dispatch)
{
    return dispatch->pending + list_replies_pending(dispatch->lists) +
           administration_pending(dispatch->parts->administration) +
           answers_pending(dispatch->parts->answers) + budgets_pending(dispatch->parts->budgets);
}

void dispatch_free(struct dispatch *dispatch)
{
    if (dispatch) {
        list_replies_free(dispatch->lists);
        free(dispatch);
    }
}
