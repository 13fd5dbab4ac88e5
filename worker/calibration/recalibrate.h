// Forecasts made honest by their own record: what a forecaster says (P(correct), P(improves),
// probabilities over the bins of proto/bins.h) is mapped to what has come true when it said so.
// Pure numbers; no I/O, no clock, not shared between threads.
//
// The record is a tree of three levels: everything; a model on a device class; a problem there.
// A level's map is shrunk to that of the level above, the highest to "leave it as it is":
//
//   R(u) = (n R̂(u) + κ R_above(u)) / (n + κ)
//
// with R̂ from the level's own outcomes and n their effective number, (sum w)² / sum w² (Kish 1965),
// an outcome's weight being 1 / propensity. What a level takes from the one above comes from the
// others there: n and R̂ above leave out the outcomes that the lower level has itself, so that
// nothing is counted twice. (The isotonic fits, which cannot be subtracted, are of all outcomes
// above, but trusted for the others' number only.)
//
//   bins         first a shift and a temperature (worker/calibration/temperature_scaling.h), from the level's own outcomes
//                and at most kappa_temperature of the others' at each level above; what that leaves is in
//                the distribution of u = F(y) (worker/calibration/pit_map.h): calibrated F = R ∘ F
//   P(correct),
//   P(improves)  first a beta map (worker/calibration/beta_map.h), pulled towards that of the level above as far
//                as others' outcomes made that one, else towards what that one was pulled to; then
//                Venn-Abers (worker/calibration/venn_abers.h), shrunk likewise, but slowly: an isotonic fit of a
//                hundred outcomes is noisier than the three parameters of a beta map
//
// For a forecaster that is calibrated already the price is its map's noise: with one level in use
// mean CRPS rises by the factor n / (n + κ)², never more than 1 / (4 κ), with all three never more
// than 3 / (8 κ); see recalibrate.c. (The choice of a shift and a temperature adds at most 0.02 in
// all to the summed log score, and a floor of TEMPERATURE_SCALING_FLOOR under every bin.)
#ifndef WORKER_CALIBRATION_RECALIBRATE_H
#define WORKER_CALIBRATION_RECALIBRATE_H

#include "proto/bins.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECAL_ROWS_MAX 8192    // outcomes kept; then the oldest quarter is forgotten
#define RECAL_NODES_MAX 4096   // places in the tree; beyond it a new one shares its parent
#define RECAL_WEIGHT_MAX 20.0  // of one outcome
#define RECAL_DRIFT_AFTER 60.0 // effective outcomes of a problem before its alarm is armed

enum recal_level { RECAL_ALL, RECAL_MODEL, RECAL_PROBLEM, RECAL_LEVELS };

// Of which outcomes a map is made: all of them, or the half that an outcome does not belong to.
enum recal_fold { RECAL_FOLD_EVEN, RECAL_FOLD_ODD, RECAL_FOLD_ALL, RECAL_FOLDS };
// The fold for a forecast whose own outcome (with this key) may be in the record: the other half.
enum recal_fold recal_fold_without(uint64_t key);

struct recal_config {
    double kappa[RECAL_LEVELS];       // > 0: so many outcomes weigh as much as the level above
    double kappa_event[RECAL_LEVELS]; // the same for the two probabilities
    double
        kappa_temperature; // so many of the others' outcomes at a level above choose shift and temperature
};
extern const struct recal_config recal_defaults;

// Who forecast what. Texts are borrowed for the call.
struct recal_scope {
    const char *model; // engine, or engine and its model
    const char *device_class;
    const char *problem;
};

struct recal_forecast {
    double p_correct;       // in [0, 1]; NaN: not forecast
    double p_improves;      // in [0, 1]; NaN: not forecast
    double bins[BIN_COUNT]; // >= 0, given that it is correct; normalised here; all 0: not forecast
};

struct recal_outcome {
    bool correct;
    bool improved;
    double log2;       // finite when correct
    double propensity; // of being measured, in (0, 1]; anything else counts as 1
    uint64_t key;      // of search and candidate; its hash decides between even and odd
};

struct recal_answer {
    double p_correct, p_correct_width;   // width: 1 without a record, towards 0 with one
    double p_improves, p_improves_width; // at most p_correct
    double bins[BIN_COUNT];              // sum 1, all > 0; all 0 when they were not forecast
    uint64_t version;                    // of the map; 0 before the first refit
    double effective[RECAL_LEVELS];      // outcomes that each level of the bins' map rests on
};

struct recalibration;

// config NULL: recal_defaults.
struct recalibration *recal_create(const struct recal_config *config);
void recal_free(struct recalibration *recalibration);

// Notes a forecast (as the forecaster made it) and its outcome. Maps stay as they are until
// recal_refit. True when the problem's drift alarm went off: its forecasts, corrected by the maps
// of now, do not fit its outcomes any more. Then the problem's level forgets all outcomes before
// the change (the levels above keep them). worker/calibration/drift.h has the rate of false alarms.
bool recal_add(struct recalibration *recalibration, const struct recal_scope *scope,
               const struct recal_forecast *forecast, const struct recal_outcome *outcome);

// Makes all maps anew and raises the version. O(n log n).
void recal_refit(struct recalibration *recalibration);

void recal_apply(const struct recalibration *recalibration, const struct recal_scope *scope,
                 const struct recal_forecast *forecast, enum recal_fold fold,
                 struct recal_answer *ret);

uint64_t recal_version(const struct recalibration *recalibration);
size_t recal_rows(const struct recalibration *recalibration); // kept
uint64_t recal_alarms(const struct recalibration *recalibration);

#endif
