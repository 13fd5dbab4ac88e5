#include "common/stats.h"
#include "proto/bins.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

// Draws probabilities of various shapes: with zeros, concentrated, or flat.
static void random_bins(struct stats_rng *rng, double p[static BIN_COUNT])
{
    double sum = 0.0;

    for (size_t i = 0; i < BIN_COUNT; i++) {
        p[i] = stats_rng_below(rng, 3) == 0 ? 0.0 : pow(stats_rng_unit(rng), 3.0);
        sum += p[i];
    }
    if (sum == 0.0) {
        sum = p[stats_rng_below(rng, BIN_COUNT)] = 1.0;
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        p[i] /= sum;
    }
}

static void edges_rise_from_minus_to_plus_infinity(void **state)
{
    (void)state;
    assert_true(isinf(bin_edge[0]) && bin_edge[0] < 0 && isinf(bin_edge[BIN_COUNT]) &&
                bin_edge[BIN_COUNT] > 0);
    for (size_t i = 0; i < BIN_COUNT; i++) {
        assert_true(bin_edge[i] < bin_edge[i + 1]);
    }
}

static void no_change_is_the_midpoint_of_its_bin(void **state)
{
    size_t bin = bin_of(0.0);

    (void)state;
    assert_true(bin_midpoint(bin) == 0.0);
    assert_true(bin_edge[bin - 1] == -bin_edge[bin + 2]);
}

static void an_edge_belongs_to_the_bin_above_it(void **state)
{
    (void)state;
    for (size_t i = 1; i < BIN_COUNT; i++) {
        assert_int_equal(bin_of(bin_edge[i]), i);
        assert_int_equal(bin_of(nextafter(bin_edge[i], -INFINITY)), i - 1);
    }
    assert_int_equal(bin_of(-INFINITY), 0);
    assert_int_equal(bin_of(INFINITY), BIN_COUNT - 1);
}

static void every_midpoint_lies_in_its_bin(void **state)
{
    (void)state;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        assert_int_equal(bin_of(bin_midpoint(i)), i);
    }
}

static void names_print_speedups(void **state)
{
    static const char *const names[BIN_COUNT] = {
        "below 0.25x",    "0.25x to 0.5x", "0.5x to 0.8x", "0.8x to 0.95x", "0.95x to 1.05x",
        "1.05x to 1.25x", "1.25x to 1.6x", "1.6x to 2.5x", "2.5x to 4x",    "4x to 8x",
        "8x to 16x",      "16x to 32x",    "32x to 64x",   "64x to 128x",   "128x or more"};

    (void)state;
    char name[32];
    for (size_t i = 0; i < BIN_COUNT; i++) {
        bin_name(i, name);
        assert_string_equal(name, names[i]);
    }
}

static void cdf_at_an_edge_is_the_sum_of_the_bins_below(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 1);
    double p[BIN_COUNT];
    for (int round = 0; round < 100; round++) {
        random_bins(&rng, p);
        double sum = 0.0;
        for (size_t i = 0; i <= BIN_COUNT; i++) {
            assert_near(bins_cdf(p, bin_edge[i]), sum, 1e-12);
            sum += i < BIN_COUNT ? p[i] : 0.0;
        }
    }
}

static void cdf_rises_within_zero_and_one(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 2, 1);
    double p[BIN_COUNT];
    for (int round = 0; round < 50; round++) {
        random_bins(&rng, p);
        double last = 0.0;
        for (double y = -20.0; y < 20.0; y += 0.01) {
            double now = bins_cdf(p, y);
            assert_true(now >= last - 1e-12 && now <= 1.0);
            last = now;
        }
    }
}

static void quantile_inverts_cdf(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 3, 1);
    double p[BIN_COUNT];
    for (int round = 0; round < 1000; round++) {
        double q = 0.001 + 0.998 * stats_rng_unit(&rng);
        random_bins(&rng, p);
        assert_near(bins_cdf(p, bins_quantile(p, q)), q, 1e-9);
    }
}

static void quantile_of_the_ends_is_the_support(void **state)
{
    double tails[BIN_COUNT] = {[0] = 0.5, [BIN_COUNT - 1] = 0.5}, inner[BIN_COUNT] = {[4] = 1.0};

    (void)state;
    assert_true(isinf(bins_quantile(tails, 0.0)) && bins_quantile(tails, 0.0) < 0);
    assert_true(isinf(bins_quantile(tails, 1.0)) && bins_quantile(tails, 1.0) > 0);
    assert_true(bins_quantile(inner, 0.0) == bin_edge[4]);
    assert_true(bins_quantile(inner, 1.0) == bin_edge[5]);
}

static void quantile_survives_probabilities_that_miss_one_by_rounding(void **state)
{
    (void)state;
    double p[BIN_COUNT] = {[3] = 0.5, [6] = 0.4999999999};
    assert_true(bins_quantile(p, 1.0) == bin_edge[7]);
}

// Riemann sums of P(Y > t) compute the mean and the expected excess in an independent way.
static void mean_and_excess_agree_with_numeric_integrals(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 4, 1);
    double p[BIN_COUNT];
    for (int round = 0; round < 20; round++) {
        double y = -5.0 + 12.0 * stats_rng_unit(&rng), excess = 0.0, mean = 0.0, step = 1e-3;
        random_bins(&rng, p);
        for (double t = y + 0.5 * step; t < 20.0; t += step) {
            excess += step * (1.0 - bins_cdf(p, t));
        }
        for (double t = 0.5 * step; t < 20.0; t += step) {
            mean += step * (1.0 - bins_cdf(p, t) - bins_cdf(p, -t));
        }
        assert_near(bins_expected_excess(p, y), excess, 1e-4);
        assert_near(bins_mean(p), mean, 1e-4);
    }
}

static void excess_over_something_hopeless_is_the_mean_minus_it(void **state)
{
    (void)state;
    double p[BIN_COUNT] = {[0] = 0.25, [5] = 0.25, [BIN_COUNT - 1] = 0.5};
    assert_near(bins_expected_excess(p, -60.0), bins_mean(p) + 60.0, 1e-9);
    assert_near(bins_expected_excess(p, 60.0), 0.0, 1e-9);
    assert_true(bins_expected_excess(p, INFINITY) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_rise_from_minus_to_plus_infinity),
        cmocka_unit_test(no_change_is_the_midpoint_of_its_bin),
        cmocka_unit_test(an_edge_belongs_to_the_bin_above_it),
        cmocka_unit_test(every_midpoint_lies_in_its_bin),
        cmocka_unit_test(names_print_speedups),
        cmocka_unit_test(cdf_at_an_edge_is_the_sum_of_the_bins_below),
        cmocka_unit_test(cdf_rises_within_zero_and_one),
        cmocka_unit_test(quantile_inverts_cdf),
        cmocka_unit_test(quantile_of_the_ends_is_the_support),
        cmocka_unit_test(quantile_survives_probabilities_that_miss_one_by_rounding),
        cmocka_unit_test(mean_and_excess_agree_with_numeric_integrals),
        cmocka_unit_test(excess_over_something_hopeless_is_the_mean_minus_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
