#include "client/fleet.h"

#include "client/device_choice.h"
#include "client/fleet_state.h"
#include "common/mem.h"
#include "common/version.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define POLL_MS 2000
#define AWAY_MS 15000
#define LOOK_UP_MS 30000
#define STATUS_MS 10000

// ---- sentences ----

static void say(void *owner, const char *sentence)
{
    const struct fleet *fleet = owner;
    if (!session_options(fleet->session)->quiet) {
        fprintf(stderr, "kcast: %s\n", sentence);
    }
}

void fleet_say(struct fleet *fleet, const char *format, ...)
{
    char sentence[2000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    fleet->notice(fleet->notice_owner, sentence);
}

// ---- blobs: kept once for all pools ----

static struct fleet_blob *find_blob(const struct fleet *fleet, const struct digest *digest)
{
    struct fleet_blob *blob;
    HASH_FIND(hh, fleet->blob, digest->byte, DIGEST_LEN, blob);
    return blob;
}

int fleet_read_blob(void *owner, const struct digest *digest, struct bytes *ret, struct err *err)
{
    const struct fleet *fleet = owner;
    const struct fleet_blob *blob = find_blob(fleet, digest);
    if (blob != NULL) {
        *ret = bytes_copy(blob->data.data, blob->data.len);
        return 0;
    }
    return fleet->read != NULL
               ? fleet->read(fleet->read_owner, digest, ret, err)
               : err_set(err, ERR_INTERNAL, "a daemon asks for bytes that nobody has");
}

void fleet_add_blob(struct fleet *fleet, const void *data, size_t len, struct digest *ret)
{
    struct digest digest = digest_of(data, len);
    if (find_blob(fleet, &digest) == NULL) {
        struct fleet_blob *blob = xcalloc(1, sizeof(*blob));
        blob->digest = digest;
        blob->data = bytes_copy(data, len);
        HASH_ADD(hh, fleet->blob, digest.byte, DIGEST_LEN, blob);
    }
    if (ret != NULL) {
        *ret = digest;
    }
}

void fleet_add_problem(struct fleet *fleet, const struct problem_dir *dir)
{
    fleet_add_blob(fleet, dir->json.data, dir->json.len, NULL);
    fleet_add_blob(fleet, dir->reference.data, dir->reference.len, NULL);
    fleet_add_blob(fleet, dir->baseline.data, dir->baseline.len, NULL);
}

void fleet_set_blob_reader(struct fleet *fleet,
                           int (*read)(void *owner, const struct digest *digest, struct bytes *ret,
                                       struct err *err),
                           void *owner)
{
    fleet->read = read;
    fleet->read_owner = owner;
}

void fleet_set_notice(struct fleet *fleet, void (*notice)(void *owner, const char *sentence),
                      void *owner)
{
    fleet->notice = notice;
    fleet->notice_owner = owner;
    if (!fleet->several) {
        pool_set_notice(fleet->member[0]->pool, notice, owner);
    }
}

void fleet_set_terms(struct fleet *fleet, const struct pool_terms *terms)
{
    fleet->terms = *terms;
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->member[i]->pool != NULL) {
            pool_set_terms(fleet->member[i]->pool, terms);
        }
    }
}

// ---- beginning and end ----

static int connect_one(struct fleet *fleet, struct err *err)
{
    struct remote *remote;
    int code = session_pool(fleet->session, &remote, err);
    if (code == 0) {
        struct member *member = fleet_add_member(fleet, remote_url(remote), remote);
        member->state = MEMBER_IN;
        member->devices = 1;
    }
    return code;
}

// Nobody has answered. What is wrong here comes before what may be wrong elsewhere.
static int nobody(const struct fleet *fleet, struct err *err)
{
    const struct err *why = &fleet->look_up;
    for (size_t i = 0; i < fleet->count; i++) {
        why = fleet->member[i]->why.code != ERR_NONE ? &fleet->member[i]->why : why;
    }
    why = fleet->unusable.code != ERR_NONE ? &fleet->unusable : why;
    return why->code != ERR_NONE ? err_set(err, why->code, "%s", why->text)
                                 : err_set(err, ERR_UNREACHABLE, "no daemon of --pool can be used");
}

static int connect_all(struct fleet *fleet, struct err *err)
{
    fleet_start(fleet);
    while (fleet_unsettled(fleet) > 0) {
        uv_run(session_loop(fleet->session), UV_RUN_ONCE);
        if (session_interrupted(fleet->session)) {
            return err_set(err, ERR_STOPPED, "interrupted");
        }
    }
    size_t answered = 0;
    for (size_t i = 0; i < fleet->count; i++) {
        answered += fleet->member[i]->has_status;
    }
    if (answered == 0) {
        return nobody(fleet, err);
    }
    fleet->begun = true;
    for (size_t i = 0; i < fleet->count; i++) {
        fleet_complain(fleet->member[i]);
    }
    if (fleet->unusable.code != ERR_NONE) {
        fleet_say(fleet, "%s", fleet->unusable.text);
    }
    if (fleet->look_up.code != ERR_NONE) {
        fleet_say(fleet, "%s", fleet->look_up.text);
    }
    return 0;
}

int fleet_create(struct fleet **ret, struct session *session, const char *search,
                 const struct fleet_times *times, struct err *err)
{
    const struct session_options *options = session_options(session);
    struct fleet *fleet = xcalloc(1, sizeof(*fleet));
    int code = 0;
    fleet->session = session;
    fleet->search = xstrdup(search);
    fleet->times = times != NULL ? *times : (struct fleet_times){0};
    fleet->times.poll = fleet->times.poll != 0 ? fleet->times.poll : POLL_MS;
    fleet->times.away = fleet->times.away != 0 ? fleet->times.away : AWAY_MS;
    fleet->times.look_up = fleet->times.look_up != 0 ? fleet->times.look_up : LOOK_UP_MS;
    fleet->times.patience = fleet->times.patience != 0 ? fleet->times.patience : POOL_PATIENCE_MS;
    fleet->terms = (struct pool_terms){.weight = NAN, .budget_seconds = NAN};
    fleet->notice = say;
    fleet->notice_owner = fleet;
    if (!options->local) {
        code = hosts_create(&fleet->hosts,
                            options->pool != NULL ? options->pool : KCAST_DEFAULT_POOL, err);
        fleet->several = code == 0 && hosts_are_several(fleet->hosts);
    }
    if (code == 0) {
        code = fleet->several ? connect_all(fleet, err) : connect_one(fleet, err);
    }
    if (code != 0) {
        fleet_close(fleet);
        return code;
    }
    *ret = fleet;
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle);
}

void fleet_close(struct fleet *fleet)
{
    if (fleet == NULL) {
        return;
    }
    fleet->closing = true;
    if (fleet->timer != NULL) {
        uv_close((uv_handle_t *)fleet->timer, on_timer_closed);
    }
    hosts_free(fleet->hosts);
    fleet_forget_jobs(fleet);
    for (size_t i = 0; i < fleet->count; i++) {
        pool_close(fleet->member[i]->pool);
    }
    fleet_forget_flights(fleet);
    fleet_forget_places(fleet);
    for (size_t i = 0; i < fleet->count; i++) {
        fleet_free_member(fleet->member[i]);
    }
    struct fleet_blob *blob, *next;
    HASH_ITER (hh, fleet->blob, blob, next) {
        HASH_DEL(fleet->blob, blob);
        bytes_clear(&blob->data);
        free(blob);
    }
    free(fleet->device_class);
    free(fleet->search);
    free(fleet);
}

// ---- devices ----

// A single daemon is asked now; the others have been asked when they were greeted.
static int ask_status(struct member *member, struct err *err)
{
    struct status_request request = {0};
    struct status status;
    int code = remote_call_sync(member->remote, OP_STATUS, &status_request_message, &request,
                                &status_message, &status, STATUS_MS, err);
    if (code == 0) {
        member->keys_known = true; // where else
        fleet_set_status(member, &status);
    }
    return code;
}

static int choose(struct fleet *fleet, const char *device_class, const struct problem *problem,
                  struct device_info *ret, const struct member **ret_member, struct err *err)
{
    struct err first = ERR_INIT, why = ERR_INIT;
    for (size_t i = 0; i < fleet->count; i++) {
        const struct member *member = fleet->member[i];
        err_clear(&why);
        if (!member->has_status) {
            continue;
        }
        if (device_choose(&member->status, device_class, problem, ret, &why) == 0) {
            *ret_member = member;
            return 0;
        }
        if (first.code == ERR_NONE) {
            err_set(&first, why.code, fleet->several ? "%s: %s" : "%s%s",
                    fleet->several ? member->url : "", why.text);
        }
    }
    return first.code != ERR_NONE ? err_set(err, first.code, "%s", first.text) : nobody(fleet, err);
}

int fleet_choose(struct fleet *fleet, const char *device_class, const struct problem *problem,
                 struct device_info *ret_device, char **ret_sandbox, struct err *err)
{
    const struct member *member;
    int code = fleet->several ? 0 : ask_status(fleet->member[0], err);
    if (code == 0) {
        code = choose(fleet, device_class, problem, ret_device, &member, err);
    }
    if (code != 0) {
        return code;
    }
    if (ret_sandbox != NULL) {
        *ret_sandbox = member->status.sandbox != NULL ? xstrdup(member->status.sandbox) : NULL;
    }
    if (fleet->several) {
        fleet->device_class = xstrdup(ret_device->device_class);
        for (size_t i = 0; i < fleet->count; i++) {
            if (fleet->member[i]->has_status) {
                fleet_judge(fleet->member[i]);
            }
        }
    }
    return 0;
}

const char *fleet_class(const struct fleet *fleet)
{
    return fleet->device_class;
}

// ---- jobs ----

void fleet_submit(struct fleet *fleet, const char *key, const struct job_spec *spec,
                  uint64_t priority, pool_callback *callback, void *owner, uint64_t tag)
{
    struct fleet_job *job = xcalloc(1, sizeof(*job));
    job->key = xstrdup(key);
    message_copy(&job_spec_message, &job->spec, spec);
    job->priority = priority;
    job->callback = callback;
    job->owner = owner;
    job->tag = tag;
    DL_APPEND(fleet->job, job);
    fleet->job_count++;
    fleet_place(fleet, job);
}

size_t fleet_outstanding(const struct fleet *fleet)
{
    return fleet->job_count;
}

void fleet_cancel_all(struct fleet *fleet)
{
    fleet->closing = true;
    fleet_forget_jobs(fleet);
    for (size_t i = 0; i < fleet->count; i++) {
        pool_cancel_all(fleet->member[i]->pool);
    }
    fleet_forget_flights(fleet);
}

int fleet_run_once(struct fleet *fleet, struct err *err)
{
    if (!fleet->several) {
        return pool_run_once(fleet->member[0]->pool, err);
    }
    uv_run(session_loop(fleet->session), UV_RUN_ONCE);
    if (session_interrupted(fleet->session)) {
        return err_set(err, ERR_STOPPED, "interrupted");
    }
    return fleet->error.code == ERR_NONE ? 0
                                         : err_set(err, fleet->error.code, "%s", fleet->error.text);
}

int fleet_drain(struct fleet *fleet, struct err *err)
{
    int code = 0;
    while (code == 0 && fleet->job_count > 0) {
        code = fleet_run_once(fleet, err);
    }
    return code;
}

static struct member *member_of(const struct fleet *fleet, uint64_t job)
{
    return fleet->member[(job >> NUMBER_BITS) % HOSTS_MAX];
}

void fleet_ack(struct fleet *fleet, uint64_t job)
{
    pool_ack(member_of(fleet, job)->pool, fleet_number(job));
}

const char *fleet_where(const struct fleet *fleet, uint64_t job)
{
    return fleet->several ? member_of(fleet, job)->url : NULL;
}

uint64_t fleet_number(uint64_t job)
{
    return job & ((UINT64_C(1) << NUMBER_BITS) - 1);
}
