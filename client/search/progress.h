// One line on stderr that says how far a search is, rewritten in place. Only on a terminal; never
// more often than ten times a second.
#ifndef CLIENT_SEARCH_PROGRESS_H
#define CLIENT_SEARCH_PROGRESS_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>

struct progress;

// points: how many the generator has. quiet: draw nothing.
struct progress *progress_create(bool quiet, size_t points);
// Clears the line. NULL is fine.
void progress_free(struct progress *progress);
bool progress_is_on(const struct progress *progress);
void progress_draw(struct progress *progress, const struct run_state *run_state);
// "kcast: <sentence>" on a line of its own. owner is the progress; the form of job_client_set_notice.
void progress_say(void *owner, const char *sentence);
// The line without terminal control, as it is drawn.
void progress_text(const struct run_state *run_state, size_t points, double now, char *out,
                   size_t size);

#endif
