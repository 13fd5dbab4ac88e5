#include "daemon/jobs/budgets.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/printable.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_ROWS_MAX 1024 // rows about shares in a STATUS
#define BUDGET_ROWS_MAX 4096 // accounts in a reply to BUDGET

struct budgets {
    struct account_table *accounts;
    struct ledger *ledger;
    void (*on_change)(void *owner);
    void *owner;
    size_t pending; // exchanges that wait for the ledger
};

// A change that waits for the ledger.
struct change {
    struct budgets *budgets;
    struct exchange *exchange;
};

struct budgets *budgets_create(struct account_table *accounts, struct ledger *ledger,
                               void (*on_change)(void *owner), void *owner)
{
    struct budgets *budgets = xcalloc(1, sizeof(*budgets));

    *budgets = (struct budgets){
        .accounts = accounts, .ledger = ledger, .on_change = on_change, .owner = owner};
    return budgets;
}

void budgets_free(struct budgets *budgets)
{
    free(budgets);
}

size_t budgets_pending(const struct budgets *budgets)
{
    return budgets->pending;
}

static double now_seconds(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

// --- rows

static void fill_row(struct share_info *row, struct account *account)
{
    const struct account *tenant = account->tenant ? account->tenant : account;

    message_init(&share_info_message, row);
    row->tenant = xstrdup(tenant->name);
    row->search = account->tenant ? xstrdup(account->name) : NULL;
    row->weight = account->weight;
    row->tenant_weight = tenant->weight;
    row->used_seconds = account->used_s;
    row->budget_seconds = isinf(account->limit_s) ? (double)NAN : account->limit_s;
    row->hour_seconds = account->per_hour_s;
    if (!isnan(account->per_hour_s)) {
        row->left_seconds = account_tokens(account, now_seconds());
    }
}

static const char *tenant_of(const struct account *account)
{
    return account->tenant ? account->tenant->name : account->name;
}

struct filling {
    const struct budgets *budgets;
    struct status *reply;
    const struct device_class *device_class;
    const struct caller *caller;
    double recent_s; // recent use of all searches of the device class, visible or not
    size_t first;    // index of the first row of the device class
};

static void on_view(void *owner, enum queue_class in, const struct fair_view *view)
{
    struct filling *filling = owner;
    struct account *account = accounts_find_id(filling->budgets->accounts, view->search);

    if (!account || view->waiting + view->held == 0) {
        return;
    }
    double recent_s = account_recent(account, now_seconds());
    filling->recent_s += recent_s;
    if (!caller_owns(filling->caller, tenant_of(account)) ||
        filling->reply->shares_count >= STATUS_ROWS_MAX) {
        return;
    }
    struct share_info *row;
    filling->reply->shares =
        xgrow(filling->reply->shares, filling->reply->shares_count, sizeof(*row));
    row = &filling->reply->shares[filling->reply->shares_count++];
    fill_row(row, account);
    row->device_class = xstrdup(filling->device_class->name);
    row->queue_class = xstrdup(queue_class_name(in));
    row->share = view->share;
    row->held = view->held;
    row->waiting = view->waiting;
    row->recent = recent_s; // made a fraction when all rows are there
}

void budgets_fill_status(const struct budgets *budgets, const struct devices *devices,
                         const struct caller *caller, struct status *reply)
{
    const struct device_class *device_class = devices->classes;

    for (; device_class; device_class = device_class->next) {
        struct filling filling = {.budgets = budgets,
                                  .reply = reply,
                                  .device_class = device_class,
                                  .caller = caller,
                                  .first = reply->shares_count};

        queue_visit(device_class->queue, on_view, &filling);
        for (size_t i = filling.first; i < reply->shares_count; i++) {
            double *recent = &reply->shares[i].recent;

            *recent = filling.recent_s > 0 ? *recent / filling.recent_s : 0;
        }
    }
}

// --- BUDGET

static void reply_all(struct budgets *budgets, struct exchange *exchange)
{
    const struct caller *caller = exchange_caller(exchange);
    struct account *account = accounts_first(budgets->accounts);
    struct budget_list reply;

    message_init(&budget_list_message, &reply);
    reply.accounts = xcalloc(BUDGET_ROWS_MAX, sizeof(*reply.accounts));
    for (; account && reply.accounts_count < BUDGET_ROWS_MAX; account = account->by_id.next) {
        if (account->kept && caller_owns(caller, tenant_of(account))) {
            fill_row(&reply.accounts[reply.accounts_count++], account);
        }
    }
    exchange_reply(exchange, &budget_list_message, &reply);
    message_clear(&budget_list_message, &reply);
}

static void on_kept(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct change *change = owner;

    (void)answer;
    (void)count;
    if (error) {
        exchange_fail(change->exchange, error);
    } else {
        reply_all(change->budgets, change->exchange);
    }
    change->budgets->pending--;
    free(change);
}

static bool is_limit(double seconds)
{
    return isnan(seconds) || isinf(seconds) || (seconds >= 0 && seconds <= ACCOUNT_BUDGET_MAX_S);
}

int budgets_check(double weight, double seconds, double hour_seconds, struct err *err)
{
    if (!isnan(weight) && !(weight >= FAIR_WEIGHT_MIN && weight <= FAIR_WEIGHT_MAX)) {
        return err_set(err, ERR_INVALID, "a weight of %g; it must be between %g and %g", weight,
                       FAIR_WEIGHT_MIN, FAIR_WEIGHT_MAX);
    }
    if (!is_limit(seconds) || !is_limit(hour_seconds)) {
        return err_set(err, ERR_INVALID, "a budget must be between 0 and %g device-seconds",
                       ACCOUNT_BUDGET_MAX_S);
    }
    return 0;
}

static int check_request(const struct exchange *exchange, const struct budget_request *body,
                         struct err *err)
{
    if (exchange_caller(exchange)->role != CALLER_ADMIN) {
        return err_set(err, ERR_DENIED,
                       "only an administrator may change budgets; %s may look at its own",
                       exchange_caller(exchange)->tenant);
    }
    if (caller_check_tenant(body->tenant, err) != 0) {
        return ERR_INVALID;
    }
    if (body->search && body->search[0] == '\0') {
        return err_set(err, ERR_INVALID, "no search of %s has an empty name; give one, or none",
                       body->tenant);
    }
    if (body->search && printable_check("the name of a search", body->search, err) != 0) {
        return ERR_INVALID;
    }
    return budgets_check(body->weight, body->budget_seconds, body->hour_seconds, err);
}

static struct account *change(struct budgets *budgets, const struct budget_request *body)
{
    struct account *account = body->search
                                  ? accounts_search(budgets->accounts, body->tenant, body->search)
                                  : accounts_tenant(budgets->accounts, body->tenant);

    account_set(account, body->weight, body->budget_seconds, body->hour_seconds, now_seconds());
    if (body->reset) {
        account_reset(account, now_seconds());
    }
    if (body->search) {
        account_release(budgets->accounts, account); // it stays, because account_set keeps it
    }
    log_event(LOG_NOTICE, "budget-set account=%s weight=%g seconds=%g per_hour=%g used=%g",
              account->path, account->weight, account->limit_s, account->per_hour_s,
              account->used_s);
    return account;
}

void budgets_request(struct budgets *budgets, struct exchange *exchange,
                     const struct request *request)
{
    struct budget_request body;

    if (!exchange_read_body(exchange, request, &budget_request_message, &body)) {
        return;
    }
    struct err err = ERR_INIT;
    if (!body.tenant) {
        reply_all(budgets, exchange);
    } else if (check_request(exchange, &body, &err) != 0) {
        exchange_fail(exchange, &err);
    } else {
        struct change *waiting = xcalloc(1, sizeof(*waiting));

        waiting->budgets = budgets;
        waiting->exchange = exchange;
        budgets->pending++;
        ledger_keep_account(budgets->ledger, change(budgets, &body), on_kept, waiting);
        budgets->on_change(budgets->owner);
    }
    message_clear(&budget_request_message, &body);
}

// --- from the ledger

static void on_row(void *owner, const struct ledger_account *row)
{
    struct account_table *accounts = owner;
    struct account *account = row->search ? accounts_search(accounts, row->tenant, row->search)
                                          : accounts_tenant(accounts, row->tenant);
    int64_t wall_s = clock_wall_ns(&clock_system) / (int64_t)NS_PER_S;

    account_restore(account, row->weight, row->limit_s, row->per_hour_s, row->used_s, row->tokens_s,
                    (double)(wall_s - row->at_s), now_seconds());
    if (row->search) {
        account_release(accounts, account);
    }
}

int budgets_load(struct account_table *accounts, struct ledger *ledger, struct err *err)
{
    return ledger_load_accounts(ledger, on_row, accounts, err);
}
