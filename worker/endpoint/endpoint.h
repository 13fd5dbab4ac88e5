// A set of language-model endpoints: sends each request to one of them, by weight, and no more at
// once than the endpoint takes. A request that fails for a passing reason is tried again, elsewhere
// first, until its deadline. An endpoint that fails for good (a bad key, no money, no such model)
// rests, and its requests go elsewhere. A request that nobody can take ends at once. Owned by
// struct llm. Knows nothing of what is asked. All functions run on the loop thread.
#ifndef WORKER_ENDPOINT_ENDPOINT_H
#define WORKER_ENDPOINT_ENDPOINT_H

#include "common/strbuf.h"
#include "worker/endpoint/http.h"
#include "worker/endpoint/refusal.h"
#include "worker/endpoint/request_style.h"
#include <jansson.h>

#define ENDPOINTS_MAX 16

// The texts are copied. The copy of the key is wiped when it is not needed any more.
struct endpoint_config {
    const char *name;  // for people; NULL: the url
    const char *url;   // base, "https://host/v1", without '/' at its end
    const char *model; // the language model that it serves
    const char *key;   // NULL: none
    // The header that carries the key; NULL: the form's own. "Authorization" carries "Bearer KEY",
    // every other header the key alone.
    const char *header;
    const char *api_version; // of the interface, a query that API_AZURE wants; NULL: none
    const char *effort;      // of reasoning; NULL: the model's default
    const json_t *extra;     // more fields of each request; NULL: none
    enum api_form form;
    double weight;                                  // relative share of the requests, > 0
    double requests_per_minute, tokens_per_minute;  // limits that are kept; 0: none
    double in_flight;                               // most requests at once
    double price_input, price_cached, price_output; // per million tokens, in any currency
    double price_cache_write;                       // 0: as price_input
    uint64_t max_tokens;                            // of an answer; 0: as everywhere
    double temperature;                             // below 0: as everywhere
};

struct endpoint_result {
    // ERR_NONE: there is a reply. ERR_TIMED_OUT: none before the deadline; the text says why the
    // last request failed. ERR_UNREACHABLE: nobody can take the request now. ERR_LIMIT, ERR_DENIED:
    // as in http_reply, or of the callback admit. ERR_STOPPED: the set was closed.
    struct err err;
    size_t endpoint;        // that replied, or was asked last
    long status;            // 200, or one that will not change when asked again: 400, 404, ...
    struct refusal refusal; // what the reply means
    struct bytes body;      // valid during the callback
    unsigned attempts;      // requests made
    uint32_t avoid, barred; // as in struct endpoint_call, with the endpoints that failed
    double seconds;         // of the last request
    double waited_s;        // from the call to the start of the last request
};

// Whether a request may be made now.
enum endpoint_admission {
    ENDPOINT_ADMIT,
    ENDPOINT_LATER, // when another request has ended; elsewhere, if another endpoint takes it now
    ENDPOINT_WAIT,  // the same, but the call is not made elsewhere instead
    ENDPOINT_NEVER, // the call ends with *err
};

struct endpoint_call {
    // Says whether the endpoint may be asked now; NULL: always. Each admission is followed by build
    // and by either failed or done.
    enum endpoint_admission (*admit)(void *owner, size_t endpoint, struct err *err);
    // Appends the body for this endpoint. Runs before each request.
    void (*build)(void *owner, size_t endpoint, struct strbuf *body);
    // A request has ended without a reply that is handed over. sent: it may have to be paid for.
    // NULL: nobody wants to know.
    void (*failed)(void *owner, size_t endpoint, bool sent);
    // The only endpoint that takes the call has failed lately and is being tried: its answer may
    // never come. Runs once at most. NULL: nobody wants to know.
    void (*on_trial)(void *owner);
    void (*done)(void *owner, const struct endpoint_result *result);
    void *owner;
    uint64_t deadline_ms; // from the call to the answer, retries included
    double tokens;        // estimate of input and output, for tokens_per_minute
    const char *model; // endpoints with this model are preferred; NULL: by weight alone; borrowed
                       // until the call is done
    uint32_t avoid;    // endpoints, as bits, that are asked after all others
    uint32_t barred;   // endpoints that are not asked
    bool patient;      // waits for endpoints that rest, until the deadline
};

struct endpoint_status {
    uint64_t requests, retries, failures; // failures: requests that failed for a passing reason
    size_t in_flight;
    bool answered;     // it has, since the start
    bool open;         // the circuit breaker is open: it gets no requests at present
    double limit;      // most requests at once, at present
    const char *words; // why it rests or failed last; "" when it answers
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
// The endpoint's name for people.
const char *endpoints_name(const struct endpoints *endpoints, size_t endpoint);
void endpoints_status(const struct endpoints *endpoints, size_t endpoint,
                      struct endpoint_status *ret);
// Makes a call. *call is copied. done runs once, on the loop, never inside this function.
void endpoints_post(struct endpoints *endpoints, const struct endpoint_call *call);
// It is known how the endpoint wants to be asked: its first request need not go ahead alone.
void endpoints_set_proven(struct endpoints *endpoints, size_t endpoint);
// Lets an endpoint rest of which a caller knows that it cannot answer. reason is copied.
void endpoints_rest(struct endpoints *endpoints, size_t endpoint, const char *reason);
// Open calls are done with ERR_STOPPED inside this function. The set frees itself when the loop
// has closed its handles. NULL is fine.
void endpoints_close(struct endpoints *endpoints);

#endif
