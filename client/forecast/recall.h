// What the worker knows of other devices and problems, for a search that begins with it
// (`--warm worker`). Called by commands, before the search; runs the session's loop.
#ifndef CLIENT_FORECAST_RECALL_H
#define CLIENT_FORECAST_RECALL_H

#include "client/session.h"
#include "common/err.h"
#include "proto/messages.h"

// Asks the session's worker. ERR_UNREACHABLE when none answers or with --no-worker,
// ERR_UNSUPPORTED when its engine keeps no such thing. *ret is the caller's to clear on success.
MUST_CHECK int recall_ask(struct recall_reply *ret, struct session *session,
                          const struct recall_request *request, struct err *err);

#endif
