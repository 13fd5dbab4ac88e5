// The executor's own device code, compiled for a GPU. gpu_open calls it. Knows the compiler, but no
// driver and no device.
#ifndef EXECUTOR_GPU_DEVICE_KERNELS_H
#define EXECUTOR_GPU_DEVICE_KERNELS_H

#include "common/err.h"
#include "common/mem.h"

// Compiles executor/gpu/device/kernels*.cu, whose text is part of this program, for a target
// ("sm_90"), or takes what an earlier call has kept in the folder that the environment variable
// KCAST_KERNELS names; unset: nothing is kept. The caller owns the cubin. ERR_NOT_FOUND when the
// machine has no NVRTC.
MUST_CHECK int kernels_build(const char *target, struct bytes *ret_cubin, struct err *err);

#endif
