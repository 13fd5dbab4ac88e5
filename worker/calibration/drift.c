// Design note. For a calibrated forecast u = F(y) has density 1 on [0, 1]. A bet on the speed is a
// beta density, so that its factor integrates to 1 whatever its shape. A bet on correctness
// multiplies the stated odds.
#include "worker/calibration/drift.h"

#include <math.h>
#include <stddef.h>

#define EDGE 1e-9   // u is clamped to this distance from 0 and 1, where a density is infinite
#define ODDS 3.0    // bets on correctness multiply the stated odds by this or divide by it
#define P_EDGE 0.01 // stated probabilities of correctness are clamped likewise

enum bet { BET_FASTER, BET_SLOWER, BET_NARROW, BET_WIDE, BET_CORRECT, BET_WRONG };

// The factor of the bet that the odds of correctness are `odds` times those stated.
static double correct_factor(double p, bool correct, double odds)
{
    p = fmin(fmax(p, P_EDGE), 1 - P_EDGE);
    double bet = odds * p / (odds * p + 1 - p);
    return correct ? bet / p : (1 - bet) / (1 - p);
}

// Writes the factor of each bet for one outcome.
static void factors(double ret[static DRIFT_BETS], double p_correct, bool correct, double u)
{
    for (size_t i = 0; i < DRIFT_BETS; i++) {
        ret[i] = 1;
    }
    if (!isnan(p_correct)) {
        ret[BET_CORRECT] = correct_factor(p_correct, correct, ODDS);
        ret[BET_WRONG] = correct_factor(p_correct, correct, 1 / ODDS);
    }
    if (isnan(u)) {
        return;
    }
    u = fmin(fmax(u, EDGE), 1 - EDGE);
    ret[BET_FASTER] = 2 * u;       // Beta(2, 1): candidates are faster than forecast
    ret[BET_SLOWER] = 2 * (1 - u); // Beta(1, 2): they are slower
    ret[BET_NARROW] = 1 / (M_PI * sqrt(u * (1 - u))); // Beta(1/2, 1/2): forecasts are too narrow
    ret[BET_WIDE] = 6 * u * (1 - u);                  // Beta(2, 2): they are too wide
}

void drift_init(struct drift *drift, uint64_t next)
{
    for (size_t i = 0; i < DRIFT_BETS; i++) {
        drift->wealth[i] = 1;
        drift->start[i] = next;
    }
}

bool drift_add(struct drift *drift, uint64_t number, double p_correct, bool correct, double u,
               uint64_t *ret_since)
{
    double factor[DRIFT_BETS], sum = 0;
    factors(factor, p_correct, correct, u);
    size_t most = 0;
    for (size_t i = 0; i < DRIFT_BETS; i++) {
        drift->wealth[i] *= factor[i];
        sum += drift->wealth[i];
        most = drift->wealth[i] > drift->wealth[most] ? i : most;
        if (!(drift->wealth[i] > 1)) {
            drift->wealth[i] = 1;
            drift->start[i] = number + 1;
        }
    }
    if (sum < DRIFT_RUN * DRIFT_BETS) {
        return false;
    }
    *ret_since = drift->start[most];
    drift_init(drift, number + 1);
    return true;
}
