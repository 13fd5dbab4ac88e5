// The worker of a search: which of the urls of --worker answers, and what it says of itself. One that
// is away is looked for in the background, with back-off, until it comes. Called by
// client/forecast/forecaster.c; knows nothing of what the worker is asked and told.
#ifndef CLIENT_FORECAST_WORKER_LINK_H
#define CLIENT_FORECAST_WORKER_LINK_H

#include "client/session.h"
#include "common/err.h"
#include "net/rpc/remote.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

struct worker_link;

// Looks for the worker once, which runs the session's loop, and goes on by itself when nobody is
// there; *ret_why is set then. Starts a private worker for --local. Never fails.
struct worker_link *worker_link_create(struct session *session, struct err *ret_why);
// Calls that are under way on its connections get their callback with ERR_STOPPED first; its own
// callbacks do not run any more. NULL is fine.
void worker_link_free(struct worker_link *link);

// The connection to the worker, which stays the link's; NULL: it is away.
struct remote *worker_link_remote(const struct worker_link *link);
// Whether the worker has said HELLO on the connection that there is now.
bool worker_link_is_greeted(const struct worker_link *link);
// What it said of itself last; NULL: it was never there. Valid until the loop runs.
const struct worker_abilities *worker_link_abilities(const struct worker_link *link);

// Greets the worker, which is not away, on a new connection. The callback runs once, later; with an
// error the worker is away from then on.
typedef void worker_link_callback(void *owner, const struct err *error);
void worker_link_greet(struct worker_link *link, worker_link_callback *callback, void *owner);

// A call failed after the caller had waited for it so long: the worker counts as away. The longer
// that took, the later it is looked for again, so that one that hangs costs little of the time.
void worker_link_lost(struct worker_link *link, uint64_t waited_ms);
// A call was answered: the back-off begins anew at the next loss.
void worker_link_proved(struct worker_link *link);

#endif
