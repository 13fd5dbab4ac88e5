// The prediction for one candidate: the probability that it is correct and, if it is, the
// distribution of y = log2(baseline time / candidate time). That distribution is centre + scale *
// Z, where the shape of Z is estimated from the residuals of a model. Made by the model and read by
// the group. Pure numbers.
#ifndef WORKER_MODEL_PREDICTION_H
#define WORKER_MODEL_PREDICTION_H

#include <stddef.h>

#define RESIDUAL_SHAPE_COMPONENTS_MAX 131

// A mixture of normal distributions. Embedded by value.
struct residual_shape {
    struct normal_component {
        double weight, mean, sd;
    } component[RESIDUAL_SHAPE_COMPONENTS_MAX]; // the weights sum to 1
    size_t count;
};

// Fits the shape to n left-out residuals z, which are sorted in place.
void residual_shape_fit(struct residual_shape *shape, double *z, size_t n);

struct prediction {
    const struct residual_shape *shape; // of Z, borrowed from the model; NULL: a standard normal
    double p_compiles, p_correct;       // in [0, 1]; what is correct compiles
    double centre, scale;               // of y, given that the candidate is correct
};

double prediction_cdf(const struct prediction *prediction, double y); // P(Y <= y | correct)
double prediction_mean(const struct prediction *prediction);          // E(Y | correct)
// E(max(Y - y, 0) | correct)
double prediction_excess(const struct prediction *prediction, double y);

#endif
