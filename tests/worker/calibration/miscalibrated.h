// A miscalibrated forecaster, for the test and the benchmark of recalibration: it forecasts
// everything one bin too fast and is overconfident by a factor of three in log odds.
#ifndef TESTS_WORKER_CALIBRATION_MISCALIBRATED_H
#define TESTS_WORKER_CALIBRATION_MISCALIBRATED_H

#include "client/eval/score.h"
#include "worker/calibration/recalibrate.h"
#include <math.h>
#include <string.h>

// Makes a calibrated forecast miscalibrated. target: the log2 speedup that an improvement must
// exceed.
static inline void miscalibrate(struct recal_forecast *forecast, double target)
{
    double *p = forecast->bins, sum = 0;
    double odds = fmin(fmax(forecast->p_correct, 1e-6), 1 - 1e-6);

    for (size_t i = BIN_COUNT; i-- > 0;) {
        sum += p[i] = i == 0 ? 0 : pow(p[i - 1], 3);
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        p[i] /= sum;
    }
    odds = pow(odds / (1 - odds), 3) * 4;
    forecast->p_correct = odds / (1 + odds);
    forecast->p_improves = forecast->p_correct * (1 - bins_cdf(p, target));
}

// The forecast as recal_apply would return it if it changed nothing.
static inline struct recal_answer as_said(const struct recal_forecast *forecast)
{
    struct recal_answer answer = {.p_correct = forecast->p_correct,
                                  .p_improves = forecast->p_improves};

    memcpy(answer.bins, forecast->bins, sizeof(answer.bins));
    return answer;
}

// The forecast and its outcome as a row to be scored.
static inline struct score_row score_row_of(const struct recal_outcome *known,
                                            const struct recal_answer *said)
{
    struct score_row row = {.weight = 1,
                            .p_correct = said->p_correct,
                            .p_improves = said->p_improves,
                            .confidence = NAN,
                            .mean_log2 = NAN,
                            .has_bins = true,
                            .correct = known->correct,
                            .improved = known->improved,
                            .log2 = known->log2};

    memcpy(row.bins, said->bins, sizeof(row.bins));
    return row;
}

#endif
