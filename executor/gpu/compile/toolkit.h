// Where the CUDA compiler is on this machine: NVRTC and the headers, and the disassembler.
#ifndef EXECUTOR_GPU_COMPILE_TOOLKIT_H
#define EXECUTOR_GPU_COMPILE_TOOLKIT_H

#include "common/err.h"

struct toolkit {
    char *root;     // "/usr/local/cuda-13.0": the folder that a jail has to see
    char *nvrtc;    // path of libnvrtc.so.*
    char *include;  // folder with cuda_fp16.h
    char *nvdisasm; // NULL: this toolkit has none
};

// Looks in $KCAST_CUDA_HOME, $CUDA_HOME, /usr/local/cuda, the highest /usr/local/cuda-*, and what
// scripts/install-toolkit.sh makes beside or above the program: toolkit/. All paths are real ones.
// ERR_NOT_FOUND names what to do.
MUST_CHECK int toolkit_find(struct toolkit *ret, struct err *err);
void toolkit_release(struct toolkit *toolkit);

#endif
