// The executor's own device code as the GPU needs it.
#ifndef EXECUTOR_GPU_KERNELS_H
#define EXECUTOR_GPU_KERNELS_H

#include "common/err.h"
#include "common/mem.h"

// Compiles executor/gpu/kernels.cu, which is part of this program, for a target ("sm_90"). ERR_NOT_FOUND when
// there is no NVRTC.
MUST_CHECK int kernels_build(const char *target, struct bytes *ret_cubin, struct err *err);

#endif
