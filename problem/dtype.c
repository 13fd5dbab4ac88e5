#include "problem/dtype.h"

struct dtype_row {
    const char *name;      // in problem.json
    const char *c_name;    // in C; NULL: C problems do not have this type
    const char *cuda_name; // in CUDA C++
    size_t size;           // in bytes
    double roundoff;       // u of the error bound
};

static const struct dtype_row dtype_table[] = {
    [DTYPE_F32] = {"f32", "float", "float", 4, 0x1p-24},
    [DTYPE_F64] = {"f64", "double", "double", 8, 0x1p-53},
    [DTYPE_I32] = {"i32", "int32_t", "int", 4, 1.0},
    [DTYPE_I64] = {"i64", "int64_t", "long long", 8, 1.0},
    [DTYPE_U8] = {"u8", "uint8_t", "unsigned char", 1, 1.0},
    [DTYPE_F16] = {"f16", NULL, "__half", 2, 0x1p-11},
    [DTYPE_BF16] = {"bf16", NULL, "__nv_bfloat16", 2, 0x1p-8},
    [DTYPE_E4M3] = {"e4m3", NULL, "__nv_fp8_e4m3", 1, 0x1p-4},
    [DTYPE_E5M2] = {"e5m2", NULL, "__nv_fp8_e5m2", 1, 0x1p-3},
    [DTYPE_I8] = {"i8", NULL, "signed char", 1, 1.0},
};

static const char *const work_units[] = {
    [UNIT_F32] = "f32",   [UNIT_F64] = "f64", [UNIT_TF32] = "tf32", [UNIT_F16] = "f16",
    [UNIT_BF16] = "bf16", [UNIT_FP8] = "fp8", [UNIT_I8] = "i8",
};

size_t dtype_size(enum dtype dtype)
{
    return dtype_table[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return dtype_table[dtype].name;
}

const char *dtype_c_name(enum dtype dtype)
{
    return dtype_table[dtype].c_name;
}

const char *dtype_cuda_name(enum dtype dtype)
{
    return dtype_table[dtype].cuda_name;
}

double dtype_roundoff(enum dtype dtype)
{
    return dtype_table[dtype].roundoff;
}

const char *work_unit_name(enum work_unit unit)
{
    return work_units[unit];
}
