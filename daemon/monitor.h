// What --http serves: /metrics for Prometheus, /healthz for whoever restarts or routes,
// /status.json for people and scripts. Reads, changes nothing.
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/status.h"
#include "net/http/http_server.h"

struct monitor;

// Listens at address (as http_server_create, with its errors). source outlives it; its http is set
// to the url.
MUST_CHECK int monitor_create(struct monitor **ret, uv_loop_t *loop, const char *address,
                              struct status_source *source, struct err *err);
// From now on /healthz says that the daemon is stopping. NULL is fine.
void monitor_stopping(struct monitor *monitor);
// Closes the port; the loop has to run once more. NULL is fine.
void monitor_close(struct monitor *monitor);

#endif
