#include "common/stats.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance)) {
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
    }
}

static void sort_orders_and_puts_nan_last(void **state)
{
    (void)state;
    double x[] = {3, NAN, -INFINITY, 1, INFINITY, NAN, 2};
    stats_sort(x, COUNT(x));
    const double expected[] = {-INFINITY, 1, 2, 3, INFINITY};
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(x[i] == expected[i]);
    }
    assert_true(isnan(x[5]) && isnan(x[6]));
    stats_sort(NULL, 0);
}

static void quantiles_interpolate_as_type_7(void **state)
{
    (void)state;
    const double x[] = {1, 2, 4, 8};
    assert_near(stats_quantile(x, 4, 0), 1, 0);
    assert_near(stats_quantile(x, 4, 1), 8, 0);
    assert_near(stats_quantile(x, 4, 0.5), 3, 1e-15);
    assert_near(stats_quantile(x, 4, 0.25), 1.75, 1e-15); // R: quantile(c(1,2,4,8), .25)
    assert_near(stats_quantile(x, 4, 0.9), 6.8, 1e-14);
    assert_near(stats_quantile(x, 4, 7), 8, 0);
    assert_near(stats_quantile(x, 1, 0.3), 1, 0);
    assert_true(isnan(stats_quantile(x, 0, 0.5)));
    assert_true(isnan(stats_quantile(x, 4, NAN)));
}

static void infinite_neighbour_does_not_make_nan(void **state)
{
    (void)state;
    const double x[] = {1, 2, INFINITY};
    assert_near(stats_quantile(x, 3, 0.5), 2, 0);
    assert_true(stats_quantile(x, 3, 1) == INFINITY);
}

static void median_of_even_and_odd_counts(void **state)
{
    (void)state;
    double odd[] = {9, 1, 5};
    assert_near(stats_median(odd, 3), 5, 0);
    double even[] = {4, 1, 3, 2};
    assert_near(stats_median(even, 4), 2.5, 0);
    assert_true(isnan(stats_median(odd, 0)));
}

static void mean_and_variance_survive_a_large_offset(void **state)
{
    const double x[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};

    (void)state;
    assert_near(stats_mean(x, 4), 1e9 + 10, 1e-6);
    assert_near(stats_variance(x, 4), 30, 1e-6);
    assert_near(stats_variance(x, 1), 0, 0);
    assert_near(stats_variance(x, 0), 0, 0);
    assert_true(isnan(stats_mean(x, 0)));
}

static void trimmed_mean_agrees_with_a_hand_computation(void **state)
{
    // Left: 5 6 7 8 9 10. Winsorised: 5 5 5 6 7 8 9 10 10 10, mean 7.5, squares 42.5.
    double x[] = {50, 2, 10, 4, 9, 5, 8, 6, 12, 7};
    // Left: 2 3 10. Winsorised: 2 2 3 10 10, mean 5.4, squares 71.2.
    double skewed[] = {100, 1, 2, 3, 10};
    struct stats_trimmed result = stats_trimmed_mean(x, COUNT(x), 0.2);

    (void)state;
    assert_near(result.mean, 7.5, 1e-14);
    assert_near(result.standard_error, sqrt(42.5 / 30), 1e-14);
    assert_near(result.degrees, 5, 0);
    result = stats_trimmed_mean(skewed, COUNT(skewed), 0.2);
    assert_near(result.mean, 5, 1e-14);
    assert_near(result.standard_error, sqrt(71.2 / 6), 1e-14);
    assert_near(result.degrees, 2, 0);
}

static void trim_of_zero_is_the_plain_mean(void **state)
{
    double x[] = {4, 7, 13, 16};
    struct stats_trimmed result = stats_trimmed_mean(x, 4, 0);

    (void)state;
    assert_near(result.mean, 10, 1e-14);
    assert_near(result.standard_error, sqrt(30.0 / 4), 1e-14);
    assert_near(result.degrees, 3, 0);
}

static void trim_cuts_the_count_that_was_meant(void **state)
{
    (void)state;
    double x[100];
    for (int i = 0; i < 100; i++) {
        x[i] = i;
    }
    struct stats_trimmed result =
        stats_trimmed_mean(x, 100, 0.29); // 0.29 * 100 is less than 29 in binary
    assert_near(result.degrees, 100 - 2 * 29 - 1, 0);
}

static void trim_leaves_at_least_one_value(void **state)
{
    double x[] = {1, 2, 3, 40};
    struct stats_trimmed result = stats_trimmed_mean(x, 4, 0.5);

    (void)state;
    assert_near(result.mean, 2.5, 0);
    result = stats_trimmed_mean(x, 3, 0.9);
    assert_near(result.mean, 2, 0);
    assert_true(isinf(result.standard_error));
    result = stats_trimmed_mean(x, 1, 0.1);
    assert_near(result.mean, 1, 0);
    assert_true(isinf(result.standard_error));
    result = stats_trimmed_mean(x, 0, 0.1);
    assert_true(isnan(result.mean));
    assert_true(isinf(result.standard_error));
}

static void normal_quantiles_and_cdf_agree_with_tables(void **state)
{
    (void)state;
    assert_near(stats_normal_quantile(0.975), 1.959963984540054, 1e-14);
    assert_near(stats_normal_quantile(0.995), 2.575829303548901, 1e-14);
    assert_near(stats_normal_quantile(0.9), 1.2815515655446004, 1e-14);
    assert_near(stats_normal_quantile(0.1), -1.2815515655446004, 1e-14);
    assert_near(stats_normal_quantile(0.5), 0, 0);
    assert_near(stats_normal_quantile(1e-10), -6.361340902404056, 1e-12);
    assert_true(stats_normal_quantile(0) == -INFINITY);
    assert_true(stats_normal_quantile(1) == INFINITY);
    assert_true(isnan(stats_normal_quantile(-0.1)));
    assert_true(isnan(stats_normal_quantile(NAN)));
    assert_near(stats_normal_cdf(0), 0.5, 0);
    assert_near(stats_normal_cdf(1), 0.8413447460685429, 1e-15);
    assert_near(stats_normal_cdf(-40), 0, 1e-300);
    for (double p = 0.0005; p < 1; p += 0.0005) {
        assert_near(stats_normal_cdf(stats_normal_quantile(p)), p, 1e-15);
    }
}

// Values from tables of Student's t. Those for 1 and 2 degrees of freedom are closed forms.
static void t_quantiles_agree_with_tables(void **state)
{
    static const struct {
        double p, nu, t;
    } table[] = {
        {0.975, 1, 12.706204736}, {0.975, 2, 4.302652730},  {0.975, 3, 3.182446305},
        {0.975, 4, 2.776445105},  {0.975, 5, 2.570581836},  {0.975, 10, 2.228138852},
        {0.975, 20, 2.085963447}, {0.975, 30, 2.042272456}, {0.975, 100, 1.983971519},
        {0.995, 1, 63.656741163}, {0.995, 3, 5.840909310},  {0.995, 5, 4.032142984},
        {0.995, 10, 3.169272673}, {0.95, 7, 1.894578605},   {0.9, 9, 1.383028738},
        {0.9995, 4, 8.610301581}, {0.75, 6, 0.717558196},   {0.975, 1000, 1.962339081},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_near(stats_t_quantile(table[i].p, table[i].nu), table[i].t, 1e-6);
        assert_near(stats_t_quantile(1 - table[i].p, table[i].nu), -table[i].t, 1e-6);
    }
}

// P(0 < T < t) by Simpson's rule, which is independent of the incomplete beta function.
static double integrated(double t, double nu)
{
    const int steps = 20000;
    double scale = exp(lgamma(0.5 * (nu + 1)) - lgamma(0.5 * nu)) / sqrt(nu * M_PI);
    double sum = 0;

    for (int i = 0; i <= steps; i++) {
        double x = t * i / steps;
        double weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;

        sum += weight * pow(1 + x * x / nu, -0.5 * (nu + 1));
    }
    return scale * sum * t / steps / 3;
}

static void t_quantiles_invert_the_integrated_density(void **state)
{
    static const double degrees[] = {0.7, 1, 1.3, 2, 2.5, 3, 4.7, 8, 15.5, 40, 333, 5000, 99999};
    static const double p[] = {0.5000001, 0.51, 0.6, 0.7, 0.79, 0.81, 0.9, 0.95, 0.975, 0.99};

    (void)state;
    for (size_t i = 0; i < COUNT(degrees); i++) {
        for (size_t j = 0; j < COUNT(p); j++) {
            double t = stats_t_quantile(p[j], degrees[i]);

            assert_near(0.5 + integrated(t, degrees[i]), p[j], 2e-10);
        }
    }
}

static void t_quantiles_are_smooth_where_the_method_changes(void **state)
{
    static const double p[] = {0.55, 0.8, 0.975, 0.9999, 1 - 1e-9};

    (void)state;
    for (size_t j = 0; j < COUNT(p); j++) {
        assert_near(stats_t_quantile(p[j], 1e5), stats_t_quantile(p[j], 1e5 - 1e-3), 1e-9);
        assert_near(stats_t_quantile(p[j], 1e12), stats_normal_quantile(p[j]), 1e-9);
        assert_near(stats_t_quantile(p[j], INFINITY), stats_normal_quantile(p[j]), 0);
        assert_near(stats_t_quantile(p[j], 2 + 1e-9) / stats_t_quantile(p[j], 2), 1, 1e-7);
        assert_near(stats_t_quantile(p[j], 1 + 1e-9) / stats_t_quantile(p[j], 1), 1, 1e-7);
    }
    assert_near(stats_t_quantile(0.2, 7.3), stats_t_quantile(0.2 + 1e-12, 7.3), 1e-10);
}

static void t_quantiles_of_extreme_arguments(void **state)
{
    (void)state;
    assert_near(stats_t_quantile(0.5, 3), 0, 0);
    assert_true(stats_t_quantile(0, 3) == -INFINITY);
    assert_true(stats_t_quantile(1, 3) == INFINITY);
    assert_true(isnan(stats_t_quantile(0.5, 0)));
    assert_true(isnan(stats_t_quantile(0.5, -1)));
    assert_true(isnan(stats_t_quantile(0.9, NAN)));
    assert_true(isnan(stats_t_quantile(1.1, 3)));
    assert_true(stats_t_quantile(1e-300, 0.1) == -INFINITY); // about 1e3000
    // Far out the tail is a power: t(q / 2^nu) = 2 t(q).
    assert_near(stats_t_quantile(1e-250 / 8, 3) / stats_t_quantile(1e-250, 3), 2, 1e-10);
    assert_near(stats_t_quantile(1e-12, 3) / -10331.1, 1, 1e-4);
}

// The vectors of Random123, examples/kat_vectors, for philox4x32 with 10 rounds.
static void philox_agrees_with_the_published_vectors(void **state)
{
    static const struct {
        uint64_t index, stream, seed; // counter low half, counter high half, key
        uint32_t word[4];
    } kat[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x85a308d3243f6a88,
         0x0370734413198a2e,
         0x299f31d0a4093822,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(kat); i++) {
        uint64_t first = kat[i].word[0] | (uint64_t)kat[i].word[1] << 32;
        uint64_t second = kat[i].word[2] | (uint64_t)kat[i].word[3] << 32;

        assert_true(stats_philox(kat[i].seed, kat[i].stream, kat[i].index) == first);
        struct stats_rng rng;
        stats_rng_init(&rng, kat[i].seed, kat[i].stream);
        rng.index = kat[i].index;
        assert_true(stats_rng_u64(&rng) == first);
        assert_true(stats_rng_u64(&rng) == second);
    }
}

static void streams_repeat_and_differ(void **state)
{
    (void)state;
    struct stats_rng a;
    stats_rng_init(&a, 7, 1);
    struct stats_rng b;
    stats_rng_init(&b, 7, 1);
    struct stats_rng c;
    stats_rng_init(&c, 7, 2);
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = stats_rng_u64(&a);

        assert_true(x == stats_rng_u64(&b));
        same += x == stats_rng_u64(&c);
    }
    assert_int_equal(same, 0);
}

static void unit_and_normal_have_their_moments(void **state)
{
    static double x[200000];
    size_t n = COUNT(x);

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 2024, 0);
    for (size_t i = 0; i < n; i++) {
        x[i] = stats_rng_unit(&rng);
        assert_true(x[i] >= 0 && x[i] < 1);
    }
    assert_near(stats_mean(x, n), 0.5, 0.003);
    assert_near(stats_variance(x, n), 1.0 / 12, 0.001);
    for (size_t i = 0; i < n; i++) {
        x[i] = stats_rng_normal(&rng);
        assert_true(isfinite(x[i]));
    }
    assert_near(stats_mean(x, n), 0, 0.012);
    assert_near(stats_variance(x, n), 1, 0.017);
    stats_sort(x, n);
    assert_near(stats_quantile(x, n, 0.975), 1.96, 0.03);
    assert_near(stats_quantile(x, n, 0.25), -0.6745, 0.02);
}

static void below_is_uniform_and_in_range(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 3, 0);
    int count[7] = {0};
    for (int i = 0; i < 70000; i++) {
        count[stats_rng_below(&rng, 7)]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(count[i], 9500, 10500);
    }
    // Without rejection every third value would occur twice as often here.
    count[0] = 0;
    for (int i = 0; i < 30000; i++) {
        count[0] += stats_rng_below(&rng, UINT64_C(3) << 62) % 3 == 0;
    }
    assert_in_range(count[0], 9500, 10500);
    for (int i = 0; i < 1000; i++) {
        assert_true(stats_rng_below(&rng, 1) == 0);
        assert_true(stats_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
        // Nearly half of all draws must be rejected here.
        assert_true(stats_rng_below(&rng, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    }
}

static void text_hash_is_stable_and_depends_on_both_arguments(void **state)
{
    (void)state;
    assert_true(stats_hash_text(1, "k17") == stats_hash_text(1, "k17"));
    assert_true(stats_hash_text(1, "k17") != stats_hash_text(2, "k17"));
    assert_true(stats_hash_text(1, "k17") != stats_hash_text(1, "k18"));
    assert_true(stats_hash_text(1, "") != stats_hash_text(0, ""));
    // SHA-256 of le64(8) le64(1) le64(3) "k17", first eight bytes, little-endian.
    assert_true(stats_hash_text(1, "k17") == UINT64_C(0xca937ebf8f77d685));
}

static void entropy_differs(void **state)
{
    (void)state;
    assert_true(stats_entropy() != stats_entropy());
}

static void shift_is_the_median_of_all_differences(void **state)
{
    double a[] = {3, 1, 2}, b[] = {12, 10, 14.5, 11};
    struct stats_shift shift = stats_shift(a, 3, b, 4, 0.5);
    double one[16], other[16];

    (void)state;
    // The differences: 7 8 8 9 9 9 10 10 11 11.5 12.5 13.5; the middle two are 9 and 10.
    assert_float_equal(shift.shift, 9.5, 1e-9);
    assert_true(shift.lo >= 7 && shift.lo < shift.shift && shift.hi > shift.shift);
    shift = stats_shift(a, 3, b, 4, 5);
    assert_true(isinf(shift.lo) && isinf(shift.hi));
    assert_true(isnan(stats_shift(a, 0, b, 4, 1).shift));
    for (size_t i = 0; i < 16; i++) {
        one[i] = (double)(i * 7 % 16);
        other[i] = 100 + (double)(i * 5 % 16);
    }
    shift = stats_shift(one, 16, other, 16, 2.64);
    assert_float_equal(shift.shift, 100, 1e-9);
    assert_true(fabs(shift.hi - 100 - (100 - shift.lo)) < 1.001); // by ranks of whole numbers
}

static void incomplete_beta_agrees_with_closed_forms(void **state)
{
    (void)state;
    for (double x = 0.05; x < 1; x += 0.05) {
        assert_near(stats_beta_cdf(x, 1, 1), x, 1e-14);
        assert_near(stats_beta_cdf(x, 3, 1), x * x * x, 1e-14);
        assert_near(stats_beta_cdf(x, 1, 4), 1 - pow(1 - x, 4), 1e-14);
        assert_near(stats_beta_cdf(x, 0.5, 0.5), 2 / M_PI * asin(sqrt(x)), 1e-13); // arcsine law
        assert_near(stats_beta_cdf(x, 7, 2.5) + stats_beta_cdf(1 - x, 2.5, 7), 1, 1e-13);
    }
    assert_near(stats_beta_cdf(0, 2, 3), 0, 0);
    assert_near(stats_beta_cdf(1, 2, 3), 1, 0);
    assert_near(stats_beta_cdf(0.5, 1e5, 1e5), 0.5, 1e-9);
    assert_true(isnan(stats_beta_cdf(0.5, 0, 1)) && isnan(stats_beta_cdf(0.5, 1, -1)));
    assert_true(isnan(stats_beta_cdf(1.5, 1, 1)) && isnan(stats_beta_cdf(NAN, 1, 1)));
}

static void binomial_agrees_with_the_sum_of_its_terms(void **state)
{
    static const double p[] = {0.01, 0.1, 0.5, 0.93};

    (void)state;
    for (size_t i = 0; i < COUNT(p); i++) {
        for (unsigned n = 1; n <= 60; n++) {
            double term = pow(1 - p[i], n), sum = 0;

            for (unsigned k = 0; k <= n; k++) {
                sum += term;
                assert_near(stats_binomial_cdf(k, n, p[i]), sum, 1e-11);
                term *= p[i] / (1 - p[i]) * (n - k) / (k + 1);
            }
        }
    }
    assert_near(stats_binomial_cdf(2, 5, 0.5), 0.5, 1e-14);
    assert_near(stats_binomial_cdf(0, 3, 0), 1, 0);
    assert_near(stats_binomial_cdf(2, 3, 1), 0, 0);
    assert_near(stats_binomial_cdf(9, 3, 0.4), 1, 0);
    assert_true(isnan(stats_binomial_cdf(1, 3, 1.1)) && isnan(stats_binomial_cdf(1, 3, NAN)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incomplete_beta_agrees_with_closed_forms),
        cmocka_unit_test(binomial_agrees_with_the_sum_of_its_terms),
        cmocka_unit_test(shift_is_the_median_of_all_differences),
        cmocka_unit_test(sort_orders_and_puts_nan_last),
        cmocka_unit_test(quantiles_interpolate_as_type_7),
        cmocka_unit_test(infinite_neighbour_does_not_make_nan),
        cmocka_unit_test(median_of_even_and_odd_counts),
        cmocka_unit_test(mean_and_variance_survive_a_large_offset),
        cmocka_unit_test(trimmed_mean_agrees_with_a_hand_computation),
        cmocka_unit_test(trim_of_zero_is_the_plain_mean),
        cmocka_unit_test(trim_cuts_the_count_that_was_meant),
        cmocka_unit_test(trim_leaves_at_least_one_value),
        cmocka_unit_test(normal_quantiles_and_cdf_agree_with_tables),
        cmocka_unit_test(t_quantiles_agree_with_tables),
        cmocka_unit_test(t_quantiles_invert_the_integrated_density),
        cmocka_unit_test(t_quantiles_are_smooth_where_the_method_changes),
        cmocka_unit_test(t_quantiles_of_extreme_arguments),
        cmocka_unit_test(philox_agrees_with_the_published_vectors),
        cmocka_unit_test(streams_repeat_and_differ),
        cmocka_unit_test(unit_and_normal_have_their_moments),
        cmocka_unit_test(below_is_uniform_and_in_range),
        cmocka_unit_test(text_hash_is_stable_and_depends_on_both_arguments),
        cmocka_unit_test(entropy_differs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
