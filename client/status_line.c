#include "client/status_line.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/strbuf.h"
#include "common/wrap.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TERMINAL_INTERVAL_NS (100 * NS_PER_MS)
#define OTHER_INTERVAL_NS (30 * NS_PER_S)

#define WHOLE_COLUMNS 32 // a clause of at most so many columns is shown as a whole or not at all
#define PART_COLUMNS 22  // the least room in which words of a longer one say something

struct status_line {
    FILE *out;
    bool quiet;
    bool terminal;
    const struct clock *clock;
    uint64_t written_ns; // monotonic time of the last line, or of the beginning
    bool written;        // a line has been written
    bool dirty;          // the line on the terminal is not empty
    char *why;           // the last reason for waiting that was said; NULL: none
};

struct status_line *status_line_create(FILE *out, bool quiet, const struct clock *clock)
{
    struct status_line *line = xcalloc(1, sizeof(*line));
    const char *term = getenv("TERM");
    line->out = out;
    line->quiet = quiet;
    line->terminal = isatty(fileno(out)) && term && strcmp(term, "dumb") != 0;
    line->clock = clock;
    line->written_ns = clock_now_ns(clock);
    return line;
}

void status_line_wipe(struct status_line *line)
{
    if (line->dirty) {
        fputs("\r\033[K", line->out);
        fflush(line->out);
        line->dirty = false;
    }
}

void status_line_free(struct status_line *line)
{
    if (line) {
        status_line_wipe(line);
        free(line->why);
        free(line);
    }
}

bool status_line_due(const struct status_line *line)
{
    uint64_t interval = line->terminal ? TERMINAL_INTERVAL_NS : OTHER_INTERVAL_NS;
    return !line->quiet && ((line->terminal && !line->written) ||
                            clock_now_ns(line->clock) - line->written_ns >= interval);
}

// Appends as many words of `clause` as `width` columns have room for, but one in any case.
static void add_words(struct strbuf *text, const char *clause, size_t width)
{
    struct strbuf wrapped = STRBUF_INIT;
    wrap_add(&wrapped, clause, 0, 0, width);
    strbuf_add(text, strbuf_text(&wrapped), strcspn(strbuf_text(&wrapped), "\n"));
    strbuf_release(&wrapped);
}

// Appends as many clauses as `width` columns have room for, of the first one as many words, and of
// one that has no room but is long as many words as make sense.
static void add_clauses(struct strbuf *text, const char *clauses, size_t width)
{
    size_t at = 0;
    while (*clauses != '\0') {
        size_t len = strcspn(clauses, "\n");
        char *clause = xstrndup(clauses, len);
        size_t columns = wrap_columns(clause) + (at > 0 ? 2 : 0);
        bool fits = at + columns <= width;
        if (!fits && at == 0) {
            add_words(text, clause, width);
        } else if (fits) {
            strbuf_addf(text, "%s%s", at > 0 ? ", " : "", clause);
            at += columns;
        } else if (columns > WHOLE_COLUMNS && width - at >= PART_COLUMNS) {
            strbuf_add(text, ", ", 2);
            add_words(text, clause, width - at - 4); // without ", " and " …"
            strbuf_addf(text, " …");
        }
        free(clause);
        if (!fits) {
            return;
        }
        clauses += len + (clauses[len] == '\n');
    }
}

void status_line_write(struct status_line *line, const char *clauses)
{
    if (line->quiet) {
        return;
    }
    struct strbuf text = STRBUF_INIT;
    line->written_ns = clock_now_ns(line->clock);
    line->written = true;
    if (line->terminal) {
        // The last column stays free: some terminals go to the next line when it is written.
        add_clauses(&text, clauses, wrap_width(line->out) - 1);
        fputs("\r", line->out);
        printable_printf(line->out, "%s", strbuf_text(&text));
        fputs("\033[K", line->out);
        line->dirty = true;
    } else {
        add_clauses(&text, clauses, SIZE_MAX);
        printable_printf(line->out, "kcast: %s\n", strbuf_text(&text));
    }
    fflush(line->out);
    strbuf_release(&text);
}

void status_line_waits(struct status_line *line, const char *why)
{
    bool same = why && line->why ? strcmp(why, line->why) == 0 : why == line->why;
    if (!same && why && !line->terminal) {
        status_line_say(line, why);
    }
    if (!same) {
        free(line->why);
        line->why = why ? xstrdup(why) : NULL;
    }
}

void status_line_say(void *owner, const char *sentence)
{
    struct status_line *line = owner;
    if (!line->quiet) {
        status_line_wipe(line);
        printable_printf(line->out, "kcast: %s\n", sentence);
        fflush(line->out);
    }
}
