// Design note. The limit is reached when what was used reaches it; a run may begin while what was
// used and what is reserved stay below. So a search ends a little above its limit at most (by what
// its last runs took longer than expected), and what waits is not given up because of a reservation
// that may be given back.
#include "daemon/sched/account.h"
#include "common/mem.h"
#include "daemon/sched/fair.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HOUR_S 3600.0

struct account_table {
    struct account *by_id;
    struct account *by_path;
    uint64_t next_id;
};

struct account_table *accounts_create(void)
{
    struct account_table *accounts = xcalloc(1, sizeof(*accounts));

    accounts->next_id = 1;
    return accounts;
}

static void free_account(struct account_table *accounts, struct account *account)
{
    HASH_DELETE(by_id, accounts->by_id, account);
    HASH_DELETE(by_path, accounts->by_path, account);
    free(account->name);
    free(account->path);
    free(account);
}

void accounts_free(struct account_table *accounts)
{
    struct account *account;
    struct account *next;

    if (accounts) {
        HASH_ITER (by_id, accounts->by_id, account, next) {
            free_account(accounts, account);
        }
        free(accounts);
    }
}

static struct account *find_path(const struct account_table *accounts, const char *path)
{
    struct account *account;

    HASH_FIND(by_path, accounts->by_path, path, strlen(path), account);
    return account;
}

// Tenants' names have no slash in them, so a path says which of the two it is.
static char *path_of(const char *tenant, const char *search)
{
    return search ? xasprintf("%s/%s", tenant, search) : xstrdup(tenant);
}

static struct account *get(struct account_table *accounts, const char *tenant, const char *search)
{
    char *path = path_of(tenant, search);
    struct account *account = find_path(accounts, path);

    if (account) {
        free(path);
        return account;
    }
    account = xcalloc(1, sizeof(*account));
    account->id = accounts->next_id++;
    account->name = xstrdup(search ? search : tenant);
    account->path = path;
    account->weight = 1;
    account->limit_s = NAN;
    account->per_hour_s = NAN;
    HASH_ADD(by_id, accounts->by_id, id, sizeof(account->id), account);
    HASH_ADD_KEYPTR(by_path, accounts->by_path, account->path, strlen(account->path), account);
    return account;
}

struct account *accounts_tenant(struct account_table *accounts, const char *tenant)
{
    return get(accounts, tenant, NULL);
}

struct account *accounts_search(struct account_table *accounts, const char *tenant,
                                const char *search)
{
    struct account *account = get(accounts, tenant, search);

    account->tenant = get(accounts, tenant, NULL);
    account->users++;
    return account;
}

void account_release(struct account_table *accounts, struct account *account)
{
    if (account && --account->users == 0 && !account->kept) {
        free_account(accounts, account);
    }
}

struct account *accounts_find(const struct account_table *accounts, const char *tenant,
                              const char *search)
{
    char *path = path_of(tenant, search);
    struct account *account = find_path(accounts, path);

    free(path);
    return account;
}

struct account *accounts_find_id(const struct account_table *accounts, uint64_t id)
{
    struct account *account;

    HASH_FIND(by_id, accounts->by_id, &id, sizeof(id), account);
    return account;
}

struct account *accounts_first(const struct account_table *accounts)
{
    return accounts->by_id;
}

// --- settings

double account_tokens(struct account *account, double now_s)
{
    double since = fmax(now_s - account->filled_s, 0);

    if (!isnan(account->per_hour_s)) {
        account->tokens_s =
            fmin(account->per_hour_s, account->tokens_s + account->per_hour_s * since / HOUR_S);
    }
    account->filled_s = now_s;
    return account->tokens_s;
}

double account_recent(struct account *account, double now_s)
{
    double since = fmax(now_s - account->recent_at_s, 0);

    account->recent_s *= exp(-since / ACCOUNT_RECENT_S);
    account->recent_at_s = now_s;
    return account->recent_s;
}

static double setting(double old, double value)
{
    return isnan(value) ? old : isinf(value) ? (double)NAN : value;
}

// What runs may be given back: until it has ended it closes the gate and ends nobody's hope.
static bool is_spent(const struct account *account)
{
    return account->used_s - account->open_s >= account->limit_s; // never when there is no limit
}

void account_set(struct account *account, double weight, double limit_s, double per_hour_s,
                 double now_s)
{
    bool had_hour = !isnan(account->per_hour_s);

    (void)account_tokens(account, now_s);
    account->weight = isnan(weight) ? account->weight : weight;
    account->limit_s = isnan(limit_s) ? account->limit_s : limit_s;
    account->per_hour_s = setting(account->per_hour_s, per_hour_s);
    if (!had_hour && !isnan(account->per_hour_s)) {
        account->tokens_s = account->per_hour_s;
    }
    account->tokens_s = fmin(account->tokens_s, setting(INFINITY, account->per_hour_s));
    account->kept = true;
    account->changed = true;
    account->over = is_spent(account);
}

void account_reset(struct account *account, double now_s)
{
    (void)account_tokens(account, now_s);
    account->used_s = 0;
    account->over = is_spent(account);
    account->tokens_s = isnan(account->per_hour_s) ? 0 : account->per_hour_s;
    account->changed = true;
}

void account_restore(struct account *account, double weight, double limit_s, double per_hour_s,
                     double used_s, double tokens_s, double away_s, double now_s)
{
    account->weight = weight;
    account->limit_s = limit_s;
    account->per_hour_s = per_hour_s;
    account->used_s = used_s;
    account->tokens_s = tokens_s;
    account->filled_s = now_s - fmin(fmax(away_s, 0), HOUR_S);
    (void)account_tokens(account, now_s);
    account->kept = true;
    account->over = used_s >= limit_s;
}

// --- what may begin

static bool has_room(struct account *account, double now_s)
{
    if (!isnan(account->limit_s) && account->used_s + account->reserved_s >= account->limit_s) {
        return false;
    }
    return isnan(account->per_hour_s) || account_tokens(account, now_s) - account->reserved_s > 0;
}

bool account_may_begin(struct account *account, double now_s)
{
    return has_room(account, now_s) && (!account->tenant || has_room(account->tenant, now_s));
}

const struct account *account_spent(const struct account *account)
{
    for (; account; account = account->tenant) {
        if (is_spent(account)) {
            return account;
        }
    }
    return NULL;
}

char *account_sentence(const struct account *spent)
{
    return xasprintf("BUDGET: %s %s has used its %.6g device-seconds; an administrator raises its "
                     "budget with `kcast budget set %s SECONDS`",
                     spent->tenant ? "search" : "tenant", spent->name, spent->limit_s, spent->path);
}

bool accounts_take_over(struct account_table *accounts)
{
    bool over = false;

    for (struct account *a = accounts->by_id; a; a = a->by_id.next) {
        over = over || a->over;
        a->over = false;
    }
    return over;
}

// --- charging

static void add(struct account *account, double used_s, double open_s, double reserved_s,
                double now_s)
{
    bool was_below = !is_spent(account);

    account->tokens_s = account_tokens(account, now_s) - used_s;
    account->recent_s = fmax(account_recent(account, now_s) + used_s, 0);
    account->used_s = fmax(account->used_s + used_s, 0);
    account->open_s = fmax(account->open_s + open_s, 0);
    account->reserved_s = fmax(account->reserved_s + reserved_s, 0);
    account->changed = account->changed || used_s < 0 || used_s > 0;
    account->over = account->over || (was_below && is_spent(account));
}

static void add_both(struct account *account, double used_s, double open_s, double reserved_s,
                     double now_s)
{
    add(account, used_s, open_s, reserved_s, now_s);
    if (account->tenant) {
        add(account->tenant, used_s, open_s, reserved_s, now_s);
    }
}

void account_hold(struct account_hold *hold, struct account *account, double expected_s)
{
    *hold = (struct account_hold){.account = account, .expected_s = expected_s};
    account->users++;
    account->reserved_s += expected_s;
    if (account->tenant) {
        account->tenant->reserved_s += expected_s;
    }
}

void account_charge(struct account_hold *hold, double used_s, double now_s)
{
    if (hold->account && used_s > hold->used_s) {
        double left = fmax(hold->expected_s - hold->used_s, 0);

        add_both(hold->account, used_s - hold->used_s, used_s - hold->used_s,
                 fmax(hold->expected_s - used_s, 0) - left, now_s);
        hold->used_s = used_s;
    }
}

void account_settle(struct account_table *accounts, struct account_hold *hold, double used_s,
                    bool free, double now_s)
{
    if (hold->account) {
        add_both(hold->account, (free ? 0 : used_s) - hold->used_s, -hold->used_s,
                 -fmax(hold->expected_s - hold->used_s, 0), now_s);
        account_release(accounts, hold->account);
        *hold = (struct account_hold){0};
    }
}

void account_visit_changed(struct account_table *accounts,
                           void (*visit)(void *owner, struct account *account), void *owner)
{
    for (struct account *a = accounts->by_id; a; a = a->by_id.next) {
        if (a->kept && a->changed) {
            a->changed = false;
            visit(owner, a);
        }
    }
}
