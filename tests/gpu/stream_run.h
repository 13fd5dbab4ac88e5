// The loop of a program that streams new data through sealed CUDA code: it draws new contents,
// copies them to the device, launches the arms and times each launch by events. Nothing here knows
// how kcast prepares, verifies or times. tests/gpu/stream.c compares the two.
//
// Design note. New contents are drawn on the host into a ring of buffers, as many as fit it. All
// launches on them are queued at once: each is preceded by copies of the inputs to the device and
// by a memset of three times the L2 cache, which take longer than the host needs to queue the
// launch, so that the device never waits for the host between the two events. The arms get the same
// contents, in an order that is drawn for each, and no content is used again.
#ifndef TESTS_GPU_STREAM_RUN_H
#define TESTS_GPU_STREAM_RUN_H

#include "problem/problem.h"
#include "tests/bench/draw.h"
#include "tests/gpu/stream_code.h"
#include "tests/gpu/stream_device.h"
#include <stdbool.h>

// One case of one problem.
struct stream_case {
    const struct problem *problem;
    const struct shape_case *shape;
    const struct stream_code *code[STREAM_ARMS_MAX]; // of the arms; the first is the baseline
    size_t arms;
    struct draw *draw[PROBLEM_TENSOR_MAX]; // of each input; NULL for outputs; borrowed
    size_t rounds;                         // contents
};

struct stream_times {
    double *ns[STREAM_ARMS_MAX]; // of each round; owned
    bool agrees
        [STREAM_ARMS_MAX]; // whether the outputs were, but for rounding, the baseline's for the
                           // same contents
};

// Runs the case with fresh memory on the device. The caller frees ret->ns[0 .. arms), also after an
// error.
MUST_CHECK int stream_run(struct stream_device *device, const struct stream_case *of,
                          struct stream_times *ret, struct err *err);

#endif
