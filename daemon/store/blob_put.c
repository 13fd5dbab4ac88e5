// Design note. A put reserves room (blob_quota.h) before its work begins. One that finds none may
// still be of a blob that is there, so its work looks for it; if it is not, the put waits for a
// sweep or fails.
// The file of a blob has its tenant in an extended attribute, for the sweep that counts. On a file
// system without such attributes a restart or a sweep forgets whose blobs are whose, and only the
// limit of all holds.
#include "common/file.h"
#include "daemon/store/blob_inside.h"
#include "daemon/store/blob_sweep.h"
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utlist.h>

struct put {
    uv_work_t work;
    struct blob_store *store;
    char *tenant; // NULL: the daemon itself
    char *caller; // NULL: the daemon itself
    struct line_place place;
    uint64_t room; // bytes that are reserved
    bool written;  // the room is used
    bool invalid;  // the bytes do not have the digest
    bool refused;  // no room could be reserved, as err says
    bool missing;  // and the blob is not there
    bool tried;    // it has waited for a sweep already
    enum blob_need waits_for;
    struct put *prev; // in store->waiting
    struct put *next;
    struct digest digest;
    struct bytes data;
    bool durable;
    struct err err; // why it failed
    blob_put_done *done;
    void *owner;
};

// Leaves an intact file alone and replaces a damaged one. The file is marked as used before it is
// read, so that a sweep at the same time either leaves it or has removed it before.
static int write_blob(struct put *put, struct err *err)
{
    char *path = blob_path(put->store->root, &put->digest);
    char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    char *temp_dir = xasprintf("%s/" BLOB_TEMP_FOLDER, put->store->root);
    char *temp = xasprintf("%s/%d", temp_dir, (int)gettid());
    struct bytes old = {0};
    int rc = 0;

    if (blob_touch(path) && blob_read_verified(put->store, &put->digest, &old, NULL) == 0) {
        goto out;
    }
    rc = file_make_dirs(dir, err);
    if (rc == 0) {
        rc = file_make_dirs(temp_dir, err);
    }
    if (rc == 0) {
        rc = file_replace_through(path, temp, put->data.data, put->data.len, put->durable, err);
    }
    put->written = rc == 0;
    if (rc == 0 && put->tenant) {
        (void)setxattr(path, BLOB_OWNER_ATTRIBUTE, put->tenant, strlen(put->tenant), 0);
    }
out:
    bytes_clear(&old);
    free(temp);
    free(temp_dir);
    free(path);
    free(dir);
    return rc;
}

// Whether the blob is there and intact, for a put that has no room.
static bool is_there(const struct put *put)
{
    char *path = blob_path(put->store->root, &put->digest);
    struct bytes old = {0};
    bool there = blob_touch(path) && blob_read_verified(put->store, &put->digest, &old, NULL) == 0;

    bytes_clear(&old);
    free(path);
    return there;
}

static void put_work(uv_work_t *work)
{
    struct put *put = work->data;

    struct digest found = digest_of(put->data.data, put->data.len);
    put->invalid = !digest_equal(&found, &put->digest);
    if (put->invalid) {
        put->err = (struct err)ERR_INIT; // whether there would be room
        (void)err_set(&put->err, ERR_INVALID, "the bytes of a blob do not have its digest");
        return;
    }
    if (put->refused) {
        put->missing = !is_there(put);
        return;
    }
    (void)write_blob(put, &put->err);
}

static void finish_put(struct put *put)
{
    struct blob_memory *memory = put->store->memory;

    if (put->err.code == ERR_NONE) {
        blob_memory_add(memory, &put->digest, &put->data, uv_now(put->store->loop));
    } else if (!put->invalid) { // what was there may be damaged, and gone
        blob_memory_forget(memory, &put->digest);
    }
    put->done(put->owner, put->err.code != ERR_NONE ? &put->err : NULL);
    bytes_clear(&put->data);
    free(put->tenant);
    free(put->caller);
    free(put);
}

static void wait_for_sweep(struct put *put, enum blob_need need)
{
    put->waits_for = need;
    DL_APPEND(put->store->waiting, put);
}

static void leave_line(const struct put *put, struct line_place *place)
{
    if (put->caller) {
        line_leave(place);
    }
}

static void on_put(uv_work_t *work, int status)
{
    struct put *put = work->data;
    struct blob_store *store = put->store;

    if (status != 0) {
        (void)err_set(&put->err, ERR_SYSTEM, "blob: %s", uv_strerror(status));
    }
    if (!put->refused) {
        blob_quota_settle(store->quota, put->tenant, put->room, put->written);
        store->full += put->err.code == ERR_NO_SPACE;
    } else if (!put->missing && !put->invalid) {
        put->err = (struct err)ERR_INIT;
    }
    leave_line(put, &put->place);
    if (put->refused && put->missing && !put->tried && store->may_wait) {
        wait_for_sweep(put, put->waits_for);
    } else {
        finish_put(put);
    }
}

static void on_turn_to_put(void *owner)
{
    struct put *put = owner;
    struct blob_quota *quota = put->store->quota;
    bool own;

    if (!blob_quota_is_counted(quota) && put->store->may_wait) {
        leave_line(put, &put->place);
        wait_for_sweep(put, BLOB_NEED_COUNT);
        return;
    }
    put->err = (struct err)ERR_INIT;
    put->room = blob_quota_room(put->data.len);
    put->refused = blob_quota_reserve(quota, put->tenant, put->room, &own, &put->err) != 0;
    if (put->refused) {
        put->waits_for = own ? BLOB_NEED_TENANT_ROOM : BLOB_NEED_ROOM;
    }
    blob_queue_work(put->store, &put->work, put_work, on_put);
}

static void begin_put(struct put *put)
{
    if (put->caller) {
        line_enter(put->store->line, &put->place, put->caller, on_turn_to_put, put);
    } else {
        on_turn_to_put(put);
    }
}

void blob_put(struct blob_store *store, const struct blob_caller *caller,
              const struct digest *digest, struct bytes *data_taken, bool durable,
              blob_put_done *done, void *owner)
{
    struct put *put = xcalloc(1, sizeof(*put));

    put->work.data = put;
    put->store = store;
    put->tenant = caller ? xstrdup(caller->tenant) : NULL;
    put->caller = caller ? xstrdup(caller->name) : NULL;
    put->digest = *digest;
    put->data = *data_taken;
    *data_taken = (struct bytes){0};
    put->durable = durable;
    put->done = done;
    put->owner = owner;
    begin_put(put);
}

uint64_t blob_store_full(const struct blob_store *store)
{
    return store->full;
}

// --- limits

void blob_store_limit(struct blob_store *store, uint64_t max_bytes, uint64_t tenant_max_bytes)
{
    store->tenant_max = tenant_max_bytes;
    blob_quota_limit(store->quota, max_bytes, tenant_max_bytes);
}

uint64_t blob_store_tenant_max(const struct blob_store *store)
{
    return store->tenant_max;
}

unsigned blob_store_needs(const struct blob_store *store)
{
    const struct put *put;
    unsigned needs = BLOB_NEED_NOTHING;

    DL_FOREACH (store->waiting, put) {
        needs |= put->waits_for;
    }
    return needs;
}

// Takes the puts that wait out of the list, and begins each of them again or ends it.
static void retry_waiting(struct blob_store *store, bool again)
{
    struct put *put;
    struct put *next;
    struct put *list = store->waiting;

    store->waiting = NULL;
    DL_FOREACH_SAFE (list, put, next) {
        DL_DELETE(list, put);
        if (again) {
            put->tried = put->waits_for != BLOB_NEED_COUNT;
            begin_put(put);
        } else {
            if (put->err.code == ERR_NONE) {
                (void)err_set(&put->err, ERR_STOPPED, "kcastd is stopping");
            }
            finish_put(put);
        }
    }
}

void blob_store_let_wait(struct blob_store *store, bool may_wait)
{
    store->may_wait = may_wait;
    if (!may_wait) {
        retry_waiting(store, false);
    }
}

void blob_store_sweep_begins(struct blob_store *store)
{
    blob_quota_begin_count(store->quota);
}

void blob_store_swept(struct blob_store *store, const struct blob_swept *swept)
{
    if (swept->removed > 0) {
        blob_memory_forget_all(store->memory);
    }
    blob_quota_counted(store->quota, swept->bytes, swept->owners, swept->owner_count);
    retry_waiting(store, true);
}
