// Decides which processor cores are devices, and which are left to the daemon and the compilers.
// Called by main.c. Reads the affinity mask and the topology of this machine; cores_settle changes
// the mask of the calling thread, and nothing else is changed.
#ifndef DAEMON_DEVICES_CORES_H
#define DAEMON_DEVICES_CORES_H

#include "common/err.h"
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CORES_DEVICE_MAX 256
#define CORES_AUTO SIZE_MAX // let cores_plan choose the number

struct cores {
    int device[CORES_DEVICE_MAX]; // processor number of each device
    size_t device_count;
    cpu_set_t rest;    // what kcastd and the compilers run on
    size_t rest_count; // processors in it
    bool exclusive;    // devices own all processors: compile only while no device is busy
};

// wanted is the number of devices, at most CORES_DEVICE_MAX, or CORES_AUTO: one less than there are
// physical cores, at least one, at most four. Devices are the highest-numbered cores, because
// interrupts are usually served by the lowest. There is one device per physical core while there
// are enough, and the sibling hardware threads of its core stay idle. ERR_INVALID when there are
// fewer processors.
MUST_CHECK int cores_plan(struct cores *ret, size_t wanted, struct err *err);
// Keeps the calling thread, and the threads and processes that it starts later, off the cores of
// the devices, unless exclusive is set. ERR_SYSTEM when the mask cannot be set.
MUST_CHECK int cores_settle(const struct cores *cores, struct err *err);
// How many processors of the rest may compile beside so many GPUs: all but two for each GPU, which
// its measurements keep busy, and one for kcastd, but more than half in any case.
size_t cores_for_compiling(const struct cores *cores, size_t gpus);

#endif
