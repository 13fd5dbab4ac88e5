// What --http serves: /metrics for Prometheus, /healthz for whoever restarts or routes,
// /status.json for people and scripts. Reads, changes nothing.
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/state/parts.h"
#include "net/http/http_server.h"

struct monitor;

// Listens at address (as http_server_create, with its errors). parts outlive it.
MUST_CHECK int monitor_create(struct monitor **ret, uv_loop_t *loop, const char *address,
                              const struct daemon_parts *parts, struct err *err);
// Where it listens, as a url. Valid until monitor_close.
const char *monitor_url(const struct monitor *monitor);
// From now on /healthz says that the daemon is stopping. NULL is fine.
void monitor_stopping(struct monitor *monitor);
// Closes the port; the loop has to run once more. NULL is fine.
void monitor_close(struct monitor *monitor);

#endif
