// The oracle: a child process with a CUDA context of its own. It runs the problem's reference and
// holds the outputs that are expected, so that these are never in memory that a candidate's device
// code can reach. It makes the inputs itself, from their name (struct input_set). It maps the
// memory of the caller's arenas in which outputs are, and so finds them where they were computed;
// nothing of its own is mapped by the caller.
//
// The serving mode of kcast-exec starts it, the GPU harness asks it, one request at a time. An
// error of the oracle is a failure of the machine, of kernelcast or of the problem, never the
// candidate's.
#ifndef EXECUTOR_GPU_ORACLE_H
#define EXECUTOR_GPU_ORACLE_H

#include "executor/gpu/gpu.h"
#include "executor/gpu/input_set.h"
#include "problem/problem.h"
#include <sys/types.h>

// The caller's end.
struct oracle {
    pid_t pid;                     // 0: there is no process
    int socket;                    // to the process; -1: none
    uint64_t shared[ARENA_CHUNKS]; // serials of the open arena's chunks that it has mapped
    size_t shared_count;
    struct digest setup; // of the problem and reference that the process uses
};

// One output that is to be compared with what is expected.
struct oracle_output {
    struct input_set set; // the input data
    uint64_t tensor;      // its number
    uint64_t offset;      // where it lies in the open arena of the caller's GPU, in bytes
};

#define ORACLE_OUTPUTS ((size_t)32) // that are compared at once

// What the comparison of one output has found.
struct oracle_answer {
    uint64_t hash[2];      // of what was compared, as kc_digest makes it
    uint64_t wrong, first; // how many elements are outside the bound, and the index of the first
    double got, expected;  // values of that element; got is NaN for floats of 8 and 16 bits
    double max_error;      // largest |error| / (u S); u: unit roundoff, S: scale of the element
};

// Forks the oracle for the GPU with this uuid. Must be called before this process has used the
// driver, because a process that has cannot be forked safely.
MUST_CHECK int oracle_start(struct oracle *oracle, const char *uuid, struct err *err);
// Waits until the oracle has its context. Returns its error when it failed to make one.
MUST_CHECK int oracle_ready(struct oracle *oracle, struct err *err);
// Kills and reaps the process. Does nothing for an oracle that was not started.
void oracle_stop(struct oracle *oracle);

// Has the oracle use this problem and the packed object of its reference, which are sent where it
// has not kept them, and waits until they are loaded.
MUST_CHECK int oracle_setup(struct oracle *oracle, const struct bytes *problem,
                            const struct bytes *reference, struct err *err);
// Has the process keep no memory that gpu->open has given back.
MUST_CHECK int oracle_drop_trimmed(struct oracle *oracle, const struct gpu *gpu, struct err *err);
// Compares `count` outputs, at most ORACLE_OUTPUTS, with what is expected: answers ret[0 .. count).
// They are of one case, and at most one of their contents is a timed launch's. Nothing may be
// running that was queued on gpu. Asking once for several outputs takes hardly longer than for one,
// since the GPU has to change between two contexts and back.
MUST_CHECK int oracle_check(struct oracle *oracle, const struct gpu *gpu,
                            const struct oracle_output *outputs, size_t count, uint64_t hash_key,
                            struct oracle_answer *ret, struct err *err);

// Runs the packed baseline on this input data in the oracle's process, where no code of a candidate
// has ever run. *ret_failed says whether it ended badly or not within limit_ns, wrote where it must
// not or disagrees with the reference; `why` is then a clause about it. After a failure the oracle
// may be of no more use.
MUST_CHECK int oracle_run_alone(struct oracle *oracle, const struct bytes *baseline,
                                const struct input_set *set, uint64_t limit_ns, bool *ret_failed,
                                char why[static ERR_TEXT_MAX], struct err *err);

#endif
