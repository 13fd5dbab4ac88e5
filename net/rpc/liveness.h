// Finds out that the host at the other end of a connection is gone. A host that was cut off, or has
// lost its power, closes nothing; this module tells it from a program that is merely busy, stopped
// or does not read, because the kernel of such a program's host still answers. net/rpc/stream.c is
// the only caller. It knows nothing of frames.
#ifndef NET_RPC_LIVENESS_H
#define NET_RPC_LIVENESS_H

#include <uv.h>

struct liveness;

// Watches a TCP connection. When nothing at all has come from the other host for some ten seconds,
// one of two things happens. While no sent data waits for an acknowledgement, the kernel ends the
// connection with ETIMEDOUT. While some does, on_dead runs once, on the loop. on_look runs every
// second before that is looked at; NULL: nothing does. fd is borrowed and must stay open until
// liveness_end. Never fails.
struct liveness *liveness_watch(uv_loop_t *loop, int fd, void (*on_look)(void *owner),
                                void (*on_dead)(void *owner), void *owner);
// Stops watching: no callback runs any more, and the loop frees the memory. NULL is fine.
void liveness_end(struct liveness *liveness);

#endif
