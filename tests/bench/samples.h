// What a series of measurements of a benchmark came to: shared by the CPU's and the GPU's benchmarks.
#ifndef TESTS_BENCH_SAMPLES_H
#define TESTS_BENCH_SAMPLES_H

#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include <stddef.h>
#include <stdint.h>

struct samples {
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

// Opens a client for jobs at the session's daemon. search names the search to the daemon.
int samples_open(struct job_client **ret, struct session *session, const char *search,
                 struct err *err);
// Gives problem.json, the reference and the baseline to the daemon.
void samples_add_problem(struct job_client *pool, const struct problem_dir *dir);
// Measures candidate[0 .. runs), each anew, all submitted at once. max_launches of the specs: 0 leaves the
// daemon's; otherwise no precision is enough, so that so many are made. Release with samples_release.
void samples_run(struct job_client *pool, struct samples *samples, const struct problem_dir *dir,
                 const struct digest *candidate, size_t runs, uint64_t max_launches);
void samples_release(struct samples *samples);
void samples_print(const char *name, const struct samples *samples);
// Standard deviation of the estimates, as a share of the ratio.
double samples_sd(const struct samples *samples);
// Median estimate as a ratio.
double samples_median(const struct samples *samples);

#endif
