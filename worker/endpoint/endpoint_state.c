#include "worker/endpoint/endpoint_state.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_FIRST 8.0 // requests at once to an endpoint of which nothing is known

// ---- configuration ----

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

// Whether a URL ends with this path.
static bool ends_with(const char *url, const char *path)
{
    size_t len = strlen(url), end = strlen(path);

    return len > end && strcmp(url + len - end, path) == 0;
}

// Whether a URL names a host only.
static bool has_no_path(const char *url)
{
    const char *host = strstr(url, "://");

    return !strchr(host ? host + 3 : url, '/');
}

// Adds a text to a URL, with what may not stand there in per cent.
static void add_escaped(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (isalnum(c) || strchr("-._~", c)) {
            strbuf_add(out, text, 1);
        } else {
            strbuf_addf(out, "%%%02X", c);
        }
    }
}

// Where the requests go. A URL that names the whole address is taken as it is.
static char *address_of(const struct endpoint_config *config)
{
    static const char *const path[] = {[API_CHAT] = "/chat/completions",
                                       [API_RESPONSES] = "/responses",
                                       [API_ANTHROPIC] = "/messages",
                                       [API_AZURE] = "/chat/completions"};
    struct strbuf out = STRBUF_INIT;

    strbuf_adds(&out, config->url);
    if (config->form == API_AZURE && has_no_path(config->url)) {
        strbuf_adds(&out, "/openai/deployments/");
        add_escaped(&out, config->model);
    } else if (config->form == API_ANTHROPIC && has_no_path(config->url)) {
        strbuf_adds(&out, "/v1");
    }
    if (!ends_with(config->url, path[config->form])) {
        strbuf_adds(&out, path[config->form]);
    }
    if (config->api_version) {
        strbuf_adds(&out, "?api-version=");
        add_escaped(&out, config->api_version);
    }
    return strbuf_detach(&out);
}

// The header with the key. The caller wipes and frees it.
static char *authorization_of(const struct endpoint_config *config)
{
    static const char *const own[] = {[API_CHAT] = "Authorization",
                                      [API_RESPONSES] = "Authorization",
                                      [API_ANTHROPIC] = "x-api-key",
                                      [API_AZURE] = "api-key"};
    const char *header = config->header ? config->header : own[config->form];

    return xasprintf("%s: %s%s", header, strcasecmp(header, "Authorization") == 0 ? "Bearer " : "",
                     config->key);
}

void endpoint_init(struct endpoint *endpoint, const struct endpoint_config *config, uint64_t now_ms)
{
    *endpoint = (struct endpoint){.config = *config};
    endpoint->config.name = copy(config->name);
    endpoint->config.url = copy(config->url);
    endpoint->config.model = copy(config->model);
    endpoint->config.api_version = copy(config->api_version);
    endpoint->config.effort = copy(config->effort);
    endpoint->config.extra = json_incref((json_t *)(uintptr_t)config->extra);
    endpoint->config.header = NULL;
    endpoint->config.key = NULL;
    endpoint->address = address_of(config);
    if (config->key) {
        endpoint->authorization = authorization_of(config);
        endpoint->key =
            endpoint->authorization + strlen(endpoint->authorization) - strlen(config->key);
    }
    endpoint->version = config->form == API_ANTHROPIC ? "anthropic-version: 2023-06-01" : NULL;
    window_init(&endpoint->window, WINDOW_FIRST, config->in_flight);
    bucket_init(&endpoint->requests, config->requests_per_minute, now_ms);
    bucket_init(&endpoint->tokens, config->tokens_per_minute, now_ms);
}

void endpoint_release(struct endpoint *endpoint)
{
    const char *const texts[] = {endpoint->config.name, endpoint->config.url,
                                 endpoint->config.model, endpoint->config.api_version,
                                 endpoint->config.effort};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        free((char *)(uintptr_t)texts[i]);
    }
    json_decref((json_t *)(uintptr_t)endpoint->config.extra);
    free(endpoint->address);
    if (endpoint->authorization) {
        explicit_bzero(endpoint->authorization, strlen(endpoint->authorization));
        free(endpoint->authorization);
    }
}

const char *endpoint_name(const struct endpoint *endpoint)
{
    return endpoint->config.name ? endpoint->config.name : endpoint->config.url;
}

bool endpoint_has_model(const struct endpoint *endpoint, const char *model)
{
    return model && strcmp(endpoint->config.model, model) == 0;
}

// ---- taking requests ----

uint64_t endpoint_reserve(struct endpoint *endpoint, double tokens, uint64_t now_ms)
{
    if (!breaker_allows(&endpoint->breaker, now_ms)) {
        return endpoint->breaker.trying ? UINT64_MAX : endpoint->breaker.until_ms;
    }
    if (endpoint->wait_until_ms > now_ms) {
        return endpoint->wait_until_ms;
    }
    if (!endpoint->proven && endpoint->status.in_flight > 0 &&
        endpoint->ahead_ms + ENDPOINT_AHEAD_MS > now_ms) {
        return endpoint->ahead_ms + ENDPOINT_AHEAD_MS;
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
    if (wait == 0 && endpoint->ahead_ms == 0) {
        endpoint->ahead_ms = now_ms;
    }
    return wait > 0 ? now_ms + (uint64_t)wait : 0;
}

void endpoint_give_back(struct endpoint *endpoint, double tokens)
{
    bucket_give_back(&endpoint->requests, 1);
    bucket_give_back(&endpoint->tokens, tokens);
}

bool endpoint_is_tried(const struct endpoint *endpoint)
{
    return endpoint->breaker.until_ms != 0;
}

bool endpoint_is_hopeful(const struct endpoint *endpoint, uint64_t deadline_ms, bool patient)
{
    bool first = endpoint->answered && !endpoint->broken && endpoint->breaker.openings <= 1;
    bool alive = (endpoint->answered || !endpoint->nobody) && !endpoint->broken;

    if (endpoint->wait_until_ms > deadline_ms) {
        return false;
    }
    return endpoint->breaker.until_ms == 0 ||
           (endpoint->breaker.until_ms <= deadline_ms && (first || (patient && alive)));
}

// ---- replies ----

void endpoint_read_refusal(const struct endpoint *endpoint, const struct http_reply *reply,
                           struct refusal *ret)
{
    size_t key = endpoint->key ? strlen(endpoint->key) : 0, len = reply->body.len;
    char *body = xstrndup(len > 0 ? (const char *)reply->body.data : "", len);

    // A part of the body that a cut leaves of the key would still be a part of the key.
    for (char *at = body;
         key > 0 && (at = memmem(at, len - (size_t)(at - body), endpoint->key, key));) {
        memset(at, '*', key);
    }
    refusal_read(ret, reply->status, body, strlen(body) < len ? strlen(body) : len);
    free(body);
}

bool endpoint_failure_passes(const struct http_reply *reply, const struct refusal *refusal)
{
    if (reply->err.code != ERR_NONE) {
        // An answer that is too large, or from a server that is not trusted, will be so again.
        return reply->err.code != ERR_LIMIT && reply->err.code != ERR_DENIED;
    }
    return refusal->kind == REFUSAL_PASSES;
}

bool endpoint_failure_is_its_own(const struct refusal *refusal)
{
    return refusal->kind == REFUSAL_KEY || refusal->kind == REFUSAL_QUOTA ||
           refusal->kind == REFUSAL_MISSING;
}

// Writes why a request failed.
static void set_words(struct endpoint *endpoint, const struct http_reply *reply,
                      const struct refusal *refusal)
{
    if (reply->err.code != ERR_NONE) {
        (void)snprintf(endpoint->words, sizeof(endpoint->words), "%.300s", reply->err.text);
        return;
    }
    (void)snprintf(endpoint->words, sizeof(endpoint->words), "%s (status %ld)%s%s",
                   refusal_meaning(refusal->kind), reply->status,
                   refusal->words[0] != '\0' ? ": " : "", refusal->words);
}

void endpoint_rest(struct endpoint *endpoint, const char *reason, uint64_t now_ms)
{
    if (reason != endpoint->words) {
        (void)snprintf(endpoint->words, sizeof(endpoint->words), "%s", reason);
    }
    if (breaker_open(&endpoint->breaker, now_ms)) {
        log_event(LOG_WARNING, "endpoint-rests endpoint=%s seconds=%.0f reason=\"%s\"",
                  endpoint_name(endpoint), (double)(endpoint->breaker.until_ms - now_ms) / 1000,
                  endpoint->words);
    }
}

// Counts a failure for the circuit breaker. An endpoint that has never answered is not given the
// benefit of the doubt, and one that was silent until the deadline least of all.
static void fail(struct endpoint *endpoint, bool silent, uint64_t now_ms)
{
    bool opened = breaker_failure(&endpoint->breaker, now_ms);

    if (opened) {
        log_event(LOG_WARNING, "endpoint-rests endpoint=%s seconds=%.0f failures=%u reason=\"%s\"",
                  endpoint_name(endpoint), (double)(endpoint->breaker.until_ms - now_ms) / 1000,
                  endpoint->breaker.failures, endpoint->words);
    } else if (!endpoint->answered &&
               (silent || endpoint->breaker.failures >= ENDPOINT_NEVER_ANSWERED_FAILURES)) {
        endpoint_rest(endpoint, endpoint->words, now_ms);
    }
}

// How long it asks not to be asked, in its headers or its words; NaN: it does not.
static double pause_of(const struct http_reply *reply, const struct refusal *refusal)
{
    double wall_s = (double)clock_wall_ns(&clock_system) * 1e-9;

    return fmax(rate_limit_retry_ms(reply->headers, wall_s), refusal->retry_ms);
}

void endpoint_update(struct endpoint *endpoint, const struct http_reply *reply,
                     const struct refusal *refusal, uint64_t now_ms)
{
    bool crowded = reply->status == 429 || reply->status == 503 || reply->status == 529;
    bool passes = endpoint_failure_passes(reply, refusal);

    endpoint->status.in_flight--;
    if (reply->err.code == ERR_NONE && !passes && !endpoint_failure_is_its_own(refusal)) {
        window_success(&endpoint->window);
        breaker_success(&endpoint->breaker);
        endpoint->answered |= refusal->kind == REFUSAL_NONE;
        endpoint->proven |= refusal->kind == REFUSAL_NONE;
        endpoint->broken = false;
        endpoint->words[0] = '\0';
        return;
    }
    set_words(endpoint, reply, refusal);
    endpoint->nobody = reply->err.code == ERR_UNREACHABLE;
    endpoint->status.failures++;
    if (reply->err.code == ERR_NONE && endpoint_failure_is_its_own(refusal)) {
        endpoint->broken = true;
        endpoint_rest(endpoint, endpoint->words, now_ms);
        return;
    }
    if (!passes) { // too large an answer, or from a server that is not trusted
        fail(endpoint, false, now_ms);
        return;
    }
    if (crowded || reply->err.code == ERR_TIMED_OUT) {
        window_refused(&endpoint->window, now_ms);
    }
    double retry = pause_of(reply, refusal);
    if (crowded && !isnan(retry)) {
        uint64_t until = now_ms + (uint64_t)retry;

        endpoint->wait_until_ms = until > endpoint->wait_until_ms ? until : endpoint->wait_until_ms;
        endpoint->breaker.trying = false; // it answers, so that it can be tried again
        return;
    }
    fail(endpoint, reply->err.code == ERR_TIMED_OUT, now_ms);
}
