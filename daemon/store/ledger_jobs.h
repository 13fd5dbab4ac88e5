// The ledger's table of jobs. Called by ledger_sql.c alone. Begins and ends no transactions. A row
// that is not as it was written is told, deleted and never used (ledger_damage.h): who waits for
// the job is told that it is unknown, and submits it again.
#ifndef DAEMON_STORE_LEDGER_JOBS_H
#define DAEMON_STORE_LEDGER_JOBS_H

#include "daemon/store/ledger.h"

struct sqlite3;
struct ledger_damage;
struct ledger_jobs;
struct ledger_op;

// damage has the connection, with the newest schema, and outlives the jobs. On failure (as
// ledger_db_failed) nothing is left behind.
MUST_CHECK int ledger_jobs_open(struct ledger_jobs **ret, struct ledger_damage *damage,
                                struct err *err);
void ledger_jobs_close(struct ledger_jobs *jobs); // NULL is fine
// Sets *ret to the number for the next new job, which is above every number ever used.
MUST_CHECK int ledger_jobs_next(struct ledger_jobs *jobs, uint64_t *ret, struct err *err);
// Visits every job, oldest first.
MUST_CHECK int ledger_jobs_load(struct ledger_jobs *jobs,
                                int (*visit)(void *owner, const struct ledger_job *job,
                                             struct err *err),
                                void *owner, struct err *err);
// Stores the new job of a LEDGER_SUBMIT. cached is its result when that is known already, else
// empty.
MUST_CHECK int ledger_jobs_insert(struct ledger_jobs *jobs, const struct ledger_op *op,
                                  const struct bytes *cached, struct err *err);
// Carry out a LEDGER_MOVE and a LEDGER_FINISH. A row that is damaged stays so.
MUST_CHECK int ledger_jobs_move(struct ledger_jobs *jobs, const struct ledger_op *op,
                                struct err *err);
MUST_CHECK int ledger_jobs_finish(struct ledger_jobs *jobs, const struct ledger_op *op,
                                  struct err *err);
MUST_CHECK int ledger_jobs_forget(struct ledger_jobs *jobs, uint64_t id, struct err *err);
// Sets *ret to the packed result of a job; leaves it alone when there is none.
MUST_CHECK int ledger_jobs_result(struct ledger_jobs *jobs, uint64_t id, struct bytes *ret,
                                  struct err *err);

#endif
