// Jobs at the daemon: sends what they need (HAVE, BLOB_PUT), submits them by key, waits for all of
// them with few long polls, and tells each one's owner once. Survives a restart of the daemon: it
// reconnects with backoff and submits again by the same keys. Everything runs on the session's
// loop; callbacks never run inside pool_submit.
#ifndef CLIENT_POOL_H
#define CLIENT_POOL_H

#include "client/problem_dir.h"
#include "client/session.h"
#include "common/digest.h"
#include "common/err.h"
#include "contract/queue_class.h"
#include "proto/all.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_PATIENCE_MS 300000 // how long a daemon that does not answer is waited for

struct pool;

// A job is over. error is NULL when the daemon finished it: info->state is JOB_DONE (info->compiled
// or info->result is there), JOB_CANCELLED or JOB_BURIED (info->reason says why). A job that ended
// because there was no budget left for it gets ERR_BUDGET, however far it had come, and is
// forgotten: it may be submitted again. The callee may
// take the insides of *info and zero them. Otherwise error says why it could not be submitted, and
// info is NULL. tag is pool_submit's.
typedef void pool_callback(void *owner, uint64_t tag, struct job_info *info,
                           const struct err *error);

// `search` names the search to the daemon; keys are unique within it. Connects (session_pool).
MUST_CHECK int pool_create(struct pool **ret, struct session *session, const char *search,
                           struct err *err);
// The same over a connection of the caller's, which outlives the pool.
struct pool *pool_create_over(struct session *session, struct remote *remote, const char *search);
// Jobs that are still outstanding stay at the daemon; their callbacks do not run. Runs the loop a
// little to send what pool_ack has queued. NULL is fine.
void pool_close(struct pool *pool);

// Bytes that jobs may name by digest. Kept until pool_close.
void pool_add_blob(struct pool *pool, const void *data, size_t len, struct digest *ret);
// problem.json, reference and baseline of a folder.
void pool_add_problem(struct pool *pool, const struct problem_dir *dir);
// Where blobs that were not added come from (a run file); *ret is then freed by the pool.
void pool_set_blob_reader(struct pool *pool,
                          int (*read)(void *owner, const struct digest *digest, struct bytes *ret,
                                      struct err *err),
                          void *owner);
// What every job of this pool says of its search and for itself. By default nothing, and normal.
struct pool_terms {
    double weight;         // of the search; NaN: as the daemon has it
    double budget_seconds; // device-seconds of the search; NaN: none
    enum queue_class in;
};
void pool_set_terms(struct pool *pool, const struct pool_terms *terms);
// What to do with sentences about a lost and a found connection (default: "kcast: <sentence>" on
// stderr), each at most once per loss.
void pool_set_notice(struct pool *pool, void (*notice)(void *owner, const char *sentence),
                     void *owner);

// Instead of POOL_PATIENCE_MS; UINT64_MAX: it is waited for as long as there is a pool.
void pool_set_patience(struct pool *pool, uint64_t patience_ms);

// The same key with the same spec is the same job, in this process and at the daemon. spec is
// copied. priority: lower goes first within the search.
void pool_submit(struct pool *pool, const char *key, const struct job_spec *spec, uint64_t priority,
                 pool_callback *callback, void *owner, uint64_t tag);
// Whether it was cancelled because there was no budget left for it.
bool pool_is_over_budget(const struct job_info *info);
// Nobody wants the outcome of this job any more: it is cancelled at the daemon when that answers.
// Its callback runs as always, perhaps inside, with whatever came out.
void pool_abandon(struct pool *pool, const char *key);
// The number of a job that the daemon is known to have; 0: not yet, or over.
uint64_t pool_job_number(const struct pool *pool, const char *key);
// Jobs whose callback has not run yet.
size_t pool_outstanding(const struct pool *pool);
// The job's answer is safe here; the daemon may forget it. Sent soon, a failure is not reported (it
// forgets by itself).
void pool_ack(struct pool *pool, uint64_t job);
// Stops everything that is outstanding, here and, as far as it answers within two seconds, at the
// daemon.
void pool_cancel_all(struct pool *pool);

// Why the pool has given up (the daemon stayed away, or speaks nonsense); NULL while it has not.
const struct err *pool_error(const struct pool *pool);
// Runs the loop once (waits for an event). ERR_STOPPED when the session is interrupted, or the
// pool's error.
MUST_CHECK int pool_run_once(struct pool *pool, struct err *err);
// Runs the loop until nothing is outstanding.
MUST_CHECK int pool_drain(struct pool *pool, struct err *err);

#endif
