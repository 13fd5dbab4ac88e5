// The variants of a replay, from what the command line says.
#ifndef REPLAY_VARIANTS_H
#define REPLAY_VARIANTS_H

#include "common/err.h"
#include "replay/tasks.h"
#include <stddef.h>

struct variants_wanted {
    const char *policies, *strategies; // separated by commas; every policy with every strategy
    const char *peers;                 // separated by commas; NULL: none
    const struct orders *orders;       // each of its variants; NULL: none
};

// Fills variant[TASKS_VARIANTS_MAX], which borrows names, in the order of wanted's fields. ERR_USAGE for what there
// is not, for no variant at all and for too many.
MUST_CHECK int variants_make(const struct variants_wanted *wanted, struct variant *variant,
                             size_t *ret, struct err *err);

// Arms that others are compared with.
struct against {
    size_t variant[TASKS_VARIANTS_MAX];
    size_t count;
};

// From their names, separated by commas; NULL or "": the first variant. ERR_USAGE for one that is not there.
MUST_CHECK int against_find(struct against *ret, const char *names, const struct variant *variant,
                            size_t variants, struct err *err);

#endif
