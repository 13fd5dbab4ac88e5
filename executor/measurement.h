// One measurement as its parts see it: the plan, the cases, and what has been found out about the
// candidate so far. executor/measure.c owns it, executor/paired_run.c and the machine that runs the launches (a
// core or a GPU) read the plan and add what they find. Knows no machine.
#ifndef EXECUTOR_MEASUREMENT_H
#define EXECUTOR_MEASUREMENT_H

#include "common/err.h"
#include "common/stats.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"

// Beside 0 and errors: the candidate has failed, verdict and reason are set.
#define MEASURE_STOP 1
// Contents of a case that take turns.
#define MEASURE_CONTENTS 2

// The programs that are launched. The control is a second load of the baseline.
enum arm_index { ARM_REFERENCE, ARM_BASELINE, ARM_CANDIDATE, ARM_CONTROL, ARM_COUNT };

// One case of the problem: a check case, a hidden one or a benchmark case.
struct measure_case {
    const struct shape_case *shape; // the problem's or the list's of hidden ones
    uint64_t index;                 // among all cases: part of the key of its contents
    char *name;                     // "M=384 N=384 K=384"
    void *trial;                    // the machine's: its contents there
};

struct measurement {
    const struct measure_plan *plan; // borrowed
    struct problem *problem;         // owned
    struct stats_rng rng;            // poison, order, keys
    // What is reported.
    enum verdict verdict; // NONE while nothing is wrong with the candidate
    char *reason;
    uint64_t checks;               // launches of the candidate that were verified
    double max_error, error_bound; // of the candidate; NaN: nothing was compared
    double overhead_ns;            // of an empty launch; 0: not known
    struct accounts seconds;       // NaN: not there
};

// Parses the plan's problem. On failure nothing is held. rng_stream tells the random numbers of one
// kind of machine from those of another with the same seed.
MUST_CHECK int measurement_init(struct measurement *measurement, const struct measure_plan *plan,
                                uint64_t rng_stream, struct err *err);
void measurement_release(struct measurement *measurement);

// Sets verdict and reason (the first stays) and returns MEASURE_STOP.
int measurement_stop(struct measurement *measurement, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static inline bool tensor_is_input(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_OUT;
}

static inline bool tensor_is_output(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_IN;
}

#endif
