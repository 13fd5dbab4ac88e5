// A line is built in local buffers of LINE_MAX_BYTES and leaves in one write(2), so that the lines
// of several threads, and of several processes on a pipe, do not mix. The formatted event is
// escaped as a whole, because values come from peers, compilers and models: what is not printable
// (common/printable.h) becomes \n, \t, \r or \xNN.
//
// The settings are the only writable static of common/. log_init writes them before there are
// threads. Afterwards only the level may change.
#include "common/log.h"

#include "common/clock.h"
#include "common/log/log_json.h"
#include "common/printable.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 4096
#define CUT_MARK " [cut]\n"

static struct {
    char program[32];      // its name, for lines that go to no journal
    _Atomic int max_level; // events above this level are dropped
    bool journal;          // lines start with <3> to <7>
    bool json;             // lines are JSON objects
} settings = {.max_level = LOG_INFO};

static const char *level_name(enum log_level level)
{
    switch (level) {
    case LOG_ERROR:
        return "error";
    case LOG_WARNING:
        return "warning";
    case LOG_NOTICE:
        return "notice";
    case LOG_INFO:
        return "info";
    case LOG_DEBUG:
        return "debug";
    }
    return "unknown";
}

enum log_level log_level_of(const char *name)
{
    for (enum log_level level = LOG_ERROR; level <= LOG_DEBUG; level++) {
        if (strcmp(level_name(level), name) == 0) {
            return level;
        }
    }
    return LOG_INFO;
}

void log_init(const char *program, enum log_level max_level)
{
    (void)snprintf(settings.program, sizeof(settings.program), "%s", program);
    settings.max_level = (int)max_level;
    settings.journal = getenv("JOURNAL_STREAM");
}

void log_use_json(void)
{
    settings.json = true;
}

void log_set_level(enum log_level max_level)
{
    settings.max_level = (int)max_level;
}

#define STAMP_MAX 48

// Writes the present time, such as "2026-01-31T12:00:00.000Z".
static void put_stamp(char stamp[STAMP_MAX])
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    struct tm utc;
    gmtime_r(&now.tv_sec, &utc);
    char seconds[32];
    if (strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        seconds[0] = '\0';
    }
    (void)snprintf(stamp, STAMP_MAX, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
}

// Writes what stands before the event. Returns its length.
static size_t put_prefix(char *line, size_t size, enum log_level level)
{
    char stamp[STAMP_MAX];
    int len;

    if (settings.journal) {
        len = snprintf(line, size, "<%d>", (int)level);
    } else {
        put_stamp(stamp);
        len = snprintf(line, size, "%s %s%s%s ", stamp, settings.program,
                       settings.program[0] ? " " : "", level_name(level));
    }
    return len > 0 ? (size_t)len : 0;
}

// Errors are ignored: a line that cannot be written has no better place to go.
static void write_line(const char *line, size_t len)
{
    ssize_t written;

    do {
        written = write(STDERR_FILENO, line, len);
    } while (written < 0 && errno == EINTR);
}

static void write_json(enum log_level level, const char *event)
{
    char stamp[STAMP_MAX];
    struct log_line line = {stamp, settings.program, level_name(level), event};

    put_stamp(stamp);
    struct strbuf out = STRBUF_INIT;
    if (settings.journal) {
        strbuf_addf(&out, "<%d>", (int)level);
    }
    log_json(&out, &line);
    strbuf_addc(&out, '\n');
    write_line(strbuf_text(&out), out.len);
    strbuf_release(&out);
}

void log_event(enum log_level level, const char *format, ...)
{
    char event[LINE_MAX_BYTES];
    const unsigned char *cursor = (const unsigned char *)event;
    int saved_errno = errno;

    if ((int)level > settings.max_level) {
        return;
    }
    va_list args;
    va_start(args, format);
    if (vsnprintf(event, sizeof(event), format, args) < 0) {
        (void)snprintf(event, sizeof(event), "log-defect");
    }
    va_end(args);

    if (settings.json) {
        write_json(level, event);
        errno = saved_errno;
        return;
    }
    char line[LINE_MAX_BYTES];
    size_t len = put_prefix(line, sizeof(line), level);
    while (*cursor != '\0' && len + 5 + sizeof(CUT_MARK) <= sizeof(line)) {
        size_t read;

        len += printable_put(line + len, cursor, strlen((const char *)cursor), &read);
        cursor += read;
    }
    if (*cursor != '\0') {
        memcpy(line + len, CUT_MARK, sizeof(CUT_MARK) - 1);
        len += sizeof(CUT_MARK) - 1;
    } else {
        line[len++] = '\n';
    }
    write_line(line, len);
    errno = saved_errno;
}

bool log_limit_passes(struct log_limit *limit, uint64_t now_ns, uint64_t *ret_untold)
{
    if (limit->told_ns != 0 && now_ns - limit->told_ns < NS_PER_S) {
        limit->untold++;
        return false;
    }
    *ret_untold = limit->untold;
    *limit = (struct log_limit){.told_ns = now_ns};
    return true;
}
