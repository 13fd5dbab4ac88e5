// One endpoint of the set (worker/llm/endpoint.h, whose implementation is the only caller): its
// configuration, its counters, and what limits the requests to it. Whether it takes a request
// depends on four things: the circuit breaker, the window (how many requests may be open at once),
// the token buckets, and until when it asked the client to wait. Time comes in as an argument.
// Knows nothing of calls and connections.
#ifndef WORKER_LLM_ENDPOINT_STATE_H
#define WORKER_LLM_ENDPOINT_STATE_H

#include "worker/llm/endpoint.h"
#include "worker/llm/rate_limit.h"
#include <stdbool.h>
#include <stdint.h>

struct endpoint {
    struct endpoint_config config; // url and model are owned; key is NULL
    char *authorization;           // the header "Authorization: Bearer KEY"; NULL: none
    struct window window;
    struct breaker breaker;
    struct bucket requests, tokens;
    uint64_t wait_until_ms;        // it asked for no requests until then
    struct endpoint_status status; // open and limit are not kept here
};

// Copies the configuration.
void endpoint_init(struct endpoint *endpoint, const struct endpoint_config *config,
                   uint64_t now_ms);
// Frees the texts and wipes the key.
void endpoint_release(struct endpoint *endpoint);

// Whether it serves this model. False for NULL.
bool endpoint_has_model(const struct endpoint *endpoint, const char *model);

// When the endpoint can take a request that may use so many tokens. 0: now, and the units have then
// been taken from the buckets. Otherwise a time in milliseconds; UINT64_MAX: not before another
// request ends.
uint64_t endpoint_reserve(struct endpoint *endpoint, double tokens, uint64_t now_ms);

// Whether a failure may pass, so that the request should be made again. False for a success.
bool endpoint_failure_passes(const struct http_reply *reply);

// Updates the limits and the counters after a request. Logs when the breaker opens.
void endpoint_update(struct endpoint *endpoint, const struct http_reply *reply, uint64_t now_ms);

#endif
