// Weights and budgets as callers see and change them.
#include "common/clock.h"
#include "common/file.h"
#include "daemon/jobs/budgets.h"
#include "tests/support/service_pair.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct service_pair pair;
    char *dir;
    struct ledger *ledger;
    struct account_table *accounts;
    struct budgets *budgets;
    int changes;
};

static void on_change(void *owner)
{
    ((struct fixture *)owner)->changes++;
}

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    assert_int_equal(request->op, OP_BUDGET);
    budgets_request(((struct fixture *)owner)->budgets, exchange, request);
}

static void begin(struct fixture *f)
{
    char *path = xasprintf("%s/ledger.db", f->dir);

    service_pair_init(&f->pair);
    assert_int_equal(ledger_open(&f->ledger, path, 0, NULL), 0);
    f->accounts = accounts_create();
    assert_int_equal(budgets_load(f->accounts, f->ledger, NULL), 0);
    assert_int_equal(ledger_start(f->ledger, &f->pair.loop, NULL), 0);
    f->budgets = budgets_create(f->accounts, f->ledger, on_change, f);
    service_pair_open(&f->pair, on_request, f);
    free(path);
}

static void end(struct fixture *f)
{
    ledger_close(f->ledger);
    service_pair_close(&f->pair);
    assert_int_equal(budgets_pending(f->budgets), 0);
    budgets_free(f->budgets);
    accounts_free(f->accounts);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-budgets", NULL), 0);
    begin(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    end(f);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static struct budget_request of(const char *tenant, const char *search)
{
    struct budget_request request;

    message_init(&budget_request_message, &request);
    request.tenant = (char *)(uintptr_t)tenant;
    request.search = (char *)(uintptr_t)search;
    return request;
}

static int ask(struct fixture *f, const struct budget_request *request, struct budget_list *ret)
{
    struct err err;
    int rc = service_pair_call(&f->pair, OP_BUDGET, &budget_request_message, request,
                               &budget_list_message, ret, &err);

    if (rc != 0) {
        memset(ret, 0, sizeof(*ret));
    }
    return rc;
}

// The numbers of one row; the tenant's where search is NULL.
static struct share_info row_of(const struct budget_list *list, const char *tenant,
                                const char *search)
{
    for (size_t i = 0; i < list->accounts_count; i++) {
        const struct share_info *row = &list->accounts[i];

        if (strcmp(row->tenant, tenant) == 0 &&
            (search ? row->search && strcmp(row->search, search) == 0 : !row->search)) {
            return *row;
        }
    }
    fail_msg("no row of %s/%s", tenant, search ? search : "-");
    return (struct share_info){0};
}

static void a_budget_is_set_shown_and_survives(void **state)
{
    struct fixture *f = *state;
    struct budget_request request = of("t", "s");

    request.weight = 4;
    request.budget_seconds = 60;
    struct budget_list list;
    assert_int_equal(ask(f, &request, &list), 0);
    struct share_info row = row_of(&list, "t", "s");
    assert_true(fabs(row.weight - 4) < 1e-12);
    assert_true(fabs(row.budget_seconds - 60) < 1e-12);
    assert_true(isnan(row.hour_seconds));
    assert_int_equal(f->changes, 1);
    message_clear(&budget_list_message, &list);
    end(f);
    begin(f);
    request = of(NULL, NULL);
    assert_int_equal(ask(f, &request, &list), 0);
    row = row_of(&list, "t", "s");
    assert_true(fabs(row.weight - 4) < 1e-12);
    assert_true(fabs(row.budget_seconds - 60) < 1e-12);
    message_clear(&budget_list_message, &list);
    assert_int_equal(f->changes, 1); // to look changes nothing
}

static void what_is_not_named_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct budget_request request = of("t", NULL);

    request.weight = 2;
    request.hour_seconds = 100;
    struct budget_list list;
    assert_int_equal(ask(f, &request, &list), 0);
    message_clear(&budget_list_message, &list);
    request = of("t", NULL);
    request.budget_seconds = 5;
    assert_int_equal(ask(f, &request, &list), 0);
    struct share_info row = row_of(&list, "t", NULL);
    assert_true(fabs(row.weight - 2) < 1e-12);
    assert_true(fabs(row.hour_seconds - 100) < 1e-12);
    assert_true(fabs(row.budget_seconds - 5) < 1e-12);
    message_clear(&budget_list_message, &list);
    request.budget_seconds = INFINITY; // none any more
    assert_int_equal(ask(f, &request, &list), 0);
    assert_true(isnan(row_of(&list, "t", NULL).budget_seconds));
    message_clear(&budget_list_message, &list);
}

static void a_reset_forgets_what_was_used(void **state)
{
    struct fixture *f = *state;
    struct budget_request request = of("t", NULL);
    double now_s = clock_seconds(clock_now_ns(&clock_system));

    request.budget_seconds = 5;
    struct budget_list list;
    assert_int_equal(ask(f, &request, &list), 0);
    message_clear(&budget_list_message, &list);
    struct account_hold hold = {0};
    account_hold(&hold, accounts_search(f->accounts, "t", "s"), 1);
    account_settle(f->accounts, &hold, 9, false, now_s);
    assert_non_null(account_spent(accounts_tenant(f->accounts, "t")));
    request = of(NULL, NULL);
    assert_int_equal(ask(f, &request, &list), 0);
    assert_true(fabs(row_of(&list, "t", NULL).used_seconds - 9) < 1e-9);
    message_clear(&budget_list_message, &list);
    request = of("t", NULL);
    request.reset = true;
    assert_int_equal(ask(f, &request, &list), 0);
    assert_true(row_of(&list, "t", NULL).used_seconds < 1e-9);
    message_clear(&budget_list_message, &list);
    assert_null(account_spent(accounts_tenant(f->accounts, "t")));
}

static void what_makes_no_sense_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct budget_request bad[4] = {of("t", NULL), of("t", NULL), of("t", ""), of("a/b", NULL)};

    bad[0].weight = 0;
    bad[1].budget_seconds = -1;
    struct budget_list list;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(ask(f, &bad[i], &list), ERR_INVALID);
    }
    assert_int_equal(f->changes, 0);
    assert_null(accounts_first(f->accounts));
}

static void limits_of_weights_and_budgets(void **state)
{
    (void)state;
    assert_int_equal(budgets_check(NAN, NAN, NAN, NULL), 0);
    assert_int_equal(budgets_check(FAIR_WEIGHT_MIN, 0, INFINITY, NULL), 0);
    assert_int_equal(budgets_check(FAIR_WEIGHT_MAX, ACCOUNT_BUDGET_MAX_S, NAN, NULL), 0);
    assert_int_equal(budgets_check(FAIR_WEIGHT_MIN / 2, NAN, NAN, NULL), ERR_INVALID);
    assert_int_equal(budgets_check(FAIR_WEIGHT_MAX * 2, NAN, NAN, NULL), ERR_INVALID);
    assert_int_equal(budgets_check(NAN, ACCOUNT_BUDGET_MAX_S * 2, NAN, NULL), ERR_INVALID);
    assert_int_equal(budgets_check(NAN, NAN, -1, NULL), ERR_INVALID);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_budget_is_set_shown_and_survives),
        TEST(what_is_not_named_stays_as_it_is),
        TEST(a_reset_forgets_what_was_used),
        TEST(what_makes_no_sense_changes_nothing),
        cmocka_unit_test(limits_of_weights_and_budgets),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
