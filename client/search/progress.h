// How far a search is, on stderr: a line that is rewritten in place on a terminal, one every 30 s
// elsewhere. Used by client/search/search.c.
#ifndef CLIENT_SEARCH_PROGRESS_H
#define CLIENT_SEARCH_PROGRESS_H

#include "client/run/run_state.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

struct progress;

// points is the number of candidates that the generators have. With quiet nothing is ever written.
struct progress *progress_create(bool quiet, size_t points);
// Clears the line. NULL is fine.
void progress_free(struct progress *progress);
// Whether progress_draw would write a line now.
bool progress_is_due(const struct progress *progress);
// Writes the line if it is due. waiting says why nothing goes on; NULL: it does.
void progress_draw(struct progress *progress, const struct run_state *run_state,
                   const char *waiting);
// Appends what the line says, as clauses for status_line_write: what is used up and how long the
// rest takes come first. now is in seconds since 1970.
void progress_describe(struct strbuf *out, const struct run_state *run_state, size_t points,
                       double now, const char *waiting);
// Clears the line, before something is written to stdout.
void progress_wipe(struct progress *progress);
// Writes "kcast: <sentence>" on a line of its own. owner is the progress. Fits
// daemon_pool_set_notice.
void progress_say(void *owner, const char *sentence);
#endif
