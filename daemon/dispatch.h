// Requests: each operation and its handler. Translates between messages and the modules that do the
// work; decides nothing itself.
#ifndef DAEMON_DISPATCH_H
#define DAEMON_DISPATCH_H

#include "daemon/state/parts.h"
#include "net/rpc/service.h"

#define DISPATCH_WAIT_MAX_MS 20000 // longest WAIT

struct dispatch;

// parts outlive it.
struct dispatch *dispatch_create(const struct daemon_parts *parts);
// service_config.on_request, with the dispatch as owner.
void dispatch_request(void *dispatch, struct exchange *exchange, const struct request *request);
// service_config.on_refusal, likewise: logs.
void dispatch_refusal(void *dispatch, const char *peer, const char *reason, uint64_t untold);
// Takes no more jobs from now on; everything else goes on.
void dispatch_vacate(struct dispatch *dispatch);
// Refuses everything from now on and answers every parked WAIT.
void dispatch_stop(struct dispatch *dispatch);
size_t dispatch_pending(const struct dispatch *dispatch); // exchanges not answered yet
void dispatch_free(struct dispatch *dispatch);            // none may be pending; NULL is fine

#endif
