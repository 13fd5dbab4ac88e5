// The caller's side: one connection to one daemon or worker, made when it is needed and made again
// when it breaks. Calls are asynchronous on a libuv loop. Each has a deadline and gets exactly one
// callback; many may be open at once, and they are answered in any order. Nothing is sent twice: to
// repeat a call is the decision of whoever made it. This module does not know what the operations
// mean. The program must ignore SIGPIPE.
#ifndef NET_RPC_REMOTE_H
#define NET_RPC_REMOTE_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdint.h>
#include <uv.h>

struct remote;
struct tls;

// Makes a remote for a tcp:// url, which the first call will connect. ERR_INVALID when url is
// another kind of url.
MUST_CHECK int remote_create(struct remote **ret, uv_loop_t *loop, const char *url,
                             struct err *err);
// The same for a tls:// url. tls has the side TLS_CALLER and is held. token is shown on every
// connection before anything else and is copied; NULL: no token.
MUST_CHECK int remote_create_tls(struct remote **ret, uv_loop_t *loop, const char *url,
                                 struct tls *tls, const char *token, struct err *err);
// Makes the other side's certificate name `name`, which is copied, instead of the url's host. For
// urls that are made from the addresses of a name. To be called before the first call, and only for
// tls:// urls.
void remote_expect(struct remote *remote, const char *name);
const char *remote_url(const struct remote *remote);
// Returns the number of the present connection, counted from 1; 0 when there is none. What HELLO
// said is true for one connection only: another program may be behind the next one.
uint64_t remote_connection(const struct remote *remote);
// Open calls get their callback with ERR_STOPPED before this returns. The memory is freed when the
// loop has closed the handles. May be called from a callback. NULL is fine.
void remote_close(struct remote *remote);

// The end of a call. On success error is NULL and reply points to the struct of the reply message,
// valid during the callback; the callee may take its contents and zero them. On failure *error
// gives the reason, reply is NULL, and with ERR_BUSY retry_after_ms says when to call again.
typedef void remote_callback(void *owner, const struct err *error, uint64_t retry_after_ms,
                             void *reply);

// Sends op with body, which is packed at once and stays the caller's. answer describes the body of
// the reply. The callback runs on the loop thread and never inside this function. deadline_ms is
// the time from now that the whole call may take.
//
// A call that finds no connection waits for one, which is tried again and again until the deadline:
// ERR_TIMED_OUT. A call that was sent when the connection broke ends with ERR_UNREACHABLE at once;
// whether it was carried out is not known. ERR_PROTOCOL when the other side speaks something else.
// ERR_DENIED when the certificate or the token is not accepted, or the role is too small.
void remote_call(struct remote *remote, enum op op, const struct message *body_message,
                 const void *body, const struct message *answer, uint64_t deadline_ms,
                 remote_callback *callback, void *owner);

// The same, but runs the loop until the call has ended. For short commands: nothing else may be in
// the loop. *reply is uninitialised before and owned by the caller on success.
MUST_CHECK int remote_call_sync(struct remote *remote, enum op op,
                                const struct message *body_message, const void *body,
                                const struct message *answer, void *reply, uint64_t deadline_ms,
                                struct err *err);

// Calls HELLO and checks that the other side is `program`, a string that is not copied, and shares
// a protocol version. The callback gets a struct hello_reply. ERR_UNREACHABLE at once when the
// connection is refused, after ten seconds when nothing comes back at all, and after thirty when
// connections are accepted and nothing follows.
void remote_hello(struct remote *remote, const char *program, remote_callback *callback,
                  void *owner);
// The same, but runs the loop until the call has ended. *ret is owned by the caller on success.
MUST_CHECK int remote_hello_sync(struct remote *remote, const char *program,
                                 struct hello_reply *ret, struct err *err);

#endif
