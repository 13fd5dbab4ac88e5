// With K = L L' (without the scale s2) and f = K^-1 y: the mean at x is k'f and the variance s2 (1
// + noise - |L^-1 k|^2); row i left out has the mean y_i - f_i / (K^-1)_ii and the variance s2 /
// (K^-1)_ii. s2 is the mode under an inverse gamma prior worth two observations of variance 1, so
// that a fit to a dozen rows does not believe in their chance smoothness.
#include "worker/gauss.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OWN_WEIGHT_PRIOR                                                                           \
    0.1 // over the number of own columns: length scales of several standard deviations
#define SHARED_WEIGHT_PRIOR 0.03
#define NOISE_PRIOR 0.02
#define PRIOR_LOG_SD 1.5
#define NOISE_MIN 1e-5
#define SEARCH_SWEEPS 4
#define SEARCH_STEP 4.0    // factor of the first sweep
#define SEARCH_COOLING 0.6 // of the log of the factor, per sweep
#define SCALE_PRIOR_ROWS 2.0
#define COLUMN_SD_MIN 1e-6 // a column that varies less is constant

struct gauss {
    size_t rows, columns;             // of the fit
    size_t first;                     // row of the caller's matrix that is row 0 here
    size_t *own, own_count;           // columns with a weight of their own
    size_t *shared, shared_count;     // the other columns that vary
    double *centre, *scale;           // per column, for standardising
    double weight[GAUSS_OWN_MAX + 1]; // of the own columns, then the shared one
    double noise;                     // over s2
    double s2;
    double *z;                // rows x columns, standardised
    double *shared_square;    // rows x rows: mean squared difference over the shared columns
    double *factor;           // L, rows x rows, lower
    double *fit;              // f = K^-1 y
    double *inverse_diagonal; // of K^-1
    double *y;
};

// Four sums at once: one would wait for itself at every step.
static double dot(const double *a, const double *b, size_t n)
{
    double sum[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        sum[0] += a[i] * b[i];
        sum[1] += a[i + 1] * b[i + 1];
        sum[2] += a[i + 2] * b[i + 2];
        sum[3] += a[i + 3] * b[i + 3];
    }
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return sum[0] + sum[1] + (sum[2] + sum[3]);
}

static double matern(double square)
{
    double r = sqrt(5 * square);
    return (1 + r + 5 * square / 3) * exp(-r);
}

static double shared_square(const struct gauss *p, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < p->shared_count; i++) {
        double d = a[p->shared[i]] - b[p->shared[i]];
        sum += d * d;
    }
    return p->shared_count ? sum / (double)p->shared_count : 0;
}

static double covariance(const struct gauss *p, const double *a, const double *b, double shared)
{
    double square = p->weight[p->own_count] * shared;
    for (size_t i = 0; i < p->own_count; i++) {
        double d = a[p->own[i]] - b[p->own[i]];
        square += p->weight[i] * d * d;
    }
    return matern(square);
}

static void standardise(const struct gauss *p, const float *x, double *z)
{
    for (size_t c = 0; c < p->columns; c++)
        z[c] = isnan(x[c]) ? 0 : (x[c] - p->centre[c]) / p->scale[c];
}

// Centre and scale of each column; sorts the columns that vary into own and shared.
static void choose_columns(struct gauss *p, const float *x, const bool *own)
{
    for (size_t c = 0; c < p->columns; c++) {
        double sum = 0, square = 0, count = 0;
        for (size_t i = 0; i < p->rows; i++) {
            double v = x[i * p->columns + c];
            if (!isnan(v))
                sum += v, count++;
        }
        p->centre[c] = count > 0 ? sum / count : 0;
        for (size_t i = 0; i < p->rows; i++) {
            double v = x[i * p->columns + c] - p->centre[c];
            square += isnan(v) ? 0 : v * v;
        }
        double sd = count > 0 ? sqrt(square / count) : 0;
        p->scale[c] = sd > COLUMN_SD_MIN ? sd : 1;
        if (sd <= COLUMN_SD_MIN)
            continue;
        if (own[c] && p->own_count < GAUSS_OWN_MAX)
            p->own[p->own_count++] = c;
        else
            p->shared[p->shared_count++] = c;
    }
}

// L of the covariance of rows first .. first + n into p->factor (n x n).
static void factorise(struct gauss *p, size_t first, size_t n)
{
    double *l = p->factor;
    for (size_t i = 0; i < n; i++) {
        const double *a = p->z + (first + i) * p->columns;
        for (size_t j = 0; j <= i; j++) {
            const double *b = p->z + (first + j) * p->columns;
            double sum = covariance(p, a, b, p->shared_square[(first + i) * p->rows + first + j]);
            if (i == j)
                sum += p->noise;
            sum -= dot(l + i * n, l + j * n, j);
            if (i == j)
                l[i * n + i] = sqrt(fmax(sum, NOISE_MIN));
            else
                l[i * n + j] = sum / l[j * n + j];
        }
    }
}

// v := L^-1 v
static void solve_lower(const double *l, size_t n, double *v)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = (v[i] - dot(l + i * n, v, i)) / l[i * n + i];
    }
}

// v := L'^-1 v
static void solve_upper(const double *l, size_t n, double *v)
{
    for (size_t i = n; i-- > 0;) {
        double sum = v[i];
        for (size_t k = i + 1; k < n; k++)
            sum -= l[k * n + i] * v[k];
        v[i] = sum / l[i * n + i];
    }
}

static double log_prior(double value, double centre)
{
    double d = log(value / centre) / PRIOR_LOG_SD;
    return -0.5 * d * d;
}

// Marginal likelihood of the last n rows times the priors, in logs; leaves L in factor, L^-1 y in
// fit, and s2.
static double log_posterior(struct gauss *p, size_t n)
{
    size_t first = p->rows - n;
    factorise(p, first, n);
    memcpy(p->fit, p->y + first, n * sizeof(double));
    solve_lower(p->factor, n, p->fit);
    double square = SCALE_PRIOR_ROWS, result = 0;
    for (size_t i = 0; i < n; i++) {
        square += p->fit[i] * p->fit[i];
        result -= log(p->factor[i * n + i]);
    }
    p->s2 = square / ((double)n + SCALE_PRIOR_ROWS);
    result -= 0.5 * ((double)n + SCALE_PRIOR_ROWS) * log(p->s2);
    for (size_t i = 0; i < p->own_count; i++)
        result += log_prior(p->weight[i], OWN_WEIGHT_PRIOR / (double)p->own_count);
    result += log_prior(p->weight[p->own_count], SHARED_WEIGHT_PRIOR);
    return result + log_prior(p->noise, NOISE_PRIOR);
}

// Coordinate search: each weight and the noise one step up or down, whatever is better; smaller
// steps each sweep.
static void search(struct gauss *p)
{
    size_t n = p->rows < GAUSS_SEARCH_ROWS ? p->rows : GAUSS_SEARCH_ROWS;
    for (size_t i = 0; i < p->own_count; i++)
        p->weight[i] = OWN_WEIGHT_PRIOR / (double)p->own_count;
    p->weight[p->own_count] = SHARED_WEIGHT_PRIOR;
    p->noise = NOISE_PRIOR;
    double best = log_posterior(p, n), step = log(SEARCH_STEP);
    for (int sweep = 0; sweep < SEARCH_SWEEPS; sweep++, step *= SEARCH_COOLING) {
        for (size_t i = 0; i < p->own_count + 2; i++) {
            double *value = i <= p->own_count ? &p->weight[i] : &p->noise;
            double old = *value, sign = 1;
            for (; sign >= -1; sign -= 2) {
                *value = old * exp(sign * step);
                double posterior = log_posterior(p, n);
                if (posterior > best) {
                    best = posterior;
                    break;
                }
            }
            if (sign < -1)
                *value = old;
        }
    }
}

static void invert_diagonal(struct gauss *p)
{
    size_t n = p->rows;
    double *column = xcalloc(n, sizeof(*column));
    for (size_t j = 0; j < n; j++) { // column j of L^-1 is zero above row j
        double *l = p->factor;
        column[j] = 1 / l[j * n + j];
        p->inverse_diagonal[j] += column[j] * column[j];
        for (size_t i = j + 1; i < n; i++) {
            column[i] = -dot(l + i * n + j, column + j, i - j) / l[i * n + i];
            p->inverse_diagonal[j] += column[i] * column[i];
        }
    }
    free(column);
}

struct gauss *gauss_fit(const float *x, size_t rows, size_t columns, const bool *own,
                        const double *y)
{
    struct gauss *p = xcalloc(1, sizeof(*p));
    p->rows = rows < GAUSS_ROWS_MAX ? rows : GAUSS_ROWS_MAX;
    p->first = rows - p->rows;
    p->columns = columns;
    size_t n = p->rows;
    p->own = xcalloc(columns + 1, sizeof(*p->own));
    p->shared = xcalloc(columns + 1, sizeof(*p->shared));
    p->centre = xcalloc(columns + 1, sizeof(double));
    p->scale = xcalloc(columns + 1, sizeof(double));
    p->z = xcalloc(n * columns + 1, sizeof(double));
    p->shared_square = xcalloc(n * n, sizeof(double));
    p->factor = xcalloc(n * n, sizeof(double));
    p->fit = xcalloc(n, sizeof(double));
    p->inverse_diagonal = xcalloc(n, sizeof(double));
    p->y = xmemdup(y + p->first, n * sizeof(double));
    x += p->first * columns;
    choose_columns(p, x, own);
    for (size_t i = 0; i < n; i++)
        standardise(p, x + i * columns, p->z + i * columns);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++)
            p->shared_square[i * n + j] = shared_square(p, p->z + i * columns, p->z + j * columns);
    }
    search(p);
    log_posterior(p, n);
    solve_upper(p->factor, n, p->fit);
    invert_diagonal(p);
    return p;
}

void gauss_free(struct gauss *p)
{
    if (!p)
        return;
    free(p->own);
    free(p->shared);
    free(p->centre);
    free(p->scale);
    free(p->z);
    free(p->shared_square);
    free(p->factor);
    free(p->fit);
    free(p->inverse_diagonal);
    free(p->y);
    free(p);
}

void gauss_predict(const struct gauss *p, const float *x, double *ret_mean, double *ret_sd)
{
    double *z = xcalloc(p->columns + 1, sizeof(*z)), *k = xcalloc(p->rows, sizeof(*k));
    double mean = 0, variance = 1 + p->noise;
    standardise(p, x, z);
    for (size_t i = 0; i < p->rows; i++) {
        const double *row = p->z + i * p->columns;
        k[i] = covariance(p, z, row, shared_square(p, z, row));
        mean += k[i] * p->fit[i];
    }
    solve_lower(p->factor, p->rows, k);
    for (size_t i = 0; i < p->rows; i++)
        variance -= k[i] * k[i];
    *ret_mean = mean;
    *ret_sd = sqrt(p->s2 * fmax(variance, p->noise));
    free(z);
    free(k);
}

void gauss_left_out(const struct gauss *p, const float *x, size_t i, double *ret_mean,
                    double *ret_sd)
{
    if (i < p->first) {
        gauss_predict(p, x + i * p->columns, ret_mean, ret_sd);
        return;
    }
    i -= p->first;
    *ret_mean = p->y[i] - p->fit[i] / p->inverse_diagonal[i];
    *ret_sd = sqrt(p->s2 / p->inverse_diagonal[i]);
}
