#include "worker/prompt/fine_bins.h"

#include "proto/bins.h"
#include <math.h>
#include <stdio.h>

// Inner edges, as ratios that a person would name.
static const double edge[FINE_BIN_COUNT - 1] = {0.5, 0.8, 0.95, 1.05, 1.15, 1.4, 2};

void fine_bin_name(size_t bin, char out[static 32])
{
    if (bin == 0) {
        (void)snprintf(out, 32, "below %gx", edge[0]);
    } else if (bin >= FINE_BIN_COUNT - 1) {
        (void)snprintf(out, 32, "%gx or more", edge[FINE_BIN_COUNT - 2]);
    } else {
        (void)snprintf(out, 32, "%gx to %gx", edge[bin - 1], edge[bin]);
    }
}

// The part of a bin's probability that lies at y or above.
static double part_above(size_t bin, double y)
{
    double low = bin > 0 ? log2(edge[bin - 1]) : -INFINITY;
    double high = bin < FINE_BIN_COUNT - 1 ? log2(edge[bin]) : INFINITY;

    if (y >= high) {
        return 0;
    }
    if (bin == 0) {
        return 1 - exp(BIN_TAIL_RATE * (y - high));
    }
    if (y <= low) {
        return 1;
    }
    return bin == FINE_BIN_COUNT - 1 ? exp(-BIN_TAIL_RATE * (y - low)) : (high - y) / (high - low);
}

double fine_bins_above(const double p[static FINE_BIN_COUNT], double y)
{
    double sum = 0;

    for (size_t bin = 0; bin < FINE_BIN_COUNT; bin++) {
        sum += p[bin] * part_above(bin, y);
    }
    return fmin(sum, 1);
}
