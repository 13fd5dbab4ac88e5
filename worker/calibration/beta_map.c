// Design note. The fit is Newton's method on three terms: the mean of a and b, half their
// difference, and c. The common faults of a forecaster (overconfident, underconfident, biased to
// one side) need no difference.
#include "worker/calibration/beta_map.h"

#include <math.h>

#define TERMS 3
#define STEPS 30
#define STEP_MAX 2.0    // of a parameter in one step, since far away the likelihood is no parabola
#define STATED_MIN 1e-4 // stated probabilities are clamped to this distance from 0 and 1

static const double deviation[TERMS] = {0.7, 0.2, 0.7}; // of the prior

const struct beta_map beta_map_identity = {.a = 1, .b = 1, .c = 0};

// What the three parameters are multiplied by.
static void terms_of(double stated, double ret[static TERMS])
{
    double p = fmin(fmax(stated, STATED_MIN), 1 - STATED_MIN);

    ret[0] = log(p) - log1p(-p);
    ret[1] = log(p) + log1p(-p);
    ret[2] = 1;
}

// The mapped probability.
static double event_share(const double map[static TERMS], const double x[static TERMS])
{
    return 1 / (1 + exp(-(map[0] * x[0] + map[1] * x[1] + map[2] * x[2])));
}

// Solves m s = g for a symmetric positive definite m, by Gaussian elimination without pivots.
static void solve(double m[static TERMS][TERMS], double g[static TERMS], double s[static TERMS])
{
    for (size_t i = 0; i < TERMS; i++) {
        for (size_t row = i + 1; row < TERMS; row++) {
            double factor = m[row][i] / m[i][i];

            for (size_t column = i; column < TERMS; column++) {
                m[row][column] -= factor * m[i][column];
            }
            g[row] -= factor * g[i];
        }
    }
    for (size_t i = TERMS; i-- > 0;) {
        s[i] = g[i];
        for (size_t column = i + 1; column < TERMS; column++) {
            s[i] -= m[i][column] * s[column];
        }
        s[i] /= m[i][i];
    }
}

void beta_map_fit(struct beta_map *map, const struct beta_map *prior, const double *stated,
                  const double *weight, const bool *event, size_t count)
{
    const double about[TERMS] = {(prior->a + prior->b) / 2, (prior->a - prior->b) / 2, prior->c};
    double at[TERMS] = {about[0], about[1], about[2]}, largest = 1;

    for (size_t step = 0; step < STEPS && largest > 1e-8 && count > 0; step++) {
        double m[TERMS][TERMS] = {{0}}, g[TERMS], s[TERMS];

        for (size_t t = 0; t < TERMS; t++) {
            m[t][t] = 1 / (deviation[t] * deviation[t]);
            g[t] = (about[t] - at[t]) * m[t][t];
        }
        for (size_t i = 0; i < count; i++) {
            double x[TERMS], p;

            terms_of(stated[i], x);
            p = event_share(at, x);
            for (size_t t = 0; t < TERMS; t++) {
                g[t] += weight[i] * (event[i] - p) * x[t];
                for (size_t u = 0; u < TERMS; u++) {
                    m[t][u] += weight[i] * p * (1 - p) * x[t] * x[u];
                }
            }
        }
        solve(m, g, s);
        largest = 0;
        for (size_t t = 0; t < TERMS; t++) {
            double next = at[t] + fmin(fmax(s[t], -STEP_MAX), STEP_MAX);

            next = t == 0 ? fmax(next, 0) : t == 1 ? fmin(fmax(next, -at[0]), at[0]) : next;
            largest = fmax(largest, fabs(next - at[t]));
            at[t] = next;
        }
    }
    *map = (struct beta_map){.a = at[0] + at[1], .b = at[0] - at[1], .c = at[2]};
}

double beta_map_apply(const struct beta_map *map, double stated)
{
    const double at[TERMS] = {(map->a + map->b) / 2, (map->a - map->b) / 2, map->c};
    double x[TERMS];

    terms_of(stated, x);
    return event_share(at, x);
}
