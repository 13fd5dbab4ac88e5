// Fair sharing of something that is held for a time. Entries belong to searches, and searches
// belong to tenants. Tenants share by weight, and so do the searches of one tenant. Both levels
// follow start-time fair queueing for several servers (SFQ(D): Jin, Chase and Kaur, SIGMETRICS
// 2004): the one that has been charged the fewest seconds per weight goes first, and one that had
// nothing to do gets no credit for that time. Within a search the lower priority number goes first,
// then the older entry.
//
// The cost of an entry is known only at its end. It is charged the recent mean of its search when
// it is taken, that of all searches when its own is new, more while it is held longer than that,
// and the difference at its end (retroactive and refresh charging: 2DFQ, Mace et al., SIGCOMM
// 2016).
//
// queue.c has one struct fair for each class. Knows nothing of jobs, devices or time.
#ifndef DAEMON_SCHED_FAIR_H
#define DAEMON_SCHED_FAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Weights outside this range are set to its ends.
#define FAIR_WEIGHT_MIN 0.01
#define FAIR_WEIGHT_MAX 100.0

struct fair;
struct fair_search;

// The search and the tenant of an entry. The weights hold for all entries of that tenant and that
// search from now on.
struct fair_who {
    uint64_t tenant;      // number of the tenant
    uint64_t search;      // number of the search, unique among all tenants
    double tenant_weight; // weight of the tenant
    double weight;        // weight of the search
};

// Embedded in whatever waits. It is in at most one struct fair at a time; a zeroed one is in none.
struct fair_entry {
    struct fair_search *search; // NULL when it is in no struct fair
    size_t index;               // in the search's heap
    uint64_t priority;          // lower numbers go first
    uint64_t order;             // unique; lower numbers are older
    uint32_t avoid;             // number of a device that it avoids; 0 when there is none
    bool fresh;                 // it needs a process that has measured nothing
};

// An entry that was taken and has not been finished. A zeroed one stands for nothing.
struct fair_grant {
    struct fair_search *search;
    double charged; // seconds charged so far
};

// The devices that there are to give. At least one device is idle.
struct fair_terms {
    uint32_t devices; // number of devices, which bounds what one search holds; 0 for no bound
    uint32_t sole;    // number of the idle device when exactly one is idle, else 0. An entry that
                      // avoids it does not begin, unless there is only one device
    bool fresh_waits; // the idle device has no unused process yet: entries that are fresh wait
    bool first;       // only searches that hold none begin
    // Returns whether a search may hold devices now. NULL lets all searches.
    bool (*may)(void *owner, uint64_t search);
    void *owner;
};

// One search as fair_visit shows it.
struct fair_view {
    uint64_t tenant;
    uint64_t search;
    double share;    // part of all devices, by the weights of all that wait or hold something
    uint32_t held;   // devices that it holds
    size_t waiting;  // entries that wait
    double ahead_s;  // seconds per weight by which it is ahead of its tenant's virtual time
    double estimate; // seconds that an entry is expected to take
};

struct fair *fair_create(void);
// It must contain no entry that is still used. NULL is fine.
void fair_free(struct fair *fair);

// Adds an entry that is in no struct fair. Its priority and order are set.
void fair_add(struct fair *fair, struct fair_entry *entry, const struct fair_who *who);
// Removes an entry. No-op when it is in no struct fair.
void fair_remove(struct fair *fair, struct fair_entry *entry);
// Returns the entry that goes next, or NULL when none may begin. Searches that hold less than
// ceil(share * devices) + 1 devices are looked at first, and then all searches, as far as the terms
// let them. Entries that avoid the only idle device, or wait for it, are passed over. Changes
// nothing.
struct fair_entry *fair_first(struct fair *fair, const struct fair_terms *terms);
// Stores in ret[] up to max entries that would go next, one after the other, if devices became idle
// and nothing else happened. Returns how many. Changes nothing.
size_t fair_preview(struct fair *fair, const struct fair_terms *terms, struct fair_entry **ret,
                    size_t max);
// Takes the entry out and charges its search. The caller finishes *ret exactly once.
void fair_take(struct fair *fair, struct fair_entry *entry, struct fair_grant *ret);
// Charges a grant that has been held for `seconds` so far.
void fair_refresh(struct fair *fair, struct fair_grant *grant, double seconds);
// Finishes a grant that was held for `seconds`. With `free` the search is not charged and its mean
// stays as it is, because the search neither caused the end nor gained by it. Zeroes the grant;
// no-op for a zeroed one.
void fair_finish(struct fair *fair, struct fair_grant *grant, double seconds, bool free);
// Forgets searches and tenants that no longer matter. To be called from time to time.
void fair_sweep(struct fair *fair);

size_t fair_count(const struct fair *fair);   // entries that wait
size_t fair_held(const struct fair *fair);    // grants that have not been finished
size_t fair_members(const struct fair *fair); // searches that are remembered
// Calls `visit` for every search that is remembered.
void fair_visit(const struct fair *fair, void (*visit)(void *owner, const struct fair_view *view),
                void *owner);
bool fair_check(const struct fair *fair); // checks the invariants, for assert

#endif
