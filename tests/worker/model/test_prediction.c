// The distribution of a prediction: its distribution function, mean and excess agree with each
// other, and its shape follows the residuals that it was fitted to.
#include "worker/model/prediction.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static bool is_near(double a, double b, double within)
{
    return fabs(a - b) <= within;
}

static double weight_of(const struct residual_shape *shape)
{
    double sum = 0;

    for (size_t i = 0; i < shape->count; i++) {
        assert_true(shape->component[i].weight > 0);
        assert_true(shape->component[i].sd > 0);
        sum += shape->component[i].weight;
    }
    return sum;
}

static void without_a_shape_it_is_a_normal_distribution(void **state)
{
    const struct prediction p = {.p_correct = 1, .centre = 2, .scale = 3};

    (void)state;
    for (double z = -4; z <= 4; z += 0.5) {
        assert_true(is_near(prediction_cdf(&p, 2 + 3 * z), stats_normal_cdf(z), 1e-12));
    }
    assert_true(prediction_mean(&p) == 2);
    // E max(Z, 0) of a standard normal Z is 1 / sqrt(2 pi).
    assert_true(is_near(prediction_excess(&p, 2), 3 / sqrt(2 * M_PI), 1e-12));
    assert_true(prediction_cdf(&p, -INFINITY) == 0);
    assert_true(prediction_cdf(&p, INFINITY) == 1);
}

// The excess is the integral of what lies above, which the distribution function knows.
static void the_excess_is_what_the_distribution_function_says(void **state)
{
    double z[] = {-3, -0.5, -0.4, 0, 0.1, 0.3, 1, 6};
    struct residual_shape shape;

    (void)state;
    residual_shape_fit(&shape, z, ARRAY_LEN(z));
    const struct prediction p = {.shape = &shape, .centre = -0.5, .scale = 0.25};
    for (double y = -3; y <= 3; y += 0.5) {
        double sum = 0, step = 0.002;

        for (double at = y; at < y + 20; at += step) {
            sum += (1 - prediction_cdf(&p, at + step / 2)) * step;
        }
        assert_true(is_near(prediction_excess(&p, y), sum, 1e-4));
    }
    // Far below everything it is the distance to the mean, far above nothing and never negative.
    assert_true(is_near(prediction_excess(&p, -1000), prediction_mean(&p) + 1000, 1e-6));
    assert_true(prediction_excess(&p, 1000) >= 0 && prediction_excess(&p, 1000) < 1e-9);
}

static void the_shape_moves_from_the_prior_to_the_residuals(void **state)
{
    static const size_t rows[] = {1, 4, 12, 48, 128, 129, 5000};
    double last = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double *z = xcalloc(rows[i], sizeof(double));
        struct residual_shape shape;

        for (size_t j = 0; j < rows[i]; j++) {
            z[j] = 2; // every forecast was two scales too low
        }
        residual_shape_fit(&shape, z, rows[i]);
        assert_true(is_near(weight_of(&shape), 1, 1e-9));
        assert_true(shape.count <= RESIDUAL_SHAPE_COMPONENTS_MAX);
        const struct prediction p = {.shape = &shape, .scale = 1};
        double mean = prediction_mean(&p), share = (double)rows[i] / ((double)rows[i] + 12);
        assert_true(is_near(mean, 2 * share, 1e-9)); // the prior is worth twelve rows
        assert_true(mean > last);
        last = mean;
        free(z);
    }
}

static void residuals_are_sorted_and_many_become_their_quantiles(void **state)
{
    enum { ROWS = 3000 };
    double *z = xcalloc(ROWS, sizeof(double));
    struct residual_shape shape;
    struct stats_rng rng;

    (void)state;
    stats_rng_init(&rng, 1, 1);
    for (size_t i = 0; i < ROWS; i++) {
        z[i] = 1 + 0.5 * stats_rng_normal(&rng); // biased, and narrower than was said
    }
    residual_shape_fit(&shape, z, ROWS);
    for (size_t i = 1; i < ROWS; i++) {
        assert_true(z[i - 1] <= z[i]);
    }
    const struct prediction p = {.shape = &shape, .scale = 1};
    assert_true(is_near(prediction_cdf(&p, 1), 0.5, 0.03));
    assert_true(is_near(prediction_cdf(&p, 1.5), stats_normal_cdf(1), 0.03));
    assert_true(is_near(prediction_cdf(&p, 0.5), stats_normal_cdf(-1), 0.03));
    free(z);
}

static void the_tails_stay_heavier_than_what_was_seen(void **state)
{
    double z[100];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(z); i++) {
        z[i] = ((double)i - 49.5) / 1000; // all but equal
    }
    struct residual_shape shape;
    residual_shape_fit(&shape, z, ARRAY_LEN(z));
    const struct prediction p = {.shape = &shape, .scale = 1};
    assert_true(1 - prediction_cdf(&p, 1) > 0.005);
    assert_true(prediction_cdf(&p, 0.5) - prediction_cdf(&p, -0.5) > 0.8);
    for (double y = -8; y < 8; y += 0.25) {
        assert_true(prediction_cdf(&p, y) <= prediction_cdf(&p, y + 0.25));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_shape_it_is_a_normal_distribution),
        cmocka_unit_test(the_excess_is_what_the_distribution_function_says),
        cmocka_unit_test(the_shape_moves_from_the_prior_to_the_residuals),
        cmocka_unit_test(residuals_are_sorted_and_many_become_their_quantiles),
        cmocka_unit_test(the_tails_stay_heavier_than_what_was_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
