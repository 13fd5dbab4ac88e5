// Order statistics, means, variance and the shift between two samples, in double precision.
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>

// Sorts NaN last, so that the order is total, as qsort requires.
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
    // At a whole position the product below would turn an infinite neighbour into NaN.
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
    // A second pass corrects the rounding of the first.
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
        cut = (n - 1) / 2; // keep at least one value
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

// The number of differences b[j] - a[i] that are at most t. a and b are sorted.
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

// The kth smallest difference b[j] - a[i], counted from 1. By bisection, because there are too many
// differences to list them.
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
