// Many replays at once: every variant on every space with every seed, spread over processes. Owns
// the processes and decides what each search is given. replay/main.c runs it, replay/compare.h and
// the summaries read the outcomes by tasks_index.
#ifndef REPLAY_TASKS_H
#define REPLAY_TASKS_H

#include "common/err.h"
#include "replay/recorded_space.h"
#include "replay/search_methods.h"
#include "replay/sim_search.h"
#include <stddef.h>
#include <stdint.h>

#define TASKS_VARIANTS_MAX 64
#define TASKS_TICK_MS 200

// One way to search.
struct variant {
    char name[64]; // such as "threshold/greedy"
    const char *policy, *strategy;
    enum sim_forecaster forecaster;     // who makes forecasts
    const struct search_method *method; // searches in place of our pipeline; NULL: our pipeline
};

// All pointers are borrowed.
struct tasks {
    struct recorded_space *const *space;
    size_t spaces;
    const struct variant *variant;
    size_t variants;
    const struct sequences *sequences; // for variants with method_sequence
    uint64_t seeds, first_seed;
    uint64_t searches; // with different seeds; those of the pipeline share devices and time
    struct sim_daemon_config sim_daemon;
    struct sim_search_config common; // what does not depend on variant, space and seed
    double budget_share; // the budget as a share of recorded_space_seconds; NaN: common has it
    uint64_t processes;
    // Called every TASKS_TICK_MS while the processes run, and when all have ended; NULL: not
    // wanted. done of total searches have ended then.
    void (*on_tick)(void *owner, size_t done, size_t total);
    void *owner;
};

// Runs everything and fills outcome[spaces x variants x seeds x searches], in this order. The
// result does not depend on the number of processes. On failure the error is the first failed
// task's.
MUST_CHECK int tasks_run(const struct tasks *tasks, struct search_outcome *outcome,
                         struct err *err);

// Returns the index of a search in outcome.
size_t tasks_index(const struct tasks *tasks, size_t space, size_t variant, uint64_t seed,
                   uint64_t search);
// Returns the number of outcomes.
size_t tasks_count(const struct tasks *tasks);

#endif
