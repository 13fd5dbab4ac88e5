// Handles requests: one handler for each operation. A handler translates between messages and the
// modules that do the work, and decides nothing itself. Called by the service (net/rpc/service.h)
// on the loop thread, and by daemon.c when the daemon stops.
#ifndef DAEMON_DISPATCH_H
#define DAEMON_DISPATCH_H

#include "daemon/state/parts.h"
#include "net/rpc/service.h"

#define DISPATCH_WAIT_MAX_MS 20000 // longest time that a WAIT is parked

struct dispatch;

// `parts` outlives it.
struct dispatch *dispatch_create(const struct daemon_parts *parts);
// Handles one request: the callback service_config.on_request, with the dispatch as owner.
void dispatch_request(void *dispatch, struct exchange *exchange, const struct request *request);
// Logs a refused connection: the callback service_config.on_refusal, with the dispatch as owner.
void dispatch_refusal(void *dispatch, const char *peer, const char *reason, uint64_t untold);
// Refuses every SUBMIT from now on. All other operations go on.
void dispatch_refuse_jobs(struct dispatch *dispatch);
// Refuses every request from now on and answers all parked WAITs.
void dispatch_stop(struct dispatch *dispatch);
// Returns the number of exchanges that have not been answered, without parked ones.
size_t dispatch_pending(const struct dispatch *dispatch);
void dispatch_free(struct dispatch *dispatch); // none may be pending; NULL is fine

#endif
