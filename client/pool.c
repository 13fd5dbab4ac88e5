// Jobs at the daemon.
//
// Actors: blobs (UNKNOWN → ASKED → KNOWN, or → MISSING → SENDING → KNOWN) and jobs (NEW →
// SUBMITTING → OUT → gone). advance() looks at all of them and starts the calls that are possible
// now; it runs from a timer of zero length, so that several pool_submit in a row become one HAVE
// and one WAIT, and after every answer.
//
// A call that finds nobody puts what it was about back by one state, and nothing is started until
// the backoff timer fires. A daemon that comes back with its ledger knows the jobs; one that does
// not names them in `unknown`, and they are submitted again by the same keys. So the only thing
// that a restart costs is time.
//
// WAITs: a new job cannot be added to a poll that is under way, so it gets one of its own, which,
// when it returns, is replaced by one that covers everything uncovered. The last of WAITS_MAX is a
// short one, so that no job stays uncovered for long.
//
// A job that is not wanted any more goes the same way until its number is known, but without its
// blobs, and is then cancelled; the WAIT that covers it tells its end.
//
// Calls in flight outlive the pool: their struct call is cut loose by pool_close and freed by its
// callback.
#include "client/pool.h"

#include "client/pool_state.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 2000
#define BUSY_MAX_MS 60000 // a full daemon says itself when to come again
#define NOTICE_MS 2000 // silence shorter than this is not worth a word

static void say(void *owner, const char *sentence)
{
    (void)owner;
    fprintf(stderr, "kcast: %s\n", sentence);
}

// ---- jobs ----

void pool_free_job(struct pool *pool, struct pool_job *job)
{
    DL_DELETE(pool->job, job);
    pool->job_count--;
    struct call *call;
    DL_FOREACH (pool->call, call) {
        if (call->job == job) {
            call->job = NULL;
        }
    }
    message_clear(&job_spec_message, &job->spec);
    free(job->key);
    free(job);
}

void pool_finish_job(struct pool *pool, struct pool_job *job, struct job_info *info,
                     const struct err *error)
{
    pool_callback *callback = job->callback;
    void *owner = job->owner;
    uint64_t tag = job->tag;
    pool_free_job(pool, job);
    callback(owner, tag, info, error);
}

void pool_forget_job(struct pool *pool, struct pool_job *job)
{
    struct err error = ERR_INIT;
    err_set(&error, ERR_STOPPED, "job \"%s\" is not wanted any more", job->key);
    pool_finish_job(pool, job, NULL, &error);
}

// ---- trouble ----

static void on_timer(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    pool->backoff_ms = 0;
    uv_stop(timer->loop);
    pool_advance(pool);
}

void pool_kick(struct pool *pool)
{
    if (pool->backoff_ms == 0 && pool->error.code == ERR_NONE) {
        uv_timer_start(pool->timer, on_timer, 0, 0);
    }
}

void pool_give_up(struct pool *pool, const struct err *error)
{
    if (pool->error.code == ERR_NONE) {
        pool->error = *error;
    }
    uv_timer_stop(pool->timer);
}

static void on_notice_due(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    if (pool->error.code == ERR_NONE) {
        char *sentence = xasprintf("%s; waiting for it to come back", pool->trouble.text);
        pool->noticed = true;
        pool->notice(pool->notice_owner, sentence);
        free(sentence);
    }
}

void pool_back_off(struct pool *pool, const struct err *error, uint64_t retry_after_ms)
{
    uint64_t now = clock_now_ns(&clock_system);
    if (error->code == ERR_BUSY) {
        pool_trouble_is_over(pool);
    } else {
        pool->trouble = *error;
        if (pool->trouble_since == 0) {
            pool->trouble_since = now;
            uv_timer_start(pool->notice_due, on_notice_due, NOTICE_MS, 0);
        }
        uint64_t silent_ms = (now - pool->trouble_since) / NS_PER_MS;
        if (silent_ms >= pool->patience_ms) {
            pool_give_up(pool, error);
            return;
        }
        retry_after_ms = silent_ms / 4;
    }
    if (pool->backoff_ms == 0) {
        uint64_t max_ms = error->code == ERR_BUSY ? BUSY_MAX_MS : BACKOFF_MAX_MS;
        uint64_t ms = retry_after_ms < BACKOFF_MIN_MS ? BACKOFF_MIN_MS
                      : retry_after_ms > max_ms       ? max_ms
                                                      : retry_after_ms;
        pool->backoff_ms = ms;
        uv_timer_start(pool->timer, on_timer, ms, 0);
    }
}

void pool_trouble_is_over(struct pool *pool)
{
    pool->trouble_since = 0;
    uv_timer_stop(pool->notice_due);
    if (pool->noticed) {
        pool->noticed = false;
        pool->notice(pool->notice_owner, "the daemon answers again");
    }
}

// ---- interface ----

int pool_create(struct pool **ret, struct session *session, const char *search, struct err *err)
{
    struct remote *remote;
    int code = session_pool(session, &remote, err);
    if (code == 0) {
        *ret = pool_create_over(session, remote, search);
    }
    return code;
}

static uv_timer_t *new_timer(struct pool *pool)
{
    uv_timer_t *timer = xcalloc(1, sizeof(*timer));
    uv_timer_init(session_loop(pool->session), timer);
    timer->data = pool;
    return timer;
}

struct pool *pool_create_over(struct session *session, struct remote *remote, const char *search)
{
    struct pool *pool = xcalloc(1, sizeof(*pool));
    pool->session = session;
    pool->remote = remote;
    pool->search = xstrdup(search);
    pool->notice = say;
    pool->patience_ms = POOL_PATIENCE_MS;
    pool->terms = (struct pool_terms){.weight = NAN, .budget_seconds = NAN};
    pool->timer = new_timer(pool);
    pool->notice_due = new_timer(pool);
    return pool;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

// Acknowledgements are worth a moment, but only of a daemon that answers.
static void flush_acks(struct pool *pool)
{
    struct empty nothing;
    struct job_ids ids = {.jobs = pool->ack, .jobs_count = pool->ack_count};
    while (pool->calls[OP_ACK] > 0 && pool->trouble_since == 0) {
        uv_run(session_loop(pool->session), UV_RUN_ONCE);
    }
    if (pool->ack_count > 0 && pool->trouble_since == 0 && pool->error.code == ERR_NONE &&
        remote_call_sync(pool->remote, OP_ACK, &job_ids_message, &ids, &empty_message, &nothing,
                         1000, NULL) == 0) {
        message_clear(&empty_message, &nothing);
    }
}

void pool_close(struct pool *pool)
{
    if (pool == NULL) {
        return;
    }
    while (pool->job != NULL) {
        pool_free_job(pool, pool->job);
    }
    flush_acks(pool);
    struct call *call, *next_call;
    DL_FOREACH_SAFE (pool->call, call, next_call) {
        DL_DELETE(pool->call, call);
        call->pool = NULL;
    }
    struct blob *blob, *next;
    HASH_ITER (hh, pool->blob, blob, next) {
        HASH_DEL(pool->blob, blob);
        bytes_clear(&blob->data);
        free(blob);
    }
    uv_close((uv_handle_t *)pool->timer, on_timer_closed);
    uv_close((uv_handle_t *)pool->notice_due, on_timer_closed);
    free(pool->ack);
    free(pool->search);
    free(pool);
}

void pool_set_blob_reader(struct pool *pool,
                          int (*read)(void *owner, const struct digest *digest, struct bytes *ret,
                                      struct err *err),
                          void *owner)
{
    pool->read = read;
    pool->read_owner = owner;
}

void pool_set_terms(struct pool *pool, const struct pool_terms *terms)
{
    pool->terms = *terms;
}

void pool_set_notice(struct pool *pool, void (*notice)(void *owner, const char *sentence),
                     void *owner)
{
    pool->notice = notice;
    pool->notice_owner = owner;
}

void pool_set_patience(struct pool *pool, uint64_t patience_ms)
{
    pool->patience_ms = patience_ms;
}

void pool_submit(struct pool *pool, const char *key, const struct job_spec *spec, uint64_t priority,
                 pool_callback *callback, void *owner, uint64_t tag)
{
    struct pool_job *job = xcalloc(1, sizeof(*job));
    job->key = xstrdup(key);
    message_copy(&job_spec_message, &job->spec, spec);
    job->priority = priority;
    job->callback = callback;
    job->owner = owner;
    job->tag = tag;
    DL_APPEND(pool->job, job);
    pool->job_count++;
    pool_kick(pool);
}

static struct pool_job *find_by_key(const struct pool *pool, const char *key)
{
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        if (strcmp(job->key, key) == 0) {
            return job;
        }
    }
    return NULL;
}

void pool_abandon(struct pool *pool, const char *key)
{
    struct pool_job *job = find_by_key(pool, key);
    if (job != NULL && !job->tried) {
        pool_forget_job(pool, job);
    } else if (job != NULL) {
        job->unwanted = true;
        pool_kick(pool);
    }
}

uint64_t pool_job_number(const struct pool *pool, const char *key)
{
    const struct pool_job *job = find_by_key(pool, key);
    return job != NULL && job->phase == PHASE_OUT ? job->id : 0;
}

size_t pool_outstanding(const struct pool *pool)
{
    return pool->job_count;
}

void pool_ack(struct pool *pool, uint64_t job)
{
    if (pool->ack_count < WAIT_JOBS_MAX) {
        pool->ack = xrealloc(pool->ack, pool->ack_count + 1, sizeof(*pool->ack));
        pool->ack[pool->ack_count++] = job;
        pool_kick(pool);
    }
}

void pool_cancel_all(struct pool *pool)
{
    uint64_t *id = xcalloc(pool->job_count + 1, sizeof(*id));
    struct job_ids ids = {.jobs = id};
    struct job_infos infos;
    while (pool->job != NULL) {
        if (pool->job->phase == PHASE_OUT && ids.jobs_count < WAIT_JOBS_MAX) {
            id[ids.jobs_count++] = pool->job->id;
        }
        pool_free_job(pool, pool->job);
    }
    if (ids.jobs_count > 0 && pool->trouble_since == 0 &&
        remote_call_sync(pool->remote, OP_CANCEL, &job_ids_message, &ids, &job_infos_message,
                         &infos, 2000, NULL) == 0) {
        message_clear(&job_infos_message, &infos);
    }
    free(id);
}

const struct err *pool_error(const struct pool *pool)
{
    return pool->error.code == ERR_NONE ? NULL : &pool->error;
}

int pool_run_once(struct pool *pool, struct err *err)
{
    uv_run(session_loop(pool->session), UV_RUN_ONCE);
    if (session_interrupted(pool->session)) {
        return err_set(err, ERR_STOPPED, "interrupted");
    }
    return pool->error.code == ERR_NONE ? 0
                                        : err_set(err, pool->error.code, "%s", pool->error.text);
}

int pool_drain(struct pool *pool, struct err *err)
{
    int code = 0;
    while (code == 0 && pool->job_count > 0) {
        code = pool_run_once(pool, err);
    }
    return code;
}
