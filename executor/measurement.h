// The state of one measurement that its parts share: the plan, the cases, and what is known about
// the candidate so far. executor/measure.c owns it. executor/comparison.c and the machine that runs
// the launches (a core or a GPU) read the plan and add their findings. It must not know the
// machine.
#ifndef EXECUTOR_MEASUREMENT_H
#define EXECUTOR_MEASUREMENT_H

#include "common/clock.h"
#include "common/err.h"
#include "common/stats.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"

// Returned beside 0 and errors: the candidate has failed; verdict and reason are set.
#define MEASURE_STOP 1
// Contents (sets of input values) of a case on which it is verified before it is timed; the last is
// drawn from further distributions, if there are any (executor/input_values.h). Those that are
// timed have greater numbers.
#define MEASURE_CONTENTS 2

// The programs that are launched. The control is a second load of the baseline.
enum arm_index { ARM_REFERENCE, ARM_BASELINE, ARM_CANDIDATE, ARM_CONTROL, ARM_COUNT };

// A case of the problem: a check case, a hidden case or a benchmark case.
struct measure_case {
    const struct shape_case *shape; // borrowed from the problem or from the list of hidden cases
    uint64_t index;                 // number among all cases: part of the key of its contents
    char *name;                     // parameters as text, "M=384 N=384 K=384"
    void *data;                     // made and released by the machine (measure_ops.data_create)
};

struct measurement {
    const struct measure_plan *plan; // borrowed
    struct problem *problem;         // owned
    struct stats_rng rng;            // draws poison, order of blocks and keys
    // Findings, all reported:
    enum verdict verdict; // VERDICT_NONE while the candidate has not failed
    char *reason;         // sentence to the verdict, owned
    // Launches of the candidate whose outputs the reference has judged. Those that were compared
    // with the baseline's alone do not count.
    uint64_t checks;
    double max_error, error_bound; // worst error of the candidate and its bound; NaN: none compared
    double overhead_ns;            // duration of an empty launch; 0: not known
    double launched_seconds;       // that launches of the candidate have taken in all
    struct accounts seconds;       // by phase; NaN: the phase was not reached
};

// Parses the plan's problem. On failure nothing has to be released. rng_stream separates the random
// numbers of different kinds of machine that get the same seed.
MUST_CHECK int measurement_init(struct measurement *measurement, const struct measure_plan *plan,
                                uint64_t rng_stream, struct err *err);
void measurement_release(struct measurement *measurement);

// Sets verdict and reason unless they are set already. Returns MEASURE_STOP.
int measurement_stop(struct measurement *measurement, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Adds a launch of the candidate that began at start_ns and has ended now. MEASURE_STOP when all of
// them have taken so long that verification and timing would not end in any useful time, although
// none has exceeded its limit.
int measurement_add_launch(struct measurement *measurement, uint64_t start_ns,
                           const char *case_name);

// Returns the seconds since a reading of the system clock.
static inline double seconds_since(uint64_t start_ns)
{
    return clock_seconds(clock_now_ns(&clock_system) - start_ns);
}

static inline bool tensor_is_input(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_OUT;
}

static inline bool tensor_is_output(const struct tensor *tensor)
{
    return tensor->direction != DIRECTION_IN;
}

// Adds the time since `start`, by the system's clock in nanoseconds, to a phase of
// measurement->seconds, which has now been reached.
void measurement_spend(double *phase, uint64_t start);

#endif
