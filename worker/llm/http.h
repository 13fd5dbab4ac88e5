// HTTP for language-model endpoints: libcurl's multi interface on a libuv loop. Connections are kept
// and shared (by all requests at once with HTTP/2, where a server has it over TLS), proxies come from the environment, certificates are
// always checked. A request has a deadline and its answer a bound. A redirect is followed at the same
// scheme, host and port only, and is an error otherwise, so that a key goes nowhere else. No header of
// a request, and so no key, is ever in an error or a log.
#ifndef WORKER_LLM_HTTP_H
#define WORKER_LLM_HTTP_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct http;
struct http_call;

struct http_config {
    const char *user_agent;
    size_t body_max;     // bytes of an answer, after decompression
    const char *ca_file; // certificates to trust besides the system's; NULL: none
};

struct http_request {
    const char *url;
    const char *const *headers; // "Name: value", up to a NULL
    const char *body;           // POST with these bytes; NULL: GET
    size_t len;
    uint64_t deadline_ms; // for everything; > 0
    uint64_t connect_ms;
};

struct http_reply {
    struct err
        err;     // not ERR_NONE: there is no answer. ERR_TIMED_OUT, ERR_UNREACHABLE (not reached,
                 // reset), ERR_LIMIT (too large), ERR_INVALID (broken), ERR_DENIED (its
                 // certificate, a redirect)
    bool sent;   // the request may have been served, and be paid for
    long status; // 200, …
    struct bytes body;  // valid during the callback
    char headers[2048]; // content-type and those that say when to come again, "name: value\n" each,
                        // names in lower case; what does not fit is left out
    double seconds;     // from the beginning of the request, redirects included
};

// ca_file and user_agent are copied. ERR_INVALID when ca_file cannot be read.
MUST_CHECK int http_create(struct http **ret, uv_loop_t *loop, const struct http_config *config,
                           struct err *err);
// done runs once, on the loop, never inside this call; the request is copied, and its headers wiped
// when it is over.
struct http_call *http_start(struct http *http, const struct http_request *request,
                             void (*done)(void *owner, const struct http_reply *reply),
                             void *owner);
void http_cancel(struct http_call *call);   // done does not run
size_t http_count(const struct http *http); // calls under way
// Cancels everything. http is gone when the loop has nothing of it left.
void http_close(struct http *http);

#endif
