// One SUBMIT on its way from the request to the reply: checked, its problem read, journalled,
// admitted. Equal ones at the same time become one job.
#ifndef DAEMON_JOBS_SUBMISSION_H
#define DAEMON_JOBS_SUBMISSION_H

#include "daemon/jobs/lifecycle.h"
#include "net/rpc/service.h"

struct submissions; // those under way

struct submission_config {
    struct job_table *jobs;
    struct lifecycle *lifecycle;
    struct completions *completions;
    struct ledger *ledger;
    struct blob_store *blobs;
    struct devices *devices;
    size_t queue_max; // unfinished jobs of one search
    size_t jobs_max;  // jobs altogether
    bool sandbox_off;
};

struct submissions *submissions_create(const struct submission_config *config);
// Other limits for SUBMITs from now on.
void submissions_limit(struct submissions *submissions, size_t queue_max, size_t jobs_max);
void submissions_free(struct submissions *submissions); // none may be pending; NULL is fine
size_t submissions_pending(const struct submissions *submissions);

// Takes the insides of *submit. Answers the exchange exactly once, now or later.
void submission_start(struct submissions *submissions, struct exchange *exchange,
                      struct submit *submit_taken);

// Sets a job's fields from its spec; the measurement setup is acquired. For reloading too. The device class
// follows when the problem has been read.
void submission_apply_spec(const struct submission_config *config, struct job *job,
                           const struct job_spec *spec);

#endif
