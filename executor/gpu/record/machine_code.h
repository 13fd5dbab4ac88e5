// The instruction mix of what was recorded, for forecasts. executor/gpu/record/record.c calls it.
#ifndef EXECUTOR_GPU_RECORD_MACHINE_CODE_H
#define EXECUTOR_GPU_RECORD_MACHINE_CODE_H

#include "executor/gpu/compile/jail.h"
#include "proto/messages.h"
#include <stddef.h>

// Appends the features sass_… (executor/gpu/compile/sass.h) of the image that the case's kernel
// with the most threads is in, which the jail disassembles. Appends nothing where the toolkit has
// no disassembler, the image is a library's, or the jail cannot be had: a forecast does without.
void record_machine_code(const struct cuda_recording *recording, const struct recorded_case *of,
                         const struct compile_plan *plan, struct cuda_jail *jail,
                         struct fact **list, size_t *count);

#endif
