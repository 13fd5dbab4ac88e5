// The instruction mix of machine code, read from what nvdisasm prints (SASS): what the compiler
// made of the PTX.
#ifndef EXECUTOR_GPU_COMPILE_SASS_H
#define EXECUTOR_GPU_COMPILE_SASS_H

#include "proto/messages.h"
#include <stddef.h>

#define SASS_TEXT_MAX ((size_t)8 << 20)

// Appends the features sass_…: instructions of all kernels together, as they stand, by class. text
// may be anything; what is no instruction is passed over, and where there is none nothing is
// appended.
void sass_features(const char *text, size_t len, struct fact **list, size_t *count);

#endif
