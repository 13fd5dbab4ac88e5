#include "client/search/pipeline_width.h"

#include "client/run/run.h"
#include <math.h>

// Candidates under way for each device, at most: some are compiled, two or so are measured or about
// to be, the others wait for forecasts or for the slowest of their batch. Measured for compilations
// that take ten times as long as measurements; tests/bench/bench_pipeline.c.
#define PER_DEVICE 24
// With one device batches are small, and more of them hide the compilations that take longest.
#define ON_ONE_DEVICE 32
// So many times those that fill the compile slots, and so many more for each device, are useful.
#define COMPILING 1
#define COMPILING_FOR_ONE 2
#define BEYOND_COMPILING 4
// Device seconds per measurement that a slow worker is reckoned with.
#define MEASUREMENT_SECONDS 0.1
// The worker is to be busy for at most this part of the time that a batch occupies the devices,
// with a request for forecasts and a message of outcomes that takes about as long.
#define WORKER_LOAD 0.5

// A search whose policy screens compares points before each batch, one batch after the other: the
// worker takes up outcomes and forecasts hundreds of points. Beside GPUs that took 60 to 80 ms as
// soon as there were hundreds of outcomes, in which a GPU measures up to five candidates
// (docs/measuring.md); half of the time is for a search that does not wait for it.
#define SCREENED_PER_DEVICE 8

static uint64_t clamp(uint64_t x, uint64_t least, uint64_t most)
{
    return x < least ? least : x > most ? most : x;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t devices_of(const struct pipeline_capacity *capacity)
{
    return capacity->devices > 0 ? capacity->devices : 1;
}

// The number of candidates that are to be under way.
static uint64_t under_way(const struct pipeline_capacity *capacity)
{
    uint64_t devices = devices_of(capacity);
    uint64_t wanted = devices == 1 ? ON_ONE_DEVICE : PER_DEVICE * devices;
    uint64_t useful = (devices == 1 ? COMPILING_FOR_ONE : COMPILING) * capacity->compile_slots +
                      BEYOND_COMPILING * devices;
    return capacity->compile_slots != 0 && useful < wanted ? useful : wanted;
}

// The least size of batches with which the worker keeps up.
static uint64_t least_wide(const struct pipeline_capacity *capacity)
{
    if (!(capacity->worker_seconds > 0)) {
        return 1;
    }
    double wide = ceil(2 * capacity->worker_seconds * (double)capacity->devices /
                       (MEASUREMENT_SECONDS * WORKER_LOAD));
    return wide < RUN_BATCH_MAX ? (uint64_t)wide : RUN_BATCH_MAX;
}

void pipeline_width_settle(struct pipeline_width *width, const struct policy *policy,
                           const struct pipeline_capacity *capacity)
{
    bool any_wide = width->wide == 0 && policy->batch == 0;
    bool as_usual = any_wide && width->lag == 0 && width->batch == PIPELINE_BATCH_USUAL;
    uint64_t wanted = under_way(capacity);
    policy_batches(policy, &width->batch, &width->wide);
    if (capacity->devices > 1 && any_wide) {
        uint64_t enough = divide_up(wanted, width->lag != 0 ? width->lag : RUN_LAG_MAX);
        uint64_t least = least_wide(capacity);
        width->wide = clamp(enough > least ? enough : least, width->wide, RUN_BATCH_MAX);
    }
    if (width->lag == 0) {
        width->lag = clamp(divide_up(wanted, width->wide), RUN_LAG_DEFAULT, RUN_LAG_MAX);
    }
    if (as_usual && policy->screens && capacity->compares_points) {
        width->widest =
            clamp(SCREENED_PER_DEVICE * devices_of(capacity), width->wide, RUN_BATCH_MAX);
    }
}
