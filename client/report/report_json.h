// Reports, candidates and events as JSON objects for machines. Speedups are ratios with their log2
// beside them; what is unknown is null or left out. It does no I/O; client/cmd/cmd_report.c,
// cmd_export.c and the tests call it.
#ifndef CLIENT_REPORT_REPORT_JSON_H
#define CLIENT_REPORT_REPORT_JSON_H

#include "client/report/report.h"
#include "common/strbuf.h"
#include <jansson.h>

// Each function appends one object on one line, with a newline at the end. The line is always valid
// JSON in UTF-8. Integers of more than 63 bits are strings, because jansson
// does not hold them.

// Appends the numbers of the report.
void report_json(struct strbuf *out, const struct report *report);
// Appends everything that is known about candidate `number` (from 1). `source` is its source text;
// NULL when it could not be read.
void report_json_candidate(struct strbuf *out, const struct report *report, uint64_t id,
                           const struct bytes *source, const struct err *missing);
// Appends an event: its body as it stands in the run file and, where that has one, the verdict by
// name.
void report_json_event(struct strbuf *out, const struct run_event *event);
// The object of an event as a search prints it while it runs: {"event", "sequence", "at",
// "verdict", "body"}, a verdict where the body has one. A new reference.
json_t *report_json_event_object(const struct run_event *event);

#endif
