// Statistics of small samples, in double precision.
//
// Student's t: the quantile t > 0 of the upper tail q solves tail(t) = q, with tail(t) = I_x(nu/2,
// 1/2) / 2 and x = nu / (nu + t^2), the regularised incomplete beta function by its continued
// fraction (Numerical Recipes 6.4, modified Lentz). Hill's algorithm (CACM 396) gives the start;
// Newton steps inside a bracket give the digits: in t where the tail is large, in log t against log
// tail where it is small, since there the tail is nearly a power of t. From DEGREES_LARGE on the
// Cornish-Fisher series about the normal quantile is exact to double precision and the fraction
// would be slow.
//
// Random numbers: Philox4x32-10 (Salmon et al., SC'11). The key is the seed, the counter is (index,
// stream), each as low word then high word; a block of four words gives two 64-bit numbers, low
// word first.
#include "common/stats.h"
#include "common/digest.h"
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DEGREES_LARGE 1e5
#define FRACTION_STEPS_MAX 20000
#define NEWTON_STEPS_MAX 200

// NaN sorts last, so that the order is total and qsort is defined.
static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    if (isnan(x) || isnan(y)) {
        return (isnan(x) ? 1 : 0) - (isnan(y) ? 1 : 0);
    }
    return (x > y) - (x < y);
}

void stats_sort(double *x, size_t n)
{
    if (n > 1) {
        qsort(x, n, sizeof(*x), compare);
    }
}

double stats_quantile(const double *sorted, size_t n, double q)
{
    if (n == 0 || isnan(q)) {
        return NAN;
    }
    q = fmin(fmax(q, 0.0), 1.0);
    double position = q * (double)(n - 1);
    size_t below = (size_t)position;
    if (below + 1 >= n) {
        return sorted[n - 1];
    }
    // Without the product for whole positions, where an infinite neighbour would make NaN.
    if (position == (double)below) {
        return sorted[below];
    }
    return sorted[below] + (position - (double)below) * (sorted[below + 1] - sorted[below]);
}

double stats_median(double *x, size_t n)
{
    stats_sort(x, n);
    return stats_quantile(x, n, 0.5);
}

double stats_mean(const double *x, size_t n)
{
    if (n == 0) {
        return NAN;
    }
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
    }
    double mean = sum / (double)n;
    double correction = 0.0;
    // A second pass takes back the rounding of the first.
    for (size_t i = 0; i < n; i++) {
        correction += x[i] - mean;
    }
    return isfinite(mean) ? mean + correction / (double)n : mean;
}

double stats_variance(const double *x, size_t n)
{
    double mean = stats_mean(x, n);

    if (n < 2) {
        return 0.0;
    }
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }
    return sum / (double)(n - 1);
}

struct stats_trimmed stats_trimmed_mean(double *x, size_t n, double trim)
{
    struct stats_trimmed result = {.mean = NAN, .standard_error = INFINITY, .degrees = 0.0};

    if (n == 0) {
        return result;
    }
    stats_sort(x, n);
    // The small addition undoes products like 0.29 * 100 = 28.999999999999996.
    double cut_real = floor(fmin(fmax(trim, 0.0), 0.5) * (double)n + 1e-9);
    size_t cut = (size_t)cut_real;
    if (cut > (n - 1) / 2) {
        cut = (n - 1) / 2; // at least one value is left
    }
    size_t left = n - 2 * cut;
    result.mean = stats_mean(x + cut, left);
    result.degrees = (double)(left - 1);
    if (left < 2) {
        return result;
    }
    double winsorised_mean =
        ((double)left * result.mean + (double)cut * (x[cut] + x[n - 1 - cut])) / (double)n;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        double value = i < cut ? x[cut] : i > n - 1 - cut ? x[n - 1 - cut] : x[i];

        sum += (value - winsorised_mean) * (value - winsorised_mean);
    }
    result.standard_error = sqrt(sum / ((double)left * (double)(left - 1)));
    return result;
}

double stats_normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

// The z >= 0 whose upper tail is q, 0 < q <= 1/2: Abramowitz & Stegun 26.2.23 and two Halley steps
// on erfc.
static double normal_upper(double q)
{
    double t = sqrt(-2.0 * log(q));
    double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

    for (int i = 0; i < 3; i++) {
        double density = exp(-0.5 * z * z) / sqrt(2.0 * M_PI);
        double step = (0.5 * erfc(z * M_SQRT1_2) - q) / density;

        if (!isfinite(step)) {
            break; // below 1e-307 the start is all there is
        }
        z += step / (1.0 - 0.5 * z * step);
    }
    return z;
}

double stats_normal_quantile(double p)
{
    if (!(p >= 0.0 && p <= 1.0)) {
        return NAN;
    }
    if (p == 0.0 || p == 1.0) {
        return p == 0.0 ? -INFINITY : INFINITY;
    }
    if (p == 0.5) {
        return 0.0;
    }
    return p < 0.5 ? -normal_upper(p) : normal_upper(1.0 - p);
}

// log B(a, b) with the thread-safe lgamma.
static double log_beta(double a, double b)
{
    int sign;

    return lgamma_r(a, &sign) + lgamma_r(b, &sign) - lgamma_r(a + b, &sign);
}

static double not_zero(double x)
{
    return fabs(x) < 1e-300 ? 1e-300 : x;
}

// The continued fraction of the incomplete beta function, for x < (a + 1) / (a + b + 2).
static double beta_fraction(double x, double a, double b)
{
    double c = 1.0;
    double d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
    double h = d;

    for (int m = 1; m <= FRACTION_STEPS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));

        d = 1.0 / not_zero(1.0 + even * d);
        c = not_zero(1.0 + even / c);
        h *= d * c;
        d = 1.0 / not_zero(1.0 + odd * d);
        c = not_zero(1.0 + odd / c);
        h *= d * c;
        if (fabs(d * c - 1.0) < 1e-16) {
            break;
        }
    }
    return h;
}

// The natural logarithm of P(T > t), t > 0. A logarithm, because for few degrees t itself overflows
// long before it.
static double log_tail(double t, double nu)
{
    double a = 0.5 * nu;
    double log_ratio = log(t) - 0.5 * log(nu);

    if (log_ratio > 300.0) {
        // x = (nu / t^2) would underflow; the first term of the series is all that counts.
        return -2.0 * a * log_ratio - log_beta(a, 0.5) - log(a) - M_LN2;
    }
    double log_x = -log1p(exp(2.0 * log_ratio)); // x = nu / (nu + t^2)
    double log_rest = 2.0 * log_ratio + log_x;   // 1 - x
    double front = a * log_x + 0.5 * log_rest - log_beta(a, 0.5);
    double x = exp(log_x);
    if (x < (a + 1.0) / (a + 2.5)) {
        return front + log(beta_fraction(x, a, 0.5)) - log(a) - M_LN2;
    }
    return log1p(-exp(front) * beta_fraction(exp(log_rest), 0.5, a) / 0.5) - M_LN2;
}

double stats_beta_cdf(double x, double a, double b)
{
    if (!(x >= 0.0 && x <= 1.0) || !(a > 0.0 && isfinite(a)) || !(b > 0.0 && isfinite(b))) {
        return NAN;
    }
    if (x == 0.0 || x == 1.0) {
        return x;
    }
    double front = exp(a * log(x) + b * log1p(-x) - log_beta(a, b));
    // The fraction converges quickly on one side of the mean only; the other is its mirror image.
    if (x < (a + 1.0) / (a + b + 2.0)) {
        return front * beta_fraction(x, a, b) / a;
    }
    return 1.0 - front * beta_fraction(1.0 - x, b, a) / b;
}

double stats_binomial_cdf(uint64_t k, uint64_t n, double p)
{
    if (!(p >= 0.0 && p <= 1.0)) {
        return NAN;
    }
    return k >= n ? 1.0 : stats_beta_cdf(1.0 - p, (double)(n - k), (double)k + 1.0);
}

static double log_density(double t, double nu)
{
    double ratio = t / sqrt(nu);

    return -0.5 * (nu + 1.0) * log1p(ratio * ratio) - log_beta(0.5 * nu, 0.5) - 0.5 * log(nu);
}

// Hill's approximation (CACM 396) of the t with upper tail q; meant for nu >= 1, good to a few
// digits.
static double hill(double q, double nu)
{
    double p = 2.0 * q; // two-tailed
    double a = 1.0 / (nu - 0.5);
    double b = 48.0 / (a * a);
    double c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    double d = ((94.5 / (b + c) - 3.0) / b + 1.0) * sqrt(a * M_PI_2) * nu;
    double y = pow(d * p, 2.0 / nu);

    if (y > 0.05 + a) {
        double x = -normal_upper(q);

        y = x * x;
        if (nu < 5.0) {
            c += 0.3 * (nu - 4.5) * (x + 0.6);
        }
        c = (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b + c;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = expm1(a * y * y);
    } else {
        y = ((1.0 / (((nu + 6.0) / (nu * y) - 0.089 * d - 0.822) * (nu + 2.0) * 3.0) +
              0.5 / (nu + 4.0)) *
                 y -
             1.0) *
                (nu + 1.0) / (nu + 2.0) +
            1.0 / y;
    }
    return sqrt(nu * y);
}

// Cornish and Fisher's series in 1/nu about the normal quantile (Abramowitz & Stegun 26.7.5).
static double t_series(double z, double nu)
{
    double s = z * z;
    double g1 = (s + 1.0) * z / 4.0;
    double g2 = ((5.0 * s + 16.0) * s + 3.0) * z / 96.0;
    double g3 = (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) * z / 384.0;

    return z + (g1 + (g2 + g3 / nu) / nu) / nu;
}

// The t > 0 with upper tail q, 0 < q < 1/2.
static double t_upper(double q, double nu)
{
    double t = nu > 1.0 ? hill(q, nu) : pow(2.0 * q, -1.0 / nu);

    // With few degrees of freedom a small tail lies beyond what a double can hold.
    if (log_tail(DBL_MAX, nu) > log(q)) {
        return INFINITY;
    }
    if (!isfinite(t) || t <= 0.0) {
        t = 1.0;
    }
    double lo = 0.0;
    double hi = INFINITY;
    for (int i = 0; i < NEWTON_STEPS_MAX; i++) {
        double tail = log_tail(t, nu);
        double miss = tail - log(q);

        if (miss > 0.0) {
            lo = t; // the tail is too large, so t is too small
        } else {
            hi = t;
        }
        double next;
        if (q > 0.2) {
            next = t + (exp(tail) - q) / exp(log_density(t, nu));
        } else {
            next = t * exp(miss * exp(tail - log_density(t, nu)) / t);
        }
        if (fabs(next - t) <= 1e-14 * t) {
            return next;
        }
        if (!(next > lo && next < hi)) {
            next = hi == INFINITY ? 2.0 * t : lo == 0.0 ? 0.5 * t : 0.5 * lo + 0.5 * hi;
        }
        if (next == t || !isfinite(next)) {
            return next;
        }
        t = next;
    }
    return t;
}

double stats_t_quantile(double p, double nu)
{
    double q = p < 0.5 ? p : 1.0 - p;

    if (!(p >= 0.0 && p <= 1.0) || !(nu > 0.0)) {
        return NAN;
    }
    if (p == 0.5) {
        return 0.0;
    }
    double t;
    if (q == 0.0) {
        t = INFINITY;
    } else if (isinf(nu)) {
        t = normal_upper(q);
    } else if (nu == 1.0) {
        t = 1.0 / tan(M_PI * q);
    } else if (nu == 2.0) {
        t = (1.0 - 2.0 * q) / sqrt(2.0 * q * (1.0 - q));
    } else if (nu >= DEGREES_LARGE) {
        t = t_series(normal_upper(q), nu);
    } else {
        t = t_upper(q, nu);
    }
    return p < 0.5 ? -t : t;
}

static void philox_block(uint32_t counter[4], uint64_t seed)
{
    uint32_t key0 = (uint32_t)seed;
    uint32_t key1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53U * counter[0];
        uint64_t product1 = (uint64_t)0xCD9E8D57U * counter[2];

        counter[0] = (uint32_t)(product1 >> 32) ^ counter[1] ^ key0;
        counter[1] = (uint32_t)product1;
        counter[2] = (uint32_t)(product0 >> 32) ^ counter[3] ^ key1;
        counter[3] = (uint32_t)product0;
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
}

static void philox_pair(uint64_t out[2], uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t block[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)stream,
                         (uint32_t)(stream >> 32)};

    philox_block(block, seed);
    out[0] = block[0] | (uint64_t)block[1] << 32;
    out[1] = block[2] | (uint64_t)block[3] << 32;
}

uint64_t stats_philox(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint64_t pair[2];

    philox_pair(pair, seed, stream, index);
    return pair[0];
}

void stats_rng_init(struct stats_rng *rng, uint64_t seed, uint64_t stream)
{
    *rng = (struct stats_rng){.seed = seed, .stream = stream};
}

uint64_t stats_rng_u64(struct stats_rng *rng)
{
    if (rng->has_spare) {
        rng->has_spare = false;
        return rng->spare;
    }
    uint64_t pair[2];
    philox_pair(pair, rng->seed, rng->stream, rng->index++);
    rng->spare = pair[1];
    rng->has_spare = true;
    return pair[0];
}

double stats_rng_unit(struct stats_rng *rng)
{
    return (double)(stats_rng_u64(rng) >> 11) * 0x1p-53;
}

double stats_rng_normal(struct stats_rng *rng)
{
    // 1 - u is in (0, 1], where the logarithm exists. The sine half is not kept: a draw is always
    // two numbers.
    double radius = sqrt(-2.0 * log(1.0 - stats_rng_unit(rng)));

    return radius * cos(2.0 * M_PI * stats_rng_unit(rng));
}

// Lemire's multiplication with rejection (ACM TOMACS 29, 2019).
uint64_t stats_rng_below(struct stats_rng *rng, uint64_t n)
{
    unsigned __int128 product = (unsigned __int128)stats_rng_u64(rng) * n;

    if ((uint64_t)product < n) {
        uint64_t biased = (0 - n) % n;

        while ((uint64_t)product < biased) {
            product = (unsigned __int128)stats_rng_u64(rng) * n;
        }
    }
    return (uint64_t)(product >> 64);
}

uint64_t stats_hash_text(uint64_t seed, const char *text)
{
    struct digest_state *state = digest_begin();
    unsigned char seed_bytes[8];

    for (int i = 0; i < 8; i++) {
        seed_bytes[i] = (unsigned char)(seed >> (8 * i));
    }
    digest_add(state, seed_bytes, sizeof(seed_bytes));
    digest_add_text(state, text);
    struct digest digest = digest_end(state);
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value |= (uint64_t)digest.byte[i] << (8 * i);
    }
    return value;
}

uint64_t stats_entropy(void)
{
    uint64_t value = 0;
    size_t len = 0;

    while (len < sizeof(value)) {
        ssize_t n = getrandom((unsigned char *)&value + len, sizeof(value) - len, 0);

        if (n > 0) {
            len += (size_t)n;
        } else if (errno != EINTR) {
            abort(); // Every Linux since 3.17 has it.
        }
    }
    return value;
}

// ---- shift ----

// How many differences b[j] - a[i] are at most t; both sorted.
static uint64_t differences_below(const double *a, size_t n, const double *b, size_t m, double t)
{
    uint64_t count = 0;
    size_t j = 0;

    for (size_t i = 0; i < n; i++) {
        while (j < m && b[j] - a[i] <= t) {
            j++;
        }
        count += j;
    }
    return count;
}

// The kth smallest difference (from 1), by bisection: there are too many to write them down.
static double difference(const double *a, size_t n, const double *b, size_t m, uint64_t k)
{
    double lo = b[0] - a[n - 1], hi = b[m - 1] - a[0];

    for (unsigned step = 0; step < 64 && lo < hi; step++) {
        double middle = lo + (hi - lo) / 2;

        if (differences_below(a, n, b, m, middle) >= k) {
            hi = middle;
        } else {
            lo = middle;
        }
    }
    return hi;
}

struct stats_shift stats_shift(double *a, size_t n, double *b, size_t m, double z)
{
    uint64_t pairs = (uint64_t)n * m, middle = (pairs + 1) / 2;
    double half = z * sqrt((double)pairs * (double)(n + m + 1) / 12);
    double rank = floor((double)pairs / 2 - half);
    struct stats_shift ret = {.shift = NAN, .lo = -INFINITY, .hi = INFINITY};

    if (pairs == 0) {
        return ret;
    }
    stats_sort(a, n);
    stats_sort(b, m);
    ret.shift = (difference(a, n, b, m, middle) + difference(a, n, b, m, pairs + 1 - middle)) / 2;
    if (rank >= 1) {
        ret.lo = difference(a, n, b, m, (uint64_t)rank);
        ret.hi = difference(a, n, b, m, pairs + 1 - (uint64_t)rank);
    }
    return ret;
}
