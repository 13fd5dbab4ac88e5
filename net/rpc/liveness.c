// Design note. TCP_USER_TIMEOUT is not used: it also ends connections to a host that answers every
// question and whose program does not read, which is how callers are slowed down here. So the
// kernel asks by keep-alive while nothing is under way; while something is, it sends that again, or
// asks whether there is room, and does not give up for a long time. A timer looks whether there is
// an answer to that: the kernel knows when the last one came. Between two questions about room the
// kernel waits longer and longer, up to two minutes, and only an unanswered question counts.
#include "net/rpc/liveness.h"

#include "common/mem.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

#define IDLE_S 3     // of silence, then the kernel asks every second
#define QUESTIONS 6  // that nobody answers, and it ends the connection
#define LOOK_MS 1000 // between looks at what is not acknowledged
#define LOOKS 9      // in a row without an answer: the other host is gone

struct liveness {
    uv_timer_t timer; // its close callback frees all
    int fd;
    int looks; // in a row that found something unanswered
    void (*on_silence)(void *owner);
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
        {IPPROTO_TCP, TCP_KEEPCNT, QUESTIONS},
    };

    // Without one of these the end is noticed later: no reason to do without the connection.
    for (size_t i = 0; i < ARRAY_LEN(option); i++) {
        (void)setsockopt(fd, option[i].level, option[i].name, &option[i].value,
                         sizeof(option[i].value));
    }
}

// Something was sent, or asked, and nothing at all has come since the last look.
static bool is_unanswered(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           (info.tcpi_unacked > 0 || info.tcpi_probes > 0) && info.tcpi_last_ack_recv >= LOOK_MS;
}

static void on_look(uv_timer_t *timer)
{
    struct liveness *liveness = timer->data;

    liveness->looks = is_unanswered(liveness->fd) ? liveness->looks + 1 : 0;
    if (liveness->looks == LOOKS) {
        liveness->on_silence(liveness->owner);
    }
}

struct liveness *liveness_watch(uv_loop_t *loop, int fd, void (*on_silence)(void *owner),
                                void *owner)
{
    struct liveness *liveness = xcalloc(1, sizeof(*liveness));

    liveness->fd = fd;
    liveness->on_silence = on_silence;
    liveness->owner = owner;
    set_options(fd);
    (void)uv_timer_init(loop, &liveness->timer);
    liveness->timer.data = liveness;
    (void)uv_timer_start(&liveness->timer, on_look, LOOK_MS, LOOK_MS);
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
