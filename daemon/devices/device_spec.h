// What the option --devices asks for, and which of the GPUs that it asks for exist. Called by
// main.c. Knows nothing of processors; cores.h does.
#ifndef DAEMON_DEVICES_DEVICE_SPEC_H
#define DAEMON_DEVICES_DEVICE_SPEC_H

#include "common/err.h"
#include "daemon/devices/device.h"
#include <stdbool.h>
#include <stddef.h>

#define DEVICE_SPEC_GPU_MAX 64

struct device_spec {
    bool cpus;                         // cores are asked for
    size_t cpu_count;                  // 0: cores_plan chooses
    bool cuda;                         // GPUs are asked for
    bool must;                         // no usable GPU is an error
    unsigned gpu[DEVICE_SPEC_GPU_MAX]; // ordinals
    size_t gpu_count;                  // 0: all that can be used
    bool pageable; // also GPUs whose kernels can read the executor's memory; not parsed
};

// Parses "auto" (cores, and GPUs where there are any) or any of "cpu", "cpu:N", "cuda" and
// "cuda:0,2" joined by plus signs. ERR_USAGE says what is wrong with spec.
MUST_CHECK int device_spec_parse(struct device_spec *ret, const char *spec, struct err *err);

// Adds the GPUs that are asked for to the devices, and logs those that cannot be used. A GPU whose
// kernels can read the executor's memory, where a candidate might find how it is judged, can be
// used only with device_spec->pageable. Takes what it needs out of the outcome of the probe.
// ERR_NOT_FOUND when a GPU that must be there is not, with the outcome's reason.
MUST_CHECK int device_spec_gpus(const struct device_spec *device_spec,
                                struct cuda_probe_outcome *outcome, struct devices *devices,
                                struct err *err);

#endif
