// The caller's side: one connection to one daemon or worker. Calls are asynchronous on a libuv
// loop; each has a deadline and gets exactly one callback. Many may be under way at once; they are
// answered in any order. Nothing is sent twice: a repeated call is the caller's decision. The
// program ignores SIGPIPE.
#ifndef NET_RPC_REMOTE_H
#define NET_RPC_REMOTE_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdint.h>
#include <uv.h>

struct remote;
struct tls;

// Does not connect yet: the first call does. ERR_INVALID when url is no tcp:// url.
MUST_CHECK int remote_create(struct remote **ret, uv_loop_t *loop, const char *url,
                             struct err *err);
// The same for a tls:// url. tls: of TLS_CALLER; it is held. token is shown on every connection
// before anything else; NULL: none.
MUST_CHECK int remote_create_tls(struct remote **ret, uv_loop_t *loop, const char *url,
                                 struct tls *tls, const char *token, struct err *err);
// The other side's certificate must name `name` instead of the url's host: for urls that are made
// of the addresses that a name has. Before the first call; copied. Only where there is TLS.
void remote_expect(struct remote *remote, const char *name);
const char *remote_url(const struct remote *remote);
// The number of the connection that there is now, counted from 1; 0: there is none. What HELLO said
// holds for one connection: behind the next one there may be another program.
uint64_t remote_connection(const struct remote *remote);
// Pending calls get their callback with ERR_STOPPED before this returns. Freed when the loop has
// closed the handles. May be called from a callback. NULL is fine.
void remote_close(struct remote *remote);

// error is NULL on success, and reply then points to the reply message's struct, valid during the
// callback (the callee may take its insides and zero them). On failure *error says why, and
// retry_after_ms is set with ERR_BUSY.
typedef void remote_callback(void *owner, const struct err *error, uint64_t retry_after_ms,
                             void *reply);

// Sends op with body; the callback runs on the loop thread, never inside this function.
// answer describes the reply's body. body is packed at once and stays the caller's.
// deadline_ms: of the whole call.
//
// A call that finds no connection waits for one, which is tried for again and again, until its
// deadline: ERR_TIMED_OUT. One that was sent when the connection broke ends with ERR_UNREACHABLE at
// once; what became of it is not known. ERR_PROTOCOL when the other side speaks something else.
// ERR_DENIED when certificate or token are not accepted, or the role is too small.
void remote_call(struct remote *remote, enum op op, const struct message *body_message,
                 const void *body, const struct message *answer, uint64_t deadline_ms,
                 remote_callback *callback, void *owner);

// The same, waiting: runs the loop until the call is finished (for short commands; nothing else may
// be going on in it). *reply is uninitialised before and owned by the caller on success.
MUST_CHECK int remote_call_sync(struct remote *remote, enum op op,
                                const struct message *body_message, const void *body,
                                const struct message *answer, void *reply, uint64_t deadline_ms,
                                struct err *err);

// HELLO, waiting: checks that the peer is `program` and shares a protocol version. ERR_UNREACHABLE
// at once when nobody listens there, after ten seconds when nothing comes back at all, and after
// thirty when connections are taken and come to nothing. *ret is owned by the caller.
MUST_CHECK int remote_hello(struct remote *remote, const char *program, struct hello_reply *ret,
                            struct err *err);
// The same without waiting: the callback gets a struct hello_reply. program is not copied.
void remote_greet(struct remote *remote, const char *program, remote_callback *callback,
                  void *owner);

#endif
