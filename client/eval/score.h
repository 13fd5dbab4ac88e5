// Scores of forecasts whose outcomes are known: several measures, each with an interval from a
// cluster bootstrap. It computes on numbers alone; the forecasts have the bins of proto/bins.h.
// client/eval calls it.
//
// Every row has a weight: an outcome that was observed with probability p stands for 1/p forecasts.
// In every measure a row of weight 2 counts as two rows. The calibration errors are the one
// exception: their correction for noise takes a row of weight 2 as one observation. No measure
// depends on the order of the rows, because rows with equal keys form one step of a curve.
#ifndef CLIENT_EVAL_SCORE_H
#define CLIENT_EVAL_SCORE_H

#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCORE_DRAWS 2000 // bootstrap draws of an interval
#define SCORE_ROWS_MAX ((size_t)1 << 18)
#define SCORE_BAND_COUNT 10  // bands of equal weight of a calibration error
#define SCORE_P_MIN 1e-6     // smallest probability of a bin in the log score
#define SCORE_BEST_SHARE 0.1 // share of the candidates that counts as "the best"

// Columns: id, name in --json, unit ("" for a share of 1 or a coefficient), whether higher is
// better, meaning.
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

// The columns of the table above.
const char *score_name(enum score_metric metric);
const char *score_unit(enum score_metric metric);
const char *score_meaning(enum score_metric metric);
bool score_higher_is_better(enum score_metric metric);

// One forecast and its outcome. A number that was not forecast is NaN, and has_bins is false
// without bins. A row does not count in measures that need what it lacks.
struct score_row {
    uint64_t cluster;  // rows of the same cluster are drawn together
    double weight;     // finite, > 0
    double p_correct;  // in [0, 1]
    double p_improves; // in [0, 1]: that it is correct and faster than the incumbent
    // In [0, 1]: the probability that the call is right, where the call is "improves" for
    // p_improves >= 1/2 and else "does not improve". NaN stands for the larger of
    // p_improves and 1 - p_improves.
    double confidence;
    double mean_log2;       // log2; NaN: the mean of the bins
    double bins[BIN_COUNT]; // given that it is correct; the sum is 1
    bool has_bins;
    bool correct;  // outcome
    bool improved; // outcome
    double log2;   // outcome: log2 speedup; finite when correct
};

// Definitions of the measures.
//
// Only over rows that are correct: ACCURACY, WITHIN_ONE, HALF_BRIER, NLL, ECE_BIN, CRPS and TAU.
// ACCURACY and WITHIN_ONE look at the likeliest bin, the lower one of equals; without bins at the
// bin that holds mean_log2. HALF_BRIER, NLL and ECE_BIN need bins. CRPS is exact for the density of
// proto/bins.h (Gneiting & Raftery 2007, JASA 102); without bins it is |mean - outcome|. TAU is
// Kendall's tau-b of the mean (1945).
//
// ECE_*: bands of equal weight by the stated probability. The error is the mean of |observed -
// stated|, less the bias that noise gives it: E|N(gap, s²)| - |gap| with s² = o(1 - o) / (n - 1),
// where o is the observed share and n is Kish's effective number of the band. The result is not
// below 0 (Kumar, Liang & Ma 2019, NeurIPS, for p = 1 in closed form). ECE_CALL leaves out calls of
// confidence 0, which claim nothing.
//
// AURC, AUGRC, COVERAGE: calls in order of falling confidence, where a wrong call has loss 1. The
// risk is the mean loss of the covered calls. The generalised risk is their summed loss over all
// calls (Traub et al. 2024, NeurIPS). Coverage runs continuously from 0 to 1; inside a step of
// equal confidences the loss grows linearly. COVERAGE is the largest step at which the risk is at
// most `risk`.
//
// AUC: area under the ROC curve of p_improves for the event `improved`; ties count one half.
//
// RECALL: over all rows with a mean, correct or not. Of the weight of the correct rows in the best
// SCORE_BEST_SHARE by outcome, it is the share that lies in the best SCORE_BEST_SHARE by mean. A
// step that crosses the border counts with the share that fits.

// The value of one measure.
struct score_value {
    double value;  // NaN when the measure is not defined for these rows
    double lo, hi; // 95 % percentile interval; NaN with fewer than two clusters or few draws
    size_t rows;   // rows that it was computed from
};

struct score_options {
    double risk;   // risk for COVERAGE, in [0, 1)
    size_t draws;  // bootstrap draws; 0 for no intervals
    uint64_t seed; // the same rows, draws and seed give the same intervals
    // Asked before every draw. When it returns true the bootstrap ends early and there are no
    // intervals. NULL: the bootstrap is never stopped.
    bool (*stop)(void *owner);
    void *owner;
};

// Fills ret. A draw in which a measure is not defined is left out of its interval. When more than
// half of the draws are left out, there is no interval.
void score_compute(struct score_value ret[static SCORE_COUNT], const struct score_row *row,
                   size_t count, const struct score_options *options);

// The number of different clusters, and Kish's effective number (sum w)² / sum w² of the rows.
size_t score_clusters(const struct score_row *row, size_t count);
double score_effective(const struct score_row *row, size_t count);

// The continuous ranked probability score of these bins for the outcome y, in log2 units.
double score_crps(const double p[static BIN_COUNT], double y);

// One band of a calibration error, for a reliability diagram.
struct score_band {
    double weight;    // 0 when the band is empty
    double stated;    // weighted mean of the stated probabilities
    double observed;  // weighted share of what came true
    double effective; // Kish's effective number of its rows
};
// Fills the bands of ECE_BIN, ECE_CORRECT, ECE_IMPROVES or ECE_CALL. Returns the number of rows in
// them.
size_t score_bands(struct score_band ret[static SCORE_BAND_COUNT], enum score_metric metric,
                   const struct score_row *row, size_t count);

// One step of the curve of risk over coverage.
struct score_step {
    double confidence; // of the calls in this step
    double coverage;   // of all calls up to this step, itself included
    double risk;
};
// Lists the steps in order of rising coverage and returns their number. The caller frees *ret,
// which is NULL when there are none.
size_t score_steps(struct score_step **ret, const struct score_row *row, size_t count);

#endif
