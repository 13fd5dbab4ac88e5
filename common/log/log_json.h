// Turns a line of the log into one JSON object. Only common/log/log.c uses it.
#ifndef COMMON_LOG_LOG_JSON_H
#define COMMON_LOG_LOG_JSON_H

#include "common/strbuf.h"

struct log_line {
    const char *time;    // "2026-01-31T12:00:00.000Z"
    const char *program; // name of the program
    const char *level;   // name of the level
    const char *event;   // event key=value key="value with blanks"
};

// Appends {"time":...,"program":...,"level":...,"event":...,key:value,...} without a newline.
// Values are strings, as they stand in the line. Words that are no key=value are collected in
// "text". A key that is one of these five gets an underscore in front. A key that occurs twice is
// there twice. Whatever the line holds, the result is valid JSON, and ASCII except for valid UTF-8.
void log_json(struct strbuf *out, const struct log_line *line);

#endif
