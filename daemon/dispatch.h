// Requests: each operation and its handler. Translates between messages and the modules that do the
// work; decides nothing itself.
#ifndef DAEMON_DISPATCH_H
#define DAEMON_DISPATCH_H

#include "daemon/counters.h"
#include "daemon/devices/administration.h"
#include "daemon/jobs/answer.h"
#include "daemon/jobs/submission.h"
#include "daemon/jobs/wait.h"
#include "daemon/sched/budgets.h"

#define DISPATCH_WAIT_MAX_MS 20000 // longest WAIT

struct dispatch;
struct status_source;

struct dispatch_config {
    struct job_table *jobs;
    struct lifecycle *lifecycle;
    struct completions *completions;
    struct ledger *ledger;
    struct blob_store *blobs;
    struct devices *devices;
    struct submissions *submissions;
    struct answers *answers;
    struct administration *administration;
    struct waits *waits;
    struct budgets *budgets;
    struct counters *counters; // counted into
    size_t compile_slots;
    const char *state_dir; // outlives it
    bool sandbox_off;
};

struct dispatch *dispatch_create(const struct dispatch_config *config);
// service_config.on_request, with the dispatch as owner.
void dispatch_request(void *dispatch, struct exchange *exchange, const struct request *request);
// What STATUS is read from; before the first request.
void dispatch_set_source(struct dispatch *dispatch, const struct status_source *source);
// service_config.on_refusal, likewise: logs.
void dispatch_refusal(void *dispatch, const char *peer, const char *reason, uint64_t untold);
// Takes no more jobs from now on; everything else goes on.
void dispatch_vacate(struct dispatch *dispatch);
// Refuses everything from now on and answers every parked WAIT.
void dispatch_stop(struct dispatch *dispatch);
size_t dispatch_pending(const struct dispatch *dispatch); // exchanges not answered yet
void dispatch_free(struct dispatch *dispatch);            // none may be pending; NULL is fine

#endif
