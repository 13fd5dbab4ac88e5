// Design note. A limit is reached when the use by finished runs reaches it. A run may begin as long
// as the use and the reservations together stay below the limit. So a search exceeds its limit at
// most by what its last runs took longer than expected, and no waiting job is cancelled because of
// a reservation that may be given back.
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

// The name of a tenant contains no slash, so the paths of tenants and searches cannot be equal.
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
    account->kept = !search;
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

// What a run in progress has used may be given back at its end, so it does not count here.
static bool is_exhausted(const struct account *account)
{
    return account->used_s - account->running_s >=
           account->limit_s; // false when the limit is NaN or infinite
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
    account->newly_exhausted = is_exhausted(account);
}

void account_reset(struct account *account, double now_s)
{
    (void)account_tokens(account, now_s);
    account->used_s = 0;
    account->newly_exhausted = is_exhausted(account);
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
    account->newly_exhausted = used_s >= limit_s;
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

const struct account *account_exhausted(const struct account *account)
{
    for (; account; account = account->tenant) {
        if (is_exhausted(account)) {
            return account;
        }
    }
    return NULL;
}

char *account_sentence(const struct account *exhausted)
{
    return xasprintf("BUDGET: %s %s has used its %.6g device-seconds; an administrator raises its "
                     "budget with `kcast budget set %s SECONDS`",
                     exhausted->tenant ? "search" : "tenant", exhausted->name, exhausted->limit_s,
                     exhausted->path);
}

bool accounts_take_exhausted(struct account_table *accounts)
{
    bool over = false;

    for (struct account *a = accounts->by_id; a; a = a->by_id.next) {
        over = over || a->newly_exhausted;
        a->newly_exhausted = false;
    }
    return over;
}

// --- charging

static void add(struct account *account, double used_s, double running_s, double reserved_s,
                double now_s)
{
    bool was_below = !is_exhausted(account);

    account->tokens_s = account_tokens(account, now_s) - used_s;
    account->recent_s = fmax(account_recent(account, now_s) + used_s, 0);
    account->used_s = fmax(account->used_s + used_s, 0);
    account->running_s = fmax(account->running_s + running_s, 0);
    account->reserved_s = fmax(account->reserved_s + reserved_s, 0);
    account->changed = account->changed || used_s < 0 || used_s > 0;
    account->newly_exhausted = account->newly_exhausted || (was_below && is_exhausted(account));
}

static void add_both(struct account *account, double used_s, double running_s, double reserved_s,
                     double now_s)
{
    add(account, used_s, running_s, reserved_s, now_s);
    if (account->tenant) {
        add(account->tenant, used_s, running_s, reserved_s, now_s);
    }
}

void account_reserve(struct account_reservation *reservation, struct account *account,
                     double expected_s)
{
    *reservation = (struct account_reservation){.account = account, .expected_s = expected_s};
    account->users++;
    account->reserved_s += expected_s;
    if (account->tenant) {
        account->tenant->reserved_s += expected_s;
    }
}

void account_charge(struct account_reservation *reservation, double used_s, double now_s)
{
    if (reservation->account && used_s > reservation->used_s) {
        double left = fmax(reservation->expected_s - reservation->used_s, 0);

        add_both(reservation->account, used_s - reservation->used_s, used_s - reservation->used_s,
                 fmax(reservation->expected_s - used_s, 0) - left, now_s);
        reservation->used_s = used_s;
    }
}

void account_finish(struct account_table *accounts, struct account_reservation *reservation,
                    double used_s, bool free, double now_s)
{
    if (reservation->account) {
        add_both(reservation->account, (free ? 0 : used_s) - reservation->used_s,
                 -reservation->used_s, -fmax(reservation->expected_s - reservation->used_s, 0),
                 now_s);
        account_release(accounts, reservation->account);
        *reservation = (struct account_reservation){0};
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
