// Search methods of other programs, for comparisons. Each is a whole search that does without our
// pipeline; replay/budget.h charges it for what it measures. replay/tasks.c runs them, and
// replay/variants.c finds them by name.
#ifndef REPLAY_SEARCH_METHODS_H
#define REPLAY_SEARCH_METHODS_H

#include "common/err.h"
#include "replay/recorded_space.h"
#include "replay/search_outcome.h"
#include "replay/sequences.h"
#include <stdint.h>

// What a method is given. All pointers are borrowed.
struct method_search {
    const struct recorded_space *recorded;
    const char *variant; // name, for looking up a sequence
    uint64_t seed;
    double budget_seconds;             // device time; NaN: no limit
    const struct sequences *sequences; // NULL: none
};

struct search_method {
    const char *name, *help;
    // Searches. The result depends only on *search. *ret is written on success.
    int (*run)(const struct method_search *search, struct search_outcome *ret, struct err *err);
};

// Returns the method that --peers calls `name`; NULL when there is none.
const struct search_method *search_method_find(const char *name);

// Measures in the sequence that search->sequences has for the variant, the space and the seed. Only
// --orders chooses it: search_method_find does not know it.
extern const struct search_method method_sequence;

// AutoTVM's rule, by what is known about compiled candidates and by their parameters, or by the
// parameters alone (replay/method_tvm.c).
extern const struct search_method method_tvm, method_tvm_knobs;
// A tenth of the candidates, half of it by forecast (replay/method_tenth.c).
extern const struct search_method method_tenth;

#endif
