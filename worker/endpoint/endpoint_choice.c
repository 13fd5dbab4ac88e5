#include "worker/endpoint/endpoint_choice.h"

#define LATER_MS 1000 // after which an admission that was put off is asked for again at the latest

bool endpoint_may_ask_another(const struct endpoint_waiter *waiter)
{
    return (~waiter->call.barred & (endpoint_bit(waiter->all->count) - 1)) != 0;
}

bool endpoint_has_other_hope(const struct endpoint_waiter *waiter, const struct endpoint *but)
{
    const struct endpoints *all = waiter->all;
    uint64_t deadline = waiter->posted_ms + waiter->call.deadline_ms;

    for (size_t i = 0; i < all->count; i++) {
        const struct endpoint *e = &all->endpoint[i];

        if (e != but && !(waiter->call.barred & endpoint_bit(i)) &&
            endpoint_is_hopeful(e, deadline, waiter->call.patient)) {
            return true;
        }
    }
    return false;
}

// Whether a is preferred to b for the call: first the endpoints that have not failed it, then those
// that do not rest, then those with the wanted model, then the one with fewer open calls for its
// weight.
static bool comes_before(const struct endpoints *all, const struct endpoint_waiter *waiter,
                         const struct endpoint *a, const struct endpoint *b)
{
    const char *model = waiter->call.model;
    bool avoid_a = waiter->call.avoid & endpoint_bit((size_t)(a - all->endpoint));
    bool avoid_b = waiter->call.avoid & endpoint_bit((size_t)(b - all->endpoint));

    if (avoid_a != avoid_b) {
        return avoid_b;
    }
    if (endpoint_has_model(a, model) != endpoint_has_model(b, model)) {
        return endpoint_has_model(a, model);
    }
    return ((double)a->status.in_flight + 1) * b->config.weight <
           ((double)b->status.in_flight + 1) * a->config.weight;
}

// When the endpoint can take the call; 0: now, and it is admitted. *busy has the endpoints that did
// not take an earlier call, *ret_over is set when the call is not to be made at all, and *ret_wait
// when it is to wait for this endpoint.
static uint64_t try_endpoint(struct endpoint_waiter *waiter, struct endpoint *endpoint,
                             uint64_t now, uint32_t *busy, bool *ret_over, bool *ret_wait)
{
    struct endpoint_call *call = &waiter->call;
    size_t number = (size_t)(endpoint - waiter->all->endpoint);
    struct err err = ERR_INIT;

    if ((call->avoid & endpoint_bit(number)) && waiter->not_before_ms > now) {
        return waiter->not_before_ms;
    }
    if (*busy & endpoint_bit(number)) {
        return UINT64_MAX; // the one that it did not take has set the time
    }
    uint64_t when = endpoint_reserve(endpoint, call->tokens, now);
    if (when != 0) {
        *busy |= endpoint_bit(number);
        return when;
    }
    enum endpoint_admission admission =
        call->admit ? call->admit(call->owner, number, &err) : ENDPOINT_ADMIT;
    if (admission == ENDPOINT_ADMIT) {
        return 0;
    }
    endpoint_give_back(endpoint, call->tokens);
    if (admission == ENDPOINT_NEVER) {
        waiter->result.err = err;
        *ret_over = true;
    }
    *ret_wait = admission == ENDPOINT_WAIT;
    return now + LATER_MS;
}

struct endpoint *endpoint_choose(struct endpoint_waiter *waiter, uint64_t now, uint32_t *busy,
                                 uint64_t *ret_when, bool *ret_hope, bool *ret_over)
{
    struct endpoints *all = waiter->all;
    uint32_t tried = waiter->call.barred;

    *ret_when = UINT64_MAX;
    *ret_hope = endpoint_has_other_hope(waiter, NULL);
    *ret_over = false;
    for (;;) {
        struct endpoint *best = NULL;
        bool wait = false;

        for (size_t i = 0; i < all->count; i++) {
            struct endpoint *e = &all->endpoint[i];

            if (!(tried & endpoint_bit(i)) && (!best || comes_before(all, waiter, e, best))) {
                best = e;
            }
        }
        if (!best) {
            return NULL;
        }
        tried |= endpoint_bit((size_t)(best - all->endpoint));
        uint64_t when = try_endpoint(waiter, best, now, busy, ret_over, &wait);
        if (when == 0) {
            return best;
        }
        if (*ret_over) {
            return NULL;
        }
        *ret_when = when < *ret_when ? when : *ret_when;
        if (wait) {
            return NULL;
        }
    }
}
