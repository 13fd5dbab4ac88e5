#include "client/policy/costs.h"

#include "common/mem.h"
#include "common/parse.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_MAX 1e6
#define COST_LEAST 8          // correct outcomes before costs are fitted
#define COST_FIXED_LEAST 0.05 // the fixed cost is at least this share of the mean cost

// ---- weights ----

struct kind {
    const char *name;
    size_t weight, field; // offsets in struct cost_weights and struct run_started
};

#define KIND(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct cost_weights, name), offsetof(struct run_started, weight_##name)    \
    }
static const struct kind kinds[] = {KIND(device), KIND(compile), KIND(wall), KIND(token),
                                    KIND(money)};

static double *weight_of(struct cost_weights *weights, const struct kind *kind)
{
    return (double *)(void *)((char *)weights + kind->weight);
}

static const struct cost_weights defaults = {
    .device = 1, .compile = 0.1, .wall = 0, .token = 0.001, .money = 1000};

// Reads one "NAME=NUMBER".
static int read_item(struct cost_weights *weights, bool *given, char *item, struct err *err)
{
    char *equals = strchr(item, '=');
    for (size_t i = 0; equals && i < ARRAY_LEN(kinds); i++) {
        if ((size_t)(equals - item) == strlen(kinds[i].name) &&
            strncmp(item, kinds[i].name, strlen(kinds[i].name)) == 0) {
            if (given[i]) {
                return err_set(err, ERR_USAGE, "--weights names %s twice", kinds[i].name);
            }
            given[i] = true;
            int rc = parse_f64(weight_of(weights, &kinds[i]), equals + 1, 0, WEIGHT_MAX,
                               "a number of --weights", err);
            if (rc != 0) {
                err->code = ERR_USAGE;
                return ERR_USAGE;
            }
            return 0;
        }
    }
    return err_set(err, ERR_USAGE,
                   "--weights: \"%.80s\" is no NAME=NUMBER with one of the names device, compile, "
                   "wall, token, money",
                   item);
}

int cost_weights_read(struct cost_weights *ret, const char *text, struct err *err)
{
    struct cost_weights weights = defaults;
    bool given[ARRAY_LEN(kinds)] = {false};
    char *copy = xstrdup(text ? text : ""), *rest = copy, *item;
    int rc = 0;
    while (rc == 0 && *copy && (item = strsep(&rest, ","))) {
        rc = read_item(&weights, given, item, err);
    }
    free(copy);
    if (rc == 0 && weights.device + weights.compile + weights.wall <= 0) {
        rc = err_set(err, ERR_USAGE,
                     "--weights: one of device, compile and wall is to be more than 0");
    }
    if (rc == 0) {
        *ret = weights;
    }
    return rc;
}

struct cost_weights cost_weights_of(const struct run_started *started)
{
    struct cost_weights weights = defaults;
    if (!(started->weight_device + started->weight_compile + started->weight_wall > 0)) {
        return weights; // the run file is of before they could be set
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        double value = *(const double *)(const void *)((const char *)started + kinds[i].field);
        *weight_of(&weights, &kinds[i]) = value >= 0 ? value : 0;
    }
    return weights;
}

void cost_weights_put(const struct cost_weights *weights, struct run_started *started)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        *(double *)(void *)((char *)started + kinds[i].field) =
            *(const double *)(const void *)((const char *)weights + kinds[i].weight);
    }
}

// ---- costs ----

struct measure_cost measure_cost_fit(const struct run_state *run_state, uint64_t visible)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, failures = 0, failed = 0;
    for (uint64_t id = 1; id <= visible && id <= run_state->candidate_count; id++) {
        const struct result *result = run_state->candidate[id - 1].result;
        double held = result ? run_state_held_seconds(result) : 0;
        if (held > 0 && verdict_is_ratio(result->verdict) && result->speedup &&
            isfinite(result->speedup->log2)) {
            double slow = exp2(-result->speedup->log2);
            n++;
            x += slow;
            y += held;
            xx += slow * slow;
            xy += slow * held;
        } else if (held > 0) {
            failures++;
            failed += held;
        }
    }
    struct measure_cost ret = {0};
    if (n < COST_LEAST) {
        return ret;
    }
    double spread = xx - x * x / n;
    ret.slope = spread > 1e-9 * xx ? fmax((xy - x * y / n) / spread, 0) : 0;
    ret.fixed = fmax((y - ret.slope * x) / n, COST_FIXED_LEAST * y / n);
    ret.failure = failures > 0 ? failed / failures : y / n;
    return ret;
}

double measure_cost_expect(const struct measure_cost *cost, const struct cost_weights *weights,
                           const struct forecast *forecast, double compile_seconds)
{
    double slow = 0, correct = forecast->p_correct, compiles = forecast->p_compiles;
    if (cost->fixed <= 0 || forecast->bins_count != BIN_COUNT) {
        return 1;
    }
    compiles = compiles > correct ? fmin(compiles, 1) : compiles > 0 ? correct : 1;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        slow += forecast->bins[bin] * exp2(-bin_midpoint(bin));
    }
    double device =
        correct * (cost->fixed + cost->slope * slow) + fmax(compiles - correct, 0) * cost->failure;
    double total = weights->device * device + weights->compile * compile_seconds +
                   weights->wall * (device + compile_seconds);
    // Where only compiling counts, what is compiled costs nothing more, and all are equal.
    return total > 0 ? total : 1;
}

static double cost_of_seconds(const struct cost_weights *weights, double device, double compile)
{
    return weights->device * device + weights->compile * compile +
           weights->wall * (device + compile);
}

static double device_seconds(const struct run_state_candidate *candidate)
{
    return run_state_held_seconds(candidate->result) + run_state_held_seconds(candidate->record);
}

double cost_of_candidate(const struct run_state_candidate *candidate,
                         const struct cost_weights *weights)
{
    double compile =
        candidate->compiled && candidate->compiled->seconds > 0 ? candidate->compiled->seconds : 0;
    return cost_of_seconds(weights, device_seconds(candidate), compile);
}

double cost_usual(const struct run_state *run_state, uint64_t visible,
                  const struct cost_weights *weights, bool compiled)
{
    double sum = 0, count = 0;
    for (uint64_t id = 1; id <= visible && id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        if (candidate->result) {
            double once = run_state_held_seconds(candidate->result);
            sum += compiled ? cost_of_seconds(weights, once, 0)
                            : cost_of_candidate(candidate, weights);
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}
