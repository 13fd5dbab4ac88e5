// The monitoring that --http serves: /metrics for Prometheus, /healthz for service managers and
// load balancers, /status.json for people and scripts. Called by daemon.c. Reads all parts and
// changes none.
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/state/parts.h"
#include "net/http/http_server.h"

struct monitor;

// Listens at `address`. Errors are those of http_server_create. `parts` outlives it.
MUST_CHECK int monitor_create(struct monitor **ret, uv_loop_t *loop, const char *address,
                              const struct daemon_parts *parts, struct err *err);
// Returns the URL at which it listens. Valid until monitor_close.
const char *monitor_url(const struct monitor *monitor);
// Lets /healthz say from now on that the daemon is stopping. NULL is fine.
void monitor_stopping(struct monitor *monitor);
// Closes the port and frees the monitor. The loop must run once more. NULL is fine.
void monitor_close(struct monitor *monitor);

#endif
