// Design note. TCP_USER_TIMEOUT is not used, because it also ends connections to a host that
// answers every probe but whose program does not read. Not reading is how servers here slow callers
// down.
//
// Instead there are two cases. While no data is unacknowledged, the kernel sends keep-alive probes
// and ends the connection when none is answered. While data is unacknowledged, the kernel sends it
// again, or probes a window of zero bytes, and does not give up for a long time. For that case a
// timer checks every second whether anything has come back: the kernel knows when the last
// acknowledgement came. Only a probe without an answer counts against the host. The kernel waits
// longer and longer between probes of a zero window, up to two minutes, so a host that vanishes
// meanwhile is noticed only after the next probe.
#include "net/rpc/liveness.h"

#include "common/mem.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#define IDLE_S 3            // seconds without a byte before the kernel sends a probe each second
#define PROBES 6            // unanswered probes after which the kernel ends the connection
#define CHECK_MS 1000       // between checks of what is unacknowledged
#define UNANSWERED_CHECKS 9 // in a row, after which the other host counts as gone

struct liveness {
    uv_timer_t timer; // its close callback frees the struct
    int fd;
    int unanswered; // checks in a row that found no answer
    void (*on_look)(void *owner);
    void (*on_dead)(void *owner);
    void *owner;
};

static void set_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } option[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
    };

    // A failure is ignored: without one of these options a lost host is only noticed later.
    for (size_t i = 0; i < ARRAY_LEN(option); i++) {
        (void)setsockopt(fd, option[i].level, option[i].name, &option[i].value,
                         sizeof(option[i].value));
    }
}

// Returns whether data or a probe is unacknowledged and nothing at all has come since the last
// check.
static bool is_unanswered(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           (info.tcpi_unacked > 0 || info.tcpi_probes > 0) && info.tcpi_last_ack_recv >= CHECK_MS;
}

static void on_check(uv_timer_t *timer)
{
    struct liveness *liveness = timer->data;

    if (liveness->on_look) {
        liveness->on_look(liveness->owner);
    }
    liveness->unanswered = is_unanswered(liveness->fd) ? liveness->unanswered + 1 : 0;
    if (liveness->unanswered == UNANSWERED_CHECKS) {
        liveness->on_dead(liveness->owner);
    }
}

struct liveness *liveness_watch(uv_loop_t *loop, int fd, void (*on_look)(void *owner),
                                void (*on_dead)(void *owner), void *owner)
{
    struct liveness *liveness = xcalloc(1, sizeof(*liveness));

    liveness->fd = fd;
    liveness->on_look = on_look;
    liveness->on_dead = on_dead;
    liveness->owner = owner;
    set_options(fd);
    (void)uv_timer_init(loop, &liveness->timer);
    liveness->timer.data = liveness;
    (void)uv_timer_start(&liveness->timer, on_check, CHECK_MS, CHECK_MS);
    return liveness;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void liveness_end(struct liveness *liveness)
{
    if (liveness) {
        uv_close((uv_handle_t *)&liveness->timer, on_closed);
    }
}
