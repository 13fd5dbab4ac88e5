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
// Calls in flight outlive the pool: their struct call is cut loose by pool_close and freed by its
// callback.
#include "client/pool.h"

#include "common/clock.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

#define CALL_MS 5000       // deadline of a call that is answered at once
#define PUT_MS 30000       // of one that carries a blob
#define WAIT_MS 10000      // of a long poll
#define WAIT_SHORT_MS 200  // of the last one
#define WAITS_MAX 6        // long polls at a time
#define WAIT_JOBS_MAX 4096 // of one WAIT or ACK, see daemon.def
#define HAVE_MAX 1024      // digests of one HAVE
#define PUTS_MAX 4         // at a time
#define SUBMITS_MAX 16     // at a time
#define BACKOFF_MIN_MS 50
#define BACKOFF_MAX_MS 2000
#define NOTICE_MS 2000  // silence shorter than this is not worth a word
#define NEED_BLOB_MAX 8 // a daemon that asks for the same blobs more often is broken

enum blob_state { BLOB_UNKNOWN, BLOB_ASKED, BLOB_MISSING, BLOB_SENDING, BLOB_KNOWN };
enum phase { PHASE_NEW, PHASE_SUBMITTING, PHASE_OUT };

struct blob {
    struct digest digest; // key
    enum blob_state state;
    struct bytes data; // of pool_add_blob; NULL when a reader has it
    UT_hash_handle hh;
};

struct pool_job {
    struct pool_job *next, *prev; // in pool->job, in order of submission
    char *key;
    struct job_spec spec; // deep copy
    uint64_t priority;
    enum phase phase;
    uint64_t id;         // at the daemon; in phase OUT
    bool covered;        // by a WAIT in flight
    unsigned need_blobs; // how often SUBMIT asked for blobs
    pool_callback *callback;
    void *owner;
    uint64_t tag;
};

// A call in flight, and what it is about.
struct call {
    struct call *next, *prev; // in pool->call
    struct pool *pool;        // NULL once the pool is closed
    enum op op;
    struct pool_job *job;  // SUBMIT
    struct digest *digest; // HAVE and PUT
    size_t digest_count;
    uint64_t *id; // WAIT and ACK
    size_t id_count;
};

struct pool {
    struct session *session;
    struct remote *remote;
    char *search;
    struct blob *blob;    // uthash
    struct pool_job *job; // utlist
    size_t job_count;
    struct call *call;
    size_t calls[64]; // in flight, by op
    uint64_t *ack;    // waiting to be sent
    size_t ack_count;
    uv_timer_t *timer;      // freed by its close callback
    uint64_t trouble_since; // monotonic ns of the first failure in a row; 0: none
    uint64_t backoff_ms;    // 0: no backoff is running
    bool noticed;           // said that the daemon does not answer
    struct err error;       // given up
    int (*read)(void *owner, const struct digest *digest, struct bytes *ret, struct err *err);
    void *read_owner;
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
};

static remote_callback on_answer;
static void advance(struct pool *pool);

static void say(void *owner, const char *sentence)
{
    (void)owner;
    fprintf(stderr, "kcast: %s\n", sentence);
}

// ---- blobs ----

static struct blob *find_blob(struct pool *pool, const struct digest *digest)
{
    struct blob *blob;
    HASH_FIND(hh, pool->blob, digest->byte, DIGEST_LEN, blob);
    if (blob == NULL) {
        blob = xcalloc(1, sizeof(*blob));
        blob->digest = *digest;
        HASH_ADD(hh, pool->blob, digest.byte, DIGEST_LEN, blob);
    }
    return blob;
}

// The blobs that a spec names, without absent ones.
static size_t spec_digests(const struct job_spec *spec, struct digest out[static 4])
{
    const struct digest all[] = {spec->problem, spec->reference, spec->baseline, spec->candidate};
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (!digest_is_zero(&all[i])) {
            out[count++] = all[i];
        }
    }
    return count;
}

static bool blobs_known(struct pool *pool, const struct job_spec *spec)
{
    struct digest digest[4];
    size_t count = spec_digests(spec, digest);
    for (size_t i = 0; i < count; i++) {
        if (find_blob(pool, &digest[i])->state != BLOB_KNOWN) {
            return false;
        }
    }
    return true;
}

// The daemon turned out not to have them, or may have forgotten them.
static void forget_blobs(struct pool *pool, const struct job_spec *spec)
{
    struct digest digest[4];
    size_t count = spec_digests(spec, digest);
    for (size_t i = 0; i < count; i++) {
        struct blob *blob = find_blob(pool, &digest[i]);
        if (blob->state == BLOB_KNOWN) {
            blob->state = BLOB_UNKNOWN;
        }
    }
}

void pool_add_blob(struct pool *pool, const void *data, size_t len, struct digest *ret)
{
    struct digest digest = digest_of(data, len);
    struct blob *blob = find_blob(pool, &digest);
    if (blob->data.data == NULL) {
        blob->data = bytes_copy(data, len);
    }
    if (ret != NULL) {
        *ret = digest;
    }
}

void pool_add_problem(struct pool *pool, const struct problem_dir *dir)
{
    pool_add_blob(pool, dir->json.data, dir->json.len, NULL);
    pool_add_blob(pool, dir->reference.data, dir->reference.len, NULL);
    pool_add_blob(pool, dir->baseline.data, dir->baseline.len, NULL);
}

// ---- jobs ----

static void free_job(struct pool *pool, struct pool_job *job)
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

// Hands the outcome over; the job is gone before its owner hears of it, so that the owner may
// submit again.
static void finish_job(struct pool *pool, struct pool_job *job, struct job_info *info,
                       const struct err *error)
{
    pool_callback *callback = job->callback;
    void *owner = job->owner;
    uint64_t tag = job->tag;
    free_job(pool, job);
    callback(owner, tag, info, error);
}

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

// ---- trouble ----

static void on_timer(uv_timer_t *timer)
{
    struct pool *pool = timer->data;
    pool->backoff_ms = 0;
    uv_stop(timer->loop);
    advance(pool);
}

// Looks at everything soon.
static void kick(struct pool *pool)
{
    if (pool->backoff_ms == 0 && pool->error.code == ERR_NONE) {
        uv_timer_start(pool->timer, on_timer, 0, 0);
    }
}

static void give_up(struct pool *pool, const struct err *error)
{
    if (pool->error.code == ERR_NONE) {
        pool->error = *error;
    }
    uv_timer_stop(pool->timer);
}

// Nothing is started for a while. Longer and longer while it goes on, and in the end never again.
static void back_off(struct pool *pool, const struct err *error, uint64_t retry_after_ms)
{
    uint64_t now = clock_now_ns(&clock_system);
    char *sentence;
    if (error->code != ERR_BUSY) {
        if (pool->trouble_since == 0) {
            pool->trouble_since = now;
        }
        uint64_t silent_ms = (now - pool->trouble_since) / NS_PER_MS;
        if (silent_ms >= NOTICE_MS && !pool->noticed) {
            sentence = xasprintf("%s; waiting for it to come back", error->text);
            pool->noticed = true;
            pool->notice(pool->notice_owner, sentence);
            free(sentence);
        }
        if (silent_ms >= POOL_PATIENCE_MS) {
            give_up(pool, error);
            return;
        }
        retry_after_ms = silent_ms / 4;
    }
    if (pool->backoff_ms == 0) {
        uint64_t ms = retry_after_ms < BACKOFF_MIN_MS   ? BACKOFF_MIN_MS
                      : retry_after_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
                                                        : retry_after_ms;
        pool->backoff_ms = ms;
        uv_timer_start(pool->timer, on_timer, ms, 0);
    }
}

static void trouble_is_over(struct pool *pool)
{
    pool->trouble_since = 0;
    if (pool->noticed) {
        pool->noticed = false;
        pool->notice(pool->notice_owner, "the daemon answers again");
    }
}

// ---- starting calls ----

static struct call *new_call(struct pool *pool, enum op op)
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

static void ask_for_blobs(struct pool *pool)
{
    struct digest *digest = NULL;
    size_t count = 0;
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        struct digest named[4];
        size_t named_count = job->phase == PHASE_NEW ? spec_digests(&job->spec, named) : 0;
        for (size_t i = 0; i < named_count && count < HAVE_MAX; i++) {
            struct blob *blob = find_blob(pool, &named[i]);
            if (blob->state == BLOB_UNKNOWN) {
                blob->state = BLOB_ASKED;
                digest = xrealloc(digest, count + 1, sizeof(*digest));
                digest[count++] = named[i];
            }
        }
    }
    if (count > 0) {
        struct call *call = new_call(pool, OP_BLOB_HAVE);
        call->digest = digest;
        call->digest_count = count;
        struct blob_have have = {.digests = digest, .digests_count = count};
        remote_call(pool->remote, OP_BLOB_HAVE, &blob_have_message, &have, &blob_missing_message,
                    CALL_MS, on_answer, call);
    }
}

static void send_blobs(struct pool *pool)
{
    struct blob *blob, *next;
    HASH_ITER (hh, pool->blob, blob, next) {
        if (blob->state != BLOB_MISSING || pool->calls[OP_BLOB_PUT] >= PUTS_MAX) {
            continue;
        }
        struct bytes own = {0};
        struct err error = ERR_INIT;
        if (blob->data.data == NULL &&
            (pool->read == NULL ||
             pool->read(pool->read_owner, &blob->digest, &own, &error) != 0)) {
            err_set(&error, ERR_INTERNAL, "the daemon asks for bytes that nobody has");
            give_up(pool, &error);
            return;
        }
        struct blob_put put = {.digest = blob->digest,
                               .data = blob->data.data != NULL ? blob->data : own};
        struct call *call = new_call(pool, OP_BLOB_PUT);
        call->digest = xmemdup(&blob->digest, sizeof(blob->digest));
        call->digest_count = 1;
        blob->state = BLOB_SENDING;
        remote_call(pool->remote, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, PUT_MS,
                    on_answer, call);
        bytes_clear(&own);
    }
}

static void submit_jobs(struct pool *pool)
{
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        if (pool->calls[OP_SUBMIT] >= SUBMITS_MAX) {
            return;
        }
        if (job->phase == PHASE_NEW && blobs_known(pool, &job->spec)) {
            struct submit submit = {.search = pool->search,
                                    .key = job->key,
                                    .spec = &job->spec,
                                    .priority = job->priority};
            struct call *call = new_call(pool, OP_SUBMIT);
            call->job = job;
            job->phase = PHASE_SUBMITTING;
            remote_call(pool->remote, OP_SUBMIT, &submit_message, &submit, &submitted_message,
                        CALL_MS, on_answer, call);
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
        struct call *call = new_call(pool, OP_WAIT);
        call->id = id;
        call->id_count = count;
        bool last = pool->calls[OP_WAIT] == WAITS_MAX;
        struct wait wait = {
            .jobs = id, .jobs_count = count, .max_ms = last ? WAIT_SHORT_MS : WAIT_MS};
        remote_call(pool->remote, OP_WAIT, &wait_message, &wait, &waited_message,
                    wait.max_ms + CALL_MS, on_answer, call);
    }
}

static void send_acks(struct pool *pool)
{
    if (pool->ack_count == 0 || pool->calls[OP_ACK] > 0) {
        return;
    }
    struct call *call = new_call(pool, OP_ACK);
    struct job_ids ids = {.jobs = pool->ack, .jobs_count = pool->ack_count};
    remote_call(pool->remote, OP_ACK, &job_ids_message, &ids, &empty_message, CALL_MS, on_answer,
                call);
    free(pool->ack);
    pool->ack = NULL;
    pool->ack_count = 0;
}

static void advance(struct pool *pool)
{
    if (pool->backoff_ms != 0 || pool->error.code != ERR_NONE) {
        return;
    }
    ask_for_blobs(pool);
    send_blobs(pool);
    submit_jobs(pool);
    wait_for_jobs(pool);
    send_acks(pool);
}

// ---- answers ----

static void on_missing(struct pool *pool, const struct call *call, const struct blob_missing *reply)
{
    for (size_t i = 0; i < call->digest_count; i++) {
        find_blob(pool, &call->digest[i])->state = BLOB_KNOWN;
    }
    for (size_t i = 0; i < reply->digests_count; i++) {
        find_blob(pool, &reply->digests[i])->state = BLOB_MISSING;
    }
}

// A job without blobs goes back; one whose blobs are asked for again and again fails.
static void need_blobs(struct pool *pool, struct pool_job *job)
{
    struct err error = ERR_INIT;
    job->phase = PHASE_NEW;
    forget_blobs(pool, &job->spec);
    if (++job->need_blobs > NEED_BLOB_MAX) {
        err_set(&error, ERR_PROTOCOL,
                "the daemon keeps asking for blobs of job \"%s\" that it was sent", job->key);
        finish_job(pool, job, NULL, &error);
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
    job->covered = false;
}

static void on_waited(struct pool *pool, const struct call *call, struct waited *reply)
{
    uncover(pool, call->id, call->id_count);
    for (size_t i = 0; i < reply->unknown_count; i++) {
        struct pool_job *job = find_job(pool, reply->unknown[i]);
        if (job != NULL) {
            job->phase = PHASE_NEW;
            forget_blobs(pool, &job->spec);
        }
    }
    for (size_t i = 0; i < reply->jobs_count; i++) {
        struct pool_job *job = find_job(pool, reply->jobs[i].job);
        if (job != NULL && job_state_is_terminal(reply->jobs[i].state)) {
            finish_job(pool, job, &reply->jobs[i], NULL);
        }
    }
}

// What a call that failed was about goes back by one state.
static void put_back(struct pool *pool, const struct call *call)
{
    for (size_t i = 0; i < call->digest_count; i++) {
        find_blob(pool, &call->digest[i])->state =
            call->op == OP_BLOB_PUT ? BLOB_MISSING : BLOB_UNKNOWN;
    }
    if (call->job != NULL) {
        call->job->phase = PHASE_NEW;
    }
    if (call->op == OP_WAIT) {
        uncover(pool, call->id, call->id_count);
    }
}

static void on_failure(struct pool *pool, const struct call *call, const struct err *error,
                       uint64_t retry_after_ms)
{
    bool transient =
        error->code == ERR_UNREACHABLE || error->code == ERR_TIMED_OUT || error->code == ERR_BUSY;
    if (call->op == OP_ACK || error->code == ERR_STOPPED) {
        return;
    }
    put_back(pool, call);
    if (transient) {
        back_off(pool, error, retry_after_ms);
    } else if (call->op == OP_SUBMIT && error->code == ERR_NEED_BLOB && call->job != NULL) {
        need_blobs(pool, call->job);
    } else if (call->op == OP_SUBMIT && call->job != NULL) {
        finish_job(pool, call->job, NULL, error);
    } else {
        give_up(pool, error);
    }
}

static void on_answer(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct call *call = owner;
    struct pool *pool = call->pool;
    if (pool == NULL) {
        free_call(call);
        return;
    }
    // Counted down first: what the answer sets free may be used by advance().
    if (error != NULL) {
        on_failure(pool, call, error, retry_after_ms);
    } else {
        trouble_is_over(pool);
        switch (call->op) {
        case OP_BLOB_HAVE:
            on_missing(pool, call, reply);
            break;
        case OP_BLOB_PUT:
            find_blob(pool, &call->digest[0])->state = BLOB_KNOWN;
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
    kick(pool);
}

// ---- interface ----

int pool_create(struct pool **ret, struct session *session, const char *search, struct err *err)
{
    struct remote *remote;
    int code = session_pool(session, &remote, err);
    if (code != 0) {
        return code;
    }
    struct pool *pool = xcalloc(1, sizeof(*pool));
    pool->session = session;
    pool->remote = remote;
    pool->search = xstrdup(search);
    pool->notice = say;
    pool->timer = xcalloc(1, sizeof(*pool->timer));
    uv_timer_init(session_loop(session), pool->timer);
    pool->timer->data = pool;
    *ret = pool;
    return 0;
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
        free_job(pool, pool->job);
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

void pool_set_notice(struct pool *pool, void (*notice)(void *owner, const char *sentence),
                     void *owner)
{
    pool->notice = notice;
    pool->notice_owner = owner;
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
    kick(pool);
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
        kick(pool);
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
        free_job(pool, pool->job);
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
