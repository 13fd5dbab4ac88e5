// The worker of a search: which url of --worker answers, and what that worker says about itself. A
// worker that is away is looked for in the background, with back-off, until it comes. Called by
// client/forecast/forecaster.c. Knows nothing of what the worker is asked and told.
#ifndef CLIENT_FORECAST_WORKER_LINK_H
#define CLIENT_FORECAST_WORKER_LINK_H

#include "client/session.h"
#include "common/err.h"
#include "net/rpc/remote.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

struct worker_link;

// Looks for the worker once, which runs the session's loop, and goes on in the background when none
// answers; *ret_why is set then. With --local it starts a private worker. Never fails.
struct worker_link *worker_link_create(struct session *session, struct err *ret_why);
// Calls that are under way on its connections get their callback with ERR_STOPPED first. The link's
// own callbacks do not run any more. NULL is fine.
void worker_link_free(struct worker_link *link);

// The connection to the worker, owned by the link; NULL while the worker is away.
struct remote *worker_link_remote(const struct worker_link *link);
// Whether the worker has answered HELLO on the present connection.
bool worker_link_is_greeted(const struct worker_link *link);
// What the worker said about itself last; NULL when it was never there. Valid until the loop runs.
const struct worker_abilities *worker_link_abilities(const struct worker_link *link);

// Greets the worker, which must not be away, on a new connection. The callback runs once, later.
// After an error the worker is away.
typedef void worker_link_callback(void *owner, const struct err *error);
void worker_link_greet(struct worker_link *link, worker_link_callback *callback, void *owner);

// Says that a call failed after waited_ms. The worker counts as away from then on. The longer the
// wait was, the later the worker is looked for again, so that one that hangs costs little time.
void worker_link_lost(struct worker_link *link, uint64_t waited_ms);
// Says that a call was answered. The back-off begins anew at the next loss.
void worker_link_answered(struct worker_link *link);

#endif
