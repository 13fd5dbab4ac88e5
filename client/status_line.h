// What a command that lasts says while it goes on: on a terminal one line on stderr that is
// rewritten in place, elsewhere a line of its own every half a minute. Used by searches and by
// commands that wait for measurements. Knows nothing of what the line says.
#ifndef CLIENT_STATUS_LINE_H
#define CLIENT_STATUS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct clock;
struct status_line;

#define STATUS_LINE_TICK_MS 200 // how often status_line_due is to be asked

// out is stderr, but for tests. With quiet nothing is ever written.
struct status_line *status_line_create(FILE *out, bool quiet, const struct clock *clock);
// Clears the line. NULL is fine.
void status_line_free(struct status_line *line);
// Whether it is time to write a line: on a terminal a tenth of a second after the last one,
// elsewhere 30 s after that or after the beginning.
bool status_line_due(const struct status_line *line);
// Writes a line of clauses, which a newline divides in the text. On a terminal as many of them as
// its width has room for, the first ones; the first one ends with a whole word in any case, and so
// does a long one that has some room, such as a reason for waiting.
void status_line_write(struct status_line *line, const char *clauses);
// Says why nothing goes on, as a line of its own where there is no terminal, when that has changed.
// On a terminal the caller's clauses say it. NULL: things go on.
void status_line_waits(struct status_line *line, const char *why);
// Writes "kcast: <sentence>" on a line of its own. owner is the struct status_line. Fits
// daemon_pool_set_notice.
void status_line_say(void *owner, const char *sentence);
// Clears the line, before something is written to stdout, which may be the same terminal.
void status_line_wipe(struct status_line *line);

#endif
