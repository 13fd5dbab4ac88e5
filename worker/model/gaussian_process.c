// Design note. With K = L L' (without the scale s2) and f = K^-1 y, the mean at x is k'f and the
// variance is s2 (1 + noise - |L^-1 k|^2). Row i left out has the mean y_i - f_i / (K^-1)_ii and
// the variance s2 / (K^-1)_ii. s2 is the mode under an inverse gamma prior that is worth two
// observations of variance 1, so that a fit to a dozen rows does not believe in their chance
// smoothness.
//
// A row is learnt by appending one row to L, one number to L^-1 y, and the squares of one row of
// L^-1 to the diagonal of K^-1, which is quadratic in the rows.
#include "worker/model/gaussian_process.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Medians of the log-normal priors. The first is divided by the number of own columns. Such weights
// are length scales of several standard deviations.
#define OWN_WEIGHT_PRIOR 0.1
#define SHARED_WEIGHT_PRIOR 0.03
#define NOISE_PRIOR 0.02
#define PRIOR_LOG_SD 1.5 // standard deviation of the logarithms
#define NOISE_MIN 1e-5   // least variance on the diagonal of L, against rounding
#define SEARCH_SWEEPS 4
#define SEARCH_STEP 4.0      // factor by which the first sweep changes a weight
#define SEARCH_SHRINK 0.6    // per sweep, of the logarithm of the factor
#define SCALE_PRIOR_ROWS 2.0 // observations that the prior of s2 is worth
#define COLUMN_SD_MIN 1e-6   // a column with a smaller standard deviation counts as constant

struct gaussian_process {
    size_t rows, columns;
    size_t *own, own_count;                      // columns with a weight of their own
    size_t *shared, shared_count;                // the other columns that vary
    double *centre, *scale;                      // per column, for standardising
    double weight[GAUSSIAN_PROCESS_OWN_MAX + 1]; // of the own columns, then the shared weight
    double noise;                                // variance, relative to s2
    double s2;                                   // scale of the covariance
    double *z;                                   // rows x columns, standardised
    double *y;                                   // values of the rows
    double *factor;           // L, a lower triangle stored row after row without the zeros
    double *white;            // L^-1 y
    double *fit;              // f = K^-1 y
    double *inverse_diagonal; // diagonal of K^-1
};

// What the search for weights works on: n rows from row `first` on.
struct search_rows {
    size_t first, n;
    double *shared; // n x n: mean squared difference over the shared columns
    double *factor; // n x n: L of these rows, a lower triangle
    double *white;  // n: L^-1 y
};

// The scalar product. Four sums are faster than one, whose every addition waits for the one before.
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

// The Matern 5/2 covariance at this squared distance.
static double matern(double square)
{
    double r = sqrt(5 * square);
    return (1 + r + 5 * square / 3) * exp(-r);
}

// The mean squared difference over the shared columns.
static double shared_square(const struct gaussian_process *p, const double *a, const double *b)
{
    double sum = 0;
    for (size_t i = 0; i < p->shared_count; i++) {
        double d = a[p->shared[i]] - b[p->shared[i]];
        sum += d * d;
    }
    return p->shared_count ? sum / (double)p->shared_count : 0;
}

// The covariance of two standardised rows without s2 and noise. shared: their shared_square.
static double covariance(const struct gaussian_process *p, const double *a, const double *b,
                         double shared)
{
    double square = p->weight[p->own_count] * shared;
    for (size_t i = 0; i < p->own_count; i++) {
        double d = a[p->own[i]] - b[p->own[i]];
        square += p->weight[i] * d * d;
    }
    return matern(square);
}

static void standardise(const struct gaussian_process *p, const float *x, double *z)
{
    for (size_t c = 0; c < p->columns; c++) {
        z[c] = isnan(x[c]) ? 0 : (x[c] - p->centre[c]) / p->scale[c];
    }
}

// Computes the centre and the scale of each column. Sorts the columns that vary into own and
// shared.
static void choose_columns(struct gaussian_process *p, const float *x, const bool *own)
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
        if (own[c] && p->own_count < GAUSSIAN_PROCESS_OWN_MAX) {
            p->own[p->own_count++] = c;
        } else {
            p->shared[p->shared_count++] = c;
        }
    }
}

// Computes L of the covariance of these rows.
static void factorise(const struct gaussian_process *p, const struct search_rows *rows)
{
    double *l = rows->factor;
    size_t n = rows->n;
    for (size_t i = 0; i < n; i++) {
        const double *a = p->z + (rows->first + i) * p->columns;
        for (size_t j = 0; j <= i; j++) {
            const double *b = p->z + (rows->first + j) * p->columns;
            double sum = covariance(p, a, b, rows->shared[i * n + j]);
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

// Row i of L.
static double *factor_row(const struct gaussian_process *p, size_t i)
{
    return p->factor + i * (i + 1) / 2;
}

// v := L^-1 v, with the first n rows of L.
static void solve_lower(const struct gaussian_process *p, size_t n, double *v)
{
    for (size_t i = 0; i < n; i++) {
        const double *l = factor_row(p, i);
        v[i] = (v[i] - dot(l, v, i)) / l[i];
    }
}

// v := L'^-1 v, with the first n rows of L.
static void solve_upper(const struct gaussian_process *p, size_t n, double *v)
{
    for (size_t i = n; i-- > 0;) {
        const double *l = factor_row(p, i);
        v[i] /= l[i];
        for (size_t k = 0; k < i; k++) {
            v[k] -= l[k] * v[i];
        }
    }
}

// The logarithm of a log-normal prior, without its constant.
static double log_prior(double value, double centre)
{
    double d = log(value / centre) / PRIOR_LOG_SD;
    return -0.5 * d * d;
}

// The logarithm of the marginal likelihood of these rows times the priors.
static double log_posterior(const struct gaussian_process *p, const struct search_rows *rows)
{
    size_t n = rows->n;
    double square = SCALE_PRIOR_ROWS, result = 0;
    factorise(p, rows);
    for (size_t i = 0; i < n; i++) {
        const double *l = rows->factor + i * n;
        rows->white[i] = (p->y[rows->first + i] - dot(l, rows->white, i)) / l[i];
        square += rows->white[i] * rows->white[i];
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

// Coordinate search. A sweep changes each weight and the noise by one step up or down if that is
// better. Steps become smaller with each sweep.
static void search(struct gaussian_process *p, const struct search_rows *rows)
{
    for (size_t i = 0; i < p->own_count; i++) {
        p->weight[i] = OWN_WEIGHT_PRIOR / (double)p->own_count;
    }
    p->weight[p->own_count] = SHARED_WEIGHT_PRIOR;
    p->noise = NOISE_PRIOR;
    double best = log_posterior(p, rows), step = log(SEARCH_STEP);
    for (int sweep = 0; sweep < SEARCH_SWEEPS; sweep++, step *= SEARCH_SHRINK) {
        for (size_t i = 0; i < p->own_count + 2; i++) {
            double *value = i <= p->own_count ? &p->weight[i] : &p->noise;
            double old = *value, sign = 1;
            for (; sign >= -1; sign -= 2) {
                *value = old * exp(sign * step);
                double posterior = log_posterior(p, rows);
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

static void find_weights(struct gaussian_process *p)
{
    size_t n = p->rows < GAUSSIAN_PROCESS_SEARCH_ROWS ? p->rows : GAUSSIAN_PROCESS_SEARCH_ROWS;
    struct search_rows rows = {.first = p->rows - n, .n = n};
    rows.shared = xcalloc(n * n, sizeof(double));
    rows.factor = xcalloc(n * n, sizeof(double));
    rows.white = xcalloc(n, sizeof(double));
    for (size_t i = 0; i < n; i++) {
        const double *a = p->z + (rows.first + i) * p->columns;
        for (size_t j = 0; j < i; j++) {
            const double *b = p->z + (rows.first + j) * p->columns;
            rows.shared[i * n + j] = shared_square(p, a, b);
        }
    }
    search(p, &rows);
    free(rows.shared);
    free(rows.factor);
    free(rows.white);
}

// Adds row i, which is in z and y, to the factor and to what follows from it. The rows before it
// were added already. The sums and their order are the same whether rows come one by one or at
// once.
static void learn_row(struct gaussian_process *p, size_t i)
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

// Adds the rows from number `from` on and computes s2 and f.
static void learn(struct gaussian_process *p, size_t from)
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

static struct gaussian_process *create(size_t rows, size_t columns)
{
    struct gaussian_process *p = xcalloc(1, sizeof(*p));
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

struct gaussian_process *gaussian_process_fit(const float *x, size_t rows, size_t columns,
                                              const bool *own, const double *y)
{
    size_t n = rows < GAUSSIAN_PROCESS_FIT_ROWS ? rows : GAUSSIAN_PROCESS_FIT_ROWS;
    struct gaussian_process *p = create(n, columns);
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

struct gaussian_process *gaussian_process_extend(const struct gaussian_process *old, const float *x,
                                                 size_t rows, const double *y)
{
    size_t had = old->rows, columns = old->columns;
    struct gaussian_process *p = create(had + rows, columns);
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

size_t gaussian_process_rows(const struct gaussian_process *p)
{
    return p->rows;
}

void gaussian_process_free(struct gaussian_process *p)
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

void gaussian_process_predict(const struct gaussian_process *p, const float *x, double *ret_mean,
                              double *ret_sd)
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

void gaussian_process_left_out(const struct gaussian_process *p, size_t i, double *ret_mean,
                               double *ret_sd)
{
    *ret_mean = p->y[i] - p->fit[i] / p->inverse_diagonal[i];
    *ret_sd = sqrt(p->s2 / p->inverse_diagonal[i]);
}
