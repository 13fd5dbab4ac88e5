// Requests: each operation and its handler. Translates between messages and the modules that do the
// work; decides nothing itself.
#ifndef DAEMON_DISPATCH_H
#define DAEMON_DISPATCH_H

#include "daemon/answer.h"
#include "daemon/budgets.h"
#include "daemon/submission.h"
#include "daemon/wait.h"

#define DISPATCH_WAIT_MAX_MS 20000 // longest WAIT

struct dispatch;

struct dispatch_config {
    struct jobs *jobs;
    struct lifecycle *lifecycle;
    struct endings *endings;
    struct ledger *ledger;
    struct blob_store *blobs;
    struct devices *devices;
    struct submissions *submissions;
    struct answers *answers;
    struct waits *waits;
    struct budgets *budgets;
    size_t compile_slots;
    const char *state_dir; // outlives it
    bool sandbox_off;
};

struct dispatch *dispatch_create(const struct dispatch_config *config);
// service_config.on_request, with the dispatch as owner.
void dispatch_request(void *dispatch, struct exchange *exchange, const struct request *request);
void dispatch_set_service(struct dispatch *dispatch, struct service *service);
// Refuses everything from now on and answers every parked WAIT.
void dispatch_stop(struct dispatch *dispatch);
size_t dispatch_pending(const struct dispatch *dispatch); // exchanges not answered yet
void dispatch_free(struct dispatch *dispatch);            // none may be pending; NULL is fine

#endif
