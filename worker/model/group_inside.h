// What group.c (outcomes and learning) and forecasting.c (forecasts) share. Nobody else includes
// it.
#ifndef WORKER_MODEL_GROUP_INSIDE_H
#define WORKER_MODEL_GROUP_INSIDE_H

#include "worker/calibration/decisions.h"
#include "worker/calibration/recalibrate.h"
#include "worker/model/feature.h"
#include "worker/model/group.h"
#include "worker/model/model.h"
#include <pthread.h>

#define GROUP_MODEL "static" // the name under which raw forecasts are recalibrated

struct row {
    struct feature_row feature;
    bool compiled, correct;
    double y; // log2 speedup; 0 when not correct
};

// What one fit has learnt. Immutable, counted by reference, read by any thread.
struct learnt {
    size_t references; // atomic
    struct model *model;
    struct feature_columns *columns; // those that there were at the fit
    size_t *order;                   // column of the model's matrix -> column of `columns`
    size_t order_count;              // columns of the matrix
    uint64_t version;                // outcomes ever added or skipped before the fit
};

// The models of a group.
enum group_model {
    GROUP_COMPILED,  // knows all features
    GROUP_SCREENING, // knows what is known before a candidate is compiled
    GROUP_MODELS
};

struct group {
    char *problem, *device_class;
    struct feature_columns *columns; // the learning thread's
    struct row *row;                 // the newest outcomes, oldest first
    size_t count, size;              // rows, and rows that there is room for
    uint64_t added;                  // outcomes ever added or skipped
    pthread_mutex_t lock;            // guards everything below that a forecast reads, and the rows
    struct decisions *decisions;
    uint64_t used[GROUP_MODELS];         // 1 + `added` when it was last asked; 0: never
    bool stale[GROUP_MODELS];            // outcomes came that it was not fitted to
    struct learnt *learnt[GROUP_MODELS]; // NULL: there were too few rows
    uint64_t version[GROUP_MODELS];      // `added` at the last fit; 0: there was none
    size_t fitted_correct;               // correct rows at the last fit
    pthread_mutex_t recalibrating;       // guards what recalibration points to
    struct recalibration *recalibration; // NULL: forecasts are not recalibrated
};

// Gives one reference up. NULL is fine. Any thread.
void learnt_release(struct learnt *learnt);
// The value where it is finite, else the other.
double group_number_or(double value, double otherwise);
// What the group's forecasts are recalibrated as.
struct recal_scope group_scope(const struct group *group);

#endif
