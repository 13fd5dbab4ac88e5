// Reports to systemd that a program's event loop turns (the watchdog protocol) and what the program
// is doing (its status line). Daemon and worker start one each. The reports come from timers of the
// loop itself, so that they stop when the loop hangs. Sources: sd_watchdog_enabled(3) and
// sd_notify(3). common/ready.h sends the datagrams.
#ifndef COMMON_HEARTBEAT_H
#define COMMON_HEARTBEAT_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define HEARTBEAT_STATUS_MAX 256
#define HEARTBEAT_STATUS_MS 2000 // shortest time between two status lines

struct heartbeat {
    uv_timer_t watchdog; // sends WATCHDOG=1
    uv_timer_t status;   // sends the status line when it has changed
    // Writes one line about what the program does. NULL: no status is sent.
    void (*describe)(void *owner, char *text, size_t size);
    void *owner;                     // argument of describe
    char last[HEARTBEAT_STATUS_MAX]; // the status line that was sent last
};

// The interval between two reports to the watchdog in milliseconds: half of the time that it
// allows. 0 when no reports are wanted: WATCHDOG_USEC is unset or not a number, or WATCHDOG_PID
// names another process.
uint64_t heartbeat_interval_ms(void);

// Starts the timers. Call it when the program is ready: the first reports go out at once. The
// caller has set describe and owner. The timers do not keep the loop alive.
void heartbeat_start(struct heartbeat *heartbeat, uv_loop_t *loop);
// Closes the timers. heartbeat_start must have been called. The memory must stay until the loop has
// run once more.
void heartbeat_stop(struct heartbeat *heartbeat);

// Tells systemd (Type=notify-reload) that the program reloads its configuration. The caller sends
// READY=1 when it is done.
void heartbeat_reloading(void);

#endif
