// Inside of worker/recalibrate: the tree, the rows and the fits. Only worker/recalibrate*.c include
// this.
#ifndef WORKER_CALIBRATION_RECALIBRATE_STATE_H
#define WORKER_CALIBRATION_RECALIBRATE_STATE_H

#include "worker/calibration/beta_map.h"
#include "worker/calibration/drift.h"
#include "worker/calibration/pit_map.h"
#include "worker/calibration/recalibrate.h"
#include "worker/calibration/temperature_scaling.h"
#include "worker/calibration/venn_abers.h"
#include <uthash.h>

struct fit {
    double evidence[TEMPERATURE_SCALING_COUNT]; // summed log scores of the hypotheses, weighted
    double weight, weight_square;               // of the outcomes behind them
    double hypothesis
        [TEMPERATURE_SCALING_COUNT]; // their weights, for forecasts whose deepest node this is
    struct pit_map bins;
    struct venn_abers correct, improves;
    struct beta_map beta_correct, beta_improves;
    struct beta_map pull_correct, pull_improves; // what they were pulled towards
};

struct node {
    char *name; // of the level and all above, the key
    enum recal_level level;
    struct node *parent; // NULL for RECAL_ALL
    uint64_t since;      // of a problem: outcomes before this number are forgotten
    struct drift drift;  // of a problem
    size_t rows;         // under it, during a refit
    struct fit fit[RECAL_FOLDS];
    UT_hash_handle hh;
};

struct row {
    uint64_t number;
    struct node *node; // deepest
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
    struct node *nodes; // by name
    struct node *root;
    struct row *row; // oldest first
    size_t row_count;
    uint64_t next; // number of the next outcome
    uint64_t version;
    uint64_t alarms;
};

// Kish's effective number of the outcomes above that are not below; 0 when there are none.
double recal_effective(double weight, double square, double weight_below, double square_below);

#endif
