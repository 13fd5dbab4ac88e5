// What forecasts were worth: measures over a set of forecasts whose outcomes are known, each with
// an interval from a cluster bootstrap. Pure numbers; the forecasts' shape is that of
// proto/bins.h.
//
// Every row has a weight: an outcome that was seen with probability π stands for 1/π forecasts.
// Every measure is a function of the weights in which a row of weight 2 is the same as two rows,
// and none depends on the order of the rows: rows with equal keys are one step of a curve. (The
// calibration errors are the one exception to the first half: their correction for noise takes a
// row of weight 2 for one observation.)
#ifndef CLIENT_EVAL_SCORE_H
#define CLIENT_EVAL_SCORE_H

#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCORE_DRAWS 2000 // bootstrap draws that intervals are made of
#define SCORE_ROWS_MAX ((size_t)1 << 18)
#define SCORE_BAND_COUNT 10  // bands of equal weight of a calibration error
#define SCORE_P_MIN 1e-6     // a bin's probability counts as at least this in the log score
#define SCORE_BEST_SHARE 0.1 // "the best": so much of the whole

// id, name in --json, unit ("" for a share of 1 or a coefficient), higher is better, meaning
#define SCORE_METRICS(X)                                                                           \
    X(ACCURACY, "accuracy", "", true, "the likeliest bin is the measured one")                     \
    X(WITHIN_ONE, "within_one", "", true, "the likeliest bin is at most one off")                  \
    X(HALF_BRIER, "half_brier", "", false, "half the squared error of the bins")                   \
    X(CRPS, "crps", "log2", false, "continuous ranked probability score")                          \
    X(NLL, "nll", "nats", false, "minus log probability of the measured bin")                      \
    X(ECE_BIN, "ece_bin", "", false, "calibration error of the likeliest bin")                     \
    X(ECE_CORRECT, "ece_correct", "", false, "calibration error of P(correct)")                    \
    X(ECE_IMPROVES, "ece_improves", "", false, "calibration error of P(improves)")                 \
    X(ECE_CALL, "ece_call", "", false, "calibration error of the confidence in calls")             \
    X(AURC, "aurc", "", false, "area under risk over coverage, of calls")                          \
    X(AUGRC, "augrc", "", false, "area under generalised risk over coverage")                      \
    X(COVERAGE, "coverage_at_risk", "", true, "share of calls that can be trusted at the risk")    \
    X(TAU, "kendall_tau", "", true, "rank correlation (tau-b) of forecast and outcome")            \
    X(AUC, "auc_improves", "", true, "area under the ROC curve of P(improves)")                    \
    X(RECALL, "recall_best", "", true, "of the best tenth, share in the forecast's best tenth")

enum score_metric {
#define X(id, name, unit, higher, text) SCORE_##id,
    SCORE_METRICS(X)
#undef X
        SCORE_COUNT
};

const char *score_name(enum score_metric metric);
const char *score_unit(enum score_metric metric);
const char *score_meaning(enum score_metric metric);
bool score_higher_is_better(enum score_metric metric);

// One forecast and its outcome. What was not forecast is NaN (bins: has_bins is false), and the row
// does not count where it would be needed.
struct score_row {
    uint64_t cluster;       // rows with the same id belong together and are drawn together
    double weight;          // finite, > 0
    double p_correct;       // in [0, 1]
    double p_improves;      // in [0, 1]: correct, and faster than what it had to beat
    double confidence;      // in [0, 1]: that the call "improves" (p >= 1/2) "or not" is right;
                            // NaN: the larger of p_improves and 1 - p_improves
    double mean_log2;       // NaN with bins: their mean
    double bins[BIN_COUNT]; // sum 1, given that it is correct
    bool has_bins;
    bool correct;  // outcome
    bool improved; // outcome
    double log2;   // outcome, log2 of the speedup; finite when correct
};

// Definitions.
// Over rows that are correct: ACCURACY, WITHIN_ONE (of the likeliest bin, the lower one of equals;
//   without bins the one that holds mean_log2), HALF_BRIER, NLL, ECE_BIN (with bins only), CRPS
//   (Gneiting & Raftery 2007, JASA 102; exact for the density of proto/bins.h; |mean - outcome|
//   without bins), TAU (of the mean, Kendall 1945).
// ECE: bands of equal weight by the stated probability, mean |observed - stated|, less the bias
//   that noise gives it: E|N(gap, s²)| - |gap| with s² = o(1 - o) / (n - 1), n Kish's effective
//   number of the band; not below 0 (Kumar, Liang & Ma 2019, NeurIPS, for p = 1 in closed form).
//   ECE_CALL leaves out calls of confidence 0, which claim nothing.
// AURC, AUGRC, COVERAGE: calls in order of falling confidence; the loss is 1 for a wrong call. Risk
//   is the mean loss of those covered, generalised risk (Traub et al. 2024, NeurIPS) their summed
//   loss over all. Coverage runs continuously from 0 to 1; inside a step of equal confidences the
//   loss grows linearly. COVERAGE is the largest step at which the risk is at most `risk`.
// AUC: of improved against p_improves, ties count one half.
// RECALL: over rows with a mean, correct or not: of the weight of the correct rows in the best
//   SCORE_BEST_SHARE by outcome, the share that lies in the best SCORE_BEST_SHARE by mean. A step
//   across the border is in by the share that fits.

struct score_value {
    double value;  // NaN: not defined for these rows
    double lo, hi; // 95 % percentile interval; NaN with fewer than two clusters or few draws
    size_t rows;   // that it was computed from
};

struct score_options {
    double risk;   // for COVERAGE, in [0, 1)
    size_t draws;  // bootstrap draws; 0: no intervals
    uint64_t seed; // the same rows, draws and seed give the same intervals
    bool (*stop)(
        void *owner); // asked before every draw; true ends early, without intervals; NULL: never
    void *owner;
};

// Fills ret. A draw in which a measure is not defined is left out of its interval; when more than
// half are, there is no interval.
void score_compute(struct score_value ret[static SCORE_COUNT], const struct score_row *row,
                   size_t count, const struct score_options *options);

// Number of different clusters, and Kish's effective number (sum w)² / sum w².
size_t score_clusters(const struct score_row *row, size_t count);
double score_effective(const struct score_row *row, size_t count);

// CRPS of these bins for an outcome y, in log2 units.
double score_crps(const double p[static BIN_COUNT], double y);

// One band of a calibration error, for a reliability diagram.
struct score_band {
    double weight;    // 0: empty
    double stated;    // mean of what was stated
    double observed;  // share of what came true
    double effective; // Kish's number of its rows
};
// The bands of ECE_BIN, ECE_CORRECT, ECE_IMPROVES or ECE_CALL. Returns the number of rows in them.
size_t score_bands(struct score_band ret[static SCORE_BAND_COUNT], enum score_metric metric,
                   const struct score_row *row, size_t count);

// The steps of risk over coverage, in order of rising coverage.
struct score_step {
    double confidence; // of the step
    double coverage;   // up to and including it
    double risk;
};
// *ret is malloc'd, NULL when there are none. Returns how many.
size_t score_steps(struct score_step **ret, const struct score_row *row, size_t count);

#endif
