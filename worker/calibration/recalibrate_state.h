// The inside of struct recalibration: the tree, the rows and the fits. Only recalibrate.c, which
// adds and applies, and recalibrate_fit.c, which fits, include this.
#ifndef WORKER_CALIBRATION_RECALIBRATE_STATE_H
#define WORKER_CALIBRATION_RECALIBRATE_STATE_H

#include "worker/calibration/beta_map.h"
#include "worker/calibration/drift.h"
#include "worker/calibration/pit_map.h"
#include "worker/calibration/recalibrate.h"
#include "worker/calibration/temperature_scaling.h"
#include "worker/calibration/venn_abers.h"
#include <uthash.h>

// The maps of one node and fold.
struct fit {
    double evidence[TEMPERATURE_SCALING_COUNT]; // weighted sums of the hypotheses' log scores
    double weight, weight_square;               // of the outcomes behind the evidence
    // Weights of the hypotheses, for forecasts whose deepest node this is.
    double hypothesis[TEMPERATURE_SCALING_COUNT];
    struct pit_map bins;
    struct venn_abers correct, improves;
    struct beta_map beta_correct, beta_improves;
    struct beta_map prior_correct, prior_improves; // of the beta maps
};

struct node {
    char *name; // key: names the level and all above
    enum recal_level level;
    struct node *parent; // NULL for RECAL_ALL
    uint64_t since;      // outcomes before this number do not count here; set at RECAL_PROBLEM only
    struct drift drift;  // used at RECAL_PROBLEM only
    size_t rows;         // scratch of a refit
    struct fit fit[RECAL_FOLDS];
    UT_hash_handle hh;
};

// One outcome with its forecast.
struct row {
    uint64_t number;
    struct node *node; // the deepest one that it belongs to
    bool binned;       // correct, and bins were forecast: the next four are valid
    size_t bin;        // of the outcome
    double log2;
    struct tempered tempered;
    double score[TEMPERATURE_SCALING_COUNT]; // log probability of the outcome under each hypothesis
    double p_correct, p_improves;            // NaN: not forecast
    double weight;
    enum recal_fold half;
    bool correct, improved;
};

struct recalibration {
    struct recal_config config;
    struct node *nodes; // hash table by name
    struct node *root;
    struct row *row; // oldest first
    size_t row_count;
    uint64_t next; // number of the next outcome
    uint64_t version;
    uint64_t alarms;
};

// The effective number (Kish) of the outcomes at a level that are not at the level below; 0 when
// there are none. weight, square: sums of the weights and of their squares.
double recal_effective(double weight, double square, double weight_below, double square_below);

#endif
