// Design note. A put, check or load is one unit of work for libuv's thread pool. Everything it
// needs is copied into it, so the threads share nothing but the store's constant root path. A file
// is replaced by a rename, so equal puts at the same time do no harm. A file whose content does not
// have the digest of its name is removed by the reader that notices: the next BLOB_HAVE says that
// it is missing, and whoever has the blob sends it again. The time of a file is when it was last
// used (see blob_sweep.h). Files are written in ROOT/tmp, so that what a killed process leaves can
// be found without looking at every folder.
//
// A put reserves room (blob_quota.h) before its work begins. One that finds none may still be of a
// blob that is there, so its work looks for it; if it is not, the put waits for a sweep or fails.
// The file of a blob has its tenant in an extended attribute, for the sweep that counts. On a file
// system without such attributes a restart or a sweep forgets whose blobs are whose, and only the
// limit of all holds.
//
// Puts and checks of callers stand in a line, so that one caller does not have all of libuv's
// threads.
#include "daemon/store/blob.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/store/blob_quota.h"
#include "daemon/store/blob_sweep.h"
#include "daemon/store/line.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#define LOAD_MAX 16 // blobs of one load
#define TOUCH_S 600 // seconds by which a file's time may be behind
#define TEMP_FOLDER "tmp"
#define AT_ONCE 3        // works of callers at once; libuv has four threads
#define AT_ONCE_CALLER 2 // of one caller

struct blob_store {
    uv_loop_t *loop;
    char *root;
    uint64_t full; // puts that found the disk full
    struct blob_quota *quota;
    uint64_t tenant_max; // 0: no limit
    struct line *line;
    struct put *waiting; // list of puts that wait for a sweep
    bool may_wait;
};

struct put {
    uv_work_t work;
    struct blob_store *store;
    char *tenant; // NULL: the daemon itself
    char *caller; // NULL: the daemon itself
    struct line_place place;
    uint64_t room; // bytes that are reserved
    bool written;  // the room is used
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

struct check {
    uv_work_t work;
    struct blob_store *store;
    struct line_place place;
    struct digest *digest; // all that were given, and afterwards those that are missing
    size_t count;
    blob_check_done *done;
    void *owner;
};

struct load {
    uv_work_t work;
    struct blob_store *store;
    struct digest digest[LOAD_MAX];
    struct bytes blob[LOAD_MAX]; // those that have been read
    size_t count;
    size_t failed;
    struct err err; // why it failed
    blob_load_done *done;
    void *owner;
};

int blob_store_create(struct blob_store **ret, uv_loop_t *loop, const char *root, struct err *err)
{
    char *temp = xasprintf("%s/" TEMP_FOLDER, root);
    int rc = file_remove_tree(temp, err);

    if (rc == 0) {
        rc = file_make_dirs(temp, err);
    }
    free(temp);
    if (rc != 0) {
        return rc;
    }
    struct blob_store *store = xcalloc(1, sizeof(*store));
    store->loop = loop;
    store->root = xstrdup(root);
    store->quota = blob_quota_create();
    store->line = line_create(AT_ONCE, AT_ONCE_CALLER);
    store->may_wait = true;
    *ret = store;
    return 0;
}

void blob_store_free(struct blob_store *store)
{
    if (store) {
        blob_quota_free(store->quota);
        line_free(store->line);
        free(store->root);
        free(store);
    }
}

const char *blob_store_root(const struct blob_store *store)
{
    return store->root;
}

char *blob_path(const char *root, const struct digest *digest)
{
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(digest, hex);
    return xasprintf("%s/%.*s/%s", root, BLOB_FOLDER_LEN, hex, hex + BLOB_FOLDER_LEN);
}

// Marks a blob as used now. Returns false when it is not there or cannot be marked, so that it
// might be swept. The time is written at most every TOUCH_S, because writing may have to wait for
// the disk; the sweep's grace period is several times as long.
static bool touch(const char *path)
{
    struct stat info;

    if (access(path, R_OK) != 0 || stat(path, &info) != 0) {
        return false;
    }
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (info.st_mtim.tv_sec > now.tv_sec || info.st_mtim.tv_sec < now.tv_sec - TOUCH_S) {
        return utimensat(AT_FDCWD, path, NULL, 0) == 0;
    }
    return true;
}

bool blob_have(const struct blob_store *store, const struct digest *digest)
{
    char *path = blob_path(store->root, digest);
    bool have = touch(path);

    free(path);
    return have;
}

static int read_verified(const struct blob_store *store, const struct digest *digest,
                         struct bytes *ret, struct err *err)
{
    char *path = blob_path(store->root, digest);
    struct bytes data = {0};
    struct digest found;
    int rc;

    errno = 0;
    rc = file_read(&data, path, BLOB_MAX, err);
    // errno is what open(2) has left there.
    if (rc == ERR_SYSTEM && (errno == EMFILE || errno == ENFILE)) {
        rc = ERR_BUSY;
        if (err) {
            err->code = ERR_BUSY;
        }
    }
    if (rc != 0) {
        goto out;
    }
    found = digest_of(data.data, data.len);
    if (!digest_equal(&found, digest)) {
        bytes_clear(&data);
        (void)unlink(path);
        rc =
            err_set(err, ERR_CORRUPT, "%s: the content does not have the digest of its name", path);
        goto out;
    }
    *ret = data;
    (void)touch(path);
out:
    free(path);
    return rc;
}

// Leaves an intact file alone and replaces a damaged one. The file is marked as used before it is
// read, so that a sweep at the same time either leaves it or has removed it before.
static int write_blob(struct put *put, struct err *err)
{
    char *path = blob_path(put->store->root, &put->digest);
    char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    char *temp_dir = xasprintf("%s/" TEMP_FOLDER, put->store->root);
    char *temp = xasprintf("%s/%d", temp_dir, (int)gettid());
    struct bytes old = {0};
    int rc = 0;

    if (touch(path) && read_verified(put->store, &put->digest, &old, NULL) == 0) {
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

// uv_queue_work refuses nothing but a missing callback, which is a defect.
static void queue_work(struct blob_store *store, uv_work_t *work, uv_work_cb run,
                       uv_after_work_cb after)
{
    if (uv_queue_work(store->loop, work, run, after) != 0) {
        log_event(LOG_ERROR, "blob-defect reason=\"uv_queue_work\"");
        abort();
    }
}

// --- putting

// Whether the blob is there and intact, for a put that has no room.
static bool is_there(const struct put *put)
{
    char *path = blob_path(put->store->root, &put->digest);
    struct bytes old = {0};
    bool there = touch(path) && read_verified(put->store, &put->digest, &old, NULL) == 0;

    bytes_clear(&old);
    free(path);
    return there;
}

static void put_work(uv_work_t *work)
{
    struct put *put = work->data;

    if (put->refused) {
        put->missing = !is_there(put);
        return;
    }
    struct digest found = digest_of(put->data.data, put->data.len);
    if (!digest_equal(&found, &put->digest)) {
        (void)err_set(&put->err, ERR_INVALID, "the bytes of a blob do not have its digest");
        return;
    }
    (void)write_blob(put, &put->err);
}

static void finish_put(struct put *put)
{
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
    } else if (!put->missing) {
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
    queue_work(put->store, &put->work, put_work, on_put);
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
    blob_quota_counted(store->quota, swept->bytes, swept->owners, swept->owner_count);
    retry_waiting(store, true);
}

// --- checking and loading

static void check_work(uv_work_t *work)
{
    struct check *check = work->data;
    size_t missing = 0;

    for (size_t i = 0; i < check->count; i++) {
        if (!blob_have(check->store, &check->digest[i])) {
            check->digest[missing++] = check->digest[i];
        }
    }
    check->count = missing;
}

static void on_check(uv_work_t *work, int status)
{
    struct check *check = work->data;

    (void)status; // the work is never cancelled
    line_leave(&check->place);
    check->done(check->owner, check->digest, check->count);
    free(check->digest);
    free(check);
}

static void on_turn_to_check(void *owner)
{
    struct check *check = owner;

    queue_work(check->store, &check->work, check_work, on_check);
}

void blob_check(struct blob_store *store, const struct blob_caller *caller,
                const struct digest *digests, size_t count, blob_check_done *done, void *owner)
{
    struct check *check = xcalloc(1, sizeof(*check));

    check->work.data = check;
    check->store = store;
    check->digest = xcalloc(count + 1, sizeof(*digests));
    if (count > 0) {
        memcpy(check->digest, digests, count * sizeof(*digests));
    }
    check->count = count;
    check->done = done;
    check->owner = owner;
    line_enter(store->line, &check->place, caller->name, on_turn_to_check, check);
}

static void load_work(uv_work_t *work)
{
    struct load *load = work->data;

    for (size_t i = 0; i < load->count; i++) {
        if (read_verified(load->store, &load->digest[i], &load->blob[i], &load->err) != 0) {
            load->failed = i;
            return;
        }
    }
}

static void on_load(uv_work_t *work, int status)
{
    struct load *load = work->data;

    if (status != 0) {
        (void)err_set(&load->err, ERR_SYSTEM, "blob: %s", uv_strerror(status));
    }
    load->done(load->owner, load->err.code != ERR_NONE ? &load->err : NULL, load->failed,
               load->blob, load->count);
    for (size_t i = 0; i < load->count; i++) {
        bytes_clear(&load->blob[i]);
    }
    free(load);
}

void blob_load(struct blob_store *store, const struct digest *digests, size_t count,
               blob_load_done *done, void *owner)
{
    struct load *load = xcalloc(1, sizeof(*load));

    if (count > LOAD_MAX) {
        log_event(LOG_ERROR, "blob-defect reason=\"%zu blobs in one load\"", count);
        abort();
    }
    load->work.data = load;
    load->store = store;
    memcpy(load->digest, digests, count * sizeof(*digests));
    load->count = count;
    load->done = done;
    load->owner = owner;
    queue_work(store, &load->work, load_work, on_load);
}
