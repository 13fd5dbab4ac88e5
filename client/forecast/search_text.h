// What a language model reads of a search besides the candidate: the problem, the baseline, the best so
// far, what has been measured. Built from the run state and the run file's blobs.
#ifndef CLIENT_FORECAST_SEARCH_TEXT_H
#define CLIENT_FORECAST_SEARCH_TEXT_H

#include "client/run/run_state.h"
#include "common/err.h"

#define SEARCH_TEXT_HISTORY 32 // candidates that are told, with what came of them: the newest

typedef int search_text_reader(void *owner, const struct digest *digest, struct bytes *ret,
                               struct err *err);

// What came of candidates 1 … visible, so that the same is said again after a kill. *ret owns its parts
// (message_clear by search_context_message), also after an error, which is that a blob cannot be read.
MUST_CHECK int search_text_make(struct search_context *ret, const struct run_state *run_state,
                                uint64_t visible, search_text_reader *read, void *owner,
                                struct err *err);

#endif
