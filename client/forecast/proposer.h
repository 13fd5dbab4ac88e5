// Who writes new candidates, several requests at once: an operations table that a search calls
// without knowing whether a worker (proposer.c) or programs (client/program/program_proposer.h) are
// behind it. Used for the generators `llm` and `exec:`. A proposer decides nothing and records
// nothing. Implementations embed struct proposer and find themselves from its address.
#ifndef CLIENT_FORECAST_PROPOSER_H
#define CLIENT_FORECAST_PROPOSER_H

#include "client/forecast/search_text.h"
#include "client/run/run_state.h"
#include "client/session.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stddef.h>
#include <stdint.h>

#define PROPOSER_ROUND_MAX 16 // requests of one round

struct proposer_request {
    uint64_t parent; // candidate that the worker begins from; 0: the baseline
    uint64_t count;  // candidates that are wanted
    uint64_t draw;   // tells apart requests that are the same otherwise
};

// The callback runs once when all requests are answered, on the loop and never inside the call.
// reply[i] is the answer to request[i], and the callback may change it; when the request failed,
// its reason says why.
typedef void proposer_callback(void *owner, struct propose_reply *reply, size_t count);

struct proposer {
    size_t round_max;     // requests of one round, at most PROPOSER_ROUND_MAX
    uint64_t per_request; // candidates that one request asks for at most; 0: as many as are missing
                          // are spread over the requests of a round
    // Sends count requests, which show the outcomes of candidates 1 … visible. ERR_SYSTEM when a
    // blob cannot be read or nothing can be started; the callback does not run then.
    int (*ask)(struct proposer *proposer, const struct run_state *run_state, uint64_t visible,
               const struct proposer_request *request, size_t count, proposer_callback *callback,
               void *owner, struct err *err);
    // The callback does not run any more.
    void (*free)(struct proposer *proposer);
};

void proposer_free(struct proposer *proposer); // NULL is fine

// A proposer that asks the worker. read and its owner (client/forecast/search_text.h) outlive it.
// ERR_USAGE with --no-worker, ERR_UNREACHABLE when no worker answers.
MUST_CHECK int proposer_create(struct proposer **ret, struct session *session,
                               search_text_reader *read, void *owner, struct err *err);

#endif
