// What a language model reads of a search besides the candidate: the problem with its benchmark
// cases, the baseline, the incumbent, and what was measured. Built from the run state and the run
// file's blobs, for requests for forecasts and for candidates.
#ifndef CLIENT_FORECAST_SEARCH_TEXT_H
#define CLIENT_FORECAST_SEARCH_TEXT_H

#include "client/forecast/search_tried.h"
#include "client/run/run_state.h"
#include "common/err.h"

// The newest candidates are listed with their outcomes: from half as many to so many. The list
// begins at a multiple of the half, so that from one request to the next it mostly grows at its end
// and endpoints that keep the beginnings of prompts know it.
#define SEARCH_TEXT_HISTORY 32

// Uses the outcomes of candidates 1 … visible only, so that a search that was killed sends the same
// text again. *ret owns its parts (message_clear with search_context_message), also after an error.
// Fails when a blob cannot be read or the problem cannot be parsed.
MUST_CHECK int search_text_make(struct search_context *ret, const struct run_state *run_state,
                                uint64_t visible, search_text_reader *read, void *owner,
                                struct err *err);

#endif
