// Parked WAITs. Each keeps one exchange until one of its jobs has finished or its time is over, and
// then hands it to a callback. dispatch.c parks, completion.c wakes, answer.c answers. Knows
// nothing of replies.
#ifndef DAEMON_JOBS_WAIT_H
#define DAEMON_JOBS_WAIT_H

#include "daemon/state/job.h"
#include "net/rpc/service.h"
#include <uv.h>

struct waits;

// on_due is called on the loop thread when a parked WAIT is to be answered, with its exchange and
// the numbers of the jobs that it asked about. It answers the exchange. It is never called from
// within waits_park or waits_wake.
struct waits *waits_create(uv_loop_t *loop,
                           void (*on_due)(void *owner, struct exchange *exchange,
                                          const uint64_t *jobs, size_t count),
                           void *owner);
// Calls on_due for every parked WAIT now.
void waits_flush(struct waits *waits);
// Does the same and closes the timer. Memory is freed when the loop has closed it. NULL is fine.
void waits_close(struct waits *waits);

// Parks the exchange for at most timeout_ms. `jobs` has the jobs that are known and unfinished;
// `ids` has the numbers that on_due gets. Both are copied. Returns false when too many exchanges
// are parked already; the caller then answers at once.
bool waits_park(struct waits *waits, struct exchange *exchange, const uint64_t *ids,
                size_t id_count, struct job *const *jobs, size_t job_count, uint64_t timeout_ms);
// The job has finished: on_due is called for its WAITs in later turns of the loop, when it is their
// callers' turn.
void waits_wake(struct waits *waits, struct job *job);
// Returns the number of parked WAITs.
size_t waits_count(const struct waits *waits);

#endif
