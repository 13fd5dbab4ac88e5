// Prints the events of a search as JSON lines while it runs, for `kcast search --json` and `kcast
// resume --json`.
#ifndef CLIENT_CMD_EVENT_PRINT_H
#define CLIENT_CMD_EVENT_PRINT_H

#include "client/run/run.h"
#include "common/err.h"

// Prints {"schema", "event", "sequence", "at", "verdict", "body"} to stdout at once. owner is the
// session, which is interrupted when nobody reads stdout any more. Fits struct search_observer.
MUST_CHECK int event_print(void *owner, struct run_event *event, struct err *err);

#endif
