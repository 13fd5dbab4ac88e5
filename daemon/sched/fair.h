// Fair shares of something that is held for a time. Entries belong to searches, searches to
// tenants. Tenants share by weight, and within a tenant its searches do, both by the same rule:
// start-time fair queueing for several servers (SFQ(D): Jin, Chase and Kaur, SIGMETRICS 2004), the
// one that has been charged the fewest seconds per weight goes first, and who was away gets no
// credit for it. Within a search the lower priority number goes first, then the older entry. What
// an entry costs is known only afterwards: it is charged its search's recent mean when it is taken,
// more while it is held longer than that, and corrected at its end (retroactive and refresh
// charging: 2DFQ, Mace et al., SIGCOMM 2016). Knows nothing of jobs, devices or time.
#ifndef DAEMON_SCHED_FAIR_H
#define DAEMON_SCHED_FAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAIR_WEIGHT_MIN 0.01
#define FAIR_WEIGHT_MAX 100.0

struct fair;
struct fair_search;

// Whose an entry is. The weights hold for all entries of the tenant and of the search from now on.
struct fair_who {
    uint64_t tenant;
    uint64_t search; // unique among those of all tenants
    double tenant_weight;
    double weight;
};

// Embedded in what waits; zeroed means "nowhere". In one struct fair at a time.
struct fair_entry {
    struct fair_search *search; // NULL: nowhere
    size_t index;               // in the search's heap
    uint64_t priority;          // lower goes first
    uint64_t order;             // lower is older; unique
    uint32_t avoid;             // a device that it had better not get; 0: none
};

// What was taken, until fair_settle. Zeroed means nothing.
struct fair_ticket {
    struct fair_search *search;
    double charged; // seconds so far
};

// What there is to give. One device at least is idle.
struct fair_terms {
    uint32_t devices; // altogether, for the bound on what one search holds; 0: no bound
    uint32_t sole;    // the one device that is idle, when there is one only; else 0. Entries that
                      // avoid it do not begin, unless it is the only one altogether
    // Whether a search may hold devices at all just now; NULL: all may.
    bool (*may)(void *owner, uint64_t search);
    void *owner;
};

// One search as fair_visit shows it.
struct fair_view {
    uint64_t tenant;
    uint64_t search;
    double share;    // of everything, by the weights of all that wait or hold something
    uint32_t held;   // devices
    size_t waiting;  // entries
    double ahead_s;  // charged beyond its tenant's virtual time, per weight
    double estimate; // seconds that an entry of it is expected to take
};

struct fair *fair_create(void);
void fair_free(struct fair *fair); // must be empty of entries that are still used; NULL is fine

// priority and order of the entry are set; it is nowhere.
void fair_add(struct fair *fair, struct fair_entry *entry, const struct fair_who *who);
void fair_remove(struct fair *fair, struct fair_entry *entry); // no-op when it is nowhere
// Who goes next under these terms: of the searches that hold fewer than their bound, ceil(share x
// devices) + 1, the first whose next entry may begin; when there is none, of the others too.
// Entries that avoid the only idle device are passed over. NULL when none may. Changes nothing.
struct fair_entry *fair_first(struct fair *fair, const struct fair_terms *terms);
// Takes the entry out and charges its search; settle *ret exactly once.
void fair_take(struct fair *fair, struct fair_entry *entry, struct fair_ticket *ret);
// It has been held for so many seconds already.
void fair_refresh(struct fair *fair, struct fair_ticket *ticket, double seconds);
// Its end after so many seconds. free: it is not charged and nothing is learnt from it, because it
// was no fault or no gain of the search's. Zeroes the ticket; no-op for a zeroed one.
void fair_settle(struct fair *fair, struct fair_ticket *ticket, double seconds, bool free);
// Forgets searches and tenants that no longer matter. To be called now and then.
void fair_sweep(struct fair *fair);

size_t fair_count(const struct fair *fair);   // entries
size_t fair_held(const struct fair *fair);    // tickets that are not settled
size_t fair_members(const struct fair *fair); // searches that are remembered
void fair_visit(const struct fair *fair, void (*visit)(void *owner, const struct fair_view *view),
                void *owner);
bool fair_check(const struct fair *fair); // invariants, for assert

#endif
