// The daemon's state and counters in the text format that Prometheus reads.
// Source: "Exposition formats", text format 0.0.4.
#ifndef DAEMON_METRICS_H
#define DAEMON_METRICS_H

#include "common/strbuf.h"
#include "daemon/state/parts.h"

#define METRICS_SEARCHES_MAX 64 // series about searches; the rest is summed up without a name

void metrics_write(struct strbuf *out, const struct daemon_parts *parts);

#endif
