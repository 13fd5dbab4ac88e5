// Looks up the addresses of a url's host in a thread of libuv's pool. net/rpc/link.c is the only
// caller. It makes no connections.
#ifndef NET_RPC_RESOLVE_H
#define NET_RPC_RESOLVE_H

#include "common/err.h"
#include "net/url.h"
#include <stddef.h>
#include <uv.h>

#define RESOLVE_MAX 32 // further addresses of a host are left out

struct resolve;

// Gets the result on the loop, once, and never inside resolve_start. Either count is at least 1 and
// addresses are valid during the call, or count is 0 and why gives the reason. The lookup is freed
// after the call.
typedef void resolve_callback(void *owner, const struct sockaddr_storage *addresses, size_t count,
                              const struct err *why);
// Begins a lookup. url is only read during this call. ERR_SYSTEM when it cannot begin; the error's
// text is the reason alone.
MUST_CHECK int resolve_start(struct resolve **ret, uv_loop_t *loop, const struct url *url,
                             resolve_callback *on_end, void *owner, struct err *err);
// Gives a lookup up: on_end does not run, and the loop frees the memory. NULL is fine.
void resolve_cancel(struct resolve *resolve);

#endif
