// Jobs at the daemon: sends what they need (HAVE, BLOB_PUT), submits them by key, waits for all of
// them with few long polls, and tells each one's owner once. Survives a restart of the daemon: it
// reconnects with backoff and submits again by the same keys. Everything runs on the session's
// loop; callbacks never run inside job_client_submit.
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

#define JOB_CLIENT_PATIENCE_MS 300000 // how long a daemon that does not answer is waited for

struct job_client;
struct job_client_job; // submitted, until its callback runs

// A job is over. error is NULL when the daemon finished it: info->state is JOB_DONE (info->compiled
// or info->result is there), JOB_CANCELLED or JOB_BURIED (info->reason says why). A job that ended
// because there was no budget left for it gets ERR_BUDGET, however far it had come, and is
// forgotten: it may be submitted again. The callee may
// take the insides of *info and zero them. Otherwise error says why it could not be submitted, and
// info is NULL. tag is job_client_submit's.
typedef void job_client_callback(void *owner, uint64_t tag, struct job_info *info,
                                 const struct err *error);

// `search` names the search to the daemon; keys are unique within it. Connects (session_pool).
MUST_CHECK int job_client_create(struct job_client **ret, struct session *session,
                                 const char *search, struct err *err);
// The same over a connection of the caller's, which outlives the pool.
struct job_client *job_client_create_over(struct session *session, struct remote *remote,
                                          const char *search);
// Jobs that are still outstanding stay at the daemon; their callbacks do not run. Runs the loop a
// little to send what job_client_ack has queued. NULL is fine.
void job_client_close(struct job_client *job_client);

// Bytes that jobs may name by digest. Kept until job_client_close.
void job_client_add_blob(struct job_client *job_client, const void *data, size_t len,
                         struct digest *ret);
// Where blobs that were not added come from (a run file); *ret is then freed by the pool.
void job_client_set_blob_reader(struct job_client *job_client,
                                int (*read)(void *owner, const struct digest *digest,
                                            struct bytes *ret, struct err *err),
                                void *owner);
// What every job of this pool says of its search and for itself. By default nothing, and normal.
struct job_client_terms {
    double weight;         // of the search; NaN: as the daemon has it
    double budget_seconds; // device-seconds of the search; NaN: none
    enum queue_class in;
};
void job_client_set_terms(struct job_client *job_client, const struct job_client_terms *terms);
// What to do with sentences about a lost and a found connection (default: "kcast: <sentence>" on
// stderr), each at most once per loss.
void job_client_set_notice(struct job_client *job_client,
                           void (*notice)(void *owner, const char *sentence), void *owner);

// Instead of JOB_CLIENT_PATIENCE_MS; UINT64_MAX: it is waited for as long as there is a pool.
void job_client_set_patience(struct job_client *job_client, uint64_t patience_ms);

// The same key with the same spec is the same job, in this process and at the daemon. spec is
// copied. priority: lower goes first within the search.
struct job_client_job *job_client_submit(struct job_client *job_client, const char *key,
                                         const struct job_spec *spec, uint64_t priority,
                                         job_client_callback *callback, void *owner, uint64_t tag);
// Whether it was cancelled because there was no budget left for it.
bool job_client_is_over_budget(const struct job_info *info);
// Nobody wants the outcome of this job any more: it is cancelled at the daemon when that answers.
// Its callback runs as always, perhaps inside, with whatever came out.
void job_client_abandon(struct job_client *job_client, struct job_client_job *job);
// The number of a job that the daemon is known to have; 0: not yet.
uint64_t job_client_job_number(const struct job_client_job *job);
// Jobs whose callback has not run yet.
size_t job_client_outstanding(const struct job_client *job_client);
// The job's answer is safe here; the daemon may forget it. Sent soon, a failure is not reported (it
// forgets by itself).
void job_client_ack(struct job_client *job_client, uint64_t job);
// Stops everything that is outstanding, here and, as far as it answers within two seconds, at the
// daemon.
void job_client_cancel_all(struct job_client *job_client);

// Why the pool has given up (the daemon stayed away, or speaks nonsense); NULL while it has not.
const struct err *job_client_error(const struct job_client *job_client);
// Runs the loop once (waits for an event). ERR_STOPPED when the session is interrupted, or the
// pool's error.
MUST_CHECK int job_client_run_once(struct job_client *job_client, struct err *err);
// Runs the loop until nothing is outstanding.
MUST_CHECK int job_client_drain(struct job_client *job_client, struct err *err);

#endif
