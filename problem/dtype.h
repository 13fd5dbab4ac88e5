// The element types of tensors, and the units against which work is counted. Reading a problem,
// generating inputs, verifying outputs and generating code use these tables.
#ifndef PROBLEM_DTYPE_H
#define PROBLEM_DTYPE_H

#include <stddef.h>

// C problems have the first five, cuda problems all of them.
enum dtype {
    DTYPE_F32,
    DTYPE_F64,
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_U8,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_E4M3,
    DTYPE_E5M2,
    DTYPE_I8
};

// The unit of a device whose peak the flops of a cuda problem are compared with.
enum work_unit { UNIT_F32, UNIT_F64, UNIT_TF32, UNIT_F16, UNIT_BF16, UNIT_FP8, UNIT_I8 };

size_t dtype_size(enum dtype dtype);             // in bytes
const char *dtype_name(enum dtype dtype);        // in problem.json: "f32", "bf16"
const char *dtype_c_name(enum dtype dtype);      // "float", "int32_t"; NULL for cuda-only types
const char *dtype_cuda_name(enum dtype dtype);   // "__nv_bfloat16", "long long"
double dtype_roundoff(enum dtype dtype);         // u of the error bound; 1 for integers
const char *work_unit_name(enum work_unit unit); // "bf16"

#endif
