// The inside of a struct daemon, for daemon.c and daemon_stop.c only. daemon.c starts a daemon,
// daemon_stop.c ends it.
#ifndef DAEMON_DAEMON_INSIDE_H
#define DAEMON_DAEMON_INSIDE_H

#include "common/err.h"
#include "daemon/daemon.h"
#include "daemon/devices/device.h"
#include "daemon/dispatch.h"
#include "daemon/monitor.h"
#include "daemon/run/cgroup.h"
#include "daemon/state/counters.h"
#include "daemon/state/parts.h"
#include "daemon/store/secret.h"
#include "daemon/upkeep/discovery.h"
#include "daemon/upkeep/sweeper.h"
#include "daemon/upkeep/watch.h"
#include <uv.h>

// A GPU whose first process is being started.
struct gpu_start {
    struct daemon *daemon;
    struct device *device;
};

struct daemon {
    struct daemon_config config;
    struct daemon_parts parts; // what its members point to is owned here
    int lock_fd;               // lock of the state directory
    char *scratch;             // folder for files of compilations; NULL with the sandbox
    struct cgroups *cgroups;   // NULL when no control group is delegated
    struct discovery discovery;
    struct secret secret;
    struct devices devices;
    struct gpu_start *gpu_starts; // one for each device
    struct watch *watch;
    struct sweeper sweeper;
    struct dispatch *dispatch;
    struct counters counters;
    struct monitor *monitor; // NULL when monitoring is not served
    uv_timer_t tick;         // calls on_tick
    uv_timer_t stop;         // calls on_stop_poll
    uint64_t stop_since_ms;  // when daemon_stop was called, on the loop's clock
    bool stop_when_idle;     // daemon_stop_when_idle was called
    bool announced;          // on_ready was called
    bool stopping;           // daemon_stop was called
    struct err error;        // why the daemon ends; no code after daemon_stop
};

// Removes the folder for temporary files, if there is one. What cannot be removed is logged, and
// stays until the next start.
void daemon_remove_scratch(const char *path);

#endif
