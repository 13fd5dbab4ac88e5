// Makes the variants of a replay from the options of the command line. replay/main.c is the only
// caller. It does not run them.
#ifndef REPLAY_VARIANTS_H
#define REPLAY_VARIANTS_H

#include "common/err.h"
#include "replay/tasks.h"
#include <stddef.h>

struct variants_wanted {
    const char *policies, *strategies; // separated by commas; every policy with every strategy
    const char *forecasters; // separated by commas, for every policy that looks at forecasts; NULL:
                             // the static model
    const char *methods;     // search methods, separated by commas; NULL: none
    const struct sequences *sequences; // one variant for each of its variants; NULL: none
};

// Fills variant[TASKS_VARIANTS_MAX], in the order of the fields of wanted; *ret is their number.
// The variants borrow strings of wanted->sequences. ERR_USAGE for a name that does not exist, for
// no variant at all and for too many.
MUST_CHECK int variants_make(const struct variants_wanted *wanted, struct variant *variant,
                             size_t *ret, struct err *err);

// Indices of the variants that the others are compared with.
struct against {
    size_t variant[TASKS_VARIANTS_MAX];
    size_t count;
};

// Finds variants by their names, separated by commas. NULL and "" mean the first variant. ERR_USAGE
// for a name that no variant has.
MUST_CHECK int against_find(struct against *ret, const char *names, const struct variant *variant,
                            size_t variants, struct err *err);

#endif
