// The inside of a pool, for the pool*.c files only: pool.c has jobs, trouble and the interface,
// job_client_blobs.c what is done about blobs, job_client_calls.c the calls about jobs and all answers.
#ifndef CLIENT_POOL_JOB_CLIENT_STATE_H
#define CLIENT_POOL_JOB_CLIENT_STATE_H

#include "client/pool/job_client.h"
#include <uthash.h>
#include <utlist.h>

#define CALL_MS 5000       // deadline of a call that is answered at once
#define WAIT_JOBS_MAX 4096 // of one WAIT or ACK, see daemon.def

enum blob_state { BLOB_UNKNOWN, BLOB_ASKED, BLOB_MISSING, BLOB_SENDING, BLOB_KNOWN };
enum phase { PHASE_NEW, PHASE_SUBMITTING, PHASE_OUT };

struct blob {
    struct digest digest; // key
    enum blob_state state;
    struct bytes data; // of job_client_add_blob; NULL when a reader has it
    UT_hash_handle hh;
};

struct job_client_job {
    struct job_client_job *next, *prev; // in pool->job, in order of submission
    char *key;
    struct job_spec spec; // deep copy
    uint64_t priority;
    enum phase phase;
    uint64_t id;         // at the daemon; in phase OUT
    bool covered;        // by a WAIT in submission
    bool tried;          // the daemon may have it: a SUBMIT was sent
    bool known;          // the daemon had it before it was submitted
    bool unwanted;       // job_client_abandon
    bool cancelled;      // CANCEL was sent
    unsigned need_blobs; // how often SUBMIT asked for blobs
    job_client_callback *callback;
    void *owner;
    uint64_t tag;
};

// A call in submission, and what it is about.
struct call {
    struct call *next, *prev;      // in pool->call
    struct job_client *job_client; // NULL once the pool is closed
    enum op op;
    struct job_client_job *job; // SUBMIT
    struct digest *digest;      // HAVE and PUT
    size_t digest_count;
    uint64_t *id; // WAIT, CANCEL and ACK
    size_t id_count;
};

struct job_client {
    struct session *session;
    struct remote *remote;
    char *search;
    struct blob *blob;          // uthash
    struct job_client_job *job; // utlist
    size_t job_count;
    struct call *call;
    struct job_client_terms terms;
    size_t calls[64]; // in submission, by op
    uint64_t *ack;    // waiting to be sent
    size_t ack_count;
    uv_timer_t *timer;      // freed by its close callback
    uv_timer_t *notice_due; // the same; runs from the first failure in a row on
    struct err trouble;     // the last failure in a row
    uint64_t trouble_since; // monotonic ns of the first failure in a row; 0: none
    uint64_t backoff_ms;    // 0: no backoff is running
    uint64_t patience_ms;   // with a daemon that does not answer
    bool noticed;           // said that the daemon does not answer
    struct err error;       // given up
    int (*read)(void *owner, const struct digest *digest, struct bytes *ret, struct err *err);
    void *read_owner;
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
};

// ---- pool.c ----

void job_client_free_job(struct job_client *job_client, struct job_client_job *job);
// Hands the outcome over; the job is gone before its owner hears of it, so that the owner may
// submit again.
void job_client_finish_job(struct job_client *job_client, struct job_client_job *job,
                           struct job_info *info, const struct err *error);
// The same for an unwanted job that the daemon does not have.
void job_client_forget_job(struct job_client *job_client, struct job_client_job *job);
// Looks at everything soon.
void job_client_kick(struct job_client *job_client);
// Nothing more is started; error is for job_client_error.
void job_client_give_up(struct job_client *job_client, const struct err *error);
// Nothing is started for a while. Longer and longer while it goes on, and in the end never again;
// as long as it says with ERR_BUSY, which is an answer.
void job_client_back_off(struct job_client *job_client, const struct err *error,
                         uint64_t retry_after_ms);
// A call was answered.
void job_client_trouble_is_over(struct job_client *job_client);

// ---- job_client_blobs.c ----

// The entry of a digest, new if need be.
struct blob *job_client_find_blob(struct job_client *job_client, const struct digest *digest);
// All blobs that a spec names are at the daemon.
bool job_client_blobs_known(struct job_client *job_client, const struct job_spec *spec);
// The daemon turned out not to have them, or may have forgotten them.
void job_client_forget_blobs(struct job_client *job_client, const struct job_spec *spec);
// HAVE for what is unknown, PUT for what is missing.
void job_client_ask_for_blobs(struct job_client *job_client);
void job_client_send_blobs(struct job_client *job_client);

// ---- job_client_calls.c ----

// A call that is about to be made with on_answer as its callback.
struct call *job_client_new_call(struct job_client *job_client, enum op op);
remote_callback job_client_on_answer;
// Starts every call that is possible now.
void job_client_advance(struct job_client *job_client);

#endif
