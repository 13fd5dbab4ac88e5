// Order statistics, robust means and intervals. Functions that take a non-const array sort it in place.
#ifndef COMMON_STATS_H
#define COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void stats_sort(double *x, size_t n);
// Quantile q in [0,1] of a sorted array by linear interpolation (type 7 of Hyndman & Fan 1996). NaN when n is 0.
double stats_quantile(const double *sorted, size_t n, double q);
double stats_median(double *x, size_t n);
double stats_mean(const double *x, size_t n);
double stats_variance(const double *x, size_t n); // n - 1 in the denominator; 0 when n < 2

// Trimmed mean (share `trim` cut from each end) and its standard error from the Winsorised variance,
// Yuen 1974 (Biometrika 61); degrees of freedom h - 1 with h the count that is left.
struct stats_trimmed {
    double mean;
    double standard_error; // infinite when h < 2
    double degrees;        // of freedom
};
struct stats_trimmed stats_trimmed_mean(double *x, size_t n, double trim);

// The shift between two samples: the median of all differences b[j] - a[i], with the interval that
// their ranks give, z standard deviations of Wilcoxon's statistic to each side (Hodges and Lehmann
// 1963, Annals of Mathematical Statistics 34). Sorts a and b. Does not care what the distribution
// looks like, as long as both have the same; infinite bounds when there are too few values for z.
struct stats_shift {
    double shift; // NaN when n or m is 0
    double lo, hi;
};
struct stats_shift stats_shift(double *a, size_t n, double *b, size_t m, double z);

// Quantile p of Student's t with nu > 0 degrees of freedom; of the standard normal for infinite nu. Error < 1e-6.
double stats_t_quantile(double p, double nu);
double stats_normal_quantile(double p);
double stats_normal_cdf(double x);

// The regularised incomplete beta function I_x(a, b), a and b > 0, for x in [0,1], by the continued
// fraction of Numerical Recipes 6.4. NaN for other arguments. Error < 1e-9 for a and b up to 1e5.
double stats_beta_cdf(double x, double a, double b);
// P(X <= k) for X binomial of n trials with probability p: I_{1-p}(n - k, k + 1), DLMF 8.17.5. NaN
// when p is not in [0,1].
double stats_binomial_cdf(uint64_t k, uint64_t n, double p);

// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011): the value depends on (seed, stream, index) only.
struct stats_rng {
    uint64_t seed;
    uint64_t stream;
    uint64_t index; // next block of two 64-bit words
    uint64_t spare;
    bool has_spare;
};
void stats_rng_init(struct stats_rng *rng, uint64_t seed, uint64_t stream);
uint64_t stats_rng_u64(struct stats_rng *rng);
double stats_rng_unit(struct stats_rng *rng);                // uniform in [0,1)
double stats_rng_normal(struct stats_rng *rng);              // standard normal (Box-Muller)
uint64_t stats_rng_below(struct stats_rng *rng, uint64_t n); // uniform in [0,n), unbiased; n > 0
uint64_t stats_philox(uint64_t seed, uint64_t stream, uint64_t index); // stateless single draw
uint64_t
stats_hash_text(uint64_t seed,
                const char *text); // 64 bits of SHA-256, for coins that must be reproducible
uint64_t stats_entropy(void);      // from getrandom

#endif
