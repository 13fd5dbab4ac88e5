// A listening TCP socket on a libuv loop. Knows nothing of what is spoken on the connections.
#ifndef NET_RPC_LISTENER_H
#define NET_RPC_LISTENER_H

#include "common/err.h"
#include "net/rpc/url.h"
#include <stdint.h>
#include <uv.h>

struct listener;

struct listener_config {
    // A connected socket, which is the callee's.
    void (*on_accept)(void *owner, int fd);
    // Accepting does not work at the moment (no descriptors left); it is tried again by itself and
    // callers wait in the kernel's queue. Once until an accept succeeds.
    void (*on_trouble)(void *owner, const char *reason);
    void *owner;
};

// ERR_BUSY when the port is in use, else ERR_SYSTEM; the sentence names text, the url as it was
// given.
MUST_CHECK int listener_create(struct listener **ret, uv_loop_t *loop, const struct url *url,
                               const char *text, const struct listener_config *config,
                               struct err *err);
// The real one.
uint16_t listener_port(const struct listener *listener);
// The port is free at once; the memory when the loop has closed the handles. NULL is fine.
void listener_close(struct listener *listener);

#endif
