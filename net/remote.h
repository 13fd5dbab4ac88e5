// The caller's side: one connection to one daemon or worker. Calls are asynchronous on a libuv loop; each gets its own nng
// context, a deadline, and exactly one callback. nng's own resending is off: a repeated call is the caller's decision.
#ifndef NET_REMOTE_H
#define NET_REMOTE_H

#include "common/err.h"
#include "proto/all.h"
#include <stdint.h>
#include <uv.h>

struct remote;

// Does not connect yet; calls fail with ERR_UNREACHABLE while nobody listens. ERR_INVALID when url is no tcp:// url.
MUST_CHECK int remote_create(struct remote **ret, uv_loop_t *loop, const char *url, struct err *err);
const char *remote_url(const struct remote *remote);
// Pending calls get their callback with ERR_STOPPED before this returns. Freed when the loop has closed the handles.
void remote_close(struct remote *remote);

// error is NULL on success, and reply then points to the reply message's struct, valid during the callback (the callee may
// take its insides and zero them). On failure *error says why, and retry_after_ms is set with ERR_BUSY.
typedef void remote_callback(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply);

// Sends op with body; the callback runs on the loop thread, never inside this function.
// answer describes the reply's body. body is packed at once and stays the caller's. deadline_ms: of the whole call.
void remote_call(struct remote *remote, enum op op, const struct message *body_message, const void *body,
                 const struct message *answer, uint64_t deadline_ms, remote_callback *callback, void *owner);

// The same, waiting: runs the loop until the call is finished (for short commands; nothing else may be going on in it).
// *reply is uninitialised before and owned by the caller on success.
MUST_CHECK int remote_call_sync(struct remote *remote, enum op op, const struct message *body_message, const void *body,
                                const struct message *answer, void *reply, uint64_t deadline_ms, struct err *err);

// HELLO: checks that the peer is `program` and shares a protocol version. *ret is owned by the caller.
MUST_CHECK int remote_hello(struct remote *remote, const char *program, struct hello_reply *ret, struct err *err);

#endif
