// Distribution functions and quantiles: normal, Student's t, beta, binomial.
//
// Student's t: the quantile t > 0 of the upper tail q solves tail(t) = q, where tail(t) = I_x(nu/2,
// 1/2) / 2 and x = nu / (nu + t^2). I is the regularised incomplete beta function, computed by its
// continued fraction (Numerical Recipes 6.4, modified Lentz). Hill's algorithm (CACM 396) gives the
// start. Newton steps inside a bracket give the digits: in t where the tail is large; in log t
// against log tail where it is small, because the tail is nearly a power of t there. From
// DEGREES_LARGE on the Cornish-Fisher series about the normal quantile is exact to double
// precision, and the fraction would be slow.
#include "common/stats.h"
#include <float.h>
#include <math.h>

#define DEGREES_LARGE 1e5
#define FRACTION_STEPS_MAX 20000
#define NEWTON_STEPS_MAX 200

double stats_normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

// The z >= 0 whose upper tail is q, 0 < q <= 1/2: the start is Abramowitz & Stegun 26.2.23, and
// three Halley steps on erfc follow.
static double normal_upper(double q)
{
    double t = sqrt(-2.0 * log(q));
    double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

    for (int i = 0; i < 3; i++) {
        double density = exp(-0.5 * z * z) / sqrt(2.0 * M_PI);
        double step = (0.5 * erfc(z * M_SQRT1_2) - q) / density;

        if (!isfinite(step)) {
            break; // below 1e-307 only the start can be computed
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

// Keeps a divisor away from zero.
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

// The natural logarithm of P(T > t), t > 0. The logarithm stays finite where the tail itself
// underflows.
static double log_tail(double t, double nu)
{
    double a = 0.5 * nu;
    double log_ratio = log(t) - 0.5 * log(nu);

    if (log_ratio > 300.0) {
        // x = nu / t^2 would underflow. Only the first term of the series counts.
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
    // The fraction converges quickly on one side of the mean only. The other side is its mirror
    // image.
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

// The natural logarithm of the density of Student's t.
static double log_density(double t, double nu)
{
    double ratio = t / sqrt(nu);

    return -0.5 * (nu + 1.0) * log1p(ratio * ratio) - log_beta(0.5 * nu, 0.5) - 0.5 * log(nu);
}

// Hill's approximation (CACM 396) of the t with upper tail q, for nu >= 1. Good to a few digits.
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
            lo = t; // the tail is too large: t is too small
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
