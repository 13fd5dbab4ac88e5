// Reports and candidates as JSON objects for machines. Speedups come as ratios with their log2
// beside them; what is unknown is null or left out. Pure.
#ifndef CLIENT_REPORT_REPORT_JSON_H
#define CLIENT_REPORT_REPORT_JSON_H

#include "client/report/report.h"
#include "common/strbuf.h"

// Append one object on one line, with a newline at the end. Always valid JSON in UTF-8; integers of
// more than 15 digits (seeds) are strings, because a double does not hold them.

// The numbers of the report.
void report_json(struct strbuf *out, const struct report *report);
// Everything that is known about candidate `number`, its source included (NULL when it could not be
// read).
void report_json_candidate(struct strbuf *out, const struct report *report, uint64_t number,
                           const struct bytes *source);
// An event as it stands in the run file.
void report_json_event(struct strbuf *out, const struct run_event *event);

#endif
