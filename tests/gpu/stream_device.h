// The GPU as a program has it that streams new data through sealed CUDA code
// (tests/gpu/stream_run.h): context, stream, events, host memory for the data. Of the executor it
// uses the table of the driver's functions alone.
#ifndef TESTS_GPU_STREAM_DEVICE_H
#define TESTS_GPU_STREAM_DEVICE_H

#include "common/stats.h"
#include "executor/gpu/driver.h"
#include <stddef.h>

#define STREAM_RING_BYTES (512 << 20)
#define STREAM_SLOTS_MAX 16 // contents that are in the ring at once
#define STREAM_ARMS_MAX 10  // baseline and candidates

struct stream_device {
    struct driver driver;
    cu_device device;
    cu_context context; // NULL: not started
    cu_stream stream;
    char name[128];
    char target[16];     // "sm_90"
    size_t smem_optin;   // most shared memory, in bytes, that a block can have
    cu_pointer flush;    // memory that is overwritten to flush the L2 cache
    size_t flush_bytes;  // three times that cache
    unsigned flushes;    // so far
    unsigned char *ring; // STREAM_RING_BYTES of host memory that the device can read
    cu_event event[STREAM_SLOTS_MAX][STREAM_ARMS_MAX][2]; // before and after each launch
    struct stats_rng rng;                                 // of the order of arms
};

// Finds GPU 0. Makes no context yet: to the daemon, a context would be a stranger on its GPU.
MUST_CHECK int stream_device_find(struct stream_device *ret, struct err *err);
// Makes the context and the memory that all cases share. stream_device_stop is needed also after a
// failure.
MUST_CHECK int stream_device_start(struct stream_device *device, struct err *err);
void stream_device_stop(struct stream_device *device);

#endif
