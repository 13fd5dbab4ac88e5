// What the daemon has promised: jobs, results, compilations. One SQLite file, written and read by
// one thread of its own in batches, one commit per batch; the loop only posts operations and gets
// their outcome back in the order it posted them. An operation's done callback with no error means:
// committed, on the disk.
#ifndef DAEMON_STORE_LEDGER_H
#define DAEMON_STORE_LEDGER_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct account;
struct ledger;

// One job as the ledger has it.
struct ledger_job {
    uint64_t id;
    const char *tenant;
    const char *search;
    const char *key;
    struct bytes spec; // packed job_spec
    uint64_t priority;
    uint64_t state; // enum job_state as it was at the last commit
    uint64_t attempt;
    uint64_t wanted_class; // enum queue_class
    const char *reason;    // of CANCELLED and BURIED, else NULL
    uint64_t cause;        // enum job_cause; NONE when a kcastd wrote it that knew no causes
    int64_t finished_s;    // wall clock, 0 while unfinished
};

// Opens or creates path, checks it and brings it to the newest schema. No thread yet. ERR_CORRUPT
// when it is damaged or is no ledger (nothing is changed then), ERR_VERSION when a newer kcastd
// wrote it. page_max: largest size in pages, for tests of a full disk; 0: no limit.
MUST_CHECK int ledger_open(struct ledger **ret, const char *path, uint64_t page_max,
                           struct err *err);
// Before ledger_start: visits every job, oldest first; the row is valid during the visit.
MUST_CHECK int ledger_load(struct ledger *ledger,
                           int (*visit)(void *owner, const struct ledger_job *job, struct err *err),
                           void *owner, struct err *err);
// An account that is kept, as the ledger has it.
struct ledger_account {
    const char *tenant;
    const char *search; // NULL: the tenant's
    double weight;
    double limit_s;    // NaN: none
    double per_hour_s; // NaN: none
    double used_s;
    double tokens_s;
    int64_t at_s; // wall clock
};
// Before ledger_start: visits every account; the row is valid during the visit. Searches' accounts
// that nothing was charged to for LEDGER_ACCOUNT_DAYS are forgotten first.
#define LEDGER_ACCOUNT_DAYS 30
MUST_CHECK int ledger_load_accounts(struct ledger *ledger,
                                    void (*visit)(void *owner, const struct ledger_account *row),
                                    void *owner, struct err *err);
// On the wire of no message, but in files: never renumbered.
enum ledger_order_kind { LEDGER_DRAIN = 1, LEDGER_QUARANTINE = 2 };

// Likewise every order that an operator has given and not taken back. reason may be NULL.
MUST_CHECK int ledger_load_administration(struct ledger *ledger,
                                          void (*visit)(void *owner, const char *device,
                                                        uint64_t kind, const char *reason),
                                          void *owner, struct err *err);
// The number for the next new job: above every number ever used. Counts up by itself.
uint64_t ledger_next_job(struct ledger *ledger);
// Before ledger_start: each of the two caches keeps so many entries, those that were used or written
// last; 0: all of them, as without this call. A new entry has at most a thousand old ones go.
void ledger_limit(struct ledger *ledger, uint64_t entries);
// Starts the thread.
MUST_CHECK int ledger_start(struct ledger *ledger, uv_loop_t *loop, struct err *err);
// Carries out what was posted, runs the callbacks, ends the thread and closes the file. Blocks for
// that; the loop has to run once more afterwards. NULL and a ledger that was not started are fine.
void ledger_close(struct ledger *ledger);

// Rows in the result cache.
uint64_t ledger_results(const struct ledger *ledger);

// Bytes of its files as they were after the last commit.
uint64_t ledger_bytes(const struct ledger *ledger);

// error is NULL on success. answer[0..count) as each function says; the callee may take bytes and
// zero them. Runs on the loop thread, never inside the function that posted. NULL callbacks are
// fine.
typedef void ledger_done(void *owner, const struct err *error, struct bytes *answer, size_t count);

// Decides on the ledger's thread whether a cached result may answer a job, and may rewrite it. Must
// touch nothing but its arguments.
typedef bool ledger_adopt(const struct bytes *spec, double cached_cap_s, struct bytes *result);

// A new job. When cache_key is not NULL and the cache has an entry that adopt accepts, the job is
// stored as DONE with it and answer[0] is the result; otherwise as QUEUED and answer[0] is empty.
void ledger_submit(struct ledger *ledger, const struct ledger_job *job,
                   const struct digest *cache_key, ledger_adopt *adopt, ledger_done *done,
                   void *owner);
// The same question later: answer[0] is the cached result that adopt accepts for spec, else empty.
void ledger_read_cached(struct ledger *ledger, const struct digest *cache_key,
                        const struct bytes *spec, ledger_adopt *adopt, ledger_done *done,
                        void *owner);
// The job's state and attempt as they are now (RUNNING, or QUEUED again).
void ledger_move(struct ledger *ledger, uint64_t job, uint64_t state, uint64_t attempt,
                 ledger_done *done, void *owner);

struct ledger_end {
    uint64_t job;
    uint64_t state; // DONE, CANCELLED, BURIED
    uint64_t attempt;
    const char *reason;             // may be NULL
    uint64_t cause;                 // enum job_cause
    const struct bytes *result;     // packed; may be NULL
    const struct digest *cache_key; // also into the result cache under this key; NULL: not
    double cap_s;                   // max_seconds that a cached result was measured under
};
// The job has ended. The newest result of a cache key is the one that stays.
void ledger_finish(struct ledger *ledger, const struct ledger_end *end, ledger_done *done,
                   void *owner);
// Deletes finished jobs. Caches stay.
void ledger_forget(struct ledger *ledger, const uint64_t *jobs, size_t count, ledger_done *done,
                   void *owner);
// answer[i]: the packed result of jobs[i], empty when it has none.
void ledger_read_results(struct ledger *ledger, const uint64_t *jobs, size_t count,
                         ledger_done *done, void *owner);

// Compile cache: answer[0] is the packed `compiled` message, empty when unknown.
void ledger_read_compiled(struct ledger *ledger, const struct digest *key, ledger_done *done,
                          void *owner);
void ledger_keep_compiled(struct ledger *ledger, const struct digest *key,
                          const struct bytes *compiled, ledger_done *done, void *owner);
void ledger_drop_compiled(struct ledger *ledger, const struct digest *key);
// The account as it is now.
void ledger_keep_account(struct ledger *ledger, const struct account *account, ledger_done *done,
                         void *owner);
// An operator's order for a device, in the place of an earlier one of the same kind; or none any
// more.
void ledger_order(struct ledger *ledger, const char *device, enum ledger_order_kind kind,
                  const char *reason, ledger_done *done, void *owner);
void ledger_drop_order(struct ledger *ledger, const char *device, enum ledger_order_kind kind,
                       ledger_done *done, void *owner);
// Does nothing; done runs after everything posted before.
void ledger_barrier(struct ledger *ledger, ledger_done *done, void *owner);

#endif
