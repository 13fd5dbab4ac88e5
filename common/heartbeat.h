// Tells systemd (or whoever set WATCHDOG_USEC) that this program's loop turns, and what it is
// doing. The beats come from a timer of that loop, so that they stop when the loop hangs. Source:
// sd_watchdog_enabled(3) and sd_notify(3); the protocol is common/ready.h.
#ifndef COMMON_HEARTBEAT_H
#define COMMON_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HEARTBEAT_STATUS_MAX 256
#define HEARTBEAT_STATUS_MS 2000 // at most so often a new status is sent

struct heartbeat {
    uv_timer_t watchdog;
    uv_timer_t status;
    // Writes one line about what the program does. NULL: none is sent.
    void (*describe)(void *owner, char *text, size_t size);
    void *owner;
    char last[HEARTBEAT_STATUS_MAX]; // what was sent
};

// How often to beat: half of what is asked for, in milliseconds; 0 when nobody asks (no
// WATCHDOG_USEC, not a number, or meant for another process by WATCHDOG_PID).
uint64_t heartbeat_interval_ms(void);

// Begins when the program is ready: the first beat and the first status go out now. describe and
// owner are set by the caller. The timers do not keep the loop alive.
void heartbeat_start(struct heartbeat *heartbeat, uv_loop_t *loop);
// Closes the timers; the loop has to run once more. Only after heartbeat_start.
void heartbeat_stop(struct heartbeat *heartbeat);

// Around a reload of the configuration, as Type=notify-reload wants it; READY=1 ends it.
void heartbeat_reloading(void);

#endif
