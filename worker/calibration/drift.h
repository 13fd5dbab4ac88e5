// Drift detection: an alarm for forecasts that are no longer calibrated. It bets against them. Each
// bet is a density that would be true if forecasts had become too low, too high, too narrow, too
// wide or wrong about correctness; after each outcome the bet's wealth is multiplied by that
// density divided by the one that was forecast. While forecasts are calibrated the expected factor
// is 1, whatever the bet, so that wealth does not grow. A bet whose wealth falls below 1 starts
// again from 1 (a CUSUM of differences of log scores). The alarm goes off when the mean wealth
// reaches DRIFT_RUN.
//
// False alarms: with calibrated forecasts the mean number of outcomes until an alarm is at least
// DRIFT_RUN (e-detectors: Shin, Ramdas & Rinaldo 2024, New England Journal of Statistics in Data
// Science 2). Called by the recalibration. Pure numbers.
#ifndef WORKER_CALIBRATION_DRIFT_H
#define WORKER_CALIBRATION_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#define DRIFT_RUN 2000.0
#define DRIFT_BETS 6

// Embedded by value; drift_init gives the state before the first outcome.
struct drift {
    double wealth[DRIFT_BETS];  // >= 1 after each outcome
    uint64_t start[DRIFT_BETS]; // number of the first outcome since the bet started from 1
};

// next: the number that the next outcome will have.
void drift_init(struct drift *drift, uint64_t next);

// Adds an outcome with its number. p_correct: the forecast probability of correctness; NaN: not
// forecast. u: F(y), where F is the forecast distribution; NaN when the candidate is not correct or
// no distribution was forecast. Returns true when the alarm goes off: *ret_since is then the
// estimated number of the first outcome after the change, and the state is that of drift_init.
bool drift_add(struct drift *drift, uint64_t number, double p_correct, bool correct, double u,
               uint64_t *ret_since);

#endif
