// With K = L L' (without the scale s2) and f = K^-1 y: the mean at x is k'f and the variance s2 (1
// + noise - |L^-1 k|^2); row i left out has the mean y_i - f_i / (K^-1)_ii and the variance s2 /
// (K^-1)_ii. s2 is the mode under an inverse gamma prior worth two observations of variance 1, so
// that a fit to a dozen rows does not believe in their chance smoothness.
//
// A row is learnt by appending one row to L, one number to L^-1 y, and the squares of one row of
// L^-1 to the diagonal of K^-1: quadratic in the rows.
#include "worker/model/gauss.h"

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
    size_t rows, columns;
    size_t *own, own_count;           // columns with a weight of their own
    size_t *shared, shared_count;     // the other columns that vary
    double *centre, *scale;           // per column, for standardising
    double weight[GAUSS_OWN_MAX + 1]; // of the own columns, then the shared one
    double noise;                     // over s2
    double s2;
    double *z;                // rows x columns, standardised
    double *y;                // of the rows
    double *factor;           // L, lower, row after row without the zeros
    double *white;            // L^-1 y
    double *fit;              // f = K^-1 y
    double *inverse_diagonal; // of K^-1
};

// What the search for weights works on: the newest n rows.
struct trial {
    size_t first, n;
    double *shared; // n x n: mean squared difference over the shared columns
    double *factor; // n x n, lower
    double *white;
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
    for (; i < n; i++) {
        sum[0] += a[i] * b[i];
    }
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
    for (size_t c = 0; c < p->columns; c++) {
        z[c] = isnan(x[c]) ? 0 : (x[c] - p->centre[c]) / p->scale[c];
    }
}

// Centre and scale of each column; sorts the columns that vary into own and shared.
static void choose_columns(struct gauss *p, const float *x, const bool *own)
{
    for (size_t c = 0; c < p->columns; c++) {
        double sum = 0, square = 0, count = 0;
        for (size_t i = 0; i < p->rows; i++) {
            double v = x[i * p->columns + c];
            if (!isnan(v)) {
                sum += v, count++;
            }
        }
        p->centre[c] = count > 0 ? sum / count : 0;
        for (size_t i = 0; i < p->rows; i++) {
            double v = x[i * p->columns + c] - p->centre[c];
            square += isnan(v) ? 0 : v * v;
        }
        double sd = count > 0 ? sqrt(square / count) : 0;
        p->scale[c] = sd > COLUMN_SD_MIN ? sd : 1;
        if (sd <= COLUMN_SD_MIN) {
            continue;
        }
        if (own[c] && p->own_count < GAUSS_OWN_MAX) {
            p->own[p->own_count++] = c;
        } else {
            p->shared[p->shared_count++] = c;
        }
    }
}

// L of the covariance of the trial's rows.
static void factorise(const struct gauss *p, const struct trial *trial)
{
    double *l = trial->factor;
    size_t n = trial->n;
    for (size_t i = 0; i < n; i++) {
        const double *a = p->z + (trial->first + i) * p->columns;
        for (size_t j = 0; j <= i; j++) {
            const double *b = p->z + (trial->first + j) * p->columns;
            double sum = covariance(p, a, b, trial->shared[i * n + j]);
            if (i == j) {
                sum += p->noise;
            }
            sum -= dot(l + i * n, l + j * n, j);
            if (i == j) {
                l[i * n + i] = sqrt(fmax(sum, NOISE_MIN));
            } else {
                l[i * n + j] = sum / l[j * n + j];
            }
        }
    }
}

static double *factor_row(const struct gauss *p, size_t i)
{
    return p->factor + i * (i + 1) / 2;
}

// v := L^-1 v, with the first n rows
static void solve_lower(const struct gauss *p, size_t n, double *v)
{
    for (size_t i = 0; i < n; i++) {
        const double *l = factor_row(p, i);
        v[i] = (v[i] - dot(l, v, i)) / l[i];
    }
}

// v := L'^-1 v, with the first n rows
static void solve_upper(const struct gauss *p, size_t n, double *v)
{
    for (size_t i = n; i-- > 0;) {
        const double *l = factor_row(p, i);
        v[i] /= l[i];
        for (size_t k = 0; k < i; k++) {
            v[k] -= l[k] * v[i];
        }
    }
}

static double log_prior(double value, double centre)
{
    double d = log(value / centre) / PRIOR_LOG_SD;
    return -0.5 * d * d;
}

// Marginal likelihood of the trial's rows times the priors, in logs.
static double log_posterior(const struct gauss *p, const struct trial *trial)
{
    size_t n = trial->n;
    double square = SCALE_PRIOR_ROWS, result = 0;
    factorise(p, trial);
    for (size_t i = 0; i < n; i++) {
        const double *l = trial->factor + i * n;
        trial->white[i] = (p->y[trial->first + i] - dot(l, trial->white, i)) / l[i];
        square += trial->white[i] * trial->white[i];
        result -= log(l[i]);
    }
    double s2 = square / ((double)n + SCALE_PRIOR_ROWS);
    result -= 0.5 * ((double)n + SCALE_PRIOR_ROWS) * log(s2);
    for (size_t i = 0; i < p->own_count; i++) {
        result += log_prior(p->weight[i], OWN_WEIGHT_PRIOR / (double)p->own_count);
    }
    result += log_prior(p->weight[p->own_count], SHARED_WEIGHT_PRIOR);
    return result + log_prior(p->noise, NOISE_PRIOR);
}

// Coordinate search: each weight and the noise one step up or down, whatever is better; smaller
// steps each sweep.
static void search(struct gauss *p, const struct trial *trial)
{
    for (size_t i = 0; i < p->own_count; i++) {
        p->weight[i] = OWN_WEIGHT_PRIOR / (double)p->own_count;
    }
    p->weight[p->own_count] = SHARED_WEIGHT_PRIOR;
    p->noise = NOISE_PRIOR;
    double best = log_posterior(p, trial), step = log(SEARCH_STEP);
    for (int sweep = 0; sweep < SEARCH_SWEEPS; sweep++, step *= SEARCH_COOLING) {
        for (size_t i = 0; i < p->own_count + 2; i++) {
            double *value = i <= p->own_count ? &p->weight[i] : &p->noise;
            double old = *value, sign = 1;
            for (; sign >= -1; sign -= 2) {
                *value = old * exp(sign * step);
                double posterior = log_posterior(p, trial);
                if (posterior > best) {
                    best = posterior;
                    break;
                }
            }
            if (sign < -1) {
                *value = old;
            }
        }
    }
}

static void find_weights(struct gauss *p)
{
    size_t n = p->rows < GAUSS_SEARCH_ROWS ? p->rows : GAUSS_SEARCH_ROWS;
    struct trial trial = {.first = p->rows - n, .n = n};
    trial.shared = xcalloc(n * n, sizeof(double));
    trial.factor = xcalloc(n * n, sizeof(double));
    trial.white = xcalloc(n, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        const double *a = p->z + (trial.first + i) * p->columns;
        for (size_t j = 0; j < i; j++) {
            const double *b = p->z + (trial.first + j) * p->columns;
            trial.shared[i * n + j] = shared_square(p, a, b);
        }
    }
    search(p, &trial);
    free(trial.shared);
    free(trial.factor);
    free(trial.white);
}

// Row i, which is in z and y, into the factor and what follows from it; rows before it are there.
// The same sums in the same order whether rows come one by one or all at once.
static void learn_row(struct gauss *p, size_t i)
{
    const double *a = p->z + i * p->columns;
    double *l = factor_row(p, i), *v = xcalloc(i + 1, sizeof(*v));
    for (size_t j = 0; j < i; j++) {
        const double *b = p->z + j * p->columns, *m = factor_row(p, j);
        l[j] = (covariance(p, a, b, shared_square(p, a, b)) - dot(l, m, j)) / m[j];
    }
    l[i] = sqrt(fmax(1 + p->noise - dot(l, l, i), NOISE_MIN));
    p->white[i] = (p->y[i] - dot(l, p->white, i)) / l[i];
    memcpy(v, l, i * sizeof(*v));
    solve_upper(p, i, v); // row i of L^-1 is (-v, 1) / l[i]
    for (size_t j = 0; j < i; j++) {
        p->inverse_diagonal[j] += v[j] * v[j] / (l[i] * l[i]);
    }
    p->inverse_diagonal[i] = 1 / (l[i] * l[i]);
    free(v);
}

// Learns the rows from number `from` on.
static void learn(struct gauss *p, size_t from)
{
    for (size_t i = from; i < p->rows; i++) {
        learn_row(p, i);
    }
    double square = SCALE_PRIOR_ROWS;
    for (size_t i = 0; i < p->rows; i++) {
        square += p->white[i] * p->white[i];
    }
    p->s2 = square / ((double)p->rows + SCALE_PRIOR_ROWS);
    memcpy(p->fit, p->white, p->rows * sizeof(double));
    solve_upper(p, p->rows, p->fit);
}

static struct gauss *create(size_t rows, size_t columns)
{
    struct gauss *p = xcalloc(1, sizeof(*p));
    p->rows = rows;
    p->columns = columns;
    p->own = xcalloc(columns + 1, sizeof(*p->own));
    p->shared = xcalloc(columns + 1, sizeof(*p->shared));
    p->centre = xcalloc(columns + 1, sizeof(double));
    p->scale = xcalloc(columns + 1, sizeof(double));
    p->z = xcalloc(rows * columns + 1, sizeof(double));
    p->y = xcalloc(rows, sizeof(double));
    p->factor = xcalloc(rows * (rows + 1) / 2, sizeof(double));
    p->white = xcalloc(rows, sizeof(double));
    p->fit = xcalloc(rows, sizeof(double));
    p->inverse_diagonal = xcalloc(rows, sizeof(double));
    return p;
}

struct gauss *gauss_fit(const float *x, size_t rows, size_t columns, const bool *own,
                        const double *y)
{
    size_t n = rows < GAUSS_FIT_ROWS ? rows : GAUSS_FIT_ROWS;
    struct gauss *p = create(n, columns);
    x += (rows - n) * columns;
    memcpy(p->y, y + (rows - n), n * sizeof(double));
    choose_columns(p, x, own);
    for (size_t i = 0; i < n; i++) {
        standardise(p, x + i * columns, p->z + i * columns);
    }
    find_weights(p);
    learn(p, 0);
    return p;
}

struct gauss *gauss_extend(const struct gauss *old, const float *x, size_t rows, const double *y)
{
    size_t had = old->rows, columns = old->columns;
    struct gauss *p = create(had + rows, columns);
    p->own_count = old->own_count;
    p->shared_count = old->shared_count;
    p->noise = old->noise;
    memcpy(p->weight, old->weight, sizeof(p->weight));
    memcpy(p->own, old->own, columns * sizeof(*p->own));
    memcpy(p->shared, old->shared, columns * sizeof(*p->shared));
    memcpy(p->centre, old->centre, columns * sizeof(double));
    memcpy(p->scale, old->scale, columns * sizeof(double));
    memcpy(p->z, old->z, had * columns * sizeof(double));
    memcpy(p->y, old->y, had * sizeof(double));
    memcpy(p->factor, old->factor, had * (had + 1) / 2 * sizeof(double));
    memcpy(p->white, old->white, had * sizeof(double));
    memcpy(p->inverse_diagonal, old->inverse_diagonal, had * sizeof(double));
    memcpy(p->y + had, y, rows * sizeof(double));
    for (size_t i = 0; i < rows; i++) {
        standardise(p, x + i * columns, p->z + (had + i) * columns);
    }
    learn(p, had);
    return p;
}

size_t gauss_rows(const struct gauss *p)
{
    return p->rows;
}

void gauss_free(struct gauss *p)
{
    if (!p) {
        return;
    }
    free(p->own);
    free(p->shared);
    free(p->centre);
    free(p->scale);
    free(p->z);
    free(p->factor);
    free(p->white);
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
    solve_lower(p, p->rows, k);
    for (size_t i = 0; i < p->rows; i++) {
        variance -= k[i] * k[i];
    }
    *ret_mean = mean;
    *ret_sd = sqrt(p->s2 * fmax(variance, p->noise));
    free(z);
    free(k);
}

void gauss_left_out(const struct gauss *p, size_t i, double *ret_mean, double *ret_sd)
{
    *ret_mean = p->y[i] - p->fit[i] / p->inverse_diagonal[i];
    *ret_sd = sqrt(p->s2 / p->inverse_diagonal[i]);
}
