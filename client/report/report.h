// The numbers of a report, computed from the run state of a run: what was found, what it cost, what the
// forecasts were worth, what was missed. Pure: no I/O, no clock, no text for people. A struct
// report borrows from its run state, which must stay.
//
// Speedups are log2 throughout; a missing number is NaN.
#ifndef CLIENT_REPORT_REPORT_H
#define CLIENT_REPORT_REPORT_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_BAND_COUNT 10 // bands of a reliability diagram, each 0.1 wide
#define REPORT_BEST_MAX 12   // rows of the table of best candidates
#define REPORT_COVER_COUNT 3 // nominal 50, 80 and 95 %

// What became of a candidate: each is in exactly one row, in the order of tables.
// id, name in --json, meaning
#define REPORT_FATES(X)                                                                            \
    X(FASTER, "faster", "measured: faster than the baseline")                                      \
    X(EQUIVALENT, "equivalent", "measured: as fast as the baseline")                               \
    X(INCONCLUSIVE, "inconclusive", "measured: too close to call")                                 \
    X(SLOWER, "slower", "measured: slower than the baseline")                                      \
    X(WRONG, "wrong", "measured: wrong result")                                                    \
    X(CRASH, "crash", "measured: crashed")                                                         \
    X(TIMEOUT, "timeout", "measured: took too long")                                               \
    X(QUARANTINED, "quarantined", "measured: quarantined as impossible or tampering")              \
    X(REJECTED, "rejected", "rejected: breaks the rules for candidates")                           \
    X(COMPILE_ERROR, "compile-error", "does not compile")                                          \
    X(TRUSTED, "trusted", "not measured: the forecast was trusted")                                \
    X(SAME_OBJECT, "same-object", "not measured: same machine code as another")                    \
    X(SAME_SOURCE, "same-source", "not considered: same source as another")                        \
    X(LOST, "lost", "given up by the daemon")                                                      \
    X(PENDING, "pending", "not finished")

enum report_fate {
#define X(id, name, text) FATE_##id,
    REPORT_FATES(X)
#undef X
        FATE_COUNT
};

const char *report_fate_name(enum report_fate fate);
const char *report_fate_meaning(enum report_fate fate);
enum report_fate report_fate_of(const struct run_state_candidate *candidate);

// The best so far from `seconds` on. The first step is the baseline: candidate 0, speedup 0 (1×),
// at 0 seconds.
struct report_step {
    double seconds; // device-seconds spent
    double log2, lo, hi;
    uint64_t candidate;
    uint64_t considered, measured;
};

struct report_measured {
    uint64_t candidate;
    double seconds;      // device-seconds spent when its measurement arrived
    double log2, lo, hi; // NaN unless it is correct
    enum report_fate fate;
    bool audit;
};

// After this many candidates were considered, so many had been measured.
struct report_progress {
    uint64_t considered, measured;
};

// A forecast and what the measurement said, for a correct candidate.
struct report_pair {
    uint64_t candidate;
    double forecast;                 // mean of the forecast distribution
    double forecast_lo, forecast_hi; // its central 80 %
    double log2, lo, hi;             // measured
    bool audit;
};

struct report_band {
    size_t count;    // forecasts in this band with a known outcome
    double weight;   // they stand for so many (1 / propensity each)
    double forecast; // weighted mean of what was forecast
    double observed; // weighted share of what came true
    double lo, hi;   // 95 % interval of that share (Wilson, on the effective number)
};

struct report_reliability {
    struct report_band band[REPORT_BAND_COUNT]; // band i: [i/10, (i+1)/10), the last one closed
    size_t count;
    double weight;
    double ece; // expected calibration error: weighted mean of |observed - forecast| over the bands
    double brier;    // weighted mean squared error
    double observed; // weighted share of what came true
};

struct report_coverage {
    double nominal; // 0.5, 0.8, 0.95
    size_t inside, count;
};

// What the audit says of the candidates whose forecast was trusted (certify_false_omission, client/policy/certify.h).
struct report_missed {
    uint64_t trusted;    // decisions to trust, audited ones included
    uint64_t audited;    // of these, measured anyway, with an outcome
    uint64_t improvers;  // of these, better than the incumbent of their time
    uint64_t unmeasured; // trusted and not measured
    double share;        // estimated share of improvers among the trusted; NaN without an audit
    double share_hi;     // with 95 % confidence it is no greater
    double estimate;     // improvers among the unmeasured
    double estimate_hi;
};

// The forecasts against a forecaster that always says the average of what was measured before.
struct report_plain {
    size_t count;         // pairs with something measured before them
    size_t closer;        // of these, the forecast was nearer to the outcome
    double error;         // mean |forecast - measured|, log2; NaN without
    double average_error; // the same of the average
    double lo, hi;        // 95 % interval of the share `closer` (Wilson)
};

struct report {
    const struct run_state *run_state;
    const struct run_state_candidate *best; // the incumbent; NULL without one
    struct estimate speedup;                // of best, from its replication; zeroed without one
    bool any_correct;                       // some candidate was measured as correct
    struct report_step *step;               // the baseline, then every incumbent
    size_t step_count;                      // at least 1
    struct report_measured *measured;       // in order of measuring
    size_t measured_count;
    struct report_progress *progress; // one per considered candidate, and (0, 0) at the start
    size_t progress_count;            // at least 1
    struct report_pair *pair;
    size_t pair_count;
    double pair_error; // median |forecast - measured|, log2; NaN without pairs
    double pair_rank;  // Spearman's rank correlation of forecast and measured; NaN below 3 pairs
    struct report_reliability correct; // of P(correct)
    struct report_reliability
        call; // of "improves, or not", by confidence; calls with confidence 0 are not in it
    size_t calls_without_record; // calls with confidence 0
    struct report_coverage cover[REPORT_COVER_COUNT];
    struct report_missed missed;
    struct report_plain plain;
    uint64_t top[REPORT_BEST_MAX]; // candidate numbers: the incumbent, then by measured speedup
    size_t top_count;
    uint64_t tally[FATE_COUNT]; // sums to run state->candidate_count
    uint64_t controls,
        controls_off; // A/A controls of all measurements; of these, interval without 0
    bool sandbox_off; // something was compiled or measured outside the sandbox
    double saving;    // considered / measured; NaN when nothing was measured
};

void report_init(struct report *report, const struct run_state *run_state);
void report_release(struct report *report);

// The figure to quote for a candidate: its replication's where there is one, else its first
// measurement's. NULL unless it was measured as correct.
const struct estimate *report_estimate(const struct run_state_candidate *candidate);
// The result that figure is from, or, without one, the first measurement's. NULL when it was not
// measured.
const struct result *report_result(const struct run_state_candidate *candidate);

#endif
