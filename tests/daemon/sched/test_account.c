// Accounts: which runs may begin, what is charged and given back, and budgets per hour.
#include "daemon/sched/account.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NEAR 1e-6

static struct account_table *accounts;
static struct account *search; // of tenant "t"

static int set_up(void **state)
{
    (void)state;
    accounts = accounts_create();
    search = accounts_search(accounts, "t", "s");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    accounts_free(accounts);
    return 0;
}

static void without_budgets_everything_may_begin(void **state)
{
    (void)state;
    assert_true(account_may_begin(search, 0));
    struct account_reservation hold;
    account_reserve(&hold, search, 1e9);
    assert_true(account_may_begin(search, 0));
    account_finish(accounts, &hold, 1e9, false, 1);
    assert_true(account_may_begin(search, 1));
    assert_null(account_exhausted(search));
    assert_false(accounts_take_exhausted(accounts));
    assert_float_equal(search->used_s, 1e9, NEAR);
    assert_float_equal(search->tenant->used_s, 1e9, NEAR);
}

static void what_runs_is_charged_while_it_runs(void **state)
{
    (void)state;
    struct account_reservation hold;
    account_reserve(&hold, search, 3);
    account_charge(&hold, 1, 1);
    assert_float_equal(search->used_s, 1, NEAR);
    assert_float_equal(search->reserved_s, 2, NEAR);
    account_charge(&hold, 5, 5);
    assert_float_equal(search->used_s, 5, NEAR);
    assert_float_equal(search->tenant->used_s, 5, NEAR);
    assert_float_equal(search->reserved_s, 0, NEAR);
    account_charge(&hold, 4, 6); // never less
    assert_float_equal(search->used_s, 5, NEAR);
    account_finish(accounts, &hold, 6, false, 6);
    assert_float_equal(search->used_s, 6, NEAR);
    account_finish(accounts, &hold, 6, false, 6); // once is enough
    assert_float_equal(search->used_s, 6, NEAR);
}

static void what_is_free_is_given_back(void **state)
{
    (void)state;
    struct account_reservation hold;
    account_reserve(&hold, search, 3);
    account_charge(&hold, 5, 5);
    account_finish(accounts, &hold, 6, true, 6);
    assert_float_equal(search->used_s, 0, NEAR);
    assert_float_equal(search->tenant->used_s, 0, NEAR);
    assert_float_equal(search->reserved_s, 0, NEAR);
    assert_float_equal(search->tenant->reserved_s, 0, NEAR);
}

static void a_limit_counts_what_is_reserved_but_ends_only_what_is_hopeless(void **state)
{
    (void)state;
    account_set(search, NAN, 10, NAN, 0);
    struct account_reservation first;
    account_reserve(&first, search, 6);
    assert_true(account_may_begin(search, 0));
    struct account_reservation second;
    account_reserve(&second, search, 6);
    assert_false(account_may_begin(search, 0)); // 12 are promised
    assert_null(account_exhausted(search));     // but may come back
    account_finish(accounts, &first, 2, false, 2);
    assert_true(account_may_begin(search, 2));
    account_charge(&second, 8, 8);
    assert_false(account_may_begin(search, 8));
    assert_null(account_exhausted(search)); // it may be disturbed, or lost
    assert_false(accounts_take_exhausted(accounts));
    account_finish(accounts, &second, 9, true, 9); // and was
    assert_true(account_may_begin(search, 9));
    assert_false(accounts_take_exhausted(accounts));
    account_reserve(&second, search, 6);
    account_charge(&second, 8, 9);
    account_finish(accounts, &second, 9, false, 9);
    assert_ptr_equal(account_exhausted(search), search);
    assert_true(accounts_take_exhausted(accounts));
    assert_false(accounts_take_exhausted(accounts)); // told once
    assert_float_equal(search->used_s, 11, NEAR);    // what ran was finished and charged
    account_set(search, NAN, 20, NAN, 9);
    assert_null(account_exhausted(search));
    assert_true(account_may_begin(search, 9));
}

static void a_tenants_limit_holds_for_its_searches(void **state)
{
    struct account *other = accounts_search(accounts, "t", "other");
    struct account *stranger = accounts_search(accounts, "u", "s");

    (void)state;
    account_set(search->tenant, NAN, 5, NAN, 0);
    struct account_reservation hold;
    account_reserve(&hold, search, 1);
    account_finish(accounts, &hold, 5, false, 5);
    assert_ptr_equal(account_exhausted(other), search->tenant);
    assert_false(account_may_begin(other, 5));
    assert_null(account_exhausted(stranger));
    assert_true(account_may_begin(stranger, 5));
    char *sentence = account_sentence(account_exhausted(other));
    assert_int_equal(strncmp(sentence, "BUDGET: tenant t has used its 5 device-seconds", 46), 0);
    free(sentence);
    account_reset(search->tenant, 5);
    assert_true(account_may_begin(other, 5));
}

static void an_hours_budget_comes_back_with_time(void **state)
{
    (void)state;
    account_set(search, NAN, NAN, 360, 0); // a tenth of a second each second
    struct account_reservation hold;
    account_reserve(&hold, search, 1);
    account_finish(accounts, &hold, 400, false, 0);
    assert_float_equal(account_tokens(search, 0), -40, NEAR);
    assert_false(account_may_begin(search, 399));
    assert_null(account_exhausted(search)); // it only waits
    assert_true(account_may_begin(search, 401));
    assert_float_equal(account_tokens(search, 500), 10, NEAR);
    assert_float_equal(account_tokens(search, 1e6), 360, NEAR);       // no more than an hour's
    assert_float_equal(account_tokens(search, 1e6 - 100), 360, NEAR); // a clock that goes back
    account_set(search, NAN, NAN, INFINITY, 1e6);
    account_reserve(&hold, search, 1);
    account_finish(accounts, &hold, 4000, false, 1e6);
    assert_true(account_may_begin(search, 1e6));
}

static void what_was_written_down_is_restored(void **state)
{
    (void)state;
    account_restore(search, 3, 100, 3600, 40, -60, 50, 1000);
    assert_float_equal(search->weight, 3, NEAR);
    assert_float_equal(search->used_s, 40, NEAR);
    assert_float_equal(account_tokens(search, 1000), -10, NEAR);
    account_restore(search, 3, 100, 3600, 100, 0, -5000, 1000); // the wall clock went back
    assert_float_equal(account_tokens(search, 1000), 0, NEAR);
    assert_ptr_equal(account_exhausted(search), search);
    assert_true(accounts_take_exhausted(accounts));
}

static size_t visited;
static void on_changed(void *owner, struct account *account)
{
    (void)owner;
    visited++;
    assert_true(account->kept);
}

static void what_is_kept_outlives_its_users_and_is_shown_when_it_changed(void **state)
{
    struct account *kept = accounts_search(accounts, "t", "kept");

    (void)state;
    visited = 0;
    struct account_reservation hold;
    account_reserve(&hold, search, 1);
    account_finish(accounts, &hold, 2, false, 1);
    account_visit_changed(accounts, on_changed, NULL);
    assert_int_equal(visited, 1); // the tenant's, which is always kept
    visited = 0;
    account_set(kept, 2, NAN, NAN, 1);
    account_visit_changed(accounts, on_changed, NULL);
    account_visit_changed(accounts, on_changed, NULL);
    assert_int_equal(visited, 1);
    account_release(accounts, kept);
    assert_ptr_equal(accounts_find(accounts, "t", "kept"), kept);
    account_reserve(&hold, search, 1); // a run outlives its search's jobs
    account_release(accounts, search);
    assert_non_null(accounts_find(accounts, "t", "s"));
    account_finish(accounts, &hold, 1, false, 2);
    assert_null(accounts_find(accounts, "t", "s"));
    assert_non_null(accounts_find(accounts, "t", NULL));
}

static void recent_use_fades(void **state)
{
    (void)state;
    struct account_reservation hold;
    account_reserve(&hold, search, 1);
    account_finish(accounts, &hold, 100, false, 0);
    assert_float_equal(account_recent(search, 0), 100, NEAR);
    assert_float_equal(account_recent(search, ACCOUNT_RECENT_S), (float)(100 / exp(1)), 1e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_budgets_everything_may_begin, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_runs_is_charged_while_it_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_free_is_given_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_limit_counts_what_is_reserved_but_ends_only_what_is_hopeless, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_tenants_limit_holds_for_its_searches, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_hours_budget_comes_back_with_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_written_down_is_restored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_is_kept_outlives_its_users_and_is_shown_when_it_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recent_use_fades, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
