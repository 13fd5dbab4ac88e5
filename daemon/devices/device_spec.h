// What --devices asks for, and what of it there is. Knows nothing of processors; cores.h does.
#ifndef DAEMON_DEVICES_DEVICE_SPEC_H
#define DAEMON_DEVICES_DEVICE_SPEC_H

#include "common/err.h"
#include "daemon/devices/device.h"
#include <stdbool.h>
#include <stddef.h>

#define DEVICE_SPEC_GPU_MAX 64

struct device_spec {
    bool cpus;
    size_t cpu_count; // 0: as many as cores_plan thinks good
    bool cuda;
    bool must;                         // cuda: an error when there is none
    unsigned gpu[DEVICE_SPEC_GPU_MAX]; // ordinals
    size_t gpu_count;                  // 0: all that can be used
};

// "auto" (cores, and GPUs where there are any), or any of "cpu", "cpu:N", "cuda" and "cuda:0,2"
// with a plus between them. ERR_USAGE says what is wrong with spec.
MUST_CHECK int device_spec_parse(struct device_spec *ret, const char *spec, struct err *err);

// Adds the GPUs that are wanted to the devices, and logs those that cannot be used. Takes them out
// of the report. ERR_NOT_FOUND when one that must be there is not, with the report's reason.
MUST_CHECK int device_spec_gpus(const struct device_spec *device_spec,
                                struct cuda_probe_outcome *outcome, struct devices *devices,
                                struct err *err);

#endif
