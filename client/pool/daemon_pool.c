// The interface of a daemon pool: creation, device class, blobs, and calls passed on to its parts.
#include "client/pool/daemon_pool.h"

#include "client/pool/daemon_pool_state.h"
#include "client/pool/device_choice.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/version.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define POLL_MS 2000 // defaults of struct daemon_pool_times
#define AWAY_MS 15000
#define LOOK_UP_MS 5000
#define STATUS_MS 10000 // deadline of STATUS to a single daemon

// ---- sentences ----

static void say(void *owner, const char *sentence)
{
    const struct daemon_pool *daemon_pool = owner;
    if (!session_options(daemon_pool->session)->quiet) {
        printable_printf(stderr, "kcast: %s\n", sentence);
    }
}

void daemon_pool_say(struct daemon_pool *daemon_pool, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char sentence[2000];
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    daemon_pool->notice(daemon_pool->notice_owner, sentence);
}

// ---- blobs, kept once for all members ----

static struct daemon_pool_blob *find_blob(const struct daemon_pool *daemon_pool,
                                          const struct digest *digest)
{
    struct daemon_pool_blob *blob;
    HASH_FIND(hh, daemon_pool->blob, digest->byte, DIGEST_LEN, blob);
    return blob;
}

int daemon_pool_read_blob(void *owner, const struct digest *digest, struct bytes *ret,
                          struct err *err)
{
    const struct daemon_pool *daemon_pool = owner;
    const struct daemon_pool_blob *blob = find_blob(daemon_pool, digest);
    if (blob) {
        *ret = bytes_copy(blob->data.data, blob->data.len);
        return 0;
    }
    return daemon_pool->read
               ? daemon_pool->read(daemon_pool->read_owner, digest, ret, err)
               : err_set(err, ERR_PROTOCOL, "a daemon asks for bytes that nobody has");
}

void daemon_pool_add_blob(struct daemon_pool *daemon_pool, const void *data, size_t len,
                          struct digest *ret)
{
    struct digest digest = digest_of(data, len);
    if (!find_blob(daemon_pool, &digest)) {
        struct daemon_pool_blob *blob = xcalloc(1, sizeof(*blob));
        blob->digest = digest;
        blob->data = bytes_copy(data, len);
        HASH_ADD(hh, daemon_pool->blob, digest.byte, DIGEST_LEN, blob);
    }
    if (ret) {
        *ret = digest;
    }
}

void daemon_pool_set_blob_reader(struct daemon_pool *daemon_pool,
                                 int (*read)(void *owner, const struct digest *digest,
                                             struct bytes *ret, struct err *err),
                                 void *owner)
{
    daemon_pool->read = read;
    daemon_pool->read_owner = owner;
}

void daemon_pool_set_notice(struct daemon_pool *daemon_pool,
                            void (*notice)(void *owner, const char *sentence), void *owner)
{
    daemon_pool->notice = notice ? notice : say;
    daemon_pool->notice_owner = notice ? owner : daemon_pool;
    if (!daemon_pool->several) {
        job_client_set_notice(daemon_pool->member[0]->client, daemon_pool->notice,
                              daemon_pool->notice_owner);
    }
}

void daemon_pool_set_terms(struct daemon_pool *daemon_pool, const struct job_client_terms *terms)
{
    daemon_pool->terms = *terms;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        if (daemon_pool->member[i]->client) {
            job_client_set_terms(daemon_pool->member[i]->client, terms);
        }
    }
}

// ---- the operations of struct job_service ----

static struct daemon_pool *daemon_pool_of(const struct job_service *service)
{
    return (struct daemon_pool *)((uintptr_t)service - offsetof(struct daemon_pool, jobs));
}

static void submit(struct job_service *service, const char *key, const struct job_spec *spec,
                   uint64_t priority, job_service_callback *callback, void *owner, uint64_t tag)
{
    struct daemon_pool *daemon_pool = daemon_pool_of(service);
    struct daemon_pool_job *job = xcalloc(1, sizeof(*job));
    job->key = xstrdup(key);
    message_copy(&job_spec_message, &job->spec, spec);
    job->priority = priority;
    job->callback = callback;
    job->owner = owner;
    job->tag = tag;
    DL_APPEND(daemon_pool->job, job);
    daemon_pool->job_count++;
    daemon_pool_assign(daemon_pool, job);
}

static void cancel(struct job_service *service, const char *key)
{
    struct daemon_pool *daemon_pool = daemon_pool_of(service);
    struct daemon_pool_job *job;
    DL_FOREACH (daemon_pool->job, job) {
        if (strcmp(job->key, key) == 0) {
            daemon_pool_drop(daemon_pool, job);
            return;
        }
    }
}

static void ack(struct job_service *service, struct job_ref ref)
{
    job_client_ack(daemon_pool_of(service)->member[ref.member]->client, ref.job);
}

static const char *where(const struct job_service *service, struct job_ref ref)
{
    const struct daemon_pool *daemon_pool = daemon_pool_of(service);
    return daemon_pool->several ? daemon_pool->member[ref.member]->url : NULL;
}

// ---- beginning and end ----

static int connect_one(struct daemon_pool *daemon_pool, struct err *err)
{
    struct remote *remote;
    int rc = session_daemon(daemon_pool->session, &remote, err);
    if (rc == 0) {
        struct member *member = daemon_pool_add_member(daemon_pool, remote_url(remote), remote);
        member->state = MEMBER_ACTIVE;
        member->devices = 1;
    }
    return rc;
}

// The error when no daemon can be used. What is wrong on this side comes before what may be wrong
// elsewhere.
static int no_daemon(const struct daemon_pool *daemon_pool, struct err *err)
{
    const struct err *why = &daemon_pool->look_up;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        why = daemon_pool->member[i]->why.code != ERR_NONE ? &daemon_pool->member[i]->why : why;
    }
    why = daemon_pool->unusable.code != ERR_NONE ? &daemon_pool->unusable : why;
    return why->code != ERR_NONE ? err_set(err, why->code, "%s", why->text)
                                 : err_set(err, ERR_UNREACHABLE, "no daemon of --pool can be used");
}

static int connect_all(struct daemon_pool *daemon_pool, struct err *err)
{
    daemon_pool_start(daemon_pool);
    while (daemon_pool_unsettled(daemon_pool) > 0) {
        uv_run(session_loop(daemon_pool->session), UV_RUN_ONCE);
        if (session_interrupted(daemon_pool->session)) {
            return err_set(err, ERR_STOPPED, "interrupted");
        }
    }
    size_t answered = 0;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        answered += daemon_pool->member[i]->has_status;
    }
    if (answered == 0) {
        return no_daemon(daemon_pool, err);
    }
    daemon_pool->connected = true;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        daemon_pool_report_failure(daemon_pool->member[i]);
    }
    if (daemon_pool->unusable.code != ERR_NONE) {
        daemon_pool_say(daemon_pool, "%s", daemon_pool->unusable.text);
    }
    if (daemon_pool->look_up.code != ERR_NONE) {
        daemon_pool_say(daemon_pool, "%s", daemon_pool->look_up.text);
    }
    return 0;
}

int daemon_pool_create(struct daemon_pool **ret, struct session *session, const char *search,
                       const struct daemon_pool_times *times, struct err *err)
{
    const struct session_options *options = session_options(session);
    struct daemon_pool *daemon_pool = xcalloc(1, sizeof(*daemon_pool));
    daemon_pool->jobs =
        (struct job_service){.submit = submit, .cancel = cancel, .ack = ack, .where = where};
    daemon_pool->session = session;
    daemon_pool->search = xstrdup(search);
    daemon_pool->times = times ? *times : (struct daemon_pool_times){0};
    daemon_pool->times.poll = daemon_pool->times.poll != 0 ? daemon_pool->times.poll : POLL_MS;
    daemon_pool->times.away = daemon_pool->times.away != 0 ? daemon_pool->times.away : AWAY_MS;
    daemon_pool->times.look_up =
        daemon_pool->times.look_up != 0 ? daemon_pool->times.look_up : LOOK_UP_MS;
    daemon_pool->times.patience =
        daemon_pool->times.patience != 0 ? daemon_pool->times.patience : JOB_CLIENT_PATIENCE_MS;
    daemon_pool->times.clock = daemon_pool->times.clock ? daemon_pool->times.clock : &clock_system;
    daemon_pool->terms = (struct job_client_terms){.weight = NAN, .budget_seconds = NAN};
    daemon_pool->notice = say;
    daemon_pool->notice_owner = daemon_pool;
    int rc = 0;
    if (!options->local) {
        rc = hosts_create(&daemon_pool->hosts, options->pool ? options->pool : KCAST_DEFAULT_POOL,
                          err);
        daemon_pool->several = rc == 0 && hosts_are_several(daemon_pool->hosts);
    }
    if (rc == 0) {
        rc = daemon_pool->several ? connect_all(daemon_pool, err) : connect_one(daemon_pool, err);
    }
    if (rc != 0) {
        daemon_pool_close(daemon_pool);
        return rc;
    }
    *ret = daemon_pool;
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

void daemon_pool_close(struct daemon_pool *daemon_pool)
{
    if (!daemon_pool) {
        return;
    }
    daemon_pool->closing = true;
    if (daemon_pool->timer) {
        uv_close((uv_handle_t *)daemon_pool->timer, on_timer_closed);
    }
    daemon_pool_forget_question(daemon_pool);
    hosts_free(daemon_pool->hosts);
    daemon_pool_forget_jobs(daemon_pool);
    for (size_t i = 0; i < daemon_pool->count; i++) {
        job_client_close(daemon_pool->member[i]->client);
    }
    daemon_pool_forget_submissions(daemon_pool);
    daemon_pool_forget_locations(daemon_pool);
    for (size_t i = 0; i < daemon_pool->count; i++) {
        daemon_pool_free_member(daemon_pool->member[i]);
    }
    struct daemon_pool_blob *blob, *next;
    HASH_ITER (hh, daemon_pool->blob, blob, next) {
        HASH_DEL(daemon_pool->blob, blob);
        bytes_clear(&blob->data);
        free(blob);
    }
    free(daemon_pool->device_class);
    free(daemon_pool->chosen_class);
    free(daemon_pool->search);
    free(daemon_pool);
}

// ---- devices ----

// Asks a single daemon for its status. Several ones have been asked when they were greeted.
static int ask_status(struct member *member, struct err *err)
{
    struct status_request request = {0};
    struct status status;
    int rc = remote_call_sync(member->remote, OP_STATUS, &status_request_message, &request,
                              &status_message, &status, STATUS_MS, err);
    if (rc == 0) {
        member->keys_known = true; // a single daemon has all jobs
        daemon_pool_set_status(member, &status);
    }
    return rc;
}

static int choose(struct daemon_pool *daemon_pool, const char *device_class,
                  const struct problem *problem, struct device_info *ret,
                  const struct member **ret_member, struct err *err)
{
    struct err first = ERR_INIT, why = ERR_INIT;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        const struct member *member = daemon_pool->member[i];
        err_clear(&why);
        if (!member->has_status) {
            continue;
        }
        if (device_choose(&member->status, device_class, problem, ret, &why) == 0) {
            *ret_member = member;
            return 0;
        }
        if (first.code == ERR_NONE) {
            err_set(&first, why.code, daemon_pool->several ? "%s: %s" : "%s%s",
                    daemon_pool->several ? member->url : "", why.text);
        }
    }
    return first.code != ERR_NONE ? err_set(err, first.code, "%s", first.text)
                                  : no_daemon(daemon_pool, err);
}

int daemon_pool_choose(struct daemon_pool *daemon_pool, const char *device_class,
                       const struct problem *problem, struct device_info *ret_device,
                       char **ret_sandbox, struct err *err)
{
    const struct member *member;
    int rc = daemon_pool->several ? 0 : ask_status(daemon_pool->member[0], err);
    if (rc == 0) {
        rc = choose(daemon_pool, device_class, problem, ret_device, &member, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (ret_sandbox) {
        *ret_sandbox = member->status.sandbox ? xstrdup(member->status.sandbox) : NULL;
    }
    daemon_pool->chosen_class = xstrdup(ret_device->device_class);
    if (daemon_pool->several) {
        daemon_pool->device_class = xstrdup(ret_device->device_class);
        for (size_t i = 0; i < daemon_pool->count; i++) {
            if (daemon_pool->member[i]->has_status) {
                daemon_pool_check_member(daemon_pool->member[i]);
            }
        }
    }
    return 0;
}

const char *daemon_pool_class(const struct daemon_pool *daemon_pool)
{
    return daemon_pool->device_class;
}

// ---- jobs ----

struct job_service *daemon_pool_jobs(struct daemon_pool *daemon_pool)
{
    return &daemon_pool->jobs;
}

size_t daemon_pool_outstanding(const struct daemon_pool *daemon_pool)
{
    return daemon_pool->job_count;
}

void daemon_pool_cancel_all(struct daemon_pool *daemon_pool)
{
    daemon_pool->closing = true;
    daemon_pool_forget_jobs(daemon_pool);
    for (size_t i = 0; i < daemon_pool->count; i++) {
        job_client_cancel_all(daemon_pool->member[i]->client);
    }
    daemon_pool_forget_submissions(daemon_pool);
}

int daemon_pool_run_once(struct daemon_pool *daemon_pool, struct err *err)
{
    if (!daemon_pool->several) {
        return job_client_run_once(daemon_pool->member[0]->client, err);
    }
    uv_run(session_loop(daemon_pool->session), UV_RUN_ONCE);
    if (session_interrupted(daemon_pool->session)) {
        return err_set(err, ERR_STOPPED, "interrupted");
    }
    return daemon_pool->error.code == ERR_NONE
               ? 0
               : err_set(err, daemon_pool->error.code, "%s", daemon_pool->error.text);
}

int daemon_pool_drain(struct daemon_pool *daemon_pool, struct err *err)
{
    int rc = 0;
    while (rc == 0 && daemon_pool->job_count > 0) {
        rc = daemon_pool_run_once(daemon_pool, err);
    }
    return rc;
}
