// Writes the daemon's state and counters in the text format of Prometheus (text format 0.0.4 of
// "Exposition formats", prometheus.io). Called by monitor.c. Reads all parts and changes none.
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "common/strbuf.h"
#include "daemon/state/parts.h"

#define METRICS_SEARCHES_MAX 64 // searches with a series of their own; the others share one

// Appends all metrics to `out`.
void metrics_write(struct strbuf *out, const struct daemon_parts *parts);

#endif
