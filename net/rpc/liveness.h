// Connections to hosts that say nothing any more.
#ifndef NET_RPC_LIVENESS_H
#define NET_RPC_LIVENESS_H

#include <uv.h>

struct liveness;

// A host that was cut off, or has lost its power, closes nothing. When nothing has come from the
// other host for some ten seconds, either the kernel ends this TCP connection with ETIMEDOUT, while
// nobody has anything to say, or on_silence runs, while something is not acknowledged: once, on the
// loop. A program that is merely busy, stopped, or does not read still has a kernel that answers
// for it. fd must stay open until liveness_end.
struct liveness *liveness_watch(uv_loop_t *loop, int fd, void (*on_silence)(void *owner),
                                void *owner);
// Frees it from the loop; on_silence does not run any more. NULL is fine.
void liveness_end(struct liveness *liveness);

#endif
