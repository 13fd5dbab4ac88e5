// Fat binaries: what the CUDA runtime gives to the driver, cubins and PTX for several architectures
// in one container, compressed or not. The bytes come from a candidate's process and are not
// trusted. executor/gpu/record/record.c takes the one cubin out that the driver would choose. Pure.
#ifndef EXECUTOR_GPU_RECORD_FAT_BINARY_H
#define EXECUTOR_GPU_RECORD_FAT_BINARY_H

#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

// Whether the bytes begin as a fat binary does.
bool is_fat_binary(const struct bytes *image);
// Copies the cubin for a device of this architecture, 90 for sm_90, out of a fat binary:
// the one for just this device, else the newest of those that run on it. The caller clears *ret,
// which has not been looked into. ERR_INVALID: the container is damaged. ERR_UNSUPPORTED: it has no
// code for the device; the sentence says what it has and what to change. ERR_LIMIT: the cubin is
// larger than `most` bytes.
MUST_CHECK int fat_binary_cubin(const struct bytes *image, unsigned device, size_t most,
                                struct bytes *ret, struct err *err);

#endif
