// Who uses device time, how much of it, and how much they may: an account per tenant and one per
// search of a tenant, each with a weight (daemon/sched/fair.h), perhaps a budget of device-seconds
// altogether, and perhaps one per hour, which is a token bucket of an hour's size. What is expected
// of a run that begins is reserved; what it uses is charged while it goes on, to its search and to
// its tenant. Pure: time is an argument, in seconds of any clock that does not go back. Whoever
// owns the ledger writes down what account_visit_changed shows.
#ifndef DAEMON_SCHED_ACCOUNT_H
#define DAEMON_SCHED_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#define ACCOUNT_RECENT_S 600.0 // recent_s is the use of about so many seconds
#define ACCOUNT_BUDGET_MAX_S 1e12

struct account_table;

struct account {
    uint64_t id;            // unique in this process
    char *name;             // of the tenant or of the search
    char *path;             // "tenant" or "tenant/search"
    struct account *tenant; // of a search; NULL for a tenant
    double weight;          // default 1
    double limit_s;         // device-seconds altogether; NaN: no limit, infinite: none on purpose
    double per_hour_s;      // device-seconds per hour; NaN: no limit
    double used_s;          // device-seconds; only what is kept survives the daemon
    double open_s;          // of used_s: by runs that have not ended, which may yet be free
    double reserved_s;      // expected of what runs, beyond what it has used
    double tokens_s;        // left of the hour, at filled_s; may be negative
    double filled_s;
    double recent_s; // used lately, fading; at recent_at_s
    double recent_at_s;
    size_t users; // references
    bool kept;    // has a weight or a budget of its own: outlives its users and the daemon
    bool changed; // since account_visit_changed showed it
    bool over;    // its limit was reached, and accounts_take_over did not tell yet
    UT_hash_handle by_id;
    UT_hash_handle by_path;
};

// A run's part of its accounts, from account_hold to account_settle. Zeroed means nothing.
struct account_hold {
    struct account *account; // of the search; one more user of it
    double expected_s;
    double used_s; // charged so far
};

struct account_table *accounts_create(void);
void accounts_free(struct account_table *accounts); // NULL is fine

// The account, made when it is new. A search's gets one more user.
struct account *accounts_tenant(struct account_table *accounts, const char *tenant);
struct account *accounts_search(struct account_table *accounts, const char *tenant,
                                const char *search);
// One user less. An account that nobody uses and that is not kept is freed. NULL is fine.
void account_release(struct account_table *accounts, struct account *account);
// NULL when there is none. search NULL: the tenant's.
struct account *accounts_find(const struct account_table *accounts, const char *tenant,
                              const char *search);
struct account *accounts_find_id(const struct account_table *accounts, uint64_t id);
struct account *accounts_first(const struct account_table *accounts); // next: by_id.next

// Settings: each is left as it is when it is NaN, and a budget ends when it is infinite. What is
// set is kept from now on.
void account_set(struct account *account, double weight, double limit_s, double per_hour_s,
                 double now_s);
// Forgets what was used so far, and fills the hour's budget.
void account_reset(struct account *account, double now_s);
// As it was written down, `away_s` ago.
void account_restore(struct account *account, double weight, double limit_s, double per_hour_s,
                     double used_s, double tokens_s, double away_s, double now_s);

// Whether a run may begin: no budget of the search or of its tenant is used up or reserved.
bool account_may_begin(struct account *account, double now_s);
// The account, the search's or its tenant's, whose limit is reached by runs that have ended; NULL
// when none is. What waits then has no hope.
const struct account *account_spent(const struct account *account);
// "BUDGET: …", a sentence about a spent one, malloc'd.
char *account_sentence(const struct account *spent);
// Whether a limit was reached since this was asked last.
bool accounts_take_over(struct account_table *accounts);

// A run begins that is expected to take so many device-seconds.
void account_hold(struct account_hold *hold, struct account *account, double expected_s);
// It has used so many by now.
void account_charge(struct account_hold *hold, double used_s, double now_s);
// The end, after so many. free: it gets them back. Zeroes the hold; no-op for a zeroed one.
void account_settle(struct account_table *accounts, struct account_hold *hold, double used_s,
                    bool free, double now_s);
// Tokens and recent use as they are now.
double account_tokens(struct account *account, double now_s);
double account_recent(struct account *account, double now_s);

// Every kept account that changed since the last time, once.
void account_visit_changed(struct account_table *accounts,
                           void (*visit)(void *owner, struct account *account), void *owner);

#endif
