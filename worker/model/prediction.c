// Design note. The shape mixes the left-out residuals, each widened by a normal kernel, with a
// heavy-tailed prior shape that is worth SHAPE_PRIOR_ROWS rows. This is the recalibration map of
// Kuleshov, Fenner & Ermon 2018 (ICML) on left-out probabilities, shrunk to the identity. It
// repairs bias, width and skew that the model's regressions do not know of. More than RESIDUALS_MAX
// residuals are represented by their quantiles.
#include "worker/model/prediction.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>

#define RESIDUALS_MAX 128
#define SHAPE_PRIOR_ROWS 12.0

// The prior shape is close to Student's t with four degrees of freedom and unit scale.
static const struct normal_component prior_shape[] = {
    {0.55, 0, 0.8}, {0.35, 0, 1.3}, {0.10, 0, 2.6}};

static const struct normal_component standard_normal = {1, 0, 1};

_Static_assert(RESIDUALS_MAX + ARRAY_LEN(prior_shape) <= RESIDUAL_SHAPE_COMPONENTS_MAX,
               "room for all components");

void residual_shape_fit(struct residual_shape *shape, double *z, size_t n)
{
    size_t residuals = n < RESIDUALS_MAX ? n : RESIDUALS_MAX;
    double share = (double)n / ((double)n + SHAPE_PRIOR_ROWS);
    stats_sort(z, n);
    // The kernel's width follows Silverman 1986.
    double spread = (stats_quantile(z, n, 0.75) - stats_quantile(z, n, 0.25)) / 1.35;
    double sd = fmax(0.9 * fmax(spread, 0.3) * pow((double)n, -0.2), 0.1);
    for (size_t i = 0; i < residuals; i++) {
        double mean = stats_quantile(z, n, ((double)i + 0.5) / (double)residuals);
        shape->component[i] = (struct normal_component){share / (double)residuals, mean, sd};
    }
    for (size_t i = 0; i < ARRAY_LEN(prior_shape); i++) {
        shape->component[residuals + i] = prior_shape[i];
        shape->component[residuals + i].weight *= 1 - share;
    }
    shape->count = residuals + ARRAY_LEN(prior_shape);
}

static const struct normal_component *components_of(const struct prediction *prediction,
                                                    size_t *ret_count)
{
    *ret_count = prediction->shape ? prediction->shape->count : 1;
    return prediction->shape ? prediction->shape->component : &standard_normal;
}

double prediction_cdf(const struct prediction *prediction, double y)
{
    size_t count;
    const struct normal_component *component = components_of(prediction, &count);
    double z = (y - prediction->centre) / prediction->scale, sum = 0;
    for (size_t i = 0; i < count; i++) {
        double u = (z - component[i].mean) / component[i].sd;
        sum += component[i].weight * stats_normal_cdf(u);
    }
    return fmin(fmax(sum, 0), 1);
}

double prediction_mean(const struct prediction *prediction)
{
    size_t count;
    const struct normal_component *component = components_of(prediction, &count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += component[i].weight * component[i].mean;
    }
    return prediction->centre + prediction->scale * sum;
}

double prediction_excess(const struct prediction *prediction, double y)
{
    size_t count;
    const struct normal_component *component = components_of(prediction, &count);
    double z = (y - prediction->centre) / prediction->scale, sum = 0;
    // Each component adds E(max(X - z, 0)) of a normal X.
    for (size_t i = 0; i < count; i++) {
        double u = (component[i].mean - z) / component[i].sd;
        double density = exp(-0.5 * u * u) / sqrt(2 * M_PI);
        sum += component[i].weight * component[i].sd * (density + u * stats_normal_cdf(u));
    }
    return fmax(sum, 0) * prediction->scale;
}
