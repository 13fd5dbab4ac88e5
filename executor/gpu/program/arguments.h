// The arguments of one launch, in the form that the kernel's parameters have. A part of
// executor/gpu/program.c, which alone calls it.
#ifndef EXECUTOR_GPU_PROGRAM_ARGUMENTS_H
#define EXECUTOR_GPU_PROGRAM_ARGUMENTS_H

#include "executor/gpu/program/program.h"

// Allocates out->value and sets the parameters that point into it. The caller frees out->value,
// also after a failure. Returns 0, PROGRAM_UNFIT or an error.
MUST_CHECK int program_arguments(struct program *program, const struct cuda_kernel *kernel,
                                 const struct manifest_launch *launch, struct program_launch *out,
                                 const struct shape_case *shape,
                                 const struct program_tensors *tensors, struct err *err);

#endif
