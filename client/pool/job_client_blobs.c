// Which blobs the daemon has, and how the others get there. A candidate is seldom known there, so
// one that is small is sent without asking: that is one answer less to wait for. Not so where
// several come at once, as when a folder is measured again.
#include "client/pool/job_client_state.h"

#include "common/mem.h"

#define PUT_MS 30000                   // deadline of a call that carries a blob
#define HAVE_MAX 1024                  // digests of one BLOB_HAVE
#define PUTS_MAX 4                     // blobs that are sent at the same time
#define UNASKED_MAX ((size_t)64 << 10) // bytes of a candidate that is sent without asking

// The entry of a digest, which is made when there is none.
static struct blob *find_blob(struct job_client *job_client, const struct digest *digest)
{
    struct blob *blob;
    HASH_FIND(hh, job_client->blob, digest->byte, DIGEST_LEN, blob);
    if (!blob) {
        blob = xcalloc(1, sizeof(*blob));
        blob->digest = *digest;
        HASH_ADD(hh, job_client->blob, digest.byte, DIGEST_LEN, blob);
    }
    return blob;
}

// The only way in which a blob comes to another state.
static void set_blob(struct job_client *job_client, struct blob *blob, enum blob_state state)
{
    if (blob->state == BLOB_MISSING) {
        DL_DELETE(job_client->missing, blob);
    }
    if (state == BLOB_MISSING) {
        DL_APPEND(job_client->missing, blob);
    }
    blob->state = state;
}

void job_client_set_blob(struct job_client *job_client, const struct digest *digest,
                         enum blob_state state)
{
    set_blob(job_client, find_blob(job_client, digest), state);
}

// Lists the blobs that a spec names.
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

bool job_client_blobs_known(struct job_client *job_client, const struct job_spec *spec)
{
    struct digest digest[4];
    size_t count = spec_digests(spec, digest);
    for (size_t i = 0; i < count; i++) {
        if (find_blob(job_client, &digest[i])->state != BLOB_KNOWN) {
            return false;
        }
    }
    return true;
}

void job_client_forget_blobs(struct job_client *job_client, const struct job_spec *spec)
{
    struct digest digest[4];
    size_t count = spec_digests(spec, digest);
    for (size_t i = 0; i < count; i++) {
        struct blob *blob = find_blob(job_client, &digest[i]);
        if (blob->state == BLOB_KNOWN) {
            set_blob(job_client, blob, BLOB_UNKNOWN);
        }
    }
}

void job_client_add_blob(struct job_client *job_client, const void *data, size_t len,
                         struct digest *ret)
{
    struct digest digest = digest_of(data, len);
    struct blob *blob = find_blob(job_client, &digest);
    if (!blob->data.data) {
        blob->data = bytes_copy(data, len);
    }
    if (ret) {
        *ret = digest;
    }
}

void job_client_ask_for_blobs(struct job_client *job_client)
{
    struct digest *digest = NULL;
    struct blob *waits;
    size_t count = 0, unasked = 0;
    DL_COUNT(job_client->missing, waits, unasked);
    unasked += job_client->calls[OP_BLOB_PUT];
    struct job_client_job *job;
    DL_FOREACH (job_client->job, job) {
        struct digest named[4];
        size_t named_count =
            job->phase == PHASE_NEW && !job->unwanted ? spec_digests(&job->spec, named) : 0;
        for (size_t i = 0; i < named_count && count < HAVE_MAX; i++) {
            struct blob *blob = find_blob(job_client, &named[i]);
            if (blob->state != BLOB_UNKNOWN) {
                continue;
            }
            if (unasked < PUTS_MAX && !blob->ask_first &&
                digest_equal(&named[i], &job->spec.candidate)) {
                set_blob(job_client, blob, BLOB_MISSING);
                unasked++;
            } else {
                set_blob(job_client, blob, BLOB_ASKED);
                blob->ask_first = true;
                digest = xrealloc(digest, count + 1, sizeof(*digest));
                digest[count++] = named[i];
            }
        }
    }
    if (count > 0) {
        struct call *call = job_client_new_call(job_client, OP_BLOB_HAVE);
        call->digest = digest;
        call->digest_count = count;
        struct blob_have have = {.digests = digest, .digests_count = count};
        remote_call(job_client->remote, OP_BLOB_HAVE, &blob_have_message, &have,
                    &blob_missing_message, CALL_MS, job_client_on_answer, call);
    }
}

// The bytes of a blob, which may be read into *own; NULL when nobody has them.
static const struct bytes *bytes_of(const struct job_client *job_client, const struct blob *blob,
                                    struct bytes *own, struct err *err)
{
    if (blob->data.data) {
        return &blob->data;
    }
    return job_client->read &&
                   job_client->read(job_client->read_owner, &blob->digest, own, err) == 0
               ? own
               : NULL;
}

static void send_blob(struct job_client *job_client, struct blob *blob, const struct bytes *data)
{
    struct blob_put put = {.digest = blob->digest, .data = *data};
    struct call *call = job_client_new_call(job_client, OP_BLOB_PUT);
    call->digest = xmemdup(&blob->digest, sizeof(blob->digest));
    call->digest_count = 1;
    set_blob(job_client, blob, BLOB_SENDING);
    remote_call(job_client->remote, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, PUT_MS,
                job_client_on_answer, call);
}

void job_client_send_blobs(struct job_client *job_client)
{
    struct blob *blob, *next;
    DL_FOREACH_SAFE (job_client->missing, blob, next) {
        if (job_client->calls[OP_BLOB_PUT] >= PUTS_MAX) {
            return;
        }
        struct bytes own = {0};
        struct err error = ERR_INIT;
        const struct bytes *data = bytes_of(job_client, blob, &own, &error);
        if (!blob->ask_first && (!data || data->len > UNASKED_MAX)) {
            blob->ask_first = true;
            set_blob(job_client, blob, BLOB_UNKNOWN);
            job_client_schedule(job_client);
        } else if (!data) {
            err_set(&error, ERR_PROTOCOL, "the daemon asks for bytes that nobody has");
            job_client_give_up(job_client, &error);
            return;
        } else {
            send_blob(job_client, blob, data);
        }
        bytes_clear(&own);
    }
}
