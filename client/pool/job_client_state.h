// The parts of a job client that its own files share; nobody else includes this. job_client.c has
// the jobs, back-off and the interface, job_client_blobs.c what happens to blobs,
// job_client_calls.c the calls about jobs and the answers to all calls.
#ifndef CLIENT_POOL_JOB_CLIENT_STATE_H
#define CLIENT_POOL_JOB_CLIENT_STATE_H

#include "client/pool/job_client.h"
#include <uthash.h>
#include <utlist.h>

#define CALL_MS 5000       // deadline of a call that is answered at once
#define WAIT_JOBS_MAX 4096 // jobs of one WAIT, CANCEL or ACK, see proto/daemon.def

// MISSING: the daemon has said so, or it is not asked.
enum blob_state { BLOB_UNKNOWN, BLOB_ASKED, BLOB_MISSING, BLOB_SENDING, BLOB_KNOWN };
enum phase { PHASE_NEW, PHASE_SUBMITTING, PHASE_SUBMITTED };

struct blob {
    struct digest digest; // key
    enum blob_state state;
    bool ask_first;           // it is not sent before the daemon has been asked whether it has it
    struct bytes data;        // from job_client_add_blob; empty when it must be read
    struct blob *next, *prev; // in the client's list of those that are missing
    UT_hash_handle hh;
};

struct job_client_job {
    struct job_client_job *next, *prev; // in the client's list, in order of submission
    char *key;
    struct job_spec spec; // a deep copy
    uint64_t priority;
    enum phase phase;
    uint64_t id;         // number at the daemon; valid in phase SUBMITTED
    bool awaited;        // a WAIT that is under way includes it
    bool tried;          // a SUBMIT was sent, so the daemon may have the job
    bool known;          // the daemon had it before it was submitted here
    bool was_cancelled;  // likewise, and it had been cancelled by then
    bool unwanted;       // see job_client_abandon
    bool cancelled;      // a CANCEL was sent
    unsigned need_blobs; // how often SUBMIT asked for blobs
    job_client_callback *callback;
    void *owner;
    uint64_t tag;
};

// A call under way and what it is about.
struct call {
    struct call *next, *prev;      // in the client's list
    struct job_client *job_client; // NULL when the client was closed
    enum op op;
    struct job_client_job *job; // of SUBMIT; NULL when the job is gone
    struct digest *digest;      // of BLOB_HAVE and BLOB_PUT
    size_t digest_count;
    uint64_t *id; // numbers of jobs, of WAIT and CANCEL
    size_t id_count;
};

struct job_client {
    struct session *session;
    struct remote *remote;
    char *search;
    struct blob *blob;          // uthash
    struct blob *missing;       // of these, in state BLOB_MISSING; utlist
    struct job_client_job *job; // utlist
    size_t job_count;
    struct call *call; // utlist
    struct job_client_terms terms;
    size_t calls[64]; // number of calls under way, by operation
    uint64_t *ack;    // jobs whose acknowledgement is still to be sent
    size_t ack_count;
    uv_timer_t *timer;        // runs job_client_advance; freed by its close callback
    uv_timer_t *notice_timer; // reports an outage; freed by its close callback
    struct err outage;        // the last failure in a row
    uint64_t outage_since_ns; // monotonic time of the first failure in a row; 0: no outage
    uint64_t backoff_ms;      // the wait that is under way; 0: none
    uint64_t patience_ms;     // length of an outage after which the client gives up
    bool outage_reported;     // it was said that the daemon does not answer
    struct err error;         // why the client has given up
    int (*read)(void *owner, const struct digest *digest, struct bytes *ret, struct err *err);
    void *read_owner;
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
};

// ---- job_client.c ----

// Removes a job without a callback.
void job_client_free_job(struct job_client *job_client, struct job_client_job *job);
// Calls the job's callback. The job is removed before, so that its owner may submit it again.
void job_client_finish_job(struct job_client *job_client, struct job_client_job *job,
                           struct job_info *info, const struct err *error);
// Finishes an abandoned job that the daemon does not have.
void job_client_forget_job(struct job_client *job_client, struct job_client_job *job);
// Has job_client_advance run soon, unless a back-off is under way.
void job_client_schedule(struct job_client *job_client);
// Starts no more calls. error is what job_client_error returns from then on.
void job_client_give_up(struct job_client *job_client, const struct err *error);
// Starts no calls for a while, after a call failed. The longer the outage the longer the wait,
// until the client gives up. ERR_BUSY is an answer, so it is no outage, and the daemon says how
// long to wait.
void job_client_back_off(struct job_client *job_client, const struct err *error,
                         uint64_t retry_after_ms);
// Ends an outage, after a call was answered.
void job_client_outage_is_over(struct job_client *job_client);

// ---- job_client_blobs.c ----

// Notes of a blob, of which there may be no entry yet, where it is.
void job_client_set_blob(struct job_client *job_client, const struct digest *digest,
                         enum blob_state state);
// Whether the daemon has all blobs that a spec names.
bool job_client_blobs_known(struct job_client *job_client, const struct job_spec *spec);
// Asks about a spec's blobs again, after the daemon turned out not to have them or lost them.
void job_client_forget_blobs(struct job_client *job_client, const struct job_spec *spec);
// Asks the daemon which of the blobs that jobs need it has.
void job_client_ask_for_blobs(struct job_client *job_client);
// Sends the blobs that the daemon does not have.
void job_client_send_blobs(struct job_client *job_client);

// ---- job_client_calls.c ----

// Makes the entry of a call that is about to be sent with job_client_on_answer as its callback.
struct call *job_client_new_call(struct job_client *job_client, enum op op);
remote_callback job_client_on_answer;
// Starts every call that is possible now.
void job_client_advance(struct job_client *job_client);

#endif
