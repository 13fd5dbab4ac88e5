// After a restart: the ledger's jobs become jobs again.
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "common/err.h"
#include "daemon/state/parts.h"

// Before ledger_start: makes every job of the ledger. ERR_CORRUPT when one is in no known state.
MUST_CHECK int reload_jobs(const struct daemon_parts *parts, struct err *err);
// After it: unfinished jobs begin anew, those that were running with one attempt more; what cannot
// begin is buried.
void reload_requeue(const struct daemon_parts *parts);

#endif
