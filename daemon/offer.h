// What --devices asks for, and what of it there is. Knows nothing of processors; cores.h does.
#ifndef DAEMON_OFFER_H
#define DAEMON_OFFER_H

#include "common/err.h"
#include "daemon/device.h"
#include <stdbool.h>
#include <stddef.h>

#define OFFER_GPU_MAX 64

struct offer {
    bool cpus;
    size_t cpu_count; // 0: as many as cores_plan thinks good
    bool cuda;
    bool must;                   // cuda: an error when there is none
    unsigned gpu[OFFER_GPU_MAX]; // ordinals
    size_t gpu_count;            // 0: all that can be used
};

// "auto" (cores, and GPUs where there are any), or any of "cpu", "cpu:N", "cuda" and "cuda:0,2"
// with a plus between them. ERR_USAGE says what is wrong with spec.
MUST_CHECK int offer_parse(struct offer *ret, const char *spec, struct err *err);

// Adds the GPUs that are wanted to the devices, and logs those that cannot be used. Takes them out
// of the report. ERR_NOT_FOUND when one that must be there is not, with the report's reason.
MUST_CHECK int offer_gpus(const struct offer *offer, struct cuda_probe_report *report,
                          struct devices *devices, struct err *err);

#endif
