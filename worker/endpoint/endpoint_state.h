// One endpoint of the set (worker/endpoint/endpoint.h, whose implementation is the only caller):
// its configuration, its counters, and what limits the requests to it. Whether it takes a request
// depends on four things: the circuit breaker, the window (how many requests may be open at once),
// the token buckets, and until when it asked the client to wait. Of an endpoint that has not
// answered yet, one request at a time finds out how it wants to be asked. Time comes in as an
// argument. Knows nothing of calls and connections.
#ifndef WORKER_ENDPOINT_ENDPOINT_STATE_H
#define WORKER_ENDPOINT_ENDPOINT_STATE_H

#include "worker/endpoint/endpoint.h"
#include "worker/endpoint/rate_limit.h"
#include <stdbool.h>
#include <stdint.h>

// For so long the first request to an endpoint goes ahead alone.
#define ENDPOINT_AHEAD_MS 10000
// An endpoint that has never answered rests after so many failures.
#define ENDPOINT_NEVER_ANSWERED_FAILURES 3

struct endpoint {
    struct endpoint_config config; // its texts are owned; key is NULL
    char *address;                 // of its requests
    char *authorization;           // the header with the key; NULL: none
    const char *key;               // within authorization
    const char *version;           // a header that its form wants; NULL: none
    struct window window;
    struct breaker breaker;
    struct bucket requests, tokens;
    bool answered;                 // it has, since the start
    bool proven;                   // it is known how it wants to be asked
    bool nobody;                   // nobody was there when it was asked last
    bool broken;                   // it rests for a reason that does not pass by itself
    uint64_t ahead_ms;             // the first request began; 0: none has
    uint64_t wait_until_ms;        // it asked for no requests until then
    char words[320];               // why it rests or failed last
    struct endpoint_status status; // answered, open, limit and words are not kept here
};

// Copies the configuration.
void endpoint_init(struct endpoint *endpoint, const struct endpoint_config *config,
                   uint64_t now_ms);
// Frees the texts and wipes the key.
void endpoint_release(struct endpoint *endpoint);
// Its name for people.
const char *endpoint_name(const struct endpoint *endpoint);

// Whether it serves this model. False for NULL.
bool endpoint_has_model(const struct endpoint *endpoint, const char *model);

// When the endpoint can take a request that may use so many tokens. 0: now, and the units have then
// been taken from the buckets. Otherwise a time in milliseconds; UINT64_MAX: not before another
// request ends.
uint64_t endpoint_reserve(struct endpoint *endpoint, double tokens, uint64_t now_ms);
// Gives back what a request took that was not made.
void endpoint_give_back(struct endpoint *endpoint, double tokens);

// Whether it may be waited for: it does not rest, or only for the first time after it has answered,
// and not beyond the deadline. patient: every rest that ends before the deadline is waited for, but
// not one for a reason that does not pass, nor of an endpoint where nobody has ever been.
bool endpoint_is_hopeful(const struct endpoint *endpoint, uint64_t deadline_ms, bool patient);
// Whether its next request is to find out whether it answers again.
bool endpoint_is_tried(const struct endpoint *endpoint);

// Reads what a reply means. An endpoint that quotes its key does not get it into *ret.
void endpoint_read_refusal(const struct endpoint *endpoint, const struct http_reply *reply,
                           struct refusal *ret);

// Whether a failure may pass, so that the request should be made again. False for a success.
bool endpoint_failure_passes(const struct http_reply *reply, const struct refusal *refusal);
// Whether the endpoint cannot answer until somebody has put something right.
bool endpoint_failure_is_its_own(const struct refusal *refusal);

// Updates the limits and the counters after a request. Logs when the endpoint begins to rest, with
// its own words.
void endpoint_update(struct endpoint *endpoint, const struct http_reply *reply,
                     const struct refusal *refusal, uint64_t now_ms);
// Lets it rest for this reason, and logs that.
void endpoint_rest(struct endpoint *endpoint, const char *reason, uint64_t now_ms);

#endif
