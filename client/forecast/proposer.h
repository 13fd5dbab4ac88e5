// Asks a worker for new candidates, several requests at once. Used by the pipeline for the
// generator `llm`. Decides nothing and records nothing.
#ifndef CLIENT_FORECAST_PROPOSER_H
#define CLIENT_FORECAST_PROPOSER_H

#include "client/forecast/search_text.h"
#include "client/run/run_state.h"
#include "client/session.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdint.h>

#define PROPOSER_ROUND_MAX 16 // requests of one round

struct proposer;

struct proposer_request {
    uint64_t parent; // candidate that the worker begins from; 0: the baseline
    uint64_t count;  // candidates that are wanted
    uint64_t draw;   // tells apart requests that are the same otherwise
};

// Connects to the worker. read and its owner (client/forecast/search_text.h) outlive the proposer.
// ERR_USAGE with --no-worker, ERR_UNREACHABLE when no worker answers.
MUST_CHECK int proposer_create(struct proposer **ret, struct session *session,
                               search_text_reader *read, void *owner, struct err *err);
// The callback does not run any more. NULL is fine.
void proposer_free(struct proposer *proposer);

// Sends count requests, which show the worker the outcomes of candidates 1 … visible. The callback
// runs once when all are answered, on the loop and never inside this call. reply[i] is the answer
// to request[i], and the callback may change it; when the request failed, its reason says why.
// ERR_SYSTEM when a blob cannot be read; the callback does not run then.
typedef void proposer_callback(void *owner, struct propose_reply *reply, size_t count);
MUST_CHECK int proposer_ask(struct proposer *proposer, const struct run_state *run_state,
                            uint64_t visible, const struct proposer_request *request, size_t count,
                            proposer_callback *callback, void *owner, struct err *err);

#endif
