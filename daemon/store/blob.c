// Design note. A put (blob_put.c), a batch of checks (blob_check.c) or a load is one unit of work
// for libuv's thread pool. Everything it needs is copied into it, so the threads share nothing but
// the store's constant root path. A file is replaced by a rename, so equal puts at the same time do
// no harm. A file whose content does not have the digest of its name is removed by the reader that
// notices: the next BLOB_HAVE says that it is missing, and whoever has the blob sends it again. The
// time of a file is when it was last used (see blob_sweep.h). Files are written in ROOT/tmp, so
// that what a killed process leaves can be found without looking at every folder.
//
// Puts and checks of callers stand in a line, so that one caller does not have all of libuv's
// threads.
//
// To hand work to a thread and back wakes that thread and then the loop, which is most of what it
// costs the loop. So a load or a check is answered from memory where all of it is there.
#include "common/file.h"
#include "common/later.h"
#include "common/log.h"
#include "daemon/store/blob_inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOAD_MAX 16      // blobs of one load
#define TOUCH_S 600      // seconds by which a file's time may be behind
#define AT_ONCE 3        // works of callers at once; libuv has four threads
#define AT_ONCE_CALLER 2 // of one caller

struct load {
    uv_work_t work;
    struct blob_store *store;
    struct digest digest[LOAD_MAX];
    struct bytes blob[LOAD_MAX]; // those that have been read
    bool remembered[LOAD_MAX];   // it has not been read: it was in memory
    size_t count;
    size_t failed;
    struct err err; // why it failed
    blob_load_done *done;
    void *owner;
};

int blob_store_create(struct blob_store **ret, uv_loop_t *loop, const char *root, struct err *err)
{
    char *temp = xasprintf("%s/" BLOB_TEMP_FOLDER, root);
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
    store->memory = blob_memory_create(0);
    store->line = line_create(AT_ONCE, AT_ONCE_CALLER);
    store->may_wait = true;
    *ret = store;
    return 0;
}

void blob_store_free(struct blob_store *store)
{
    if (store) {
        blob_quota_free(store->quota);
        blob_memory_free(store->memory);
        line_free(store->line);
        free(store->root);
        free(store);
    }
}

void blob_store_remember(struct blob_store *store, size_t max_bytes)
{
    blob_memory_free(store->memory);
    store->memory = blob_memory_create(max_bytes);
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

bool blob_touch(const char *path)
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
    bool have = blob_touch(path);

    free(path);
    return have;
}

int blob_read_verified(const struct blob_store *store, const struct digest *digest,
                       struct bytes *ret, struct err *err)
{
    char *path = blob_path(store->root, digest);
    struct bytes data = {0};
    struct digest found;

    errno = 0;
    int rc = file_read(&data, path, BLOB_MAX, err);
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
    (void)blob_touch(path);
out:
    free(path);
    return rc;
}

// uv_queue_work refuses nothing but a missing callback, which is a defect.
void blob_queue_work(struct blob_store *store, uv_work_t *work, uv_work_cb run,
                     uv_after_work_cb after)
{
    if (uv_queue_work(store->loop, work, run, after) != 0) {
        log_event(LOG_ERROR, "blob-defect reason=\"uv_queue_work\"");
        abort();
    }
}

// --- loading

static void load_work(uv_work_t *work)
{
    struct load *load = work->data;

    for (size_t i = 0; i < load->count; i++) {
        if (!load->remembered[i] &&
            blob_read_verified(load->store, &load->digest[i], &load->blob[i], &load->err) != 0) {
            load->failed = i;
            return;
        }
    }
}

// Remembers what has been read, before its bytes are given away.
static void remember(const struct load *load)
{
    struct blob_memory *memory = load->store->memory;
    bool failed = load->err.code != ERR_NONE;

    for (size_t i = 0; i < (failed ? load->failed : load->count); i++) {
        if (!load->remembered[i]) {
            blob_memory_add(memory, &load->digest[i], &load->blob[i], uv_now(load->store->loop));
        }
    }
    if (failed) {
        blob_memory_forget(memory, &load->digest[load->failed]);
    }
}

// Ends a load whose blobs are there, or whose error is.
static void finish_load(void *owner)
{
    struct load *load = owner;

    load->done(load->owner, load->err.code != ERR_NONE ? &load->err : NULL, load->failed,
               load->blob, load->count);
    for (size_t i = 0; i < load->count; i++) {
        bytes_clear(&load->blob[i]);
    }
    free(load);
}

static void on_load(uv_work_t *work, int status)
{
    struct load *load = work->data;

    if (status != 0) {
        (void)err_set(&load->err, ERR_SYSTEM, "blob: %s", uv_strerror(status));
    }
    remember(load);
    finish_load(load);
}

// As file_read gives them: followed by a NUL.
static struct bytes copy_of(const struct bytes *data)
{
    struct bytes copy = {.data = xmalloc(data->len + 1), .len = data->len};

    memcpy(copy.data, data->data, data->len);
    copy.data[copy.len] = '\0';
    return copy;
}

// Takes what is in memory. Returns whether that is all.
static bool recall(struct load *load)
{
    size_t found = 0;

    for (size_t i = 0; i < load->count; i++) {
        const struct bytes *data =
            blob_memory_find(load->store->memory, &load->digest[i], uv_now(load->store->loop));

        if (data) {
            load->blob[i] = copy_of(data);
            load->remembered[i] = true;
            found++;
        }
    }
    return found == load->count;
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
    if (recall(load)) {
        later_run(store->loop, finish_load, load);
    } else {
        blob_queue_work(store, &load->work, load_work, on_load);
    }
}
