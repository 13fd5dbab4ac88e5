// Design note. The walk notes the size and time of every file. When there is too much, the files
// are removed oldest first. Each is looked at once more before that, because somebody who has asked
// for it in the meantime has made it new. So a blob that a caller was just told to be there stays
// for most of the grace period, which is longer than it takes to submit a job. From then on the job
// keeps it.
#include "daemon/store/blob_sweep.h"
#include "common/log.h"
#include "common/mem.h"
#include "daemon/store/blob.h"
#include "daemon/store/blob_quota.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#define OWNERS_MAX 4096 // more tenants than can have tokens; blobs of further ones are nobody's
#define NOBODY UINT32_MAX
#define NAME_LEN (DIGEST_HEX_LEN - BLOB_FOLDER_LEN)
#define BLOCK 512 // bytes of a unit of st_blocks on every file system

struct entry {
    struct digest digest;
    int64_t used_s;
    uint64_t bytes; // on the disk
    uint32_t owner; // index of its tenant, or NOBODY
};

// A tenant of the walk, found by its name.
struct owner {
    char name[BLOB_OWNER_MAX + 1];
    uint32_t index;
    UT_hash_handle hh;
};

struct walk {
    uv_work_t work;
    struct blob_sweep sweep;
    int64_t now_s; // by the clock that stamps files
    struct entry *entries;
    size_t count;
    struct owner *by_name;
    struct blob_owner *owners; // by index
    struct blob_swept swept;
    blob_sweep_done *done;
    void *owner;
};

static bool is_stopped(const struct walk *walk)
{
    return atomic_load_explicit(walk->sweep.stop, memory_order_relaxed);
}

static int compare_digests(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct digest));
}

static int compare_times(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;

    return (left->used_s > right->used_s) - (left->used_s < right->used_s);
}

static bool is_recent(const struct walk *walk, int64_t used_s)
{
    return used_s > walk->now_s - (int64_t)walk->sweep.grace_s;
}

// The bytes that a file takes on the disk. They are never less than a page, so that many tiny files
// count even where the file system keeps them with their names or has not written them out yet.
static uint64_t room_of(const struct stat *info)
{
    uint64_t room = (uint64_t)info->st_blocks * BLOCK;

    return room > BLOB_SWEEP_ROOM_MIN ? room : BLOB_SWEEP_ROOM_MIN;
}

// Returns the index of the tenant that has sent the blob.
static uint32_t find_owner(struct walk *walk, const char *path)
{
    char name[BLOB_OWNER_MAX + 1];
    ssize_t len = lgetxattr(path, BLOB_OWNER_ATTRIBUTE, name, sizeof(name) - 1);
    struct owner *owner;

    if (len <= 0) {
        return NOBODY;
    }
    name[len] = '\0';
    HASH_FIND_STR(walk->by_name, name, owner);
    if (!owner && walk->swept.owner_count < OWNERS_MAX) {
        owner = xcalloc(1, sizeof(*owner));
        memcpy(owner->name, name, (size_t)len + 1);
        owner->index = (uint32_t)walk->swept.owner_count;
        HASH_ADD_STR(walk->by_name, name, owner);
        walk->owners = xgrow(walk->owners, walk->swept.owner_count, sizeof(*walk->owners));
        walk->owners[walk->swept.owner_count++] = (struct blob_owner){.tenant = owner->name};
    }
    return owner ? owner->index : NOBODY;
}

static void add(struct walk *walk, const struct digest *digest, const struct stat *info,
                uint32_t owner)
{
    walk->entries = xgrow(walk->entries, walk->count, sizeof(*walk->entries));
    walk->entries[walk->count++] = (struct entry){
        .digest = *digest,
        .used_s = info->st_mtim.tv_sec,
        .bytes = room_of(info),
        .owner = owner,
    };
    if (owner != NOBODY) {
        walk->owners[owner].bytes += room_of(info);
    }
    walk->swept.bytes += room_of(info);
    walk->swept.files++;
}

// Looks at one file of the folder "ab".
static void look_at(struct walk *walk, const char *dir, const char *name)
{
    char *path = xasprintf("%s/%s/%s", walk->sweep.root, dir, name);
    char hex[DIGEST_HEX_LEN + 1];

    (void)snprintf(hex, sizeof(hex), "%s%.*s", dir, NAME_LEN, name);
    struct digest digest;
    struct stat info;
    if (strlen(name) == NAME_LEN && digest_parse(&digest, hex, NULL) == 0 &&
        lstat(path, &info) == 0 && S_ISREG(info.st_mode)) {
        add(walk, &digest, &info, find_owner(walk, path));
    }
    free(path);
}

static void walk_folder(struct walk *walk, const char *name)
{
    char *path = xasprintf("%s/%s", walk->sweep.root, name);
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir && !is_stopped(walk) && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.') {
            look_at(walk, name, entry->d_name);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
    free(path);
}

static void walk_all(struct walk *walk)
{
    DIR *dir = opendir(walk->sweep.root);
    const struct dirent *entry;

    while (dir && !is_stopped(walk) && (entry = readdir(dir))) {
        if (strlen(entry->d_name) == BLOB_FOLDER_LEN && entry->d_name[0] != '.') {
            walk_folder(walk, entry->d_name);
        }
    }
    if (dir) {
        (void)closedir(dir);
    }
}

static void consider(struct walk *walk, const struct entry *entry)
{
    const struct blob_sweep *sweep = &walk->sweep;

    if (sweep->keep_count > 0 && bsearch(&entry->digest, sweep->keep, sweep->keep_count,
                                         sizeof(*sweep->keep), compare_digests)) {
        return;
    }
    char *path = blob_path(walk->sweep.root, &entry->digest);
    struct stat info;
    if (lstat(path, &info) == 0 && !is_recent(walk, info.st_mtim.tv_sec) && unlink(path) == 0) {
        walk->swept.files--;
        walk->swept.bytes -= entry->bytes;
        walk->swept.removed++;
        walk->swept.removed_bytes += entry->bytes;
        if (entry->owner != NOBODY) {
            walk->owners[entry->owner].bytes -= entry->bytes;
        }
    }
    free(path);
}

static bool is_large_owner(const struct walk *walk, uint32_t owner)
{
    return owner != NOBODY && walk->sweep.tenant_max_bytes > 0 &&
           walk->owners[owner].bytes > walk->sweep.tenant_max_bytes / 10 * 9;
}

static bool has_large_owner(const struct walk *walk)
{
    for (uint32_t i = 0; i < walk->swept.owner_count; i++) {
        if (is_large_owner(walk, i)) {
            return true;
        }
    }
    return false;
}

static void sweep_work(uv_work_t *work)
{
    struct walk *walk = work->data;
    uint64_t max = walk->sweep.max_bytes;
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    walk->now_s = now.tv_sec;
    walk_all(walk);
    if (walk->sweep.full && max > walk->swept.bytes) {
        max = walk->swept.bytes;
    }
    bool all = walk->sweep.full || walk->swept.bytes > max;
    if (!all && !has_large_owner(walk)) {
        return;
    }
    if (walk->sweep.keep_count > 0) {
        qsort(walk->sweep.keep, walk->sweep.keep_count, sizeof(*walk->sweep.keep), compare_digests);
    }
    qsort(walk->entries, walk->count, sizeof(*walk->entries), compare_times);
    for (size_t i = 0; i < walk->count && !is_stopped(walk); i++) {
        if ((all && walk->swept.bytes > max / 10 * 9) ||
            is_large_owner(walk, walk->entries[i].owner)) {
            consider(walk, &walk->entries[i]);
        }
    }
}

static void on_swept(uv_work_t *work, int status)
{
    struct walk *walk = work->data;

    (void)status; // the work is never cancelled
    walk->swept.owners = walk->owners;
    walk->done(walk->owner, &walk->swept);
    struct owner *owner;
    struct owner *next;
    HASH_ITER (hh, walk->by_name, owner, next) {
        HASH_DEL(walk->by_name, owner);
        free(owner);
    }
    free(walk->owners);
    free(walk->entries);
    free(walk->sweep.keep);
    free(walk);
}

void blob_sweep(uv_loop_t *loop, const struct blob_sweep *sweep, blob_sweep_done *done, void *owner)
{
    struct walk *walk = xcalloc(1, sizeof(*walk));

    walk->work.data = walk;
    walk->sweep = *sweep;
    walk->done = done;
    walk->owner = owner;
    if (uv_queue_work(loop, &walk->work, sweep_work, on_swept) != 0) {
        log_event(LOG_ERROR, "blob-defect reason=\"uv_queue_work\"");
        abort();
    }
}
