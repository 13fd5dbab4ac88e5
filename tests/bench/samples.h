// The result of a series of measurements of a benchmark. The benchmarks of the CPU and of the GPU
// share this.
#ifndef TESTS_BENCH_SAMPLES_H
#define TESTS_BENCH_SAMPLES_H

#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include <stddef.h>
#include <stdint.h>

struct samples {
    size_t runs;
    size_t verdict[16]; // count by enum verdict
    double *log2;       // estimates in order of arrival; owned
    double *half_width; // half-widths of their intervals; owned
    size_t count;       // number of estimates
    double held_s;      // device-seconds of all runs
    double seconds;     // wall time from the first submission to the last verdict
    uint64_t launches;
    double baseline_ns; // median baseline time of the last result
};

// Prints the error and ends the program.
void die(const struct err *err) __attribute__((noreturn));

// Opens a client for jobs at the session's daemon. search names the search to the daemon.
int samples_open(struct job_client **ret, struct session *session, const char *search,
                 struct err *err);
// Gives problem.json, the reference and the baseline to the daemon.
void samples_add_problem(struct job_client *pool, const struct problem_dir *dir);
// Measures candidate[0 .. runs), none from a cache, all submitted at once. max_launches 0 leaves
// the daemon's limit; otherwise the precision is set so high that every run makes max_launches.
// samples_release() frees the result.
void samples_run(struct job_client *pool, struct samples *samples, const struct problem_dir *dir,
                 const struct digest *candidate, size_t runs, uint64_t max_launches);
void samples_release(struct samples *samples);
void samples_print(const char *name, const struct samples *samples);
// The standard deviation of the estimates, as a share of the ratio.
double samples_sd(const struct samples *samples);
// The median estimate as a ratio.
double samples_median(const struct samples *samples);

#endif
