#include "worker/llm/endpoint_state.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_FIRST 8.0 // requests at once to an endpoint of which nothing is known

void endpoint_init(struct endpoint *endpoint, const struct endpoint_config *config, uint64_t now_ms)
{
    *endpoint = (struct endpoint){.config = *config};
    endpoint->config.url = xstrdup(config->url);
    endpoint->config.model = xstrdup(config->model);
    endpoint->config.key = NULL;
    endpoint->authorization =
        config->key ? xasprintf("Authorization: Bearer %s", config->key) : NULL;
    window_init(&endpoint->window, WINDOW_FIRST, config->in_flight);
    bucket_init(&endpoint->requests, config->requests_per_minute, now_ms);
    bucket_init(&endpoint->tokens, config->tokens_per_minute, now_ms);
}

void endpoint_release(struct endpoint *endpoint)
{
    free((char *)(uintptr_t)endpoint->config.url);
    free((char *)(uintptr_t)endpoint->config.model);
    if (endpoint->authorization) {
        explicit_bzero(endpoint->authorization, strlen(endpoint->authorization));
        free(endpoint->authorization);
    }
}

bool endpoint_has_model(const struct endpoint *endpoint, const char *model)
{
    return model && strcmp(endpoint->config.model, model) == 0;
}

uint64_t endpoint_reserve(struct endpoint *endpoint, double tokens, uint64_t now_ms)
{
    if (!breaker_allows(&endpoint->breaker, now_ms)) {
        return endpoint->breaker.trying ? UINT64_MAX : endpoint->breaker.until_ms;
    }
    if (endpoint->wait_until_ms > now_ms) {
        return endpoint->wait_until_ms;
    }
    if ((double)endpoint->status.in_flight + 1 > endpoint->window.limit) {
        return UINT64_MAX;
    }
    double wait = bucket_take(&endpoint->requests, 1, now_ms);
    if (wait == 0) {
        wait = bucket_take(&endpoint->tokens, tokens, now_ms);
        if (wait > 0) {
            bucket_give_back(&endpoint->requests, 1);
        }
    }
    return wait > 0 ? now_ms + (uint64_t)wait : 0;
}

bool endpoint_failure_passes(const struct http_reply *reply)
{
    switch (reply->status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
    case 529:
        return true;
    default:
        // An answer that is too large, or from a server that is not trusted, will be so again.
        return reply->err.code != ERR_NONE && reply->err.code != ERR_LIMIT &&
               reply->err.code != ERR_DENIED;
    }
}

// Counts a failure for the circuit breaker.
static void fail(struct endpoint *endpoint, uint64_t now_ms)
{
    if (breaker_failure(&endpoint->breaker, now_ms)) {
        log_event(LOG_WARNING, "endpoint-rests endpoint=%s failures=%u", endpoint->config.url,
                  endpoint->breaker.failures);
    }
}

void endpoint_update(struct endpoint *endpoint, const struct http_reply *reply, uint64_t now_ms)
{
    double retry = rate_limit_retry_ms(reply->headers, (double)clock_wall_ns(&clock_system) * 1e-9);
    bool crowded = reply->status == 429 || reply->status == 503 || reply->status == 529;

    endpoint->status.in_flight--;
    if (reply->status == 401 || reply->status == 403) {
        if (breaker_open(&endpoint->breaker, now_ms)) {
            log_event(LOG_WARNING,
                      "endpoint-refuses endpoint=%s status=%ld reason=\"its key is missing or not"
                      " accepted\"",
                      endpoint->config.url, reply->status);
        }
        return;
    }
    if (reply->err.code == ERR_LIMIT || reply->err.code == ERR_DENIED) {
        endpoint->status.failures++;
        fail(endpoint, now_ms);
        return;
    }
    if (!endpoint_failure_passes(reply)) {
        window_success(&endpoint->window);
        breaker_success(&endpoint->breaker);
        return;
    }
    endpoint->status.failures++;
    if (crowded || reply->err.code == ERR_TIMED_OUT) {
        window_refused(&endpoint->window, now_ms);
    }
    if (crowded && !isnan(retry)) {
        uint64_t until = now_ms + (uint64_t)retry;

        endpoint->wait_until_ms = until > endpoint->wait_until_ms ? until : endpoint->wait_until_ms;
        endpoint->breaker.trying = false; // it answers, so that it can be tried again
        return;
    }
    fail(endpoint, now_ms);
}
