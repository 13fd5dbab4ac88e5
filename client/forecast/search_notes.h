// What the changes of a search came to, in one line each: the notes that language models get with a
// request for candidates, so that what worked and what did not is known in every generation. They
// follow from the run state, and so a search that goes on knows them again. Pure.
#ifndef CLIENT_FORECAST_SEARCH_NOTES_H
#define CLIENT_FORECAST_SEARCH_NOTES_H

#include "client/run/run_state.h"

#define SEARCH_NOTES_HELPED 12 // changes that made their parent faster, those that did most first
#define SEARCH_NOTES_HARMED 12 // the newest changes that did not, or that were wrong

// Fills context->notes from candidates 1 … visible that a language model wrote.
void search_notes_add(struct search_context *context, const struct run_state *run_state,
                      uint64_t visible);

#endif
