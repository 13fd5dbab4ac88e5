#include "replay/peers.h"
#include "common/mem.h"
#include "replay/budget.h"
#include <string.h>

static int play_ordered(const struct peer_search *search, struct player_outcome *ret,
                        struct err *err)
{
    const char *space = catalogue_name(search->catalogue);
    const struct order *order = orders_find(search->orders, search->variant, space, search->seed);
    uint64_t count = catalogue_space(search->catalogue)->head.candidates;

    if (!order) {
        return err_set(
            err, ERR_NOT_FOUND,
            "the orders have no line for this search; make them for these spaces and seeds");
    }
    struct budget budget;
    budget_init(&budget, search->catalogue, search->budget_seconds);
    int rc = 0;
    for (size_t i = 0; i < order->count && !budget_empty(&budget) && rc == 0; i++) {
        if (order->candidate[i] > count) {
            rc = err_set(err, ERR_INVALID,
                         "the orders name candidate %llu of %llu; make them from this space",
                         (unsigned long long)order->candidate[i], (unsigned long long)count);
        } else {
            (void)budget_measure(&budget, (size_t)order->candidate[i] - 1);
        }
    }
    if (rc == 0) {
        *ret = budget.outcome;
    }
    budget_release(&budget);
    return rc;
}

const struct peer peer_ordered = {
    .name = "ordered", .help = "in a given order", .play = play_ordered};

const struct peer *peer_find(const char *name)
{
    static const struct peer *const all[] = {&peer_tvm, &peer_tvm_knobs, &peer_tenth};

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}
