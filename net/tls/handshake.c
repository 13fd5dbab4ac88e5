// One at a time, because mbedTLS keeps precomputed points in the key that all sessions share, and
// because a crowd must not take all of libuv's threads, which others wait for.
#include "net/tls/handshake.h"

#include <stdlib.h>
#include <utlist.h>

static void work(uv_work_t *request)
{
    struct handshake *handshake = request->data;

    // The error is what tells.
    (void)!tls_session_greet(handshake->session, &handshake->finished, &handshake->err);
}

static void on_worked(uv_work_t *request, int status);

static void start(struct handshake *handshake)
{
    handshake->work.data = handshake;
    if (uv_queue_work(handshake->loop, &handshake->work, work, on_worked) != 0) {
        abort(); // it fails without a function only
    }
}

static void on_worked(uv_work_t *request, int status)
{
    struct handshake *handshake = request->data;
    struct handshake **steps = tls_session_steps(handshake->session);

    (void)status; // nothing is cancelled that has been started
    DL_DELETE(*steps, handshake);
    if (*steps) {
        start(*steps);
    }
    handshake->busy = false;
    handshake->on_done(handshake);
}

void handshake_step(struct handshake *handshake, uv_loop_t *loop, struct tls_session *session,
                    void (*on_done)(struct handshake *handshake))
{
    struct handshake **steps = tls_session_steps(session);

    handshake->loop = loop;
    handshake->session = session;
    handshake->on_done = on_done;
    handshake->busy = true;
    DL_APPEND(*steps, handshake);
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
