// Why a CUDA source does not compile, in one sentence: from how the compiler ended in the jail and
// from what it said. Called by executor/gpu/compile/compile.c. Nothing of what the compiler says is
// trusted to be printable.
#ifndef EXECUTOR_GPU_COMPILE_REFUSAL_H
#define EXECUTOR_GPU_COMPILE_REFUSAL_H

#include "executor/gpu/compile/jail.h"
#include "proto/messages.h"
#include <stdbool.h>

// Whether the compiler was ended when its processor time was used up.
bool refusal_is_slow(const struct compile_plan *plan, const struct cuda_jail_report *report);
// Refuses the source when the compiler did not come to its end. A compiler that ran out of wall
// time alone is not the source's fault and is not for here.
void refusal_by_end(struct compiled *compiled, const struct compile_plan *plan,
                    const struct cuda_jail_report *report);
// Refuses a source that the compiler refuses, with its first error, or else with its first words,
// or else with what NVRTC calls it. Keeps its log.
void refusal_by_log(struct compiled *compiled, const struct compile_plan *plan,
                    const struct nvrtc_output *output, const struct cuda_jail_report *report);

#endif
