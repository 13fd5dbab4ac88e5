// Recordings for the fake GPU without an interpreter: for each case of a problem with the tensors
// x and y, the int parameter n and the float parameter a, one launch of a kernel of the fake
// (tests/support/fake_gpu/fake.h). Tests change what they need before they pack it.
#ifndef TESTS_SUPPORT_GPU_RECORDING_H
#define TESTS_SUPPORT_GPU_RECORDING_H

#include "executor/gpu/program/recording.h"

#define GPU_RECORDING_L2 ((size_t)1 << 20) // bytes of the fake's L2 cache, by which tensors lie

// Such a problem, y = a x, with one benchmark case (n = 2000) and one to check (n = 300).
extern const char gpu_recording_problem_text[];
// The same, read. problem_free frees it.
struct problem *gpu_recording_problem(void);

// Overwrites *ret, which message_clear with cuda_recording_message clears. `number`: 0 for a
// baseline, 1 for a candidate.
void gpu_recording_make(struct cuda_recording *ret, const struct problem *problem,
                        const char *kernel, unsigned number);
// The same for such a problem's reference, in double precision: x is widened, multiplied, and the
// magnitude of that is the error scale, all in one block.
void gpu_recording_reference(struct cuda_recording *ret, const struct problem *problem);
// Packed as an object, with the recording cleared. The caller's to clear.
struct bytes gpu_recording_pack(struct cuda_recording *recording);

// Gives a case the block as its last one, without pieces. The block lies behind the others.
struct recorded_block *gpu_recording_block(const struct cuda_recording *recording,
                                           struct recorded_case *of, size_t bytes);
// Gives a case the node as its last one, of this kind and nothing else.
struct recorded_node *gpu_recording_node(struct recorded_case *of, enum recorded_kind kind);
// The same, a fill of the first 16 bytes of y.
void gpu_recording_fill(struct recorded_case *of);
// Has a node come after another one, too.
void gpu_recording_after(struct recorded_node *node, uint64_t number);
// Takes all nodes from a case.
void gpu_recording_clear_nodes(struct recorded_case *of);
// Gives a case such fills instead of its nodes. The text says what each comes after, from the
// second on: in "0;;0 1" the second comes after the first, the third after nothing, and the fourth
// after the first two.
void gpu_recording_draw(struct recorded_case *of, const char *text);

#endif
