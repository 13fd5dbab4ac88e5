// One line per event on stderr, "<level> event key=value …". Used by programs' own modules; common/, proto/, contract/ never log.
// Under systemd (JOURNAL_STREAM set) lines start with <3>…<7>; otherwise with a UTC time and the level's name.
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_NOTICE = 5, LOG_INFO = 6, LOG_DEBUG = 7 };

void log_init(const char *program, enum log_level max_level); // once, from main, before threads
void log_use_json(void); // from now on each line is one JSON object; from main, before threads
void log_set_level(enum log_level max_level); // later, from any thread
// format gives the event and its keys: log_event(LOG_INFO, "job-done job=%llu verdict=%s reason=\"%s\"", …)
// Control characters in the line are escaped. Thread-safe; one write(2) per line.
void log_event(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

// For events that callers can cause at will, zeroed at first: at most one line a second.
struct log_limit {
    uint64_t told_ns; // 0: never
    uint64_t untold;
};
// Whether the event at now_ns (monotonic) gets a line; *ret_untold is then how many had none since the last.
bool log_limit_passes(struct log_limit *limit, uint64_t now_ns, uint64_t *ret_untold);

#endif
