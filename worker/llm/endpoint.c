// Design note. The states of a call, which a waiter stands for:
//
//   posted --> WAITING --an endpoint takes it--> OPEN --> done
//                 ^                               |
//                 +---- not before a time ---- passing failure
//
// Whether an endpoint takes a call depends on four things: its circuit breaker, its window (how
// many calls may be open at once), its token buckets, and until when it asked the client to wait.
// dispatch() starts the calls that can be started and sets the timer for the moment when more might
// be. Waiters are a list in the order of posting.
#include "worker/llm/endpoint.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/version.h"
#include "worker/llm/endpoint_state.h"
#include "worker/llm/rate_limit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX ((size_t)8 << 20) // bytes of an answer
#define CONNECT_MS 10000

// A call that is not done.
struct endpoint_waiter {
    struct endpoints *all;
    struct endpoint_waiter *next, **before;
    struct endpoint_call call;
    struct endpoint_result result;
    uint64_t posted_ms, not_before_ms;
    struct http_call *http; // the open request; NULL: the call is waiting
};

struct endpoints {
    struct http *http;
    struct endpoint *endpoint;
    size_t count;
    struct endpoint_waiter *waiter, **last; // list; last is where the next one is linked
    struct stats_rng rng;
    uv_timer_t timer;
    bool closing;
};

static void dispatch(struct endpoints *all);

static uint64_t now_ms(void)
{
    return clock_now_ns(&clock_system) / 1000000;
}

// ---- waiters ----

static void append(struct endpoints *all, struct endpoint_waiter *waiter)
{
    waiter->before = all->last;
    waiter->next = NULL;
    *all->last = waiter;
    all->last = &waiter->next;
}

static void take_out(struct endpoint_waiter *waiter)
{
    *waiter->before = waiter->next;
    if (waiter->next) {
        waiter->next->before = waiter->before;
    } else {
        waiter->all->last = waiter->before;
    }
}

static void finish(struct endpoint_waiter *waiter)
{
    take_out(waiter);
    waiter->call.done(waiter->call.owner, &waiter->result);
    free(waiter);
}

// ---- results ----

static void on_reply(void *owner, const struct http_reply *reply)
{
    struct endpoint_waiter *waiter = owner;
    struct endpoints *all = waiter->all;
    struct endpoint *endpoint = &all->endpoint[waiter->result.endpoint];
    struct endpoint_result *result = &waiter->result;
    bool refused = reply->status == 401 || reply->status == 403 || reply->err.code == ERR_DENIED;

    waiter->http = NULL;
    endpoint_update(endpoint, reply, now_ms());
    if (reply->err.code != ERR_NONE && reply->status != 401 && reply->status != 403) {
        result->maybe_billed += reply->sent;
    }
    result->status = reply->status;
    result->seconds = reply->seconds;
    if (endpoint_failure_passes(reply) || (refused && all->count > 1)) {
        result->err = reply->err;
        if (reply->err.code == ERR_NONE) {
            (void)err_set(&result->err, ERR_UNREACHABLE, "the endpoint answers with status %ld",
                          reply->status);
        }
        waiter->not_before_ms =
            now_ms() + (uint64_t)rate_limit_backoff_ms(&all->rng, result->attempts - 1);
    } else {
        result->err = reply->err;
        result->body = reply->body;
        finish(waiter);
    }
    dispatch(all);
}

// ---- dispatching ----

// Makes a request of the call to an endpoint that has taken it.
static void begin(struct endpoint_waiter *waiter, struct endpoint *endpoint, uint64_t now)
{
    struct endpoints *all = waiter->all;
    char *url = xasprintf("%s%s", endpoint->config.url, waiter->call.path);
    const char *headers[] = {"Content-Type: application/json", endpoint->authorization, NULL};
    struct http_request request = {.url = url, .headers = headers, .connect_ms = CONNECT_MS};

    waiter->result.endpoint = (size_t)(endpoint - all->endpoint);
    struct strbuf body = STRBUF_INIT;
    waiter->call.build(waiter->call.owner, waiter->result.endpoint, &body);
    request.body = strbuf_text(&body);
    request.len = body.len;
    request.deadline_ms = waiter->posted_ms + waiter->call.deadline_ms - now;
    endpoint->status.requests++;
    endpoint->status.retries += waiter->result.attempts > 0;
    endpoint->status.in_flight++;
    breaker_begins(&endpoint->breaker);
    waiter->result.attempts++;
    waiter->result.waited_s = (double)(now - waiter->posted_ms) / 1000;
    waiter->http = http_start(all->http, &request, on_reply, waiter);
    strbuf_release(&body);
    free(url);
}

// Whether a is preferred to b. An endpoint with the wanted model is; otherwise the one with fewer
// open calls for its weight.
static bool comes_before(const struct endpoint *a, const struct endpoint *b, const char *model)
{
    if (endpoint_has_model(a, model) != endpoint_has_model(b, model)) {
        return endpoint_has_model(a, model);
    }
    return ((double)a->status.in_flight + 1) * b->config.weight <
           ((double)b->status.in_flight + 1) * a->config.weight;
}

// The most preferred endpoint that takes the call. NULL when none does; *ret_when is then when one
// can.
static struct endpoint *choose(struct endpoints *all, const struct endpoint_waiter *waiter,
                               uint64_t now, uint64_t *ret_when)
{
    *ret_when = UINT64_MAX;
    bool tried[ENDPOINTS_MAX] = {false};
    for (size_t round = 0; round < all->count; round++) {
        struct endpoint *best = NULL;

        for (size_t i = 0; i < all->count; i++) {
            struct endpoint *e = &all->endpoint[i];

            if (!tried[i] && (!best || comes_before(e, best, waiter->call.model))) {
                best = e;
            }
        }
        tried[best - all->endpoint] = true;
        uint64_t when = endpoint_reserve(best, waiter->call.tokens, now);
        if (when == 0) {
            return best;
        }
        *ret_when = when < *ret_when ? when : *ret_when;
    }
    return NULL;
}

// Ends a call whose deadline has passed.
static void give_up(struct endpoint_waiter *waiter)
{
    struct endpoint_result *result = &waiter->result;
    struct err last = result->err;

    result->err = (struct err)ERR_INIT;
    (void)err_set(&result->err, ERR_TIMED_OUT, "no endpoint has answered within %.1f s%s%s",
                  (double)waiter->call.deadline_ms / 1000, last.code != ERR_NONE ? ": " : "",
                  last.text);
    finish(waiter);
}

static void on_timer(uv_timer_t *timer)
{
    dispatch(timer->data);
}

// Starts the calls that can be started, ends those whose deadline has passed and sets the timer.
static void dispatch(struct endpoints *all)
{
    uint64_t now = now_ms(), next = UINT64_MAX;
    struct endpoint_waiter *waiter, *following;
    bool full = false;

    for (waiter = all->waiter; waiter && !all->closing; waiter = following) {
        uint64_t deadline = waiter->posted_ms + waiter->call.deadline_ms, when = 0;

        following = waiter->next;
        if (waiter->http) {
            continue;
        }
        if (now >= deadline) {
            give_up(waiter);
            following = all->waiter; // the callback may have posted calls or closed the set
            continue;
        }
        next = deadline < next ? deadline : next;
        if (waiter->not_before_ms > now) {
            next = waiter->not_before_ms < next ? waiter->not_before_ms : next;
            continue;
        }
        if (full) {
            continue; // endpoints that did not take a call before do not take this one
        }
        struct endpoint *endpoint = choose(all, waiter, now, &when);
        if (endpoint) {
            begin(waiter, endpoint, now);
        } else {
            full = true;
            next = when < next ? when : next;
        }
    }
    if (!all->closing && next != UINT64_MAX) {
        (void)uv_timer_start(&all->timer, on_timer, next > now ? next - now : 1, 0);
    } else if (!all->closing) {
        (void)uv_timer_stop(&all->timer);
    }
}

void endpoints_post(struct endpoints *all, const struct endpoint_call *call)
{
    struct endpoint_waiter *waiter = xcalloc(1, sizeof(*waiter));

    waiter->all = all;
    waiter->call = *call;
    waiter->result.err = (struct err)ERR_INIT;
    waiter->posted_ms = now_ms();
    append(all, waiter);
    (void)uv_timer_start(&all->timer, on_timer, 0, 0);
}

// ---- opening and closing ----

// The URL goes into logs, so that it must hold no key, and gets a path appended.
static int check_url(const char *url, size_t number, struct err *err)
{
    const char *host = strstr(url, "://");

    host = host ? host + 3 : url;
    if (memchr(host, '@', strcspn(host, "/"))) {
        return err_set(err, ERR_USAGE,
                       "the url of endpoint %zu names a user or a key; give the key in a file",
                       number);
    }
    if (strpbrk(url, "?# \t\r\n")) {
        return err_set(err, ERR_USAGE,
                       "the url of endpoint %zu has a query, a fragment or a blank; give only the"
                       " part before /chat/completions",
                       number);
    }
    return 0;
}

int endpoints_create(struct endpoints **ret, uv_loop_t *loop, const struct endpoint_config *config,
                     size_t count, const char *ca_file, struct err *err)
{
    struct http_config http = {
        .user_agent = "kernelcast/" KCAST_VERSION, .body_max = BODY_MAX, .ca_file = ca_file};

    if (count == 0 || count > ENDPOINTS_MAX) {
        return err_set(err, ERR_USAGE, "%zu endpoints are named; 1 to %d can be used", count,
                       ENDPOINTS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (check_url(config[i].url, i + 1, err) != 0) {
            return ERR_USAGE;
        }
    }
    struct endpoints *all = xcalloc(1, sizeof(*all));
    int rc = http_create(&all->http, loop, &http, err);
    if (rc != 0) {
        free(all);
        return rc;
    }
    all->last = &all->waiter;
    all->endpoint = xcalloc(count, sizeof(*all->endpoint));
    all->count = count;
    for (size_t i = 0; i < count; i++) {
        endpoint_init(&all->endpoint[i], &config[i], now_ms());
    }
    stats_rng_init(&all->rng, stats_entropy(), 1);
    (void)uv_timer_init(loop, &all->timer);
    all->timer.data = all;
    *ret = all;
    return 0;
}

size_t endpoints_count(const struct endpoints *all)
{
    return all->count;
}

const struct endpoint_config *endpoints_config(const struct endpoints *all, size_t endpoint)
{
    return &all->endpoint[endpoint].config;
}

void endpoints_status(const struct endpoints *all, size_t endpoint, struct endpoint_status *ret)
{
    const struct endpoint *e = &all->endpoint[endpoint];

    *ret = e->status;
    ret->limit = e->window.limit;
    ret->open = !breaker_allows(&e->breaker, now_ms());
}

static void on_closed(uv_handle_t *handle)
{
    struct endpoints *all = handle->data;

    for (size_t i = 0; i < all->count; i++) {
        endpoint_release(&all->endpoint[i]);
    }
    free(all->endpoint);
    free(all);
}

void endpoints_close(struct endpoints *all)
{
    if (!all) {
        return;
    }
    all->closing = true;
    while (all->waiter) {
        struct endpoint_waiter *waiter = all->waiter;

        if (waiter->http) {
            http_cancel(waiter->http);
        }
        (void)err_set(&waiter->result.err, ERR_STOPPED, "the worker is stopping");
        finish(waiter);
    }
    http_close(all->http);
    uv_close((uv_handle_t *)&all->timer, on_closed);
}
