// Parked WAITs: each holds one exchange until one of its jobs is finished or its time is over.
// Knows nothing of answers.
#ifndef DAEMON_JOBS_WAIT_H
#define DAEMON_JOBS_WAIT_H

#include "daemon/state/job.h"
#include "net/rpc/service.h"
#include <uv.h>

struct waits;

// on_due runs on the loop thread when a parked WAIT is to be answered, with its exchange and the
// jobs it asked about; it consumes the exchange. Never inside waits_park or waits_wake.
struct waits *waits_create(uv_loop_t *loop,
                           void (*on_due)(void *owner, struct exchange *exchange,
                                          const uint64_t *jobs, size_t count),
                           void *owner);
// Answers every parked WAIT now.
void waits_flush(struct waits *waits);
// The same, and closes. Freed when the loop has closed the handle. NULL is fine.
void waits_close(struct waits *waits);

// Parks the exchange for at most timeout_ms. jobs[0..job_count) are those that are known and not
// finished; ids[0..id_count) is what on_due gets. False when too many are parked already: answer
// now.
bool waits_park(struct waits *waits, struct exchange *exchange, const uint64_t *ids,
                size_t id_count, struct job *const *jobs, size_t job_count, uint64_t timeout_ms);
// The job is finished (or is about to be removed): its WAITs become due.
void waits_wake(struct waits *waits, struct job *job);
size_t waits_count(const struct waits *waits);

#endif
