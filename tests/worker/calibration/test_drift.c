// The bets of the drift alarm: none of them pays while forecasts are calibrated.
#include "worker/calibration/drift.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

static void bets_do_not_pay_against_calibrated_forecasts(void **state)
{
    (void)state;
    // The mean of every factor over the forecast is 1. Computed by quadrature over u and both
    // outcomes.
    const size_t steps = 20000;
    double mean[DRIFT_BETS] = {0};
    for (size_t i = 0; i < steps; i++) {
        for (int correct = 0; correct < 2; correct++) {
            struct drift drift;
            drift_init(&drift, 0);
            for (size_t b = 0; b < DRIFT_BETS; b++) {
                drift.wealth[b] = 100; // large, so that a loss does not restart the bet
            }
            double u = ((double)i + 0.5) / (double)steps, p = 0.7;
            uint64_t since;
            drift_add(&drift, 0, p, correct, u, &since);
            for (size_t b = 0; b < DRIFT_BETS; b++) {
                mean[b] += drift.wealth[b] / 100 * (correct ? p : 1 - p) / (double)steps;
            }
        }
    }
    for (size_t b = 0; b < DRIFT_BETS; b++) {
        assert_near(mean[b], 1, 0.01);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bets_do_not_pay_against_calibrated_forecasts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
