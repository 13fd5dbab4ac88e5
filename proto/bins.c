// The inner edges are speedups that a person would name: 1/4, 1/2, 1/1.25, 1/1.05, 1.05, 1.25, 1.6,
// 2.5, 4, 8, 16, 32, 64, 128. They are densest around 1, where a search decides whether a candidate
// improves. The bin that holds 1 and the two beside it are symmetric in log2, so that "no change"
// is exactly 0, the midpoint of its bin. All speedups above 128 are one bin, and so are all below
// 1/4: only the order of magnitude matters there.
//
// A vector of bin probabilities stands for one continuous distribution: uniform inside an inner
// bin, exponential with rate BIN_TAIL_RATE beyond the outer edges. All functions below are
// integrals of this one density, so that CDF, mean, quantiles and expected excess never contradict
// each other. The mean of an outer bin is its inner edge moved outwards by 1 / BIN_TAIL_RATE. That
// is also called its midpoint.
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

// Writes a speedup with at most two decimals and no trailing zeros, such as "0.95", "1.6" or "16".
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

// The y below which the part `part` (in [0, 1]) of this bin's probability lies.
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
    double below = 0.0; // probability of the bins before this one
    size_t last = 0;    // the last bin with any probability
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
    // The sum of p was rounded below q: return the upper end of the last bin.
    return bin_quantile(last, 1.0);
}

// E max(Y - y, 0) given that Y is in this bin.
static double bin_excess(size_t bin, double y)
{
    double low = bin_edge[bin], high = bin_edge[bin + 1];
    if (y >= high) {
        return 0.0;
    }
    if (bin == 0) {
        // The integral of 1 - exp(rate (t - high)) over t from y to high.
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
