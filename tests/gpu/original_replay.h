// One recording as the executor replays it, without a measurement round it: the problem's first
// benchmark case, with inputs that follow from a seed, which come from and go to files so that
// another process can have the same. tests/gpu/originals.c alone uses it.
#ifndef TESTS_GPU_ORIGINAL_REPLAY_H
#define TESTS_GPU_ORIGINAL_REPLAY_H

#include "executor/gpu/input_set.h"
#include "executor/gpu/program/program.h"

struct original_replay {
    struct gpu gpu;
    struct problem *problem;
    struct tensor_sizes sizes;
    struct guarded_buffer tensor[PROBLEM_TENSOR_MAX];
    cu_pointer pristine[PROBLEM_TENSOR_MAX]; // what in-out tensors hold before a run; 0: no copy
    struct program *program;
    cu_event begin, end;
};

// Opens the GPU, draws the inputs there and makes the launches of the packed object.
// original_replay_close is needed also after a failure. The object must outlive *ret.
MUST_CHECK int original_replay_open(struct original_replay *ret, const char *gpu,
                                    const struct bytes *problem, const struct bytes *object,
                                    uint64_t seed, struct err *err);
void original_replay_close(struct original_replay *replay);

// Writes what each input and in-out tensor holds before a run to FOLDER/NAME.in.
MUST_CHECK int original_replay_write_inputs(struct original_replay *replay, const char *folder,
                                            struct err *err);
// Runs the launches once, from memory that holds no result, and writes what each output and in-out
// tensor holds then to FOLDER/NAME.replayed.
MUST_CHECK int original_replay_run(struct original_replay *replay, const char *folder,
                                   struct err *err);
// Times so many runs, each as the executor does with a problem whose cache is cold: memory put
// back, the cache overwritten, and then the launches between two events.
MUST_CHECK int original_replay_time(struct original_replay *replay, size_t count, double *ret_ns,
                                    struct err *err);

#endif
