// What a command says while others work for it: how far it is and for how long it has waited, on a
// terminal in place, elsewhere every half a minute; and at once why its measurements do not go on.
// Used by commands that wait for daemons or workers on the session's loop. A search has
// client/search/progress.h, which says more. Knows nothing of what is counted.
#ifndef CLIENT_POOL_JOB_PROGRESS_H
#define CLIENT_POOL_JOB_PROGRESS_H

#include <stddef.h>
#include <stdio.h>

struct clock;
struct daemon_pool;
struct job_progress;
struct session;

// Begins to tell, with `what` and no number; the sentences of the daemon pool are told as well
// (daemon_pool_set_notice). daemon_pool may be NULL: then no reasons are known. Both must outlive
// the progress. `out` is stderr and `clock` the system's, but for tests. With --quiet nothing is
// told.
struct job_progress *job_progress_create(struct session *session, struct daemon_pool *daemon_pool,
                                         const char *what, FILE *out, const struct clock *clock);
// Clears the line. What the daemon pool says from now on stands on stderr as its own sentences
// do. NULL is fine.
void job_progress_free(struct job_progress *job_progress);
// From now on the line says "<what> <done> of <total>". `what` must outlive the progress.
void job_progress_set(struct job_progress *job_progress, const char *what, size_t done,
                      size_t total);
// Clears the line, before something is written to stdout, which may be the same terminal.
void job_progress_wipe(struct job_progress *job_progress);

#endif
