// The inside of a struct fair, for fair.c and fair_members.c only. fair.c decides who goes next and
// charges; fair_members.c keeps the searches and tenants.
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
    double virtual_time; // seconds charged per weight, on the scale of its tenant's searches
    double estimate;     // mean cost of an entry in seconds
    size_t taken;        // grants that have not been finished
    uint32_t held;       // devices that it holds
    size_t index;        // in the tenant's heap
    struct heap entries; // entries that wait
    UT_hash_handle hh;
};

struct fair_tenant {
    uint64_t id;
    double weight;
    double virtual_time;  // seconds charged per weight, on the scale of all tenants
    double searches_time; // virtual time of its searches as a whole
    double active_weight; // sum of the weights of its active searches
    size_t active;        // number of its active searches
    size_t members;       // number of its searches, active or not
    size_t index;         // in fair.waiting
    struct heap waiting;  // its searches that have entries
    UT_hash_handle hh;
};

struct fair {
    struct fair_tenant *tenants;
    struct fair_search *searches; // of all tenants
    struct heap waiting;          // tenants that have entries
    double virtual_time;          // of the tenants as a whole
    double active_weight;         // sum of the weights of the active tenants
    double estimate;              // mean cost of all entries in seconds, for new searches
    size_t active;                // number of active tenants
    size_t count;                 // entries that wait
    size_t taken;                 // grants that have not been finished
};

// Returns the search, which is made when it is new, and sets its weight and its tenant's.
struct fair_search *fair_get_search(struct fair *fair, const struct fair_who *who);
// Returns whether the search has entries or unfinished grants.
bool fair_is_active(const struct fair_search *search);
// Makes a search active. It and its tenant get no credit for the time before. To be called before
// the search has an entry.
void fair_activate(struct fair *fair, struct fair_search *search);
// Makes a search inactive. It, its tenant and others may be freed.
void fair_deactivate(struct fair *fair, struct fair_search *search);
// Returns the part of all devices that the search should have, by the weights of the active ones.
double fair_share_of(const struct fair *fair, const struct fair_search *search);

#endif
