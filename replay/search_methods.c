#include "replay/search_methods.h"

#include "common/mem.h"
#include "replay/budget.h"
#include <string.h>

static int run_sequence(const struct method_search *search, struct search_outcome *ret,
                        struct err *err)
{
    const char *space = recorded_space_name(search->recorded);
    const struct sequence *sequence =
        sequences_find(search->sequences, search->variant, space, search->seed);
    uint64_t count = recorded_space_data(search->recorded)->head.candidates;

    if (!sequence) {
        return err_set(
            err, ERR_NOT_FOUND,
            "the orders have no line for this search; make them for these spaces and seeds");
    }
    struct budget budget;
    budget_init(&budget, search->recorded, search->budget_seconds);
    int rc = 0;
    for (size_t i = 0; i < sequence->count && !budget_empty(&budget) && rc == 0; i++) {
        if (sequence->candidate[i] > count) {
            rc = err_set(err, ERR_INVALID,
                         "the orders name candidate %llu of %llu; make them from this space",
                         (unsigned long long)sequence->candidate[i], (unsigned long long)count);
        } else {
            (void)budget_measure(&budget, (size_t)sequence->candidate[i] - 1);
        }
    }
    if (rc == 0) {
        *ret = budget.outcome;
    }
    budget_release(&budget);
    return rc;
}

const struct search_method method_sequence = {
    .name = "ordered", .help = "in a given order", .run = run_sequence};

const struct search_method *search_method_find(const char *name)
{
    static const struct search_method *const all[] = {&method_tvm, &method_tvm_knobs,
                                                      &method_tenth};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}
