// Design note. The inner edges are speedups a person would name: 1/4, 1/2, 1/1.25,
// 1/1.05, 1.05, 1.25, 1.6, 2.5, 4, 8, 16, 32, 64, 128. They lie densest around 1, where the decision of a search
// ("does it improve?") is taken; the bin that holds 1 and the one on each side of it are symmetric
// in log2, so that "no change" has midpoint exactly 0. Everything above 128x or below 1/4x is one
// bin: there the order of magnitude is all that matters.
//
// A vector of bin probabilities stands for one continuous distribution: uniform inside an inner
// bin, exponential with rate BIN_TAIL_RATE beyond the outer edges. All functions below are
// integrals of that one density, so that a CDF, a mean, a quantile and an expected improvement
// never contradict each other. The mean of a tail is its edge moved by 1 / rate, which is also its
// midpoint.
#include "proto/bins.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

const double bin_edge[BIN_COUNT + 1] = {
    -INFINITY,
    -2.0,                  // 1/4
    -1.0,                  // 1/2
    -0.32192809488736235,  // 1/1.25
    -0.070389327891397943, // 1/1.05
    0.070389327891397943,  // 1.05
    0.32192809488736235,   // 1.25
    0.67807190511263771,   // 1.6
    1.3219280948873624,    // 2.5
    2.0,                   // 4
    3.0,                   // 8
    4.0,                   // 16
    5.0,                   // 32
    6.0,                   // 64
    7.0,                   // 128
    INFINITY,
};

#define LAST (BIN_COUNT - 1)

size_t bin_of(double y)
{
    size_t bin = 0;
    while (bin < LAST && y >= bin_edge[bin + 1]) {
        bin++;
    }
    return bin;
}

double bin_midpoint(size_t bin)
{
    if (bin == 0) {
        return bin_edge[1] - 1.0 / BIN_TAIL_RATE;
    }
    if (bin >= LAST) {
        return bin_edge[LAST] + 1.0 / BIN_TAIL_RATE;
    }
    return 0.5 * (bin_edge[bin] + bin_edge[bin + 1]);
}

// A speedup with at most two decimals and no trailing zeros: "0.95", "1.6", "16".
static void speedup_text(double edge, char out[static 12])
{
    snprintf(out, 12, "%.2f", exp2(edge));
    size_t len = strlen(out);
    while (len > 0 && out[len - 1] == '0') {
        len--;
    }
    if (len > 0 && out[len - 1] == '.') {
        len--;
    }
    out[len] = '\0';
}

void bin_name(size_t bin, char out[static 32])
{
    char low[12] = "", high[12] = "";
    if (bin == 0) {
        speedup_text(bin_edge[1], high);
        snprintf(out, 32, "below %sx", high);
    } else if (bin >= LAST) {
        speedup_text(bin_edge[LAST], low);
        snprintf(out, 32, "%sx or more", low);
    } else {
        speedup_text(bin_edge[bin], low);
        speedup_text(bin_edge[bin + 1], high);
        snprintf(out, 32, "%sx to %sx", low, high);
    }
}

// P(Y <= y) given that Y is in this bin.
static double bin_cdf(size_t bin, double y)
{
    if (y >= bin_edge[bin + 1]) {
        return 1.0;
    }
    if (bin == 0) {
        return exp(BIN_TAIL_RATE * (y - bin_edge[1]));
    }
    if (y <= bin_edge[bin]) {
        return 0.0;
    }
    if (bin == LAST) {
        return -expm1(-BIN_TAIL_RATE * (y - bin_edge[LAST]));
    }
    return (y - bin_edge[bin]) / (bin_edge[bin + 1] - bin_edge[bin]);
}

double bins_cdf(const double p[static BIN_COUNT], double y)
{
    double sum = 0.0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        sum += p[bin] * bin_cdf(bin, y);
    }
    return fmin(sum, 1.0);
}

double bins_mean(const double p[static BIN_COUNT])
{
    double sum = 0.0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        sum += p[bin] * bin_midpoint(bin);
    }
    return sum;
}

// The point of this bin below which lies the share `part` (in [0, 1]) of its probability.
static double bin_quantile(size_t bin, double part)
{
    if (bin == 0) {
        return part > 0.0 ? bin_edge[1] + log(part) / BIN_TAIL_RATE : -INFINITY;
    }
    if (bin == LAST) {
        return part < 1.0 ? bin_edge[LAST] - log1p(-part) / BIN_TAIL_RATE : INFINITY;
    }
    return bin_edge[bin] + part * (bin_edge[bin + 1] - bin_edge[bin]);
}

double bins_quantile(const double p[static BIN_COUNT], double q)
{
    double below = 0.0; // probability of the bins already passed
    size_t last = 0;    // the last bin that holds any
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        if (!(p[bin] > 0.0)) {
            continue;
        }
        last = bin;
        if (q <= below + p[bin]) {
            return bin_quantile(bin, fmin(fmax((q - below) / p[bin], 0.0), 1.0));
        }
        below += p[bin];
    }
    // Only rounding in the sum of p leads here: the answer is the upper end of what there is.
    return bin_quantile(last, 1.0);
}

// E max(Y - y, 0) given that Y is in this bin.
static double bin_excess(size_t bin, double y)
{
    double low = bin_edge[bin], high = bin_edge[bin + 1];
    if (y >= high) {
        return 0.0;
    }
    if (bin == 0) // the integral of 1 - exp(rate (t - high)) over t from y to high
    {
        return (high - y) + expm1(BIN_TAIL_RATE * (y - high)) / BIN_TAIL_RATE;
    }
    if (y <= low) {
        return bin_midpoint(bin) - y;
    }
    if (bin == LAST) {
        return exp(-BIN_TAIL_RATE * (y - low)) / BIN_TAIL_RATE;
    }
    return (high - y) * (high - y) / (2.0 * (high - low));
}

double bins_expected_excess(const double p[static BIN_COUNT], double y)
{
    double sum = 0.0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        if (p[bin] > 0.0) {
            sum += p[bin] * bin_excess(bin, y);
        }
    }
    return sum;
}
