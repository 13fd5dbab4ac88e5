// Finding the CUDA compiler on this machine: NVRTC, its headers, the assembler and the
// disassembler. The jail and the probe call it. It loads nothing.
#ifndef EXECUTOR_GPU_COMPILE_TOOLKIT_H
#define EXECUTOR_GPU_COMPILE_TOOLKIT_H

#include "common/err.h"

// All paths are absolute and without links.
struct toolkit {
    char *root;      // "/usr/local/cuda-13.0": the folder that a jail must be able to read
    char *nvrtc;     // path of libnvrtc.so.*
    char *include;   // folder with cuda_fp16.h
    char *nvjitlink; // path of libnvJitLink.so.*, which assembles PTX; NULL: there is none
    char *nvdisasm;  // path of the disassembler; NULL: this toolkit has none
};

// Looks in $KCAST_CUDA_HOME, $CUDA_HOME, /usr/local/cuda, the highest /usr/local/cuda-*, and in the
// folder toolkit/ that scripts/install-toolkit.sh makes beside or above the program. Only the first
// is used when KCAST_CUDA_HOME is set. ERR_NOT_FOUND says what to do. The caller releases *ret.
MUST_CHECK int toolkit_find(struct toolkit *ret, struct err *err);
void toolkit_release(struct toolkit *toolkit);

#endif
