// Brings the jobs of the ledger back after a restart. Called by daemon.c while it starts: first
// reload_jobs, then the ledger's thread is started, then reload_requeue.
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

#include "common/err.h"
#include "daemon/state/parts.h"

// Makes a job for every job of the ledger: finished ones in their state, all others QUEUED. To be
// called before ledger_start. Returns ERR_CORRUPT when a job is in no known state.
MUST_CHECK int reload_jobs(const struct daemon_parts *parts, struct err *err);
// Lets unfinished jobs begin again. Those that were running have one attempt more. A job whose
// specification cannot be read, or that has too many attempts, is buried. To be called after
// ledger_start.
void reload_requeue(const struct daemon_parts *parts);

#endif
