// Requests to the daemons of --pool, one after the other, for subcommands that ask each of them.
// Called by kcast budget, cancel, jobs and status. Knows nothing of what is asked.
#ifndef CLIENT_CMD_DAEMON_CALL_H
#define CLIENT_CMD_DAEMON_CALL_H

#include "client/pool/daemons.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdint.h>

// remote_call_sync to a daemon. Fails with the reason why the daemon is not connected, if it is
// not.
MUST_CHECK int daemon_call(const struct daemon_link *link, enum op op,
                           const struct message *request_table, const void *request,
                           const struct message *reply_table, void *reply, uint64_t timeout_ms,
                           struct err *err);

// Adds a daemon's failure to a command that goes on with the next daemon. The first one becomes *rc
// and *err, and thereby the command's. Others are printed to stderr.
void daemon_call_failed(int *rc, const struct err *why, struct err *err);

#endif
