// What the parts of the GPU harness share: harness.c, harness_launch.c and harness_check.c. No
// other file includes this.
#ifndef EXECUTOR_GPU_HARNESS_WORDS_H
#define EXECUTOR_GPU_HARNESS_WORDS_H

#include "executor/gpu/harness.h"

// Where kernels leave results, as indices into the result words of the GPU (gpu->words).
#define WORD_HASH 0                                     // two words for each tensor
#define WORD_GUARD (WORD_HASH + PROBLEM_TENSOR_MAX * 2) // changed words; least zone with one
#define WORD_STAMP (WORD_GUARD + 2)                     // three before the launch, three after it
#define WORD_COUNT (WORD_STAMP + 6)
#define WORD_SUM WORD_COUNT // where GPU_READ puts its sum, which is not used

// Returns the name of the input data in the slot.
struct input_set gpu_harness_input_set(const struct gpu_harness *harness,
                                       const struct gpu_case *data, size_t slot);
// Queues copying one tensor to another of the same size.
MUST_CHECK int gpu_harness_copy(struct gpu_harness *harness, const struct guarded_buffer *to,
                                const struct guarded_buffer *from, struct err *err);
// Queues copying the slot's inputs to the live tensors.
MUST_CHECK int gpu_harness_choose_slot(struct gpu_harness *harness, size_t slot, struct err *err);

// The two checks after a launch. Both use the result words that the launch has left on the host.
// Checks that guards and inputs are unchanged.
MUST_CHECK int gpu_harness_check_memory(struct gpu_harness *harness, const struct gpu_case *data,
                                        bool candidate, struct err *err);
// Checks that the outputs are right.
MUST_CHECK int gpu_harness_check_outputs(struct gpu_harness *harness, struct gpu_case *data,
                                         enum arm_index arm, size_t slot, struct err *err);

#endif
