// Design note. The loop thread lists the blobs that are needed at one moment; then another thread
// walks through the files. A blob that becomes needed during the walk has just been checked or
// stored, so that its time of use is at most twenty minutes old (ten that it is known to be there
// without a look, and ten within which a time is not renewed), and the walk keeps it for an hour.
#include "daemon/upkeep/sweeper.h"
#include "common/log.h"
#include <stdlib.h>

#define SWEEP_TICKS 600 // seconds between sweeps
#define EARLY_TICKS 60  // seconds between early sweeps

// The blobs that are needed.
struct list {
    struct digest *digest;
    size_t count;
};

static void keep(void *owner, const struct digest *digest)
{
    struct list *list = owner;

    if (digest_is_zero(digest)) {
        return;
    }
    list->digest = xgrow(list->digest, list->count, sizeof(*list->digest));
    list->digest[list->count++] = *digest;
}

static struct list needed(const struct sweeper *sweeper)
{
    struct list list = {0};
    const struct job *job = job_table_first(sweeper->jobs);

    setups_visit_blobs(sweeper->setups, keep, &list);
    for (; job; job = job->by_id.next) {
        if (!job_state_is_terminal(job->state)) {
            keep(&list, &job->candidate);
            keep(&list, &job->reference);
            if (job->compiled.data) {
                keep(&list, &job->object);
            }
        }
    }
    return list;
}

// Puts that find no room may wait while there can be an early sweep, or one is under way.
static void set_wait(struct sweeper *sweeper)
{
    blob_store_let_wait(sweeper->blobs,
                        !sweeper->stop && (sweeper->sweeping || sweeper->ticks >= sweeper->early));
}

static void on_swept(void *owner, const struct blob_swept *swept)
{
    struct sweeper *sweeper = owner;

    sweeper->sweeping = false;
    blob_store_swept(sweeper->blobs, swept);
    set_wait(sweeper);
    if (swept->removed > 0) {
        log_event(LOG_NOTICE, "blobs-swept removed=%llu removed_bytes=%llu left=%llu bytes=%llu",
                  (unsigned long long)swept->removed, (unsigned long long)swept->removed_bytes,
                  (unsigned long long)swept->files, (unsigned long long)swept->bytes);
    }
    if (swept->bytes > sweeper->max_bytes && !sweeper->stop) {
        log_event(LOG_WARNING,
                  "blobs-over bytes=%llu max=%llu reason=\"they are in use, or were within the last"
                  " hour\"",
                  (unsigned long long)swept->bytes, (unsigned long long)sweeper->max_bytes);
    }
}

void sweeper_tick(struct sweeper *sweeper)
{
    uint64_t now = sweeper->ticks++;
    unsigned needs = blob_store_needs(sweeper->blobs);
    bool early = now >= sweeper->early;
    bool full = early &&
                (blob_store_full(sweeper->blobs) != sweeper->full || (needs & BLOB_NEED_ROOM) != 0);
    bool tenants = early && (needs & BLOB_NEED_TENANT_ROOM) != 0;

    if ((full || tenants || now % SWEEP_TICKS == 0) && !sweeper->sweeping && !sweeper->stop) {
        struct list list = needed(sweeper);
        struct blob_sweep sweep = {
            .root = blob_store_root(sweeper->blobs),
            .max_bytes = sweeper->max_bytes,
            .full = full,
            .tenant_max_bytes = tenants ? blob_store_tenant_max(sweeper->blobs) : 0,
            .grace_s = SWEEPER_GRACE_S,
            .keep = list.digest,
            .keep_count = list.count,
            .stop = &sweeper->stop,
        };

        sweeper->full = blob_store_full(sweeper->blobs);
        sweeper->early = full || tenants ? now + EARLY_TICKS : sweeper->early;
        sweeper->sweeping = true;
        blob_store_sweep_begins(sweeper->blobs);
        blob_sweep(sweeper->loop, &sweep, on_swept, sweeper);
    }
    set_wait(sweeper);
}

void sweeper_stop(struct sweeper *sweeper)
{
    atomic_store(&sweeper->stop, true);
    if (sweeper->blobs && !sweeper->sweeping) {
        set_wait(sweeper);
    }
}

bool sweeper_busy(const struct sweeper *sweeper)
{
    return sweeper->sweeping;
}
