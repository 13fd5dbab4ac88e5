// A request/reply server on TCP: connections of frames on one side, the libuv loop on the other.
// Requests arrive on the loop thread as decoded envelopes; each must be answered exactly once, at
// once or later (a long poll), and in any order. Owns the listener, the connections and the open
// exchanges, and knows who sent each request and whether he may ask for that. Knows nothing else of
// what the operations mean. The program ignores SIGPIPE.
#ifndef NET_RPC_SERVICE_H
#define NET_RPC_SERVICE_H

#include "common/err.h"
#include "net/auth/caller.h"
#include "net/auth/identity.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct service;
struct exchange; // one request waiting for its reply

#define SERVICE_CONNECTIONS_MAX 1024 // more are closed
#define SERVICE_GREETING_MS 10000    // who has not greeted by then, or shown who he is, goes
#define SERVICE_STRANGER_MAX ((size_t)64 << 10) // bytes of a request before that
#define SERVICE_UNSENT_MAX ((size_t)64 << 20)   // bytes; who leaves more unread is not read from

struct service_config {
    const char *url;             // tcp://127.0.0.1:7410; port 0 picks a free one
    struct identity_files files; // of tls://; the names outlive the service
    size_t exchanges_max; // requests in the service at once; the next ones wait unread; ≫ parked
    size_t parked_max;    // of these, exchanges that may be parked
    size_t connections_max; // 0: SERVICE_CONNECTIONS_MAX
    size_t message_max;     // bytes of one request
    uint64_t greeting_ms;   // 0: SERVICE_GREETING_MS
    uint64_t epoch;         // goes out with every reply
    // A request with a known version and valid envelope, whose caller may ask for it. The handler
    // answers or parks the exchange; request is valid until the handler returns. Runs on the loop
    // thread.
    void (*on_request)(void *owner, struct exchange *exchange, const struct request *request);
    // A connection was closed from here, or could not be taken, or a request was refused because of
    // who sent it, for this reason. Once a second at
    // most; untold is how many were not told since the last time. May be NULL. peer: "host:port".
    void (*on_refusal)(void *owner, const char *peer, const char *reason, uint64_t untold);
    void *owner; // of both
};

// Listens. ERR_DENIED unless the host is loopback (127.0.0.0/8, ::1, localhost) or it is tls://
// with all files. ERR_SYSTEM or ERR_BUSY (the port is in use) names url.
MUST_CHECK int service_create(struct service **ret, uv_loop_t *loop,
                              const struct service_config *config, struct err *err);
// The url with the real port.
const char *service_url(const struct service *service);
uint64_t service_request_count(const struct service *service);
uint64_t service_refusal_count(const struct service *service); // told and untold
// Reads certificates and tokens again. New connections are met with the new ones; those whose token
// has gone are closed. On failure everything stays as it was.
MUST_CHECK int service_reload(struct service *service, struct err *err);
// Allows this process as many open files as connections_max and what else it does can take, as far
// as its hard limit goes.
void service_raise_file_limit(void);
// Requests that were answered with this error.
uint64_t service_failure_count(const struct service *service, enum err_code code);
// Closes the port and the connections; exchanges that are still open are dropped and must not be
// answered any more. Freed when the loop has closed the handles. NULL is fine.
void service_close(struct service *service);

// Who sent it. Valid as long as the exchange.
const struct caller *exchange_caller(const struct exchange *exchange);

// Answers. Each consumes exchange. An exchange whose caller has gone is answered like any other.
void exchange_reply(struct exchange *exchange, const struct message *message, const void *body);
void exchange_fail(struct exchange *exchange, const struct err *error);
void exchange_fail_busy(struct exchange *exchange, const struct err *error,
                        uint64_t retry_after_ms);

// Asks to keep the exchange open for a while. False when too many are parked: answer now.
// on_drop runs, from the loop or from service_close, when the caller's connection ends or the
// service closes while it is parked; the exchange is gone then. Without on_drop (NULL) the exchange
// stays until it is answered or the service closes.
bool exchange_park(struct exchange *exchange, void (*on_drop)(void *waiter), void *waiter);
// Milliseconds that the caller is still willing to wait; UINT64_MAX when it gave no deadline.
uint64_t exchange_remaining_ms(const struct exchange *exchange);

// HELLO is the same for every server; answers the exchange. worker: what a kcast-worker says of itself
// besides; NULL for other programs.
void exchange_hello(struct exchange *exchange, const struct request *request, const char *program,
                    const char *const *features, size_t feature_count, uint64_t wait_max_ms,
                    const struct worker_abilities *worker);

// Reads the body of a request; answers the exchange with the error and returns false when it is
// invalid.
bool exchange_read_body(struct exchange *exchange, const struct request *request,
                        const struct message *message, void *body);

#endif
