// What a series of measurements of a benchmark came to: shared by the CPU's and the GPU's benchmarks.
#ifndef TESTS_BENCH_TALLY_H
#define TESTS_BENCH_TALLY_H

#include "client/pool.h"
#include "client/problem_dir.h"
#include <stddef.h>
#include <stdint.h>

struct tally {
    size_t runs;
    size_t verdict[16]; // by enum verdict
    double *log2;       // estimates, in order of arrival
    double *half_width; // of their intervals
    size_t count;       // of both
    double held_s;      // of the device, altogether
    double seconds;     // wall time, from the first submission to the last verdict
    uint64_t launches;
    double baseline_ns; // median of the last result
};

// Ends the program with the sentence.
void die(const struct err *err) __attribute__((noreturn));

// Measures candidate[0 .. runs), each anew, all submitted at once. max_launches of the specs: 0 leaves the
// daemon's; otherwise no precision is enough, so that so many are made. Release with tally_release.
void tally_run(struct pool *pool, struct tally *tally, const struct problem_dir *dir,
               const struct digest *candidate, size_t runs, uint64_t max_launches);
void tally_release(struct tally *tally);
void tally_print(const char *name, const struct tally *tally);
// Standard deviation of the estimates, as a share of the ratio.
double tally_sd(const struct tally *tally);
// Median estimate as a ratio.
double tally_median(const struct tally *tally);

#endif
