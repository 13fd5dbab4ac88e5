// A listening TCP socket on a libuv loop. It gives accepted sockets to its owner, a server, and
// does not know what is spoken on them.
#ifndef NET_RPC_LISTENER_H
#define NET_RPC_LISTENER_H

#include "common/err.h"
#include "net/url.h"
#include <stdint.h>
#include <uv.h>

struct listener;

struct listener_config {
    // Takes over fd, a connected socket.
    void (*on_accept)(void *owner, int fd);
    // Accepting has failed because descriptors or memory are missing; reason is the system's text.
    // It is tried again automatically, and callers wait in the kernel's queue. Called once until an
    // accept succeeds.
    void (*on_accept_failed)(void *owner, const char *reason);
    void *owner;
};

// Begins to listen. ERR_BUSY when the port is in use, else ERR_SYSTEM. text is the url as the user
// wrote it, for errors.
MUST_CHECK int listener_create(struct listener **ret, uv_loop_t *loop, const struct url *url,
                               const char *text, const struct listener_config *config,
                               struct err *err);
// Returns the real port, also when the url asked for port 0.
uint16_t listener_port(const struct listener *listener);
// Frees the port at once, and the memory when the loop has closed the handles. NULL is fine.
void listener_close(struct listener *listener);

#endif
