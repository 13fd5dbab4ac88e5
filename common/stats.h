// Statistics for small samples, and reproducible random numbers. Used by all programs for timing,
// scores and sampling. Functions that take a non-const array sort it in place. The files in
// common/stats/ implement this header: stats.c (samples), stats_distribution.c and stats_random.c.
#ifndef COMMON_STATS_H
#define COMMON_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// ---- samples ----

// Sorts in ascending order, NaN last.
void stats_sort(double *x, size_t n);
// Quantile q in [0,1] of a sorted array by linear interpolation (type 7 of Hyndman & Fan 1996). NaN
// when n is 0.
double stats_quantile(const double *sorted, size_t n, double q);
double stats_median(double *x, size_t n);
double stats_mean(const double *x, size_t n);     // NaN when n is 0
double stats_variance(const double *x, size_t n); // with n - 1 in the denominator; 0 when n < 2

// The trimmed mean: the share `trim` of the values is cut from each end. Its standard error comes
// from the Winsorised variance (Yuen 1974, Biometrika 61). h is the number of values that are left.
struct stats_trimmed {
    double mean;
    double standard_error; // infinite when h < 2
    double degrees;        // of freedom, h - 1
};
struct stats_trimmed stats_trimmed_mean(double *x, size_t n, double trim);

// The shift between two samples: the median of all differences b[j] - a[i], with the interval that
// ranks give, z standard deviations of Wilcoxon's statistic to each side (Hodges and Lehmann 1963,
// Annals of Mathematical Statistics 34). Sorts a and b. The distribution may be any, as long as
// both samples have the same one. The bounds are infinite when there are too few values for z.
struct stats_shift {
    double shift; // NaN when n or m is 0
    double lo, hi;
};
struct stats_shift stats_shift(double *a, size_t n, double *b, size_t m, double z);

// ---- distributions ----

// Quantile p of Student's t with nu > 0 degrees of freedom; of the standard normal distribution for
// infinite nu. NaN for other arguments. Error < 1e-6.
double stats_t_quantile(double p, double nu);
double stats_normal_quantile(double p);
double stats_normal_cdf(double x);

// The regularised incomplete beta function I_x(a, b), a and b > 0, for x in [0,1], by the continued
// fraction of Numerical Recipes 6.4. NaN for other arguments. Error < 1e-9 for a and b up to 1e5.
double stats_beta_cdf(double x, double a, double b);
// P(X <= k) for a binomial X of n trials with probability p: I_{1-p}(n - k, k + 1), DLMF 8.17.5.
// NaN when p is not in [0,1].
double stats_binomial_cdf(uint64_t k, uint64_t n, double p);

// ---- random numbers ----

// A sequence of random numbers (Philox4x32-10, Salmon et al. 2011). Each number is a function of
// (seed, stream, index).
struct stats_rng {
    uint64_t seed;
    uint64_t stream;
    uint64_t index; // of the next block of two 64-bit numbers
    uint64_t spare; // second number of the last block
    bool has_spare; // spare was not used yet
};
void stats_rng_init(struct stats_rng *rng, uint64_t seed, uint64_t stream);
uint64_t stats_rng_u64(struct stats_rng *rng);
double stats_rng_unit(struct stats_rng *rng);                // uniform in [0,1)
double stats_rng_normal(struct stats_rng *rng);              // standard normal, by Box and Muller
uint64_t stats_rng_below(struct stats_rng *rng, uint64_t n); // uniform in [0,n), unbiased; n > 0
// The first number of one block, without a sequence.
uint64_t stats_philox(uint64_t seed, uint64_t stream, uint64_t index);
// 64 bits of the SHA-256 of seed and text, for random decisions that must be reproducible.
uint64_t stats_hash_text(uint64_t seed, const char *text);
// A seed from getrandom(2).
uint64_t stats_entropy(void);

#endif
