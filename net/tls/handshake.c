// Design note. Steps with the same struct tls run one at a time for two reasons. mbedTLS caches
// precomputed points in the key that all sessions share, and that cache is not protected against
// other threads. And many handshakes at once must not take all threads of libuv's pool, which name
// lookups and file operations need too.
//
// The list of steps lives on the loop thread. Its first element is the step that runs; all others
// wait and can be cancelled. They are in the order of their rounds: a step is in the round after
// the last one of its host, or in the present round when its host has none.
#include "net/tls/handshake.h"

#include <stdlib.h>
#include <utlist.h>

static void work(uv_work_t *request)
{
    struct handshake *handshake = request->data;

    // handshake->err carries the result; the return value says nothing more.
    (void)!tls_session_handshake(handshake->session, &handshake->finished, &handshake->err);
}

static void on_worked(uv_work_t *request, int status);

static void start(struct handshake *handshake)
{
    handshake->work.data = handshake;
    if (uv_queue_work(handshake->loop, &handshake->work, work, on_worked) != 0) {
        abort(); // it only fails when no function is given
    }
}

static void on_worked(uv_work_t *request, int status)
{
    struct handshake *handshake = request->data;
    struct handshake **steps = tls_session_steps(handshake->session);

    (void)status; // a step that was started is never cancelled
    DL_DELETE(*steps, handshake);
    if (*steps) {
        start(*steps);
    }
    handshake->busy = false;
    handshake->on_done(handshake);
}

// Puts the step behind those of its round.
static void insert(struct handshake **steps, struct handshake *handshake)
{
    struct handshake *before = NULL; // the last one that goes before it
    struct handshake *step;

    handshake->round = *steps ? (*steps)->round : 0;
    DL_FOREACH (*steps, step) {
        if (step->host == handshake->host) {
            handshake->round = step->round + 1;
        }
    }
    DL_FOREACH (*steps, step) {
        if (step->round <= handshake->round) {
            before = step;
        }
    }
    if (before) {
        DL_APPEND_ELEM(*steps, before, handshake);
    } else {
        DL_APPEND(*steps, handshake); // the list is empty: the first one's round is the least
    }
}

void handshake_step(struct handshake *handshake, uv_loop_t *loop, struct tls_session *session,
                    uint64_t host, void (*on_done)(struct handshake *handshake))
{
    struct handshake **steps = tls_session_steps(session);

    handshake->loop = loop;
    handshake->session = session;
    handshake->on_done = on_done;
    handshake->busy = true;
    handshake->host = host;
    insert(steps, handshake);
    if (*steps == handshake) {
        start(handshake);
    }
}

bool handshake_cancel(struct handshake *handshake)
{
    struct handshake **steps = tls_session_steps(handshake->session);

    if (*steps == handshake) {
        return false;
    }
    DL_DELETE(*steps, handshake);
    handshake->busy = false;
    return true;
}
