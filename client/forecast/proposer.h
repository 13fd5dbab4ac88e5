// The search's talk with a worker that writes candidates: a round of requests at once. Decides
// nothing, records nothing.
#ifndef CLIENT_FORECAST_PROPOSER_H
#define CLIENT_FORECAST_PROPOSER_H

#include "client/forecast/search_text.h"
#include "client/run/run_state.h"
#include "client/session.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdint.h>

#define PROPOSER_ROUND_MAX 16 // requests at once

struct proposer;

struct proposer_request {
    uint64_t parent; // candidate to begin with; 0: the baseline
    uint64_t count;  // candidates wanted
    uint64_t draw;
};

// read and its owner (search_text.h) outlive the proposer. ERR_UNREACHABLE without a worker.
MUST_CHECK int proposer_create(struct proposer **ret, struct session *session,
                               search_text_reader *read, void *owner, struct err *err);
void proposer_free(struct proposer *proposer); // NULL is fine; the callback does not run any more

// Sends the requests, count of them; each sees the outcomes of candidates 1 … visible. The callback runs
// once, on the loop, not inside this call. reply[i], the callback's to change, is the answer to
// request[i]; without one its reason says why. ERR_SYSTEM when a blob cannot be read: nothing was sent.
typedef void proposer_callback(void *owner, struct propose_reply *reply, size_t count);
MUST_CHECK int proposer_ask(struct proposer *proposer, const struct run_state *run_state,
                            uint64_t visible, const struct proposer_request *request, size_t count,
                            proposer_callback *callback, void *owner, struct err *err);

#endif
