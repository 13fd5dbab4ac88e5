// What cuda/bench*.c share and nobody else sees.
#ifndef EXECUTOR_GPU_BENCH_WORDS_H
#define EXECUTOR_GPU_BENCH_WORDS_H

#include "executor/gpu/bench.h"

// Results that kernels leave in gpu->words.
#define WORD_HASH 0                                     // of tensor t: two words
#define WORD_GUARD (WORD_HASH + PROBLEM_TENSOR_MAX * 2) // changed words, first such zone
#define WORD_STAMP (WORD_GUARD + 2)                     // before the launch, after it
#define WORD_COUNT (WORD_STAMP + 6)
#define WORD_SUM WORD_COUNT // nobody reads it

// Which contents are in the slot.
struct oracle_content bench_content(const struct bench *bench, const struct bench_trial *trial,
                                    size_t slot);
// Queues: one tensor becomes as the other is.
MUST_CHECK int bench_copy(struct bench *bench, const struct area *to, const struct area *from,
                          struct err *err);
// Queues: the slot's inputs become the live ones.
MUST_CHECK int bench_choose_slot(struct bench *bench, size_t slot, struct err *err);

// After a launch, from the words that it left: whether it wrote where it must not, and whether its
// outputs are right.
MUST_CHECK int bench_check_damage(struct bench *bench, const struct bench_trial *trial,
                                  bool candidate, struct err *err);
MUST_CHECK int bench_check_outputs(struct bench *bench, struct bench_trial *trial,
                                   enum arm_index arm, size_t slot, struct err *err);

#endif
