// An alarm for forecasts that are not calibrated any more. It bets against them: each bet is a
// density that would be the truth if the forecasts had become too low, too high, too narrow, too
// wide, or too sure of correctness, divided by the one that was forecast. While forecasts are
// calibrated a bet's expected factor is 1, whatever is bet, so that wealth does not grow. Every bet
// starts anew from 1 whenever it has less (a CUSUM of log score differences); the alarm goes off
// when their mean wealth reaches DRIFT_RUN.
//
// False alarms: with calibrated forecasts the mean number of outcomes until one is at least
// DRIFT_RUN (e-detectors: Shin, Ramdas & Rinaldo 2024, New England Journal of Statistics in Data
// Science 2).
#ifndef WORKER_CALIBRATION_DRIFT_H
#define WORKER_CALIBRATION_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

#define DRIFT_RUN 2000.0
#define DRIFT_BETS 6

// Embedded by value; drift_init gives the state before the first outcome.
struct drift {
    double wealth[DRIFT_BETS];  // >= 1 after each outcome
    uint64_t start[DRIFT_BETS]; // number of the first outcome that the wealth comes from
};

void drift_init(struct drift *drift, uint64_t next);

// Notes an outcome and its number. p_correct: forecast before it was known. u: where it lay in the
// forecast distribution, F(y), NaN when it is not correct. True when the alarm goes off; *ret_since
// is then the number of the first outcome after the change, as far as can be told, and the state is
// that of drift_init.
bool drift_add(struct drift *drift, uint64_t number, double p_correct, bool correct, double u,
               uint64_t *ret_since);

#endif
