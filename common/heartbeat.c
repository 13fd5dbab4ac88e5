#include "common/heartbeat.h"
#include "common/clock.h"
#include "common/parse.h"
#include "common/ready.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool from_environment(const char *name, uint64_t *ret)
{
    const char *text = getenv(name);

    return text && parse_u64(ret, text, 1, UINT64_MAX, name, NULL) == 0;
}

uint64_t heartbeat_interval_ms(void)
{
    uint64_t interval_us;

    if (!from_environment("WATCHDOG_USEC", &interval_us)) {
        return 0;
    }
    uint64_t pid;
    if (getenv("WATCHDOG_PID") &&
        (!from_environment("WATCHDOG_PID", &pid) || pid != (uint64_t)getpid())) {
        return 0;
    }
    return interval_us < 2000 ? 1 : interval_us / 2000;
}

static void on_watchdog(uv_timer_t *timer)
{
    (void)timer;
    ready_notify("WATCHDOG=1");
}

static void on_status(uv_timer_t *timer)
{
    struct heartbeat *heartbeat = timer->data;
    char text[HEARTBEAT_STATUS_MAX] = "";

    heartbeat->describe(heartbeat->owner, text, sizeof(text));
    if (strcmp(text, heartbeat->last) != 0) {
        memcpy(heartbeat->last, text, sizeof(text));
        ready_notify("STATUS=%s", text);
    }
}

void heartbeat_start(struct heartbeat *heartbeat, uv_loop_t *loop)
{
    uint64_t interval_ms = heartbeat_interval_ms();

    (void)uv_timer_init(loop, &heartbeat->watchdog);
    (void)uv_timer_init(loop, &heartbeat->status);
    heartbeat->status.data = heartbeat;
    uv_unref((uv_handle_t *)&heartbeat->watchdog);
    uv_unref((uv_handle_t *)&heartbeat->status);
    heartbeat->last[0] = '\0';
    if (interval_ms > 0) {
        (void)uv_timer_start(&heartbeat->watchdog, on_watchdog, 0, interval_ms);
    }
    if (heartbeat->describe && getenv("NOTIFY_SOCKET")) {
        (void)uv_timer_start(&heartbeat->status, on_status, 0, HEARTBEAT_STATUS_MS);
    }
}

void heartbeat_stop(struct heartbeat *heartbeat)
{
    uv_close((uv_handle_t *)&heartbeat->watchdog, NULL);
    uv_close((uv_handle_t *)&heartbeat->status, NULL);
}

void heartbeat_reloading(void)
{
    ready_notify("RELOADING=1\nMONOTONIC_USEC=%llu",
                 (unsigned long long)(clock_now_ns(&clock_system) / 1000));
}
