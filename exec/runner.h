// The child that runs candidate code: maps what it is given, loads one object, confines itself, and
// then calls the entry whenever the control page says so. Everything after loading happens in the
// hands of the candidate; the judge (exec/arm.h) believes none of it.
#ifndef EXEC_RUNNER_H
#define EXEC_RUNNER_H

#include "exec/control.h"
#include "exec/nursery.h"

// The filters that runners load, built by the parent before the nursery is forked. Never freed:
// children inherit them.
struct runner_filters {
    struct sandbox_filter load;
    struct sandbox_filter run;
};

// Returns only on failure, with the reason in the control page.
int runner_main(const struct nursery_child *child, const struct runner_filters *filters);

#endif
