// The server's side: accepts connections on TCP and turns their frames into requests on the libuv
// loop. Each request must be answered exactly once, at once or later (a long poll), in any order.
// Callers are served in turns, and what one of them may take of connections, memory and time is
// bounded.
// It owns the listener, the connections and the open exchanges, and it checks who sent each request
// and whether that caller may ask for it. It does not know what the operations mean beyond that.
// The program must ignore SIGPIPE.
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
struct exchange; // a request that waits for its reply

#define SERVICE_CONNECTIONS_MAX 1024            // default of connections_max
#define SERVICE_GREETING_MS 10000               // default of greeting_ms
#define SERVICE_STRANGER_MAX ((size_t)64 << 10) // bytes of a request before a token was shown
// Bytes of unsent replies. A connection that has more than the first is not read from, and none of
// a tenant that has more than the second; beyond the third the one that has most is closed.
#define SERVICE_UNSENT_MAX ((size_t)1 << 20)
#define SERVICE_PARTY_UNSENT_MAX ((size_t)16 << 20)
#define SERVICE_ALL_UNSENT_MAX ((size_t)48 << 20)
// Bytes of requests that arrive or are not answered yet, and how many of these parked requests may
// hold. Beyond them requests wait unread. Frames below FRAMES_SIZE_FIRST count once they are open.
#define SERVICE_INCOMING_MAX ((size_t)48 << 20)
#define SERVICE_PARKED_HELD_MAX ((size_t)16 << 20)

struct service_config {
    const char *url;             // tcp://127.0.0.1:7410; port 0 picks a free one
    struct identity_files files; // for tls://; the names must outlive the service
    size_t exchanges_max;        // open exchanges; further requests wait unread
    size_t parked_max;           // open exchanges that may be parked; well below exchanges_max
    size_t connections_max;      // of identified callers; 0: SERVICE_CONNECTIONS_MAX
    size_t message_max;          // bytes of one request
    uint64_t greeting_ms; // time to greet and to show a token, if one is needed; 0: the default
    uint64_t epoch;       // goes out with every reply
    // Handles a request that has a known version and a valid envelope and whose caller may ask for
    // it. The handler answers the exchange, parks it or keeps it. request is valid until the
    // handler returns. Runs on the loop thread.
    void (*on_request)(void *owner, struct exchange *exchange, const struct request *request);
    // Tells that the service has closed a connection, could not accept one, or has refused a
    // request because of who sent it. peer is "host:port" or "?". Called at most once a second;
    // untold is the number of refusals since the last call that were not told. May be NULL.
    void (*on_refusal)(void *owner, const char *peer, const char *reason, uint64_t untold);
    void *owner; // first argument of both
};

// Begins to listen. ERR_DENIED unless the host is loopback (127.0.0.0/8, ::1, localhost) or the url
// is tls:// with all files. ERR_BUSY when the port is in use, else ERR_SYSTEM; both name the url.
MUST_CHECK int service_create(struct service **ret, uv_loop_t *loop,
                              const struct service_config *config, struct err *err);
// Returns the url with the real port.
const char *service_url(const struct service *service);
// Requests that were read.
uint64_t service_request_count(const struct service *service);
// Refusals, whether on_refusal was called or not.
uint64_t service_refusal_count(const struct service *service);
// Requests that were answered with this error.
uint64_t service_failure_count(const struct service *service, enum err_code code);
// Reads certificates and tokens again. New connections use the new ones; connections whose token is
// not in the file any more are closed. On failure everything stays as it was.
MUST_CHECK int service_reload(struct service *service, struct err *err);
// Raises this process's limit of open files to what the connections and everything else may need,
// or to its hard limit when that is less.
void service_raise_file_limit(void);
// Closes the port and the connections. Open exchanges are dropped and must not be answered any
// more. The memory is freed when the loop has closed the handles. NULL is fine.
void service_close(struct service *service);

// Returns who sent the request; valid as long as the exchange.
const struct caller *exchange_caller(const struct exchange *exchange);

// Returns by whom callers take turns: the tenant, or where everybody is one tenant, the connection.
// Valid as long as the exchange; a connection that has ended is "?".
const char *exchange_turn_name(const struct exchange *exchange);

// Answers. Each of these three frees exchange. An exchange whose caller has gone is answered in the
// same way.
void exchange_reply(struct exchange *exchange, const struct message *message, const void *body);
void exchange_fail(struct exchange *exchange, const struct err *error);
// The same with the time after which the caller is to try again.
void exchange_fail_busy(struct exchange *exchange, const struct err *error,
                        uint64_t retry_after_ms);

// Calls later(owner) in a later turn of the loop, when it is this caller's turn: callers take turns
// by the time that their requests take. To be called for what takes long, and for what somebody
// else than the caller has caused. The exchange must be answered after that, unless it was parked
// and is dropped before.
void exchange_later(struct exchange *exchange, void (*later)(void *owner), void *owner);

// Asks to keep the exchange open for a while, with `held` bytes of memory. Returns false when too
// many are parked, or too many by this caller: then it must be answered now. on_drop runs when the
// exchange ends without an answer, because the caller's connection has ended or the service closes;
// the exchange is already freed then. Without on_drop (NULL) the exchange stays until it is
// answered or the service closes.
bool exchange_park(struct exchange *exchange, size_t held, void (*on_drop)(void *waiter),
                   void *waiter);
// Returns the milliseconds that the caller will still wait; UINT64_MAX when it gave no deadline.
uint64_t exchange_remaining_ms(const struct exchange *exchange);

// Answers a HELLO, which is the same for every server. worker is what a kcast-worker tells of
// itself in addition; NULL for other programs.
void exchange_hello(struct exchange *exchange, const struct request *request, const char *program,
                    const char *const *features, size_t feature_count, uint64_t wait_max_ms,
                    const struct worker_abilities *worker);

// Reads the body of a request into the struct of message. When it is invalid, answers the exchange
// with the error and returns false.
bool exchange_read_body(struct exchange *exchange, const struct request *request,
                        const struct message *message, void *body);

#endif
