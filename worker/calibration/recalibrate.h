// Recalibration: maps what a forecaster states (P(correct), P(improves), probabilities over the
// bins of proto/bins.h) to what has come true when it stated such things. Called by the group and
// by the history. Pure numbers: no I/O and no clock. Not shared between threads.
//
// The outcomes form a tree of three levels: all; one model on one device class; one problem there.
// The map of a level is shrunk to the map of the level above, and that of the top level to the
// identity:
//
//   R(u) = (n Rhat(u) + kappa R_above(u)) / (n + kappa)
//
// Rhat is the map that fits the level's own outcomes. n is their effective number, (sum w)^2 / sum
// w^2 (Kish 1965), where the weight w of an outcome is 1 / propensity. kappa is a pseudo-count: the
// number of outcomes that the level above is worth. What a level takes from the one above comes
// from the other outcomes there: n and Rhat above leave out those of the lower level, so that
// nothing is counted twice. (Isotonic fits cannot be subtracted. They are of all outcomes above,
// but are trusted only as far as the number of the others.)
//
//   bins         First a shift and a temperature (temperature_scaling.h). They are chosen by the
//                level's own outcomes and, at each level above, by at most kappa_temperature of the
//                others. Then the distribution of u = F(y) under the result (pit_map.h): the
//                calibrated distribution is R(F).
//   P(correct),  First a beta map (beta_map.h). Its prior is the map of the level above, as far as
//   P(improves)  other outcomes made that one, and otherwise that map's own prior. Then a
//                Venn-Abers predictor (venn_abers.h), shrunk in the same way but more slowly, since
//                an isotonic fit of a hundred outcomes is noisier than the three parameters of a
//                beta map.
//
// The price for a forecaster that is calibrated already is the noise of its map. With one level in
// use the mean CRPS (continuous ranked probability score) rises by the factor n / (n + kappa)^2,
// which is at most 1 / (4 kappa); with all three levels by at most 3 / (8 kappa). See
// recalibrate.c. The choice of a shift and a temperature costs at most 0.02 in all of the summed
// log score, and a floor of TEMPERATURE_SCALING_FLOOR under every bin.
#ifndef WORKER_CALIBRATION_RECALIBRATE_H
#define WORKER_CALIBRATION_RECALIBRATE_H

#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECAL_ROWS_MAX 8192  // outcomes kept; when there are so many, the oldest quarter is dropped
#define RECAL_NODES_MAX 4096 // nodes of the tree; beyond them a new scope shares its parent's node
#define RECAL_WEIGHT_MAX 20.0  // weight of one outcome
#define RECAL_DRIFT_AFTER 60.0 // effective outcomes of a problem before its drift alarm is armed

enum recal_level { RECAL_ALL, RECAL_MODEL, RECAL_PROBLEM, RECAL_LEVELS };

// The outcomes that a map is fitted to: all of them, or one half (a fold of cross-validation).
enum recal_fold { RECAL_FOLD_EVEN, RECAL_FOLD_ODD, RECAL_FOLD_ALL, RECAL_FOLDS };
// The fold whose map has not seen the outcome with this key: the other half.
enum recal_fold recal_fold_without(uint64_t key);

struct recal_config {
    double kappa[RECAL_LEVELS];       // > 0: outcomes that the level above is worth, for the bins
    double kappa_event[RECAL_LEVELS]; // the same for the two probabilities
    // Most of the others' outcomes at each level above that count for the shift and the
    // temperature.
    double kappa_temperature;
};
extern const struct recal_config recal_defaults;

// Which forecaster forecast what. The texts are borrowed for the call.
struct recal_scope {
    const char *model; // the engine, or the engine and its language model
    const char *device_class;
    const char *problem;
};

struct recal_forecast {
    double p_correct;       // in [0, 1]; NaN: not forecast
    double p_improves;      // in [0, 1]; NaN: not forecast
    double bins[BIN_COUNT]; // >= 0, given that it is correct; any sum; all 0: not forecast
};

struct recal_outcome {
    bool correct;
    bool improved;
    double log2;       // finite when correct
    double propensity; // probability of being measured, in (0, 1]; else counts as 1
    uint64_t key;      // of the search and the candidate; its hash chooses the fold
};

// A recalibrated forecast.
struct recal_answer {
    double p_correct, p_correct_width;   // width of uncertainty: from 1 without outcomes towards 0
    double p_improves, p_improves_width; // at most p_correct
    double bins[BIN_COUNT];              // sum 1, all > 0; all 0 when they were not forecast
    uint64_t version;                    // of the maps; 0 before the first refit
    double effective[RECAL_LEVELS];      // number of outcomes behind each level of the bins' map
};

struct recalibration;

// config is copied; NULL: recal_defaults.
struct recalibration *recal_create(const struct recal_config *config);
void recal_free(struct recalibration *recalibration); // NULL is fine

// Adds a forecast, as the forecaster made it, and its outcome. The maps stay as they are until
// recal_refit. Returns true when the problem's drift alarm went off: its forecasts, recalibrated
// with the present maps, no longer fit its outcomes. The problem's level then drops all outcomes
// before the change; the levels above keep them. worker/calibration/drift.h has the rate of false
// alarms.
bool recal_add(struct recalibration *recalibration, const struct recal_scope *scope,
               const struct recal_forecast *forecast, const struct recal_outcome *outcome);

// Fits all maps anew and raises the version. O(n log n).
void recal_refit(struct recalibration *recalibration);

// Recalibrates a forecast with the maps of this fold.
void recal_apply(const struct recalibration *recalibration, const struct recal_scope *scope,
                 const struct recal_forecast *forecast, enum recal_fold fold,
                 struct recal_answer *ret);

uint64_t recal_version(const struct recalibration *recalibration);
size_t recal_rows(const struct recalibration *recalibration); // outcomes kept
// How often the drift alarm went off.
uint64_t recal_alarms(const struct recalibration *recalibration);

#endif
