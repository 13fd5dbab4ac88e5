// Design note. A check takes microseconds, and to hand it to another thread and back takes several
// times as long. So what a caller asks while its earlier checks wait or are under way is gathered
// and handed over together: one turn in the line, one unit of work. Under a flood of questions
// the threads wake each other rarely. (A thread that others wake without a pause may keep a
// processor from everything else that is to run there, what completes writes to a disk included.)
//
// A batch takes further checks until its turn comes or it is full; each caller has at most one such
// batch. A check whose blobs are all in memory stands in no line.
#include "common/later.h"
#include "daemon/store/blob_inside.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define BATCH_CHECKS 32    // answered in one turn of the loop
#define BATCH_DIGESTS 1024 // a batch that has so many takes no further check

struct check {
    struct digest *digest; // all that were given
    size_t count;
    struct digest *missing; // in the same order
    size_t missing_count;
    blob_check_done *done;
    void *owner;
    struct check *next;
};

struct check_batch {
    uv_work_t work;
    struct blob_store *store;
    struct line_place place;
    char *caller;
    struct check *checks; // list, oldest first
    size_t count;         // of checks
    size_t digests;       // of all checks
    UT_hash_handle hh;    // in store->gathering, by caller
};

static void check_one(const struct blob_store *store, struct check *check)
{
    for (size_t i = 0; i < check->count; i++) {
        if (!blob_have(store, &check->digest[i])) {
            check->missing[check->missing_count++] = check->digest[i];
        }
    }
}

static void check_work(uv_work_t *work)
{
    struct check_batch *batch = work->data;
    struct check *check;

    LL_FOREACH (batch->checks, check) {
        check_one(batch->store, check);
    }
}

static void check_free(struct check *check)
{
    free(check->digest);
    free(check->missing);
    free(check);
}

// Remembers what has been found on the disk.
static void remember(const struct blob_store *store, const struct check *check)
{
    size_t missing = 0;

    for (size_t i = 0; i < check->count; i++) {
        if (missing < check->missing_count &&
            digest_equal(&check->digest[i], &check->missing[missing])) {
            blob_memory_forget(store->memory, &check->digest[i]);
            missing++;
        } else {
            blob_memory_add(store->memory, &check->digest[i], NULL, uv_now(store->loop));
        }
    }
}

static void on_checked(uv_work_t *work, int status)
{
    struct check_batch *batch = work->data;
    struct check *check, *next;

    (void)status; // the work is never cancelled
    line_leave(&batch->place);
    LL_FOREACH_SAFE (batch->checks, check, next) {
        remember(batch->store, check);
        check->done(check->owner, check->missing, check->missing_count);
        check_free(check);
    }
    free(batch->caller);
    free(batch);
}

static void stop_gathering(struct check_batch *batch)
{
    struct check_batch *open;

    HASH_FIND_STR(batch->store->gathering, batch->caller, open);
    if (open == batch) {
        HASH_DEL(batch->store->gathering, batch);
    }
}

static void on_turn_to_check(void *owner)
{
    struct check_batch *batch = owner;

    stop_gathering(batch);
    blob_queue_work(batch->store, &batch->work, check_work, on_checked);
}

static void add_to_batch(struct check_batch *batch, struct check *check)
{
    LL_APPEND(batch->checks, check);
    batch->count++;
    batch->digests += check->count;
    if (batch->count >= BATCH_CHECKS || batch->digests >= BATCH_DIGESTS) {
        stop_gathering(batch);
    }
}

// Begins a batch with this check and enters it into the line.
static void begin_batch(struct blob_store *store, const char *caller, struct check *check)
{
    struct check_batch *batch = xcalloc(1, sizeof(*batch));

    batch->work.data = batch;
    batch->store = store;
    batch->caller = xstrdup(caller);
    HASH_ADD_KEYPTR(hh, store->gathering, batch->caller, strlen(batch->caller), batch);
    add_to_batch(batch, check);
    line_enter(store->line, &batch->place, caller, on_turn_to_check, batch);
}

// Ends a check that is answered from memory.
static void finish_remembered(void *owner)
{
    struct check *check = owner;

    check->done(check->owner, check->missing, 0);
    check_free(check);
}

static bool are_remembered(const struct blob_store *store, const struct check *check)
{
    size_t found = 0;

    while (found < check->count &&
           blob_memory_has(store->memory, &check->digest[found], uv_now(store->loop))) {
        found++;
    }
    return found == check->count;
}

void blob_check(struct blob_store *store, const struct blob_caller *caller,
                const struct digest *digests, size_t count, blob_check_done *done, void *owner)
{
    struct check *check = xcalloc(1, sizeof(*check));
    struct check_batch *batch;

    check->digest = xcalloc(count + 1, sizeof(*digests));
    check->missing = xcalloc(count + 1, sizeof(*digests));
    if (count > 0) {
        memcpy(check->digest, digests, count * sizeof(*digests));
    }
    check->count = count;
    check->done = done;
    check->owner = owner;
    if (are_remembered(store, check)) {
        later_run(store->loop, finish_remembered, check);
        return;
    }
    HASH_FIND_STR(store->gathering, caller->name, batch);
    if (batch) {
        add_to_batch(batch, check);
    } else {
        begin_batch(store, caller->name, check);
    }
}
