// The numbers of a report, computed from the run state of a run: what was found, what it cost, how
// good the forecasts were, how many improvements may have been missed. client/cmd/cmd_report.c and
// cmd_export.c compute one; the pages of client/report and client/eval read it. It does no I/O,
// reads no clock and writes no text for people. A struct report borrows from its run state, which
// must outlive it.
//
// Speedups are log2 throughout; a missing number is NaN.
#ifndef CLIENT_REPORT_REPORT_H
#define CLIENT_REPORT_REPORT_H

#include "client/policy/certify.h"
#include "client/report/run_counts.h"
#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_BAND_COUNT 10 // bands of a reliability diagram, each 0.1 wide
#define REPORT_BEST_MAX 12   // rows of the table of best candidates
#define REPORT_COVER_COUNT 3 // nominal 50, 80 and 95 %

// What became of a candidate. Each candidate is in exactly one row; the rows are in the order of
// the tables. Columns: id, name in --json, meaning.
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
    X(SAME_SOURCE, "same-source", "not measured: same source as another")                          \
    X(LOST, "lost", "given up by the daemon")                                                      \
    X(PENDING, "pending", "never decided, or not finished")

enum report_fate {
#define X(id, name, text) FATE_##id,
    REPORT_FATES(X)
#undef X
        FATE_COUNT
};
// The fate's name in --json, its meaning for people, and the fate of one candidate.

const char *report_fate_name(enum report_fate fate);
const char *report_fate_meaning(enum report_fate fate);
enum report_fate report_fate_of(const struct run_state_candidate *candidate);

// One step of the best speedup, which holds from `seconds` on. The first step is the baseline:
// candidate 0, log2 speedup 0, at 0 seconds.
struct report_step {
    double seconds;      // device-seconds spent by the whole search
    double wall_seconds; // of the whole search until then; NaN: not recorded
    double log2, lo, hi;
    uint64_t candidate;
    uint64_t considered, measured;
};

// A candidate with a result.
struct report_measured {
    uint64_t candidate;
    double seconds;      // device-seconds spent when its measurement arrived
    double log2, lo, hi; // NaN unless the result is correct
    enum report_fate fate;
    bool audit;
};

// How many candidates had been measured when this many had been considered.
struct report_progress {
    uint64_t considered, measured;
};

// A forecast and its measured outcome, for a correct candidate.
struct report_pair {
    uint64_t candidate;
    double forecast;                 // mean of the forecast distribution
    double forecast_lo, forecast_hi; // its central 80 %
    double log2, lo, hi;             // measured
    bool audit;
};

// One band of a reliability diagram.
struct report_band {
    size_t count;    // forecasts in this band with a known outcome
    double weight;   // sum of 1 / propensity: how many forecasts they stand for
    double forecast; // weighted mean of the forecast probabilities
    double observed; // weighted share of what came true
    double lo, hi;   // 95 % interval of `observed` (Wilson, on the effective number)
};

struct report_reliability {
    struct report_band band[REPORT_BAND_COUNT]; // band i: [i/10, (i+1)/10); the last one includes 1
    size_t count;
    double weight;
    // Expected calibration error: weighted mean of |observed - forecast| over the bands.
    double ece;
    double brier;    // weighted mean squared error
    double observed; // weighted share of what came true
};

// How often the outcome lay in the forecast's central interval.
struct report_coverage {
    double nominal; // 0.5, 0.8, 0.95
    size_t inside, count;
};

// What the audit says of the candidates whose forecast was trusted (certify_false_omission in
// client/policy/certify.h).
struct report_missed {
    uint64_t trusted;    // decisions to trust, audited ones included
    uint64_t audited;    // trusted, but measured for the audit, with an outcome
    bool shown;          // there are audits enough to show the estimates
    uint64_t improvers;  // audited and better than the incumbent of their time
    uint64_t unmeasured; // trusted and not measured
    double share;        // estimated share of improvers among the trusted; NaN without an audit
    double share_hi;     // upper end of its one-sided interval of FALSE_OMISSION_CONFIDENCE
    double estimate;     // estimated improvers among the unmeasured
    double estimate_hi;
    char text[CERTIFY_TEXT]; // all this as a sentence without a full stop
};

// The forecasts against a forecaster that always says the average of what was measured before.
struct report_against_average {
    size_t count;         // pairs before which something was measured
    size_t closer;        // pairs whose forecast was nearer to the outcome than the average
    double error;         // mean |forecast - measured|, log2; NaN when count is 0
    double average_error; // mean |average - measured|, log2; NaN when count is 0
    double lo, hi;        // 95 % interval of closer / count (Wilson)
};

struct report {
    const struct run_state *run_state;
    const struct run_state_candidate *best; // the incumbent; NULL when there is none
    struct estimate speedup;          // of best, from its replication; zeroed when there is none
    bool any_correct;                 // some candidate was measured as correct
    struct report_step *step;         // owned; the baseline, then every incumbent
    size_t step_count;                // at least 1
    struct report_measured *measured; // owned; in order of measuring
    size_t measured_count;
    struct report_progress *progress; // owned; (0, 0), then one for each candidate
    size_t progress_count;            // at least 1
    struct report_pair *pair;
    size_t pair_count;
    double pair_error; // median |forecast - measured|, log2; NaN without pairs
    double pair_rank;  // Spearman's rank correlation of forecast and measured; NaN below 3 pairs
    struct report_reliability correct; // of P(correct)
    // Of the call "improves" or "does not improve", by its confidence. Calls of confidence 0 are
    // left out.
    struct report_reliability call;
    size_t calls_without_record; // calls of confidence 0
    struct report_coverage cover[REPORT_COVER_COUNT];
    struct report_missed missed;
    struct report_against_average against_average;
    uint64_t top[REPORT_BEST_MAX]; // candidate numbers: the incumbent, then by measured speedup
    size_t top_count;
    uint64_t fate_count[FATE_COUNT]; // candidates by fate; the sum is run_state->candidate_count
    uint64_t controls;               // A/A controls, of which many measurements may have one
    uint64_t controls_off;           // of these, those whose interval does not hold 0
    bool sandbox_off;                // something was compiled or measured outside the sandbox
    struct run_counts counts;        // what became of the candidates, and what forecasts saved
};

// Computes everything. report_release frees it; the run state stays the caller's.
void report_init(struct report *report, const struct run_state *run_state);
void report_release(struct report *report);

// The estimate to show for a candidate: that of its replication if there is one, else that of its
// first measurement. NULL when it was not measured as correct. It belongs to the run state.
const struct estimate *report_estimate(const struct run_state_candidate *candidate);
// The result that report_estimate() comes from. Without an estimate it is the first measurement's
// result, or NULL when the candidate was not measured.
const struct result *report_result(const struct run_state_candidate *candidate);

#endif
