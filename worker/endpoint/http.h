// An HTTP client for language-model endpoints: libcurl's multi interface on a libuv loop. Owned by
// the set of endpoints. Connections are kept and shared, by all requests at once where a server
// speaks HTTP/2 over TLS. Proxies come from the environment. Certificates are always checked. A
// request has a deadline and its answer a maximal size.
//
// A request carries a key, which must go nowhere else. A redirect is therefore followed only to the
// same scheme, host and port, and is an error otherwise. No header of a request is ever in an error
// or a log.
#ifndef WORKER_ENDPOINT_HTTP_H
#define WORKER_ENDPOINT_HTTP_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct http;
struct http_call; // a request that is not done

struct http_config {
    const char *user_agent;
    size_t body_max;     // bytes of an answer, after decompression
    const char *ca_file; // certificates to trust instead of the system's; NULL: the system's
};

struct http_request {
    const char *url;
    const char *const *headers; // "Name: value", ended by a NULL
    const char *body;           // POST with these bytes; NULL: GET
    size_t len;                 // of body
    uint64_t deadline_ms;       // for everything; > 0
    uint64_t connect_ms;        // for connecting
};

struct http_reply {
    // ERR_NONE: there is an answer. ERR_TIMED_OUT: none before the deadline. ERR_UNREACHABLE: no
    // connection, or it was reset. ERR_LIMIT: the answer is too large. ERR_INVALID: it is
    // malformed. ERR_DENIED: the certificate is not trusted, or a redirect leads elsewhere.
    struct err err;
    bool sent;         // the server may have served the request, and it may have to be paid for
    long status;       // 200, ...
    struct bytes body; // valid during the callback
    // content-type and the headers that say when to ask again, "name: value\n" each, with names in
    // lower case. What does not fit is left out.
    char headers[2048];
    double seconds; // from the start of the request, redirects included
};

// ca_file and user_agent are copied. ERR_INVALID when ca_file cannot be read.
MUST_CHECK int http_create(struct http **ret, uv_loop_t *loop, const struct http_config *config,
                           struct err *err);
// Starts a request, which is copied; the copy of its headers is wiped at the end. done runs once,
// on the loop, never inside this function. The call is valid until then.
struct http_call *http_start(struct http *http, const struct http_request *request,
                             void (*done)(void *owner, const struct http_reply *reply),
                             void *owner);
void http_cancel(struct http_call *call);   // done does not run
size_t http_count(const struct http *http); // requests that are not done
// Cancels all requests. The client frees itself when the loop has closed its handles. NULL is fine.
void http_close(struct http *http);

#endif
