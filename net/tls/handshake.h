// Handshakes are arithmetic of milliseconds, and the loop has other things to do: each step is done
// in a thread of libuv's, one step at a time for all connections with the same certificates, first
// come, first served. So strangers that begin handshakes delay only each other and new callers.
#ifndef NET_TLS_HANDSHAKE_H
#define NET_TLS_HANDSHAKE_H

#include "common/err.h"
#include "net/tls/tls.h"
#include <stdbool.h>
#include <uv.h>

// One connection's, embedded in it; zeroed at first. The step's outcome is in finished and err.
struct handshake {
    uv_work_t work;
    uv_loop_t *loop;
    struct tls_session *session; // nobody else may touch it until on_done
    void (*on_done)(struct handshake *handshake);
    bool busy;              // waits, or runs: on_done follows
    bool finished;          // hands are shaken
    struct err err;         // why they cannot be
    struct handshake *prev; // those of the same certificates; the first one runs
    struct handshake *next;
};

// tls_session_greet with what has arrived; on_done runs on the loop. Not while it is busy.
void handshake_step(struct handshake *handshake, uv_loop_t *loop, struct tls_session *session,
                    void (*on_done)(struct handshake *handshake));
// Gives a step up that waits. False: it runs, and on_done follows.
bool handshake_cancel(struct handshake *handshake);

#endif
