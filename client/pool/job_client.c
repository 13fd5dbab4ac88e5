// Jobs at one daemon.
//
// Blobs are UNKNOWN → ASKED → KNOWN, or → MISSING → SENDING → KNOWN. Jobs are NEW → SUBMITTING →
// SUBMITTED → gone. job_client_advance() looks at all of them and starts the calls that are
// possible now. It runs from a zero-length timer, so that several job_client_submit in a row become
// one BLOB_HAVE and one WAIT, and after every answer.
//
// A call that reaches nobody puts what it was about back by one state, and nothing is started until
// the back-off timer fires. A daemon that comes back with its ledger knows the jobs. One that does
// not names them in `unknown`, and they are submitted again by the same keys. A restart of the
// daemon thus costs only time.
//
// A new job cannot be added to a long poll that is under way, so it gets a WAIT of its own. When
// that returns, it is replaced by one that covers every job without a WAIT. The last of WAITS_MAX
// polls is a short one, so that no job stays without a WAIT for long.
//
// An abandoned job goes the same way until its number is known, but without its blobs, and is then
// cancelled. The WAIT that includes it reports its end.
//
// Calls under way outlive the client: job_client_close detaches their struct call, and the callback
// frees it.
#include "client/pool/job_client.h"

#include "client/pool/job_client_state.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 2000
#define BUSY_MAX_MS 60000 // longest wait that a full daemon may ask for
#define NOTICE_MS 2000    // shorter outages are not reported

static void say(void *owner, const char *sentence)
{
    (void)owner;
    printable_printf(stderr, "kcast: %s\n", sentence);
}

// ---- jobs ----

void job_client_free_job(struct job_client *job_client, struct job_client_job *job)
{
    DL_DELETE(job_client->job, job);
    job_client->job_count--;
    struct call *call;
    DL_FOREACH (job_client->call, call) {
        if (call->job == job) {
            call->job = NULL;
        }
    }
    message_clear(&job_spec_message, &job->spec);
    free(job->key);
    free(job);
}

void job_client_finish_job(struct job_client *job_client, struct job_client_job *job,
                           struct job_info *info, const struct err *error)
{
    job_client_callback *callback = job->callback;
    void *owner = job->owner;
    uint64_t tag = job->tag;
    job_client_free_job(job_client, job);
    callback(owner, tag, info, error);
}

void job_client_forget_job(struct job_client *job_client, struct job_client_job *job)
{
    struct err error = ERR_INIT;
    err_set(&error, ERR_STOPPED, "job \"%s\" is not wanted any more", job->key);
    job_client_finish_job(job_client, job, NULL, &error);
}

// ---- outages ----

static void on_timer(uv_timer_t *timer)
{
    struct job_client *job_client = timer->data;
    job_client->backoff_ms = 0;
    uv_stop(timer->loop);
    job_client_advance(job_client);
}

void job_client_schedule(struct job_client *job_client)
{
    if (job_client->backoff_ms == 0 && job_client->error.code == ERR_NONE) {
        uv_timer_start(job_client->timer, on_timer, 0, 0);
    }
}

void job_client_give_up(struct job_client *job_client, const struct err *error)
{
    if (job_client->error.code == ERR_NONE) {
        job_client->error = *error;
    }
    uv_timer_stop(job_client->timer);
}

static void on_notice_due(uv_timer_t *timer)
{
    struct job_client *job_client = timer->data;
    if (job_client->error.code == ERR_NONE) {
        char *sentence = xasprintf("%s; waiting for it to come back", job_client->outage.text);
        job_client->outage_reported = true;
        job_client->notice(job_client->notice_owner, sentence);
        free(sentence);
    }
}

void job_client_back_off(struct job_client *job_client, const struct err *error,
                         uint64_t retry_after_ms)
{
    uint64_t now = clock_now_ns(&clock_system);
    if (error->code == ERR_BUSY) {
        job_client_outage_is_over(job_client);
    } else {
        job_client->outage = *error;
        if (job_client->outage_since_ns == 0) {
            job_client->outage_since_ns = now;
            uv_timer_start(job_client->notice_timer, on_notice_due, NOTICE_MS, 0);
        }
        uint64_t outage_ms = (now - job_client->outage_since_ns) / NS_PER_MS;
        if (outage_ms >= job_client->patience_ms) {
            job_client_give_up(job_client, error);
            return;
        }
        retry_after_ms = outage_ms / 4;
    }
    if (job_client->backoff_ms == 0) {
        uint64_t max_ms = error->code == ERR_BUSY ? BUSY_MAX_MS : BACKOFF_MAX_MS;
        uint64_t ms = retry_after_ms < BACKOFF_MIN_MS ? BACKOFF_MIN_MS
                      : retry_after_ms > max_ms       ? max_ms
                                                      : retry_after_ms;
        job_client->backoff_ms = ms;
        uv_timer_start(job_client->timer, on_timer, ms, 0);
    }
}

void job_client_outage_is_over(struct job_client *job_client)
{
    job_client->outage_since_ns = 0;
    uv_timer_stop(job_client->notice_timer);
    if (job_client->outage_reported) {
        job_client->outage_reported = false;
        job_client->notice(job_client->notice_owner, "the daemon answers again");
    }
}

// ---- interface ----

static uv_timer_t *new_timer(struct job_client *job_client)
{
    uv_timer_t *timer = xcalloc(1, sizeof(*timer));
    uv_timer_init(session_loop(job_client->session), timer);
    timer->data = job_client;
    return timer;
}

struct job_client *job_client_create(struct session *session, struct remote *remote,
                                     const char *search)
{
    struct job_client *job_client = xcalloc(1, sizeof(*job_client));
    job_client->session = session;
    job_client->remote = remote;
    job_client->search = xstrdup(search);
    job_client->notice = say;
    job_client->patience_ms = JOB_CLIENT_PATIENCE_MS;
    job_client->terms = (struct job_client_terms){.weight = NAN, .budget_seconds = NAN};
    job_client->timer = new_timer(job_client);
    job_client->notice_timer = new_timer(job_client);
    return job_client;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

// Sends queued acknowledgements, which are worth waiting a moment for if the daemon answers.
static void flush_acks(struct job_client *job_client)
{
    struct job_ids ids = {.jobs = job_client->ack, .jobs_count = job_client->ack_count};
    while (job_client->calls[OP_ACK] > 0 && job_client->outage_since_ns == 0) {
        uv_run(session_loop(job_client->session), UV_RUN_ONCE);
    }
    struct empty nothing;
    if (job_client->ack_count > 0 && job_client->outage_since_ns == 0 &&
        job_client->error.code == ERR_NONE &&
        remote_call_sync(job_client->remote, OP_ACK, &job_ids_message, &ids, &empty_message,
                         &nothing, 1000, NULL) == 0) {
        message_clear(&empty_message, &nothing);
    }
}

void job_client_close(struct job_client *job_client)
{
    if (!job_client) {
        return;
    }
    while (job_client->job) {
        job_client_free_job(job_client, job_client->job);
    }
    flush_acks(job_client);
    struct call *call, *next_call;
    DL_FOREACH_SAFE (job_client->call, call, next_call) {
        DL_DELETE(job_client->call, call);
        call->job_client = NULL;
    }
    struct blob *blob, *next;
    HASH_ITER (hh, job_client->blob, blob, next) {
        HASH_DEL(job_client->blob, blob);
        bytes_clear(&blob->data);
        free(blob);
    }
    uv_close((uv_handle_t *)job_client->timer, on_timer_closed);
    uv_close((uv_handle_t *)job_client->notice_timer, on_timer_closed);
    free(job_client->ack);
    free(job_client->search);
    free(job_client);
}

void job_client_set_blob_reader(struct job_client *job_client,
                                int (*read)(void *owner, const struct digest *digest,
                                            struct bytes *ret, struct err *err),
                                void *owner)
{
    job_client->read = read;
    job_client->read_owner = owner;
}

void job_client_set_terms(struct job_client *job_client, const struct job_client_terms *terms)
{
    job_client->terms = *terms;
}

void job_client_set_notice(struct job_client *job_client,
                           void (*notice)(void *owner, const char *sentence), void *owner)
{
    job_client->notice = notice;
    job_client->notice_owner = owner;
}

void job_client_set_patience(struct job_client *job_client, uint64_t patience_ms)
{
    job_client->patience_ms = patience_ms;
}

struct job_client_job *job_client_submit(struct job_client *job_client, const char *key,
                                         const struct job_spec *spec, uint64_t priority,
                                         job_client_callback *callback, void *owner, uint64_t tag)
{
    struct job_client_job *job = xcalloc(1, sizeof(*job));
    job->key = xstrdup(key);
    message_copy(&job_spec_message, &job->spec, spec);
    job->priority = priority;
    job->callback = callback;
    job->owner = owner;
    job->tag = tag;
    DL_APPEND(job_client->job, job);
    job_client->job_count++;
    job_client_schedule(job_client);
    return job;
}

void job_client_abandon(struct job_client *job_client, struct job_client_job *job)
{
    if (!job->tried) {
        job_client_forget_job(job_client, job);
    } else {
        job->unwanted = true;
        job_client_schedule(job_client);
    }
}

uint64_t job_client_job_number(const struct job_client_job *job)
{
    return job->phase == PHASE_SUBMITTED ? job->id : 0;
}

void job_client_ack(struct job_client *job_client, uint64_t job)
{
    if (job_client->ack_count < WAIT_JOBS_MAX) {
        job_client->ack =
            xrealloc(job_client->ack, job_client->ack_count + 1, sizeof(*job_client->ack));
        job_client->ack[job_client->ack_count++] = job;
        job_client_schedule(job_client);
    }
}

void job_client_cancel_all(struct job_client *job_client)
{
    uint64_t *id = xcalloc(job_client->job_count + 1, sizeof(*id));
    struct job_ids ids = {.jobs = id};
    while (job_client->job) {
        if (job_client->job->phase == PHASE_SUBMITTED && ids.jobs_count < WAIT_JOBS_MAX) {
            id[ids.jobs_count++] = job_client->job->id;
        }
        job_client_free_job(job_client, job_client->job);
    }
    struct job_infos infos;
    if (ids.jobs_count > 0 && job_client->outage_since_ns == 0 &&
        remote_call_sync(job_client->remote, OP_CANCEL, &job_ids_message, &ids, &job_infos_message,
                         &infos, 2000, NULL) == 0) {
        message_clear(&job_infos_message, &infos);
    }
    free(id);
}

const struct err *job_client_error(const struct job_client *job_client)
{
    return job_client->error.code == ERR_NONE ? NULL : &job_client->error;
}

int job_client_run_once(struct job_client *job_client, struct err *err)
{
    uv_run(session_loop(job_client->session), UV_RUN_ONCE);
    if (session_interrupted(job_client->session)) {
        return err_set(err, ERR_STOPPED, "interrupted");
    }
    return job_client->error.code == ERR_NONE
               ? 0
               : err_set(err, job_client->error.code, "%s", job_client->error.text);
}

int job_client_drain(struct job_client *job_client, struct err *err)
{
    int rc = 0;
    while (rc == 0 && job_client->job_count > 0) {
        rc = job_client_run_once(job_client, err);
    }
    return rc;
}
