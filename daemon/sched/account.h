// Accounts of device time: how many device-seconds each tenant and each search has used, its weight
// (daemon/sched/fair.h), and its budget. A budget may be a total of device-seconds, or an amount
// per hour, which is a token bucket that holds one hour's amount. When a run begins, the seconds
// that it is expected to take are reserved; what it uses is charged while it goes on, both to its
// search and to its tenant.
//
// Used by daemon/jobs and daemon/run. Knows nothing of jobs, devices or the ledger: the caller
// writes down what account_visit_changed shows. Time is an argument, in seconds of any monotonic
// clock.
#ifndef DAEMON_SCHED_ACCOUNT_H
#define DAEMON_SCHED_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#define ACCOUNT_RECENT_S 600.0    // time constant of recent_s in seconds
#define ACCOUNT_BUDGET_MAX_S 1e12 // largest budget in device-seconds

struct account_table;

struct account {
    uint64_t id;            // unique in this process
    char *name;             // of the tenant or of the search
    char *path;             // "tenant" or "tenant/search"
    struct account *tenant; // of a search; NULL for a tenant
    double weight;          // share relative to others of the same level; 1 by default
    double limit_s;         // budget in total; NaN when never set, infinite when removed
    double per_hour_s;      // budget per hour; NaN when there is none
    double used_s;          // device-seconds used so far
    double running_s;       // part of used_s by runs that have not ended and may become free
    double reserved_s;      // seconds that runs in progress are expected to use from now on
    double tokens_s;        // left of the budget per hour at filled_s; may be negative
    double filled_s;        // time at which tokens_s was computed
    double recent_s;        // use that decays with ACCOUNT_RECENT_S, at recent_at_s
    double recent_at_s;     // time at which recent_s was computed
    size_t users;           // number of references
    bool kept;              // a tenant's, or set up: outlives its users, and the ledger has it
    bool changed;           // since account_visit_changed showed it
    bool newly_exhausted;   // its limit was reached since accounts_take_exhausted
    UT_hash_handle by_id;
    UT_hash_handle by_path;
};

// What one run has reserved and charged, from account_reserve to account_finish. A zeroed struct
// means that nothing is reserved.
struct account_reservation {
    struct account *account; // of the search; counted as a user of it
    double expected_s;       // seconds that the run is expected to take
    double used_s;           // seconds charged so far
};

struct account_table *accounts_create(void);
void accounts_free(struct account_table *accounts); // NULL is fine

// Returns the account, which is made when it is new. The account of a search gets one more user.
struct account *accounts_tenant(struct account_table *accounts, const char *tenant);
struct account *accounts_search(struct account_table *accounts, const char *tenant,
                                const char *search);
// Gives up one use of an account. An account without users that is not kept is freed. NULL is fine.
void account_release(struct account_table *accounts, struct account *account);
// Returns the account, or NULL when there is none. With search NULL it is the tenant's account.
struct account *accounts_find(const struct account_table *accounts, const char *tenant,
                              const char *search);
struct account *accounts_find_id(const struct account_table *accounts, uint64_t id);
// Returns the first account; account->by_id.next is the next one.
struct account *accounts_first(const struct account_table *accounts);

// Sets weight, total budget and budget per hour. A value that is NaN leaves the setting as it is;
// an infinite budget removes the limit. The account is kept from now on.
void account_set(struct account *account, double weight, double limit_s, double per_hour_s,
                 double now_s);
// Sets the use to zero and fills the budget per hour.
void account_reset(struct account *account, double now_s);
// Sets the account to what was written down away_s seconds ago.
void account_restore(struct account *account, double weight, double limit_s, double per_hour_s,
                     double used_s, double tokens_s, double away_s, double now_s);

// Returns whether a run may begin: what has been used and what is reserved leaves something of
// every budget of the search and its tenant.
bool account_may_begin(struct account *account, double now_s);
// Returns the account, of the search or of its tenant, whose total budget has been used up by runs
// that have ended; NULL when there is none. Waiting jobs of such an account can never begin.
const struct account *account_exhausted(const struct account *account);
// Returns a sentence about an exhausted account that begins with "BUDGET:". The caller frees it.
char *account_sentence(const struct account *exhausted);
// Returns whether the limit of any account was reached since the last call.
bool accounts_take_exhausted(struct account_table *accounts);

// Reserves expected_s device-seconds for a run that begins.
void account_reserve(struct account_reservation *reservation, struct account *account,
                     double expected_s);
// Charges a run that has used used_s device-seconds so far.
void account_charge(struct account_reservation *reservation, double used_s, double now_s);
// Charges a run that has ended after used_s device-seconds and gives up the rest of its
// reservation. With `free`, what was charged is given back. Zeroes the reservation; no-op for a
// zeroed one.
void account_finish(struct account_table *accounts, struct account_reservation *reservation,
                    double used_s, bool free, double now_s);
// Returns what is left of the budget per hour. May be negative.
double account_tokens(struct account *account, double now_s);
// Returns the decayed recent use in device-seconds.
double account_recent(struct account *account, double now_s);

// Calls `visit` for every kept account that has changed since the last call.
void account_visit_changed(struct account_table *accounts,
                           void (*visit)(void *owner, struct account *account), void *owner);

#endif
