// What candidates cost, in device-seconds: how much each kind of cost counts, and what a candidate
// is expected to cost before it is compiled or measured. Called by policies, by the pipeline's
// screening, by the allocation among generators and by replays. Pure functions of the run's events.
#ifndef CLIENT_POLICY_COSTS_H
#define CLIENT_POLICY_COSTS_H

#include "client/run/run_state.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

// How many device-seconds one unit counts as. A compile-second counts less than 1 since compilers
// run beside the device. A wall-second is one of a candidate's own, as if nothing overlapped: of
// compiling and of measuring. Tokens count where a language model has no price, else its money
// does.
struct cost_weights {
    double device, compile, wall, token, money;
};

// Reads "NAME=NUMBER,…". Kinds that are not named have their default: device=1, compile=0.1,
// wall=0, token=0.001, money=1000, as for a GPU that costs 3.60 an hour and a price of 1 for a
// million tokens. ERR_USAGE when a name is unknown or stands twice, when a number is not from 0 to
// 1e6, or when neither device, compile nor wall counts. text may be NULL or empty.
MUST_CHECK int cost_weights_read(struct cost_weights *ret, const char *text, struct err *err);
// Those of a search; the defaults where its run file has none.
struct cost_weights cost_weights_of(const struct run_started *started);
// Writes them into the event.
void cost_weights_put(const struct cost_weights *weights, struct run_started *started);

// What measuring costs in device-seconds, fitted to outcomes. A correct candidate with log2 speedup
// y takes fixed + slope 2^-y, since launches take a time proportional to 2^-y and the rest takes
// the same time for all. Any other candidate that compiles takes failure. All are 0 while too few
// outcomes are known.
struct measure_cost {
    double fixed, slope, failure;
};

// Fits the cost to the outcomes of candidates 1 to visible.
struct measure_cost measure_cost_fit(const struct run_state *run_state, uint64_t visible);
// What the candidate of this forecast is expected to cost when compiling it takes so many seconds;
// 0 for one that is compiled already. 1 while the cost is not known, so that every candidate counts
// as equally costly.
double measure_cost_expect(const struct measure_cost *cost, const struct cost_weights *weights,
                           const struct forecast *forecast, double compile_seconds);
// What those of candidates 1 to visible that were measured have cost on average; 0 when none was.
// With `compiled` only what their first measurements cost counts: what a candidate still costs that
// is compiled, as measure_cost_expect says of one.
double cost_usual(const struct run_state *run_state, uint64_t visible,
                  const struct cost_weights *weights, bool compiled);
// What a candidate has cost: its compilation and its measurements, as far as they are known.
double cost_of_candidate(const struct run_state_candidate *candidate,
                         const struct cost_weights *weights);

#endif
