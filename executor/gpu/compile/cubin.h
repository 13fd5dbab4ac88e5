// Looks into a cubin that came out of the compile jail. Nothing in it is trusted: every offset is checked.
#ifndef EXECUTOR_GPU_COMPILE_CUBIN_H
#define EXECUTOR_GPU_COMPILE_CUBIN_H

#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"

#define CUBIN_PARAMETERS_MAX 256

// The parameters of a kernel, in order: bytes and offset of each. ERR_INVALID when the cubin is damaged,
// ERR_NOT_FOUND when it has no such kernel.
MUST_CHECK int cubin_parameters(const struct bytes *cubin, const char *symbol,
                                struct cuda_kernel *ret_sizes, struct err *err);
// Appends the variables that keep their values between launches.
MUST_CHECK int cubin_globals(const struct bytes *cubin, struct cuda_global **list, size_t *count,
                             struct err *err);
// Whether the cubin calls a function that candidates may not use: its name is copied to ret ("" if none).
MUST_CHECK int cubin_forbidden(const struct bytes *cubin, char ret[static 64], struct err *err);
// Bytes of machine code, and of constants.
MUST_CHECK int cubin_sizes(const struct bytes *cubin, uint64_t *ret_code, uint64_t *ret_constants,
                           struct err *err);

#endif
