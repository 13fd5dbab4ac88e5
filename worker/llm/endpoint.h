// Language-model endpoints, as one: a request goes to one of them by weight, as many at once as it
// bears; what fails for a passing reason is tried again, there or elsewhere, until its deadline.
// Knows nothing of what is asked.
#ifndef WORKER_LLM_ENDPOINT_H
#define WORKER_LLM_ENDPOINT_H

#include "common/strbuf.h"
#include "worker/llm/http.h"

#define ENDPOINTS_MAX 16

// Texts are copied; the key's copy is wiped when it is not needed any more.
struct endpoint_config {
    const char *url;                                // base, "https://host/v1"; no '/' at its end
    const char *model;                              // for the body
    const char *key;                                // bearer; NULL: none
    double weight;                                  // share of the requests, > 0
    double requests_per_minute, tokens_per_minute;  // 0: no limit of ours
    double in_flight;                               // at most so many at once
    double price_input, price_cached, price_output; // per million tokens, in any currency
};

struct endpoint_result {
    struct err err; // not ERR_NONE: there is no answer. ERR_TIMED_OUT: by the deadline, and why the
                    // last attempt failed; ERR_LIMIT, ERR_DENIED: as in http_reply; ERR_STOPPED
    size_t endpoint;       // that answered, or was tried last
    long status;           // 200, or one that trying again does not help with: 400, 404, …
    struct bytes body;     // valid during the callback
    unsigned attempts;     // requests made
    unsigned maybe_billed; // of these, sent and without an answer: they may have to be paid for
    double seconds;        // of the last attempt
    double waited_s;       // from the call to the beginning of the last attempt
};

struct endpoint_call {
    const char *path; // "/chat/completions"
    // Writes the body for this endpoint.
    void (*build)(void *owner, size_t endpoint, struct strbuf *body);
    void (*done)(void *owner, const struct endpoint_result *result);
    void *owner;
    uint64_t deadline_ms;
    double tokens;     // that it may use, for tokens_per_minute
    const char *model; // endpoints that have it come first; NULL: by weight alone. Until it is done
};

struct endpoint_status {
    uint64_t requests, retries, failures; // failures: attempts that had to be tried again
    size_t in_flight;
    bool open;    // the breaker: it gets nothing for now
    double limit; // calls at once, at present
};

struct endpoints;
struct endpoint_waiter; // a call that is not done

// ERR_USAGE when a url has a user, a query, a fragment or a blank.
MUST_CHECK int endpoints_create(struct endpoints **ret, uv_loop_t *loop,
                                const struct endpoint_config *config, size_t count,
                                const char *ca_file, struct err *err);
size_t endpoints_count(const struct endpoints *endpoints);
const struct endpoint_config *endpoints_config(const struct endpoints *endpoints, size_t endpoint);
void endpoints_status(const struct endpoints *endpoints, size_t endpoint,
                      struct endpoint_status *ret);
// done runs once, on the loop, never inside this call. call is copied.
struct endpoint_waiter *endpoints_post(struct endpoints *endpoints,
                                       const struct endpoint_call *call);
void endpoints_cancel(struct endpoint_waiter *waiter); // not done yet; done does not run
// Calls that are open are done with ERR_STOPPED, inside this call. endpoints is gone when the loop
// has nothing of it left.
void endpoints_close(struct endpoints *endpoints);

#endif
