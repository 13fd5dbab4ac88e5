// Looking into a cubin that came out of a jail. Its bytes are not trusted: every offset is checked,
// and what makes no sense is ERR_INVALID. What compiles sources and what takes recordings call it.
// It must not know how the cubin was made.
#ifndef EXECUTOR_GPU_COMPILE_CUBIN_H
#define EXECUTOR_GPU_COMPILE_CUBIN_H

#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stdbool.h>

#define CUBIN_PARAMETERS_MAX 256

// Whether the bytes begin as a cubin does.
bool is_cubin(const struct bytes *image);
// Checks what a driver would believe, which is not told how long the file is: tables, sections,
// segments, symbols and relocations lie inside, and all memory that a launch can write to belongs
// to variables, which cubin_globals names. ERR_INVALID says what is wrong.
MUST_CHECK int cubin_check(const struct bytes *cubin, struct err *err);
// Sets the number of a target, 90 for "sm_90" and "sm_90a". ERR_INVALID when it is none.
MUST_CHECK int cubin_target(const char *target, unsigned *ret, struct err *err);
// Sets the number of the architecture that the cubin is for: 90 for sm_90 and sm_90a.
MUST_CHECK int cubin_architecture(const struct bytes *cubin, unsigned *ret, struct err *err);
// Whether code for one architecture runs on a device of the other: of the same ten, and not newer.
bool cubin_runs_on(unsigned architecture, unsigned device);
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
// Overwrites by zeros the machine code of every kernel that none of these symbols names, so that an
// image of a large library, of which few kernels are launched, packs to little. The symbols are
// sorted as strcmp does. Functions that kernels call stay, and so does everything else, and all of
// what is no cubin. The caller checks the cubin afterwards.
void cubin_keep_kernels(struct bytes *cubin, const char *const *kept, size_t count);
// What a kernel takes.
struct cubin_usage {
    uint32_t registers;    // of a thread
    uint32_t stack_bytes;  // of a thread
    uint64_t shared_bytes; // of a block, static, without what the system takes
};
// Of the kernel with this symbol; NULL: the most of any.
MUST_CHECK int cubin_usage(const struct bytes *cubin, const char *symbol, struct cubin_usage *ret,
                           struct err *err);
// Sums up the bytes of machine code and of constants.
MUST_CHECK int cubin_sizes(const struct bytes *cubin, uint64_t *ret_code, uint64_t *ret_constants,
                           struct err *err);

#endif
