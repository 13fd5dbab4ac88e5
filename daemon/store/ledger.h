// The ledger: what the daemon has promised to keep, which is jobs, results, compilations, accounts
// and orders of operators. It is one SQLite file. A thread of its own reads and writes it in
// batches, with one commit per batch. The loop posts operations and gets their answers back in the
// order of posting; an operation that comes back without an error has been committed and is on the
// disk. Called by every module that must remember something. No other module knows SQLite.
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

// One job, as it is in the ledger. The texts belong to whoever fills this.
struct ledger_job {
    uint64_t id;
    const char *tenant;
    const char *search;
    const char *key;
    struct bytes spec; // packed job_spec
    uint64_t priority;
    uint64_t state; // enum job_state at the last commit
    uint64_t attempt;
    uint64_t wanted_class; // enum queue_class that the client wants
    const char *reason;    // why it was CANCELLED or BURIED, else NULL
    uint64_t cause;        // enum job_cause; NONE in a job of an older kcastd, which knew no causes
    int64_t finished_s;    // wall clock in seconds since 1970; 0 while unfinished
};

// Opens or creates path, checks it and brings it to the newest schema; starts no thread.
// ERR_CORRUPT when the file is damaged or is no ledger, or its write-ahead log is of another
// database, ERR_VERSION when a newer kcastd wrote it; the file is unchanged then. What may be
// missing because the write-ahead log is damaged is told in the log. page_max is the largest size
// in pages, for tests of a full disk; 0: no limit.
MUST_CHECK int ledger_open(struct ledger **ret, const char *path, uint64_t page_max,
                           struct err *err);
// Visits every job, oldest first; a row is valid during its visit. To be called before
// ledger_start. A job whose row is not as it was written is told, removed and not visited.
MUST_CHECK int ledger_load(struct ledger *ledger,
                           int (*visit)(void *owner, const struct ledger_job *job, struct err *err),
                           void *owner, struct err *err);

// One account, as it is in the ledger.
struct ledger_account {
    const char *tenant;
    const char *search; // NULL: the account of the tenant
    double weight;
    double limit_s;    // device seconds; NaN: no limit
    double per_hour_s; // device seconds per hour; NaN: no limit
    double used_s;     // device seconds
    double tokens_s;   // device seconds that the limit per hour leaves
    int64_t at_s;      // wall clock when it was written
};

// Visits every account but those that are damaged; a row is valid during its visit. Accounts of
// searches that were not written for LEDGER_ACCOUNT_DAYS are deleted first. To be called before
// ledger_start.
#define LEDGER_ACCOUNT_DAYS 30
MUST_CHECK int ledger_load_accounts(struct ledger *ledger,
                                    void (*visit)(void *owner, const struct ledger_account *row),
                                    void *owner, struct err *err);

// What an operator has ordered for a device. The numbers are in files and never change.
enum ledger_order_kind { LEDGER_DRAIN = 1, LEDGER_QUARANTINE = 2 };

// Visits every order that an operator has given and not taken back; reason may be NULL. One that is
// damaged has become an order to drain the device that it names. To be called before ledger_start.
MUST_CHECK int ledger_load_orders(struct ledger *ledger,
                                  void (*visit)(void *owner, const char *device, uint64_t kind,
                                                const char *reason),
                                  void *owner, struct err *err);
// Returns the number for a new job, which is above every number ever used. Each call returns
// another one.
uint64_t ledger_next_job(struct ledger *ledger);
// Each of the two caches keeps this many entries, those that were used or written last; 0: all of
// them. A new entry pushes at most a thousand old ones out. To be called before ledger_start.
void ledger_limit(struct ledger *ledger, uint64_t entries);
// Starts the thread. ERR_SYSTEM when that is impossible.
MUST_CHECK int ledger_start(struct ledger *ledger, uv_loop_t *loop, struct err *err);
// Carries out what was posted, calls the callbacks, ends the thread and closes the file. Blocks
// until that is done. The loop has to run once more afterwards. NULL and a ledger that was not
// started are fine.
void ledger_close(struct ledger *ledger);

// The number of entries in the result cache.
uint64_t ledger_results(const struct ledger *ledger);

// The size of its files in bytes after the last batch.
uint64_t ledger_bytes(const struct ledger *ledger);

// The number of rows that were found damaged since the ledger was opened, after the last batch.
// Each was told in the log and removed (ledger_damage.h).
uint64_t ledger_damaged(const struct ledger *ledger);

// error is NULL on success. answer[0..count) is what the function says; the callee may take bytes
// and zero them. Called on the loop thread, never inside the function that posted. A callback may
// be NULL.
typedef void ledger_done(void *owner, const struct err *error, struct bytes *answer, size_t count);

// Decides whether a cached result may answer a job of this packed spec, and may rewrite the result.
// Called on the ledger's thread, so it must touch nothing but its arguments.
typedef bool ledger_adopt(const struct bytes *spec, double cached_cap_s, struct bytes *result);

// Stores a new job. When cache_key is not NULL and the result cache has an entry that adopt
// accepts, the job is stored as DONE with this result, which is answer[0]. Otherwise it is stored
// in job->state, and answer[0] is empty.
void ledger_submit(struct ledger *ledger, const struct ledger_job *job,
                   const struct digest *cache_key, ledger_adopt *adopt, ledger_done *done,
                   void *owner);
// answer[0] is the cached result that adopt accepts for spec, else empty.
void ledger_read_cached(struct ledger *ledger, const struct digest *cache_key,
                        const struct bytes *spec, ledger_adopt *adopt, ledger_done *done,
                        void *owner);
// Stores the state and the attempt of an unfinished job: RUNNING, or QUEUED again.
void ledger_move(struct ledger *ledger, uint64_t job, uint64_t state, uint64_t attempt,
                 ledger_done *done, void *owner);

struct ledger_end {
    uint64_t job;
    uint64_t state; // DONE, CANCELLED, BURIED
    uint64_t attempt;
    const char *reason;         // may be NULL
    uint64_t cause;             // enum job_cause
    const struct bytes *result; // packed; may be NULL
    // The result also goes into the result cache under this key; NULL: it does not.
    const struct digest *cache_key;
    double cap_s; // max_seconds under which the cached result was measured
};
// Stores that the job has ended. A job that has ended before stays as it ended. A result replaces
// an earlier one with the same cache key.
void ledger_finish(struct ledger *ledger, const struct ledger_end *end, ledger_done *done,
                   void *owner);
// Deletes jobs. What the caches have from them stays.
void ledger_forget(struct ledger *ledger, const uint64_t *jobs, size_t count, ledger_done *done,
                   void *owner);
// answer[i] is the packed result of jobs[i], empty when it has none, or when its row was damaged
// and is gone.
void ledger_read_results(struct ledger *ledger, const uint64_t *jobs, size_t count,
                         ledger_done *done, void *owner);

// The compile cache. answer[0] is the packed `compiled` message of this key, empty when there is
// none.
void ledger_read_compiled(struct ledger *ledger, const struct digest *key, ledger_done *done,
                          void *owner);
void ledger_keep_compiled(struct ledger *ledger, const struct digest *key,
                          const struct bytes *compiled, ledger_done *done, void *owner);
void ledger_drop_compiled(struct ledger *ledger, const struct digest *key);
// Stores the account as it is now.
void ledger_keep_account(struct ledger *ledger, const struct account *account, ledger_done *done,
                         void *owner);
// Stores an operator's order for a device, in the place of an earlier one of the same kind, or
// deletes it. device is a GPU's UUID or a core's name.
void ledger_order(struct ledger *ledger, const char *device, enum ledger_order_kind kind,
                  const char *reason, ledger_done *done, void *owner);
void ledger_drop_order(struct ledger *ledger, const char *device, enum ledger_order_kind kind,
                       ledger_done *done, void *owner);
// Does nothing; done runs after everything posted before.
void ledger_barrier(struct ledger *ledger, ledger_done *done, void *owner);

#endif
