// The instruction mix of machine code (SASS), read from the text that nvdisasm prints. Called by
// executor/gpu/compile/features.c. The text may be anything: it comes from the compile jail.
#ifndef EXECUTOR_GPU_COMPILE_SASS_H
#define EXECUTOR_GPU_COMPILE_SASS_H

#include "proto/messages.h"
#include <stddef.h>

#define SASS_TEXT_MAX ((size_t)8 << 20) // bytes

// Appends the features sass_… to the list: how many instructions of each class the text has, all
// kernels together, each instruction counted once. Lines without an instruction are ignored.
// Nothing is appended when there is no instruction at all.
void sass_features(const char *text, size_t len, struct fact **list, size_t *count);

#endif
