// Blobs: who has them, and how they get to the daemon.
#include "client/pool_state.h"
#include "common/mem.h"

#define PUT_MS 30000  // of one that carries a blob
#define HAVE_MAX 1024 // digests of one HAVE
#define PUTS_MAX 4    // at a time

struct blob *pool_find_blob(struct pool *pool, const struct digest *digest)
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

bool pool_blobs_known(struct pool *pool, const struct job_spec *spec)
{
    struct digest digest[4];
    size_t count = spec_digests(spec, digest);
    for (size_t i = 0; i < count; i++) {
        if (pool_find_blob(pool, &digest[i])->state != BLOB_KNOWN) {
            return false;
        }
    }
    return true;
}

void pool_forget_blobs(struct pool *pool, const struct job_spec *spec)
{
    struct digest digest[4];
    size_t count = spec_digests(spec, digest);
    for (size_t i = 0; i < count; i++) {
        struct blob *blob = pool_find_blob(pool, &digest[i]);
        if (blob->state == BLOB_KNOWN) {
            blob->state = BLOB_UNKNOWN;
        }
    }
}

void pool_add_blob(struct pool *pool, const void *data, size_t len, struct digest *ret)
{
    struct digest digest = digest_of(data, len);
    struct blob *blob = pool_find_blob(pool, &digest);
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

void pool_ask_for_blobs(struct pool *pool)
{
    struct digest *digest = NULL;
    size_t count = 0;
    struct pool_job *job;
    DL_FOREACH (pool->job, job) {
        struct digest named[4];
        size_t named_count = job->phase == PHASE_NEW && !job->unwanted ? spec_digests(&job->spec, named) : 0;
        for (size_t i = 0; i < named_count && count < HAVE_MAX; i++) {
            struct blob *blob = pool_find_blob(pool, &named[i]);
            if (blob->state == BLOB_UNKNOWN) {
                blob->state = BLOB_ASKED;
                digest = xrealloc(digest, count + 1, sizeof(*digest));
                digest[count++] = named[i];
            }
        }
    }
    if (count > 0) {
        struct call *call = pool_new_call(pool, OP_BLOB_HAVE);
        call->digest = digest;
        call->digest_count = count;
        struct blob_have have = {.digests = digest, .digests_count = count};
        remote_call(pool->remote, OP_BLOB_HAVE, &blob_have_message, &have, &blob_missing_message,
                    CALL_MS, pool_on_answer, call);
    }
}

void pool_send_blobs(struct pool *pool)
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
            pool_give_up(pool, &error);
            return;
        }
        struct blob_put put = {.digest = blob->digest,
                               .data = blob->data.data != NULL ? blob->data : own};
        struct call *call = pool_new_call(pool, OP_BLOB_PUT);
        call->digest = xmemdup(&blob->digest, sizeof(blob->digest));
        call->digest_count = 1;
        blob->state = BLOB_SENDING;
        remote_call(pool->remote, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, PUT_MS,
                    pool_on_answer, call);
        bytes_clear(&own);
    }
}
