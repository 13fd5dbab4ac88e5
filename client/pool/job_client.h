// Jobs at one daemon: sends the blobs that jobs need, submits jobs by key, waits for all of them
// with few long polls, and tells each owner once. Survives a restart of the daemon: it connects
// again with back-off and submits again by the same keys. client/pool/daemon_pool.c has one for
// every daemon. Everything runs on the session's loop, and callbacks never run inside
// job_client_submit. It knows nothing of searches but their name.
#ifndef CLIENT_POOL_JOB_CLIENT_H
#define CLIENT_POOL_JOB_CLIENT_H

#include "client/session.h"
#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"
#include "proto/queue_class.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How long a daemon that does not answer is waited for.
#define JOB_CLIENT_PATIENCE_MS 300000

struct job_client;
struct job_client_job; // a job that was submitted and whose callback has not run yet

// A job is over. Without an error the daemon finished it: info->state is JOB_DONE (info->compiled
// or info->result is there), JOB_CANCELLED or JOB_BURIED (info->reason says why). The callee may
// take parts of *info over by zeroing them. With an error the job could not be submitted, and info
// is NULL. A job that was cancelled because the search's budget is used up gets ERR_BUDGET, however
// far it had come, and is forgotten, so that it may be submitted again. tag is that of
// job_client_submit.
typedef void job_client_callback(void *owner, uint64_t tag, struct job_info *info,
                                 const struct err *error);

// Creates a client over a connection, which stays the caller's and outlives the client. search
// names the search to the daemon; keys are unique within it.
struct job_client *job_client_create(struct session *session, struct remote *remote,
                                     const char *search);
// Jobs that are still outstanding stay at the daemon, and their callbacks do not run. Runs the loop
// for a moment to send what job_client_ack has queued. NULL is fine.
void job_client_close(struct job_client *job_client);

// Adds bytes that jobs may name by digest. They are copied and kept until job_client_close. ret,
// which may be NULL, receives the digest.
void job_client_add_blob(struct job_client *job_client, const void *data, size_t len,
                         struct digest *ret);
// Sets where blobs come from that were not added, such as a run file. The client frees what read
// returns.
void job_client_set_blob_reader(struct job_client *job_client,
                                int (*read)(void *owner, const struct digest *digest,
                                            struct bytes *ret, struct err *err),
                                void *owner);
// What every submission says about its search and about itself. The default says nothing about the
// search and has class normal.
struct job_client_terms {
    double weight;          // of the search among those of its owner; NaN: as the daemon has it
    double budget_seconds;  // device seconds of the whole search; NaN: no budget
    enum queue_class in;    // class of the daemon's queue
    uint64_t planned;       // measurements that the search means to make; 0: not said
    double planned_seconds; // device seconds that it means to use; 0 or NaN: not said
};
void job_client_set_terms(struct job_client *job_client, const struct job_client_terms *terms);
// Sets who receives the sentences about a lost and a found connection, each at most once per loss.
// The default writes "kcast: <sentence>" to stderr.
void job_client_set_notice(struct job_client *job_client,
                           void (*notice)(void *owner, const char *sentence), void *owner);
// Replaces JOB_CLIENT_PATIENCE_MS. With UINT64_MAX the client never gives up.
void job_client_set_patience(struct job_client *job_client, uint64_t patience_ms);

// Submits a job. The same key with the same spec is the same job, in this process and at the
// daemon, unless it was cancelled there before: then it is submitted anew. spec is copied. Within
// the search, jobs with a lower priority go first. The job is valid until its callback runs.
struct job_client_job *job_client_submit(struct job_client *job_client, const char *key,
                                         const struct job_spec *spec, uint64_t priority,
                                         job_client_callback *callback, void *owner, uint64_t tag);
// Whether a job was cancelled because its search's budget is used up. Only the cause that the
// daemon gives counts: old daemons give none, and nothing is guessed from their sentences.
bool job_client_is_over_budget(const struct job_info *info);
// Says that nobody wants the outcome of the job any more. It is cancelled at the daemon as soon as
// that answers. Its callback runs as always, perhaps inside this call, with whatever came out.
void job_client_abandon(struct job_client *job_client, struct job_client_job *job);
// The number that the daemon gave the job; 0 when it is not known yet.
uint64_t job_client_job_number(const struct job_client_job *job);
// Says that the answer of a job is recorded, so that the daemon may forget the job. It is sent
// soon. A failure is not reported, as the daemon forgets old jobs by itself.
void job_client_ack(struct job_client *job_client, uint64_t job);
// Drops all outstanding jobs without callbacks, and cancels them at the daemon if that answers
// within two seconds.
void job_client_cancel_all(struct job_client *job_client);

// Why the client has given up: the daemon stayed away, or violates the protocol. NULL while it has
// not given up.
const struct err *job_client_error(const struct job_client *job_client);
// Runs the loop once, which waits for an event. ERR_STOPPED when the session is interrupted, or the
// error for which the client has given up.
MUST_CHECK int job_client_run_once(struct job_client *job_client, struct err *err);
// Runs the loop until nothing is outstanding. Errors as job_client_run_once.
MUST_CHECK int job_client_drain(struct job_client *job_client, struct err *err);

#endif
