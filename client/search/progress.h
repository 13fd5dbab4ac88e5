// One line on stderr that says how far a search is, rewritten in place. It is drawn on a terminal
// only, at most ten times a second. Used by client/search/search.c.
#ifndef CLIENT_SEARCH_PROGRESS_H
#define CLIENT_SEARCH_PROGRESS_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>

struct progress;

// points is the number of candidates that the generators have. With quiet nothing is ever written.
struct progress *progress_create(bool quiet, size_t points);
// Clears the line. NULL is fine.
void progress_free(struct progress *progress);
// Whether the line is drawn.
bool progress_is_on(const struct progress *progress);
// Draws the line, unless it was drawn less than a tenth of a second ago.
void progress_draw(struct progress *progress, const struct run_state *run_state);
// Writes "kcast: <sentence>" on a line of its own. owner is the progress. Fits
// daemon_pool_set_notice.
void progress_say(void *owner, const char *sentence);
#endif
