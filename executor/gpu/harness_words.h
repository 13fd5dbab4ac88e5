// What the parts of the GPU harness share: harness.c, harness_prepare.c, harness_launch.c,
// harness_time.c, harness_check.c, harness_handover.c and harness_memory.c. No other file includes
// this.
#ifndef EXECUTOR_GPU_HARNESS_WORDS_H
#define EXECUTOR_GPU_HARNESS_WORDS_H

#include "executor/gpu/harness.h"
#include "proto/verdict.h"

// Where kernels leave results, as indices into the result words of the GPU (gpu->words).
#define STAMP_WORDS 4                                     // of a stamp
#define WORD_STAMP 0                                      // two stamps, of kc_stamp
#define WORD_DIGEST (WORD_STAMP + 2 * STAMP_WORDS)        // four words for each tensor
#define WORD_INPUT (WORD_DIGEST + PROBLEM_TENSOR_MAX * 4) // changed places of each tensor
#define WORD_GUARD (WORD_INPUT + PROBLEM_TENSOR_MAX)      // two words of gpu_pattern_check
#define WORD_FLUSH (WORD_GUARD + 2)                       // changed words of the flushing memory
#define WORD_HANDOVER (WORD_FLUSH + 1)                    // two words of gpu_pattern_check
#define WORD_COUNT (WORD_HANDOVER + 2)

// Returns the name of this content's input data.
struct input_set gpu_harness_input_set(const struct gpu_harness *harness,
                                       const struct gpu_case *data, uint64_t content);

// Appends what must hold the pattern when the arm has been launched and its scratch memory has not
// been filled again: the guards of tensors and of its scratch memory, and the other arms' scratch
// memory. The guards of tensor t are zones 2 t and 2 t + 1.
MUST_CHECK int gpu_harness_zones(const struct gpu_harness *harness, enum arm_index arm,
                                 struct gpu_zones *zones, struct err *err);
// Queues bringing about the state that every run must find.
MUST_CHECK int gpu_harness_prepare(struct gpu_harness *harness, const struct gpu_case *data,
                                   enum arm_index arm, uint64_t content, struct err *err);
// Queues filling with the pattern where outputs are kept.
MUST_CHECK int gpu_harness_forget_kept(struct gpu_harness *harness, struct err *err);
// Fills harness->elsewhere, as the arenas are placed now.
MUST_CHECK int gpu_harness_list_elsewhere(struct gpu_harness *harness, struct err *err);

// The two checks after a launch. Both use the result words that the launch has left on the host.
// Checks that guards and inputs are unchanged.
MUST_CHECK int gpu_harness_check_memory(struct gpu_harness *harness, const struct gpu_case *data,
                                        enum arm_index arm, uint64_t content,
                                        const struct gpu_zones *zones, struct err *err);
// Takes the digests. Of verification, outputs that the oracle has not accepted before wait for it.
void gpu_harness_note_outputs(struct gpu_harness *harness, struct gpu_case *data,
                              enum arm_index arm, uint64_t content);
// The arm has written where it must not, on this content: the candidate's verdict, or as
// gpu_harness_baseline_failed.
MUST_CHECK int gpu_harness_wrote_outside(struct gpu_harness *harness, const struct gpu_case *data,
                                         enum arm_index arm, uint64_t content, struct err *err);

// Checks that both stamps of the launch are what kc_stamp wrote.
MUST_CHECK int gpu_harness_check_stamps(struct gpu_harness *harness, const struct gpu_case *data,
                                        enum arm_index arm, uint64_t content, struct err *err);
// Notes what an untimed launch took, by its stamps, if it was the baseline's.
void gpu_harness_note_time(const struct gpu_harness *harness, struct gpu_case *data,
                           enum arm_index arm);
// Reads what a timed launch took.
MUST_CHECK int gpu_harness_read_time(struct gpu_harness *harness, struct gpu_case *data,
                                     enum arm_index arm, struct gpu_launch_time *ret,
                                     struct err *err);

// The candidate has failed on a content of the case: sets the verdict, and a reason of the subject,
// a clause that says how, and which case it was. Returns MEASURE_STOP.
int gpu_harness_stop(struct gpu_harness *harness, const struct gpu_case *data, uint64_t content,
                     enum verdict verdict, const char *subject, const char *what);
// The baseline has failed (verdict WRONG or CRASH, with a clause that says how). When the candidate
// has run in this process, the oracle runs the baseline alone. If it fails there too, or if there
// was no candidate, this is an error; otherwise the candidate gets the verdict.
MUST_CHECK int gpu_harness_baseline_failed(struct gpu_harness *harness, const struct gpu_case *data,
                                           uint64_t content, enum verdict verdict,
                                           enum err_code code, const char *what, struct err *err);

#endif
