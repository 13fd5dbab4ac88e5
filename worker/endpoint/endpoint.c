// Design note. The states of a call, which a waiter stands for:
//
//   posted --> WAITING --an endpoint takes it--> OPEN --> done
//                 ^                               |
//                 +------- elsewhere, or ---------+
//                     not before a time         failure
//
// Whether an endpoint takes a call is worker/endpoint/endpoint_state.h's business. dispatch()
// starts the calls that can be started, ends those that nobody can take, and sets the timer for the
// moment when more might be. Waiters are a list in the order of posting.
//
// A failure that passes makes the call avoid the endpoint: the others are asked first, and it only
// after a pause. One that is the endpoint's own (a bad key, no money) bars it from the call. A call
// ends when every endpoint that it may ask rests with little hope (endpoint_is_hopeful), because
// measuring its candidate costs less than waiting. An endpoint is tried again after its rest with a
// call that comes along; where that has nobody else to ask, its owner is told, and need not wait.
#include "worker/endpoint/endpoint.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/version.h"
#include "worker/endpoint/endpoint_choice.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_MAX ((size_t)8 << 20) // bytes of an answer
#define CONNECT_MS 10000
#define TRIAL_LEAST_MS 10000 // that an endpoint gets which is tried while another one answers

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
    waiter->result.avoid = waiter->call.avoid;
    waiter->result.barred = waiter->call.barred;
    waiter->call.done(waiter->call.owner, &waiter->result);
    free(waiter);
}

// ---- results ----

static void tell_failed(const struct endpoint_waiter *waiter, bool sent)
{
    if (waiter->call.failed) {
        waiter->call.failed(waiter->call.owner, waiter->result.endpoint, sent);
    }
}

static void on_reply(void *owner, const struct http_reply *reply)
{
    struct endpoint_waiter *waiter = owner;
    struct endpoints *all = waiter->all;
    struct endpoint *endpoint = &all->endpoint[waiter->result.endpoint];
    struct endpoint_result *result = &waiter->result;
    uint64_t now = now_ms();

    waiter->http = NULL;
    result->refusal = (struct refusal){.kind = REFUSAL_NONE};
    if (reply->err.code == ERR_NONE) {
        endpoint_read_refusal(endpoint, reply, &result->refusal);
    }
    endpoint_update(endpoint, reply, &result->refusal, now);
    result->status = reply->status;
    result->seconds = reply->seconds;
    result->err = reply->err;
    bool passes = endpoint_failure_passes(reply, &result->refusal);
    bool its_own = endpoint_failure_is_its_own(&result->refusal) || reply->err.code != ERR_NONE;
    waiter->call.avoid |= endpoint_bit(result->endpoint);
    if (!passes && its_own) {
        waiter->call.barred |= endpoint_bit(result->endpoint);
    }
    if (passes || (its_own && endpoint_may_ask_another(waiter))) {
        if (reply->err.code == ERR_NONE) {
            (void)err_set(&result->err, ERR_UNREACHABLE, "%s: %s", endpoint_name(endpoint),
                          endpoint->words);
        }
        tell_failed(waiter, reply->err.code != ERR_NONE && reply->sent);
        waiter->not_before_ms =
            now + (uint64_t)rate_limit_backoff_ms(&all->rng, result->attempts - 1);
    } else {
        if (reply->err.code == ERR_NONE && result->refusal.kind == REFUSAL_NONE) {
            uint64_t took = (uint64_t)(reply->seconds * 1000);

            all->slowest_ms = took > all->slowest_ms ? took : all->slowest_ms;
        }
        if (reply->err.code != ERR_NONE) {
            tell_failed(waiter, reply->sent);
        }
        result->body = reply->body;
        finish(waiter);
    }
    dispatch(all);
}

// ---- dispatching ----

// How long one request may take. Where another endpoint could answer instead, one that has not
// answered yet gets a part of the time only.
static uint64_t time_for(const struct endpoint_waiter *waiter, const struct endpoint *endpoint,
                         uint64_t now)
{
    uint64_t left = waiter->posted_ms + waiter->call.deadline_ms - now;
    uint64_t twice = 2 * waiter->all->slowest_ms;

    twice = twice > TRIAL_LEAST_MS ? twice : TRIAL_LEAST_MS;
    if (left < 2 || (endpoint->answered && !endpoint_is_tried(endpoint)) ||
        !endpoint_has_other_hope(waiter, endpoint)) {
        return left;
    }
    return endpoint_is_tried(endpoint) && twice < left / 2 ? twice : left / 2;
}

// Makes a request of the call to an endpoint that has taken it.
static void begin(struct endpoint_waiter *waiter, struct endpoint *endpoint, uint64_t now)
{
    struct endpoints *all = waiter->all;
    const char *headers[] = {"Content-Type: application/json", NULL, NULL, NULL};
    struct http_request request = {
        .url = endpoint->address, .headers = headers, .connect_ms = CONNECT_MS};
    size_t header = 1;

    if (endpoint->authorization) {
        headers[header++] = endpoint->authorization;
    }
    if (endpoint->version) {
        headers[header] = endpoint->version;
    }
    waiter->result.endpoint = (size_t)(endpoint - all->endpoint);
    struct strbuf body = STRBUF_INIT;
    waiter->call.build(waiter->call.owner, waiter->result.endpoint, &body);
    request.body = strbuf_text(&body);
    request.len = body.len;
    request.deadline_ms = time_for(waiter, endpoint, now);
    bool alone = endpoint_is_tried(endpoint) && !endpoint_has_other_hope(waiter, endpoint);
    endpoint->status.requests++;
    endpoint->status.retries += waiter->result.attempts > 0;
    endpoint->status.in_flight++;
    breaker_begins(&endpoint->breaker);
    waiter->result.attempts++;
    waiter->result.waited_s = (double)(now - waiter->posted_ms) / 1000;
    waiter->http = http_start(all->http, &request, on_reply, waiter);
    strbuf_release(&body);
    if (alone && waiter->call.on_trial && !waiter->told_trial && !waiter->call.patient &&
        !endpoint_is_hopeful(endpoint, UINT64_MAX, false)) {
        waiter->told_trial = true;
        waiter->call.on_trial(waiter->call.owner);
    }
}

// Ends a call that nobody can take before its deadline, with why.
static void give_up_now(struct endpoint_waiter *waiter, uint64_t now)
{
    const struct endpoints *all = waiter->all;
    struct endpoint_result *result = &waiter->result;
    const struct endpoint *why = NULL;

    for (size_t i = 0; i < all->count; i++) {
        if (!why || ((waiter->call.barred & endpoint_bit((size_t)(why - all->endpoint))) &&
                     !(waiter->call.barred & endpoint_bit(i)))) {
            why = &all->endpoint[i];
        }
    }
    uint64_t until =
        why->breaker.until_ms > why->wait_until_ms ? why->breaker.until_ms : why->wait_until_ms;
    double rest_s = until > now ? (double)(until - now) / 1000 : 0;
    result->err = (struct err)ERR_INIT;
    (void)err_set(&result->err, ERR_UNREACHABLE,
                  "no endpoint can answer now: %s rests for %.0f s more: %.300s",
                  endpoint_name(why), rest_s, why->words);
    finish(waiter);
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

// Starts the calls that can be started, ends those whose deadline has passed or that nobody can
// take, and sets the timer.
static void dispatch(struct endpoints *all)
{
    uint64_t now = now_ms(), next = UINT64_MAX;
    struct endpoint_waiter *waiter, *following;
    uint32_t busy = 0;

    for (waiter = all->waiter; waiter && !all->closing; waiter = following) {
        uint64_t deadline = waiter->posted_ms + waiter->call.deadline_ms, when = 0;
        bool hope, over;

        following = waiter->next;
        if (waiter->http) {
            continue;
        }
        if (now >= deadline) {
            give_up(waiter);
            following = all->waiter; // the callback may have posted calls or closed the set
            continue;
        }
        struct endpoint *endpoint = endpoint_choose(waiter, now, &busy, &when, &hope, &over);
        if (endpoint) {
            begin(waiter, endpoint, now);
        } else if (over) {
            finish(waiter);
            following = all->waiter;
        } else if (!hope) {
            give_up_now(waiter, now);
            following = all->waiter;
        } else {
            next = deadline < next ? deadline : next;
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

const char *endpoints_name(const struct endpoints *all, size_t endpoint)
{
    return endpoint_name(&all->endpoint[endpoint]);
}

void endpoints_set_proven(struct endpoints *all, size_t endpoint)
{
    all->endpoint[endpoint].proven = true;
}

void endpoints_rest(struct endpoints *all, size_t endpoint, const char *reason)
{
    all->endpoint[endpoint].broken = true;
    endpoint_rest(&all->endpoint[endpoint], reason, now_ms());
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
    ret->words = e->words;
    ret->answered = e->answered;
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
