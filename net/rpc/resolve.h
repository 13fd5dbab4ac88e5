// The addresses of a url's host, looked up beside the libuv loop.
#ifndef NET_RPC_RESOLVE_H
#define NET_RPC_RESOLVE_H

#include "common/err.h"
#include "net/rpc/url.h"
#include <stddef.h>
#include <uv.h>

#define RESOLVE_MAX 32 // addresses that are given

struct resolve;

// on_end runs once, on the loop and never inside: with addresses (count ≥ 1; valid during the
// call), or count 0 and the reason. The resolve is gone afterwards.
typedef void resolve_callback(void *owner, const struct sockaddr_storage *addresses, size_t count,
                              const struct err *why);
// ERR_SYSTEM with the reason alone when it cannot be begun. *url is not needed after this.
MUST_CHECK int resolve_start(struct resolve **ret, uv_loop_t *loop, const struct url *url,
                             resolve_callback *on_end, void *owner, struct err *err);
// on_end does not run; freed by the loop. NULL is fine.
void resolve_cancel(struct resolve *resolve);

#endif
