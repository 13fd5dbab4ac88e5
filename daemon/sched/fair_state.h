// The inside of a struct fair, for fair*.c only: fair.c has the rule, fair_members.c the searches
// and tenants that it applies to.
#ifndef DAEMON_SCHED_FAIR_STATE_H
#define DAEMON_SCHED_FAIR_STATE_H

#include "common/heap.h"
#include "daemon/sched/fair.h"
#include <uthash.h>

struct fair_tenant;

struct fair_search {
    uint64_t id;
    struct fair_tenant *tenant;
    double weight;
    double virtual_time; // seconds per weight, on its tenant's scale
    double estimate;     // mean cost of an entry, in seconds
    size_t taken;        // tickets
    uint32_t held;       // devices
    size_t index;        // in the tenant's heap
    struct heap entries; // of struct fair_entry
    UT_hash_handle hh;
};

struct fair_tenant {
    uint64_t id;
    double weight;
    double virtual_time;  // on the whole's scale
    double searches_time; // V of its searches
    double active_weight; // of its active searches
    size_t active;        // of them
    size_t members;       // searches that it has, active or not
    size_t index;         // in fair.waiting
    struct heap waiting;  // searches that have entries
    UT_hash_handle hh;
};

struct fair {
    struct fair_tenant *tenants;
    struct fair_search *searches; // of all tenants
    struct heap waiting;          // tenants that have entries
    double virtual_time;
    double active_weight;
    size_t active; // tenants
    size_t count;  // entries
    size_t taken;  // tickets
};

// The search, new if need be, with its weights as they are now.
struct fair_search *fair_get_search(struct fair *fair, const struct fair_who *who);
// It has entries or holds something.
bool fair_is_active(const struct fair_search *search);
// A search that did nothing begins to: it and its tenant get no credit for their absence. To be
// called before it has anything.
void fair_activate(struct fair *fair, struct fair_search *search);
// It has nothing any more. It and others may be freed.
void fair_deactivate(struct fair *fair, struct fair_search *search);
// What the search is to have of everything, by the weights of those that are active.
double fair_share_of(const struct fair *fair, const struct fair_search *search);

#endif
