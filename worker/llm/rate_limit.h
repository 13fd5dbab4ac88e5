// How to behave towards an endpoint. Pure state machines; time comes in, in milliseconds that only
// grow.
#ifndef WORKER_LLM_RATE_LIMIT_H
#define WORKER_LLM_RATE_LIMIT_H

#include "common/stats.h"
#include <stdbool.h>
#include <stdint.h>

#define RATE_LIMIT_RETRY_MAX_MS 600000.0 // no wait that is asked for counts as longer

// How long an answer asks to be left alone, from its headers ("name: value\n" each, names in lower
// case): the longest of retry-after (seconds or a date), retry-after-ms, and the x-ratelimit-reset…
// of the limits that are used up ("1s", "6m0s", "20ms", a moment in seconds or milliseconds since
// 1970): of those whose x-ratelimit-remaining… is 0 or missing. At most RATE_LIMIT_RETRY_MAX_MS. NaN
// when it does not ask: missing, 0, negative, nonsense. wall_s: seconds since 1970, for dates.
double rate_limit_retry_ms(const char *headers, double wall_s);

// Full jitter (Brooker 2015, "Exponential Backoff And Jitter"): uniform from 0 to 0.5 s doubled
// with each attempt (from 0), at most 30 s.
double rate_limit_backoff_ms(struct stats_rng *rng, unsigned attempt);

// So many units a minute; 0: any number. Starts full.
struct bucket {
    double per_minute, level;
    uint64_t at_ms;
};
void bucket_init(struct bucket *bucket, double per_minute, uint64_t now_ms);
// Takes n units and returns 0, or takes nothing and returns after how many milliseconds there will
// be enough. More than the bucket holds is given when it is full.
double bucket_take(struct bucket *bucket, double n, uint64_t now_ms);
void bucket_give_back(struct bucket *bucket, double n); // what was taken and not used

// Calls at once: one more after each window of successes, half as many after a refusal, and not
// twice within a second for the same crowd of refusals (additive increase, multiplicative
// decrease). Before the first refusal one more after each success, since nothing is known of what
// the other side bears (slow start: Jacobson 1988, "Congestion Avoidance and Control").
struct window {
    double limit, most;
    uint64_t cut_ms; // last refusal that counted; 0: none
};
void window_init(struct window *window, double first, double most);
void window_success(struct window *window);
void window_refused(struct window *window, uint64_t now_ms);

// Opens after BREAKER_FAILURES failures in a row, for 5 s, 10 s, … up to 5 min; then one call may
// try: its success closes the breaker, its failure opens it again. While it is open failures of
// calls that began before change nothing, so that a crowd of them counts once.
#define BREAKER_FAILURES 8
struct breaker {
    unsigned failures, openings;
    uint64_t until_ms; // open until then; 0: closed
    bool trying;       // the one call is under way
};
bool breaker_allows(const struct breaker *breaker, uint64_t now_ms);
void breaker_begins(struct breaker *breaker);
void breaker_success(struct breaker *breaker);
bool breaker_failure(struct breaker *breaker, uint64_t now_ms); // whether this opened it
bool breaker_open(struct breaker *breaker, uint64_t now_ms);    // at once: its key is refused

#endif
