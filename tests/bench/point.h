// Points of a problem's template and what the daemon measures for them. The benchmarks that compare
// kcast with a program that streams new data (tests/bench/bench_stream.c, tests/gpu/stream.c) share
// this. An error of the service ends the program with a sentence (die in tests/bench/samples.h).
#ifndef TESTS_BENCH_POINT_H
#define TESTS_BENCH_POINT_H

#include "client/pool/job_client.h"
#include "client/problem/problem_dir.h"
#include "problem/template.h"
#include <stdbool.h>
#include <stddef.h>

#define POINT_TURNS_MAX 32

// What one measurement says of one benchmark case; times are medians.
struct point_case {
    double log2; // of the speedup
    double baseline_ns, candidate_ns;
};

// One measurement.
struct point_measured {
    double log2;                                 // of the speedup over all cases
    struct point_case of_case[PROBLEM_CASE_MAX]; // in the order of problem.bench
};

struct point {
    size_t number;      // of the point in the template
    struct strbuf name; // "TILE=8 UNROLL=4"
    struct strbuf source;
    struct digest digest; // of the source
    struct point_measured measured[POINT_TURNS_MAX];
    size_t turns; // measurements that there are
};

// Looks for a point that the daemon calls correct and `usable` likes, from the one at `share` of
// the template (0 to 1) on, in large steps. usable, which may be NULL, is asked first. Returns
// false when none of many is. The point has one measurement then; point_release frees it.
bool point_find(struct point *ret, struct job_client *pool, const struct problem_dir *dir,
                struct template *template, double share,
                bool (*usable)(void *owner, const struct point *point), void *owner);
// Measures the point once more, with new contents. Returns false, after a sentence, when it has no
// speedup this time, or POINT_TURNS_MAX already.
bool point_measure(struct point *point, struct job_client *pool, const struct problem_dir *dir);
void point_release(struct point *point);

// The measurement of all turns together: medians of each number.
void point_median(const struct point *point, size_t cases, struct point_measured *ret);

#endif
