// The arms of a replay, from what the command line says.
#ifndef REPLAY_ARMS_H
#define REPLAY_ARMS_H

#include "common/err.h"
#include "replay/tasks.h"
#include <stddef.h>

struct arms_wanted {
    const char *policies, *strategies; // separated by commas; every policy with every strategy
    const char *peers;                 // separated by commas; NULL: none
    const struct orders *orders;       // each of its arms; NULL: none
};

// Fills arm[TASKS_ARMS_MAX], which borrows names, in the order of wanted's fields. ERR_USAGE for what there
// is not, for no arm at all and for too many.
MUST_CHECK int arms_make(const struct arms_wanted *wanted, struct arm *arm, size_t *ret,
                         struct err *err);

// Arms that others are compared with.
struct against {
    size_t arm[TASKS_ARMS_MAX];
    size_t count;
};

// From their names, separated by commas; NULL or "": the first arm. ERR_USAGE for one that is not there.
MUST_CHECK int against_find(struct against *ret, const char *names, const struct arm *arm,
                            size_t arms, struct err *err);

#endif
