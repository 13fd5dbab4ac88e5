// Which processor cores are devices and which are everybody else's. Reads the affinity mask and the
// topology of this machine; changes nothing but, in cores_settle, the calling thread's mask.
#ifndef DAEMON_DEVICES_CORES_H
#define DAEMON_DEVICES_CORES_H

#include "common/err.h"
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORES_DEVICE_MAX 256
#define CORES_AUTO SIZE_MAX

struct cores {
    int device[CORES_DEVICE_MAX]; // processor number of each device
    size_t device_count;
    cpu_set_t rest;    // what kcastd and the compilers run on
    size_t rest_count; // processors in it
    bool exclusive;    // devices own everything: compile only while no device is busy
};

// wanted: number of devices, at most CORES_DEVICE_MAX, or CORES_AUTO: one physical core less than
// there are, at least one, at most four. Devices are the highest-numbered cores (interrupts are
// usually served by the lowest), one per physical core while there are enough; the siblings of
// their hardware threads stay idle. ERR_INVALID says when there are fewer processors.
MUST_CHECK int cores_plan(struct cores *ret, size_t wanted, struct err *err);
// Keeps the calling thread, and threads and processes it starts later, off the devices' cores
// (unless exclusive).
MUST_CHECK int cores_settle(const struct cores *cores, struct err *err);

#endif
