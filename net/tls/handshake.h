// TLS handshakes away from the loop thread. A step of a handshake is milliseconds of arithmetic,
// for which the loop has no time, so each step runs in a thread of libuv's pool. All connections
// that share a struct tls queue here and run one step at a time, hosts in turn: strangers who begin
// many handshakes delay only each other and new callers of their host. net/rpc/stream.c is the only
// caller.
#ifndef NET_TLS_HANDSHAKE_H
#define NET_TLS_HANDSHAKE_H

#include "common/err.h"
#include "net/tls/tls.h"
#include <stdbool.h>
#include <uv.h>

// The handshake of one connection. Embedded in the connection and zeroed at first.
struct handshake {
    uv_work_t work;
    uv_loop_t *loop;
    struct tls_session *session; // not to be touched by anybody else until on_done
    void (*on_done)(struct handshake *handshake);
    bool busy;              // a step is queued or runs, and on_done will follow
    bool finished;          // the last step completed the handshake
    struct err err;         // why the last step failed; ERR_NONE otherwise
    uint64_t host;          // a number of the other side's host
    uint64_t round;         // in which the step runs: each host has one in a round
    struct handshake *prev; // list of the steps with the same struct tls; the first one runs
    struct handshake *next;
};

// Queues a call of tls_session_handshake with the bytes that have arrived. host is a number that
// connections from the same host share. on_done runs on the loop when it is over; its results are
// in finished and err. handshake must not be busy.
void handshake_step(struct handshake *handshake, uv_loop_t *loop, struct tls_session *session,
                    uint64_t host, void (*on_done)(struct handshake *handshake));
// Takes a step that has not begun out of the queue; on_done does not run. Returns false when the
// step runs already: on_done will then follow.
bool handshake_cancel(struct handshake *handshake);

#endif
