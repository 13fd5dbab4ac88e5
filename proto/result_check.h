// Whether a result can be true: its numbers are within what physics and the method of measuring
// allow, and its parts agree with each other. Everybody who takes a result from somebody else asks
// this: the daemon of its executors and of its own disk, the client of its daemons. Pure functions.
#ifndef PROTO_RESULT_CHECK_H
#define PROTO_RESULT_CHECK_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"

#define RESULT_LOG2_MAX 40.0 // a speedup of 2^40 or its inverse is no measurement

// What a result has to be about.
struct result_expectation {
    struct digest problem;   // blob; zero: not known
    struct digest candidate; // of its source; zero: not known
    double precision_log2;   // that was asked for; NaN: not known
};

// Checks the result of a MEASURE job. A digest that the result does not name is fine. ERR_PROTOCOL
// with a sentence when
//   - a number is not finite, negative where that cannot be, or beyond what a measurement gives;
//   - the verdict is not known, or is a ratio without estimate, cases, launches or checked
//     launches;
//   - the verdict contradicts its interval: FASTER not above 0, SLOWER not below, INCONCLUSIVE not
//     around it, EQUIVALENT further from it than the precision allows;
//   - the speedup is not the weighted mean of the cases' speedups, has another number of blocks or
//     a wider interval than they have together, or contradicts their times;
//   - the times of the first case are not those of the result;
//   - a ratio has an error above its bound, or a candidate that did not compile;
//   - it is about another problem or candidate than the expectation (NULL: any).
MUST_CHECK int result_check(const struct result *result,
                            const struct result_expectation *expectation, struct err *err);

// Checks the result of a COMPILE job: its verdict is known and no ratio, what compiled has an
// object, and the seconds are possible. ERR_PROTOCOL with a sentence otherwise.
MUST_CHECK int compiled_check(const struct compiled *compiled, struct err *err);

#endif
