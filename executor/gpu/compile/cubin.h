// Looking into a cubin that came out of the compile jail. Its bytes are not trusted: every offset
// is checked, and what makes no sense is ERR_INVALID. executor/gpu/compile/compile.c calls it. It
// must not know how the cubin was made.
#ifndef EXECUTOR_GPU_COMPILE_CUBIN_H
#define EXECUTOR_GPU_COMPILE_CUBIN_H

#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"

#define CUBIN_PARAMETERS_MAX 256

// Sets size and offset, in bytes, of every parameter of a kernel, in order. ERR_NOT_FOUND when the
// cubin has no such kernel. The caller owns the lists in *ret_sizes.
MUST_CHECK int cubin_parameters(const struct bytes *cubin, const char *symbol,
                                struct cuda_kernel *ret_sizes, struct err *err);
// Appends the __device__ variables, which keep their values between launches, to the list.
MUST_CHECK int cubin_globals(const struct bytes *cubin, struct cuda_global **list, size_t *count,
                             struct err *err);
// Copies the name of a function that candidates may not call, if the cubin calls one, to ret;
// otherwise ret becomes "".
MUST_CHECK int cubin_forbidden(const struct bytes *cubin, char ret[static 64], struct err *err);
// Sums up the bytes of machine code and of constants.
MUST_CHECK int cubin_sizes(const struct bytes *cubin, uint64_t *ret_code, uint64_t *ret_constants,
                           struct err *err);

#endif
