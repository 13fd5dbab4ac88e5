// The log of a program: one line per event on stderr, "<level> event key=value key=value". The
// programs' own modules call it. common/, proto/, problem/ and net/ report errors and never log.
// Under systemd (JOURNAL_STREAM is set) a line starts with <3> to <7>, otherwise with the time in
// UTC, the program and the level.
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_NOTICE = 5, LOG_INFO = 6, LOG_DEBUG = 7 };

// Call once, from main, before there are threads. Events above max_level are dropped.
void log_init(const char *program, enum log_level max_level);
// Makes each line one JSON object. Call from main, before there are threads.
void log_use_json(void);
// Changes the level later, from any thread.
void log_set_level(enum log_level max_level);
// Writes one event. The format gives the event's name and its keys:
//     log_event(LOG_INFO, "job-done job=%llu verdict=%s reason=\"%s\"", ...)
// Control characters are escaped. Thread-safe: each line is one write(2). Keeps errno.
void log_event(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Limits an event that peers can cause at will to one line per second. Starts zeroed.
struct log_limit {
    uint64_t told_ns; // monotonic time of the last line, 0: there was none
    uint64_t untold;  // events without a line since then
};
// Whether the event at now_ns (monotonic) gets a line. When it does, *ret_untold is the number of
// events that had none since the last line.
bool log_limit_passes(struct log_limit *limit, uint64_t now_ns, uint64_t *ret_untold);

#endif
