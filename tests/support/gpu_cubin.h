// Small cubins for the fake GPU and the fake driver of a recorder (tests/support/fake_gpu,
// tests/support/fake_capture), and fat binaries of them, without a compiler.
#ifndef TESTS_SUPPORT_GPU_CUBIN_H
#define TESTS_SUPPORT_GPU_CUBIN_H

#include "common/mem.h"

// A cubin for sm_90 with a kernel and, unless it is NULL, a variable of 4 bytes. It passes
// cubin_check. The caller's to clear.
struct bytes gpu_cubin(const char *kernel, const char *variable);

enum gpu_packing { GPU_PLAIN, GPU_LZ4, GPU_ZSTD };

// A fat binary with PTX for sm_80 and then the cubin, said to be for an architecture. The caller's
// to clear.
struct bytes gpu_fat_binary(const struct bytes *cubin, unsigned architecture,
                            enum gpu_packing packing);

#endif
