// When a job of a search reached its states, by this client's clock: made of what the daemon says
// of the job's age when it answers. The pipeline and search.c record it.
#ifndef CLIENT_SEARCH_JOB_TIMES_H
#define CLIENT_SEARCH_JOB_TIMES_H

#include "proto/messages.h"

// The wall clock in seconds since 1970.
double job_times_now(void);
// The times of a job whose answer has just come; malloc'd. submitted_at is when this process
// submitted it; the daemon may have had it longer. An older daemon says no ages: compilation and
// measurement then ended with the answer and took what the result says.
struct job_times *job_times_of(double submitted_at, const struct job_info *info);

#endif
