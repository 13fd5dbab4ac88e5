// What limits the requests to one endpoint: how long it asks to wait, the pause before a retry, a
// token bucket, an adaptive number of requests at once, and a circuit breaker. Called by the
// endpoints. Pure state machines: time comes in as an argument, in milliseconds that never
// decrease.
#ifndef WORKER_ENDPOINT_RATE_LIMIT_H
#define WORKER_ENDPOINT_RATE_LIMIT_H

#include "common/stats.h"
#include <stdbool.h>
#include <stdint.h>

#define RATE_LIMIT_RETRY_MAX_MS 600000.0 // an endpoint that asks for a longer pause gets this one

// For how many milliseconds an answer asks the client to wait, from its headers ("name: value\n"
// each, names in lower case). It is the longest of retry-after (seconds or a date), retry-after-ms
// and the x-ratelimit-reset... headers ("1s", "6m0s", "20ms", or a moment in seconds or
// milliseconds since 1970). A reset header counts when its x-ratelimit-remaining... is 0 or
// missing. NaN when the answer asks for no pause: the headers are missing, 0, negative or
// malformed. wall_s: seconds since 1970.
double rate_limit_retry_ms(const char *headers, double wall_s);

// The pause before retry number `attempt` (from 0), exponential backoff with full jitter (Brooker
// 2015, "Exponential Backoff And Jitter"): uniform between 0 and 0.5 s doubled with each attempt,
// at most 30 s.
double rate_limit_backoff_ms(struct stats_rng *rng, unsigned attempt);

// A token bucket: so many units per minute; 0: any number. Starts full.
struct bucket {
    double per_minute, level; // level: units that are there at at_ms
    uint64_t at_ms;
};
void bucket_init(struct bucket *bucket, double per_minute, uint64_t now_ms);
// Takes n units and returns 0, or takes nothing and returns in how many milliseconds there will be
// enough. More units than the bucket holds are given when it is full.
double bucket_take(struct bucket *bucket, double n, uint64_t now_ms);
// Gives back units that were taken and not used.
void bucket_give_back(struct bucket *bucket, double n);

// How many requests may be open at once, by additive increase and multiplicative decrease: one more
// after as many successes as the limit, half as many after a refusal. Refusals within one second of
// the last one that counted belong to the same burst and change nothing. Before the first refusal
// the limit grows by one with each success, since nothing is known of what the endpoint takes (slow
// start: Jacobson 1988, "Congestion Avoidance and Control").
struct window {
    double limit, most;
    uint64_t cut_ms; // the last refusal that counted; 0: none
};
void window_init(struct window *window, double first, double most);
void window_success(struct window *window);
void window_refused(struct window *window, uint64_t now_ms);

// A circuit breaker. It opens after BREAKER_FAILURES failures in a row, for 5 s, 10 s and so on up
// to 5 min. Then one request may try: its success closes the breaker, its failure opens it again.
// While it is open, failures of requests that began before change nothing, so that a burst of them
// counts once.
#define BREAKER_FAILURES 8
struct breaker {
    unsigned failures, openings;
    uint64_t until_ms; // open until then; 0: closed
    bool trying;       // the one request that may try is open
};
// Whether a request may begin.
bool breaker_allows(const struct breaker *breaker, uint64_t now_ms);
void breaker_begins(struct breaker *breaker); // a request begins
void breaker_success(struct breaker *breaker);
bool breaker_failure(struct breaker *breaker, uint64_t now_ms); // returns whether this opened it
// Opens it without waiting for more failures, as when a key is refused. Returns whether this opened
// it.
bool breaker_open(struct breaker *breaker, uint64_t now_ms);

#endif
