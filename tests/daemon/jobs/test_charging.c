// Budgets: which job has no hope, what a run is charged while it goes on, and what is written down.
#include "common/clock.h"
#include "daemon/jobs/charging.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/store/ledger.h"
#include "proto/verdict.h"
#include "tests/support/workshop.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state)
{
    struct workshop *w = xcalloc(1, sizeof(*w));

    workshop_open(w, 1);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    workshop_close(*state);
    free(*state);
    return 0;
}

static void use(struct workshop *w, struct account *account, double seconds)
{
    struct account_reservation hold = {.account = NULL};

    account_reserve(&hold, account, seconds);
    account_finish(w->parts.accounts, &hold, seconds, false, 1000);
}

static void a_spent_budget_is_named_and_compilations_need_none(void **state)
{
    struct workshop *w = *state;
    struct job *job = job_table_add(w->parts.jobs, 1, "t", "greedy", "k", JOB_QUEUED);

    job->kind = JOB_MEASURE;
    account_set(job->search->account, NAN, 10, NAN, 1000);
    assert_null(charging_refusal(job));
    use(w, job->search->account, 9.5);
    assert_null(charging_refusal(job));
    use(w, job->search->account, 0.5);
    char *refusal = charging_refusal(job);
    assert_non_null(refusal);
    assert_int_equal(strncmp(refusal, "BUDGET: ", 8), 0);
    assert_non_null(strstr(refusal, "greedy"));
    free(refusal);
    job->kind = JOB_COMPILE;
    assert_null(charging_refusal(job));
    job->kind = JOB_MEASURE;
    account_set(job->search->account, NAN, INFINITY, NAN, 1000);
    assert_null(charging_refusal(job));
}

static void the_tenants_budget_holds_all_its_searches(void **state)
{
    struct workshop *w = *state;
    struct job *one = job_table_add(w->parts.jobs, 1, "t", "one", "k", JOB_QUEUED);
    struct job *two = job_table_add(w->parts.jobs, 2, "t", "two", "k", JOB_QUEUED);
    struct job *other = job_table_add(w->parts.jobs, 3, "u", "one", "k", JOB_QUEUED);

    one->kind = two->kind = other->kind = JOB_MEASURE;
    account_set(one->search->account->tenant, NAN, 5, NAN, 1000);
    use(w, one->search->account, 6);
    char *refusal = charging_refusal(two);
    assert_non_null(refusal);
    free(refusal);
    assert_null(charging_refusal(other));
}

static void assert_used(const struct account *account, double seconds)
{
    if (fabs(account->used_s - seconds) > 1e-6) {
        fail_msg("%s has used %g s instead of %g s", account->path, account->used_s, seconds);
    }
}

static void a_run_is_charged_for_the_time_until_now(void **state)
{
    struct workshop *w = *state;
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "candidate", NULL);

    charging_charge_runs(&w->parts); // nothing runs
    workshop_compile_until(w, job, JOB_RUNNING);
    const struct account *account = job->search->account;
    double before_s = account->used_s;
    clock_fake_advance(&w->clock, 3 * NS_PER_S);
    charging_charge_runs(&w->parts);
    assert_used(account, before_s + 3);
    charging_charge_runs(&w->parts); // the same seconds are charged once
    assert_used(account, before_s + 3);
    clock_fake_advance(&w->clock, 2 * NS_PER_S);
    charging_charge_runs(&w->parts);
    assert_used(account, before_s + 5);
    assert_used(account->tenant, account->used_s);
}

struct seen {
    unsigned rows;
    double used_s;
    double limit_s;
    double tenant_used_s;
};

static void see_account(void *owner, const struct ledger_account *row)
{
    struct seen *seen = owner;

    assert_string_equal(row->tenant, "t");
    seen->rows++;
    if (!row->search) {
        seen->tenant_used_s = row->used_s;
        assert_true(isnan(row->limit_s));
        return;
    }
    assert_string_equal(row->search, "kept");
    seen->used_s = row->used_s;
    seen->limit_s = row->limit_s;
}

static void only_what_is_kept_and_has_changed_is_written(void **state)
{
    struct workshop *w = *state;
    char *path = xasprintf("%s/ledger.db", w->dir);

    struct job *kept = job_table_add(w->parts.jobs, 1, "t", "kept", "k", JOB_QUEUED);
    struct job *plain = job_table_add(w->parts.jobs, 2, "t", "plain", "k", JOB_QUEUED);
    account_set(kept->search->account, NAN, 100, NAN, 1000);
    use(w, kept->search->account, 7);
    use(w, plain->search->account, 8);
    charging_save(&w->parts);
    assert_false(kept->search->account->changed);
    workshop_settle(w);
    struct ledger *second; // somebody else who reads the file
    struct seen seen = {.rows = 0};
    assert_int_equal(ledger_open(&second, path, 0, NULL), 0);
    assert_int_equal(ledger_load_accounts(second, see_account, &seen, NULL), 0);
    ledger_close(second);
    assert_int_equal(seen.rows, 2);
    assert_float_equal(seen.tenant_used_s, 15, 0); // a budget that is set later counts it
    assert_float_equal(seen.used_s, 7, 0);
    assert_float_equal(seen.limit_s, 100, 0);
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_spent_budget_is_named_and_compilations_need_none),
        TEST(the_tenants_budget_holds_all_its_searches),
        TEST(a_run_is_charged_for_the_time_until_now),
        TEST(only_what_is_kept_and_has_changed_is_written),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
