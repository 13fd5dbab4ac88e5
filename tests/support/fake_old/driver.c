// A libcuda.so.1 that is too old: it has only these two functions.
#include "executor/gpu/driver.h"

#define CALL(name, ...)                                                                            \
    __attribute__((visibility("default"))) cu_result name(__VA_ARGS__);                            \
    cu_result name(__VA_ARGS__)

CALL(cuInit, unsigned flags)
{
    return flags == 0 ? CU_OK : 1;
}

CALL(cuDriverGetVersion, int *ret)
{
    *ret = 9000;
    return CU_OK;
}
