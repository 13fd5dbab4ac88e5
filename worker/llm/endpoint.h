// A set of language-model endpoints: sends each request to one of them, by weight, and no more at
// once than the endpoint takes. A request that fails for a passing reason is tried again, there or
// elsewhere, until its deadline. Owned by struct llm. Knows nothing of what is asked. All functions
// run on the loop thread.
#ifndef WORKER_LLM_ENDPOINT_H
#define WORKER_LLM_ENDPOINT_H

#include "common/strbuf.h"
#include "worker/llm/http.h"

#define ENDPOINTS_MAX 16

// The texts are copied. The copy of the key is wiped when it is not needed any more.
struct endpoint_config {
    const char *url;   // base, "https://host/v1", without '/' at its end
    const char *model; // the language model that it serves
    const char *key;   // bearer token; NULL: none
    double weight;     // relative share of the requests, > 0
    double requests_per_minute, tokens_per_minute;  // limits that are kept; 0: none
    double in_flight;                               // most requests at once
    double price_input, price_cached, price_output; // per million tokens, in any currency
};

struct endpoint_result {
    // ERR_NONE: there is an answer. ERR_TIMED_OUT: none before the deadline; the text says why the
    // last request failed. ERR_LIMIT, ERR_DENIED: as in http_reply. ERR_STOPPED: the set was
    // closed.
    struct err err;
    size_t endpoint;       // that answered, or was asked last
    long status;           // 200, or one that will not change when asked again: 400, 404, ...
    struct bytes body;     // valid during the callback
    unsigned attempts;     // requests made
    unsigned maybe_billed; // of these, sent but not answered: they may have to be paid for
    double seconds;        // of the last request
    double waited_s;       // from the call to the start of the last request
};

struct endpoint_call {
    const char *path; // appended to the URL: "/chat/completions"
    // Appends the body for this endpoint. Runs before each request.
    void (*build)(void *owner, size_t endpoint, struct strbuf *body);
    void (*done)(void *owner, const struct endpoint_result *result);
    void *owner;
    uint64_t deadline_ms; // from the call to the answer, retries included
    double tokens;        // estimate of input and output, for tokens_per_minute
    const char *model; // endpoints with this model are preferred; NULL: by weight alone; borrowed
                       // until the call is done
};

struct endpoint_status {
    uint64_t requests, retries, failures; // failures: requests that failed for a passing reason
    size_t in_flight;
    bool open;    // the circuit breaker is open: it gets no requests at present
    double limit; // most requests at once, at present
};

struct endpoints;

// ERR_USAGE when there are no endpoints or more than ENDPOINTS_MAX, or when a URL has a user, a
// query, a fragment or a blank. Errors of http_create.
MUST_CHECK int endpoints_create(struct endpoints **ret, uv_loop_t *loop,
                                const struct endpoint_config *config, size_t count,
                                const char *ca_file, struct err *err);
size_t endpoints_count(const struct endpoints *endpoints);
// key is NULL in the result.
const struct endpoint_config *endpoints_config(const struct endpoints *endpoints, size_t endpoint);
void endpoints_status(const struct endpoints *endpoints, size_t endpoint,
                      struct endpoint_status *ret);
// Makes a call. *call is copied. done runs once, on the loop, never inside this function.
void endpoints_post(struct endpoints *endpoints, const struct endpoint_call *call);
// Open calls are done with ERR_STOPPED inside this function. The set frees itself when the loop
// has closed its handles. NULL is fine.
void endpoints_close(struct endpoints *endpoints);

#endif
