// Part of executor/gpu/program.h: the arguments of one launch.
#ifndef EXECUTOR_GPU_PROGRAM_ARGUMENTS_H
#define EXECUTOR_GPU_PROGRAM_ARGUMENTS_H

#include "executor/gpu/program.h"

// Makes out->value, which is out's to free, and the parameters that point into it. 0, PROGRAM_UNFIT or
// an error.
MUST_CHECK int program_arguments(struct program *program, const struct cuda_kernel *kernel,
                                 const struct manifest_launch *launch, struct program_launch *out,
                                 const struct shape_case *shape,
                                 const struct program_tensors *tensors, struct err *err);

#endif
