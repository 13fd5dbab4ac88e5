// A log line as one JSON object. Belongs to log.c.
#ifndef COMMON_LOG_JSON_H
#define COMMON_LOG_JSON_H

#include "common/strbuf.h"

struct log_line {
    const char *time; // "2026-01-31T12:00:00.000Z"
    const char *program;
    const char *level;
    const char *event; // "event key=value key=\"value with blanks\" …"
};

// Appends {"time":…,"program":…,"level":…,"event":…,key:value,…} without a newline. Values are
// strings as they stand in the line; a key that is one of the first four or "text" gets an
// underscore in front, one that comes twice is there twice.
// What is no key=value is kept in "text". Anything may come: the result is valid JSON, in ASCII but
// for valid UTF-8.
void log_json(struct strbuf *out, const struct log_line *line);

#endif
