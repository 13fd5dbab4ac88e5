// A program that streams new data through code for a core: a loop that gets new inputs by a
// generator of its own (tests/bench/draw.h) and calls two arms in turns, with nothing in between:
// no sandbox, no poison. It times each call by the thread's processor clock; a call is made again,
// with new data, when another program had the core between the first new byte and the result, and a
// block in which that does not help does not count. tests/bench/bench_stream.c compares it with
// what the daemon measures. Of the project it uses the contract alone: shapes, distributions, and
// how an entry is called. It must not know how kcast measures. An error ends the program with a
// sentence (die in tests/bench/samples.h).
#ifndef TESTS_BENCH_STREAM_LOOP_H
#define TESTS_BENCH_STREAM_LOOP_H

#include "tests/bench/draw.h"
#include "tests/bench/point.h"
#include <stdint.h>

// As problem_glue (problem/problem.h) defines it.
typedef void entry_function(void *const *pointer, const int64_t *integer, const double *scalar);

// How new data comes to the inputs.
enum stream_filler {
    FILLED_IN_PLACE,  // they are drawn where they are
    FILLED_BY_COPY,   // they are drawn elsewhere and copied
    FILLED_ELSEWHERE, // the same by another process on the same core, in memory that both share
    FILLERS
};

struct stream_loop {
    const struct problem *problem;         // borrowed
    entry_function *arm[2];                // baseline, candidate; set by the owner
    uint64_t rounds;                       // blocks A B B A of a run; set by the owner
    struct draw *draw[PROBLEM_TENSOR_MAX]; // of inputs; NULL for outputs
    double sum;       // of what was read of the results, so that nothing may leave it out
    uint64_t blocks;  // so far
    uint64_t counted; // of these: in the others another program had the core
    // What it cost this process, so far, to ask another one for data and to be woken by it.
    double handover_ns;
    uint64_t handovers;
};

// Makes the generators of the problem's inputs, with random seeds. stream_loop_close frees them.
void stream_loop_open(struct stream_loop *loop, const struct problem *problem);
void stream_loop_close(struct stream_loop *loop);
// Runs `rounds` blocks of one shape in fresh memory, on the core where it happens to be. *ret
// becomes the median of the blocks' ratios and of the times of each arm; NaN when less than a
// quarter of the blocks count.
void stream_loop_run(struct stream_loop *loop, const struct shape_case *shape,
                     enum stream_filler filler, struct point_case *ret);

#endif
