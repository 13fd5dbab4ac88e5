// The inside of a set of endpoints and of its calls, and the choice of the endpoint that takes a
// call. Only endpoint.c and endpoint_choice.c include this.
#ifndef WORKER_ENDPOINT_ENDPOINT_CHOICE_H
#define WORKER_ENDPOINT_ENDPOINT_CHOICE_H

#include "common/stats.h"
#include "worker/endpoint/endpoint.h"
#include "worker/endpoint/endpoint_state.h"

// A call that is not done.
struct endpoint_waiter {
    struct endpoints *all;
    struct endpoint_waiter *next, **before;
    struct endpoint_call call;
    struct endpoint_result result;
    uint64_t posted_ms, not_before_ms;
    struct http_call *http; // the open request; NULL: the call is waiting
    bool told_trial;        // on_trial has run
};

struct endpoints {
    struct http *http;
    struct endpoint *endpoint;
    size_t count;
    struct endpoint_waiter *waiter, **last; // list; last is where the next one is linked
    struct stats_rng rng;
    uv_timer_t timer;
    uint64_t slowest_ms; // that an answer has taken
    bool closing;
};

static inline uint32_t endpoint_bit(size_t endpoint)
{
    return (uint32_t)1 << endpoint;
}

// Whether an endpoint is left that the call may ask.
bool endpoint_may_ask_another(const struct endpoint_waiter *waiter);

// Whether another endpoint than this one may be waited for.
bool endpoint_has_other_hope(const struct endpoint_waiter *waiter, const struct endpoint *but);

// The most preferred endpoint that takes the call now, which has been admitted there. NULL when
// none does; *ret_when is then when one can, *ret_hope whether there is one to wait for, and
// *ret_over whether the call is not to be made at all, for waiter->result.err. *busy has, as bits,
// the endpoints that did not take an earlier call.
struct endpoint *endpoint_choose(struct endpoint_waiter *waiter, uint64_t now, uint32_t *busy,
                                 uint64_t *ret_when, bool *ret_hope, bool *ret_over);

#endif
