// kcastd holds searches and tenants to their budgets, across restarts and SIGKILL, and lets short
// jobs of people go first.
#include "proto/queue_class.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LITTLE_S 1e-6 // less than any measurement takes

static int submit(struct daemon_client *client, const char *search, const char *key,
                  const struct job_spec *spec, const struct submit *more, uint64_t *ret_job,
                  struct err *err)
{
    struct submit body = *more;

    body.search = (char *)(uintptr_t)search;
    body.key = (char *)(uintptr_t)key;
    body.spec = (struct job_spec *)(uintptr_t)spec;
    *err = (struct err)ERR_INIT;
    struct submitted reply;
    int rc = daemon_client_call(client, OP_SUBMIT, &submit_message, &body, &submitted_message,
                                &reply, err);
    if (rc == 0 && ret_job) {
        *ret_job = reply.job;
    }
    return rc;
}

static uint64_t accepted(struct daemon_client *client, const char *search, const char *key,
                         const char *candidate, const struct submit *more)
{
    struct job_spec spec = daemon_client_spec(client, candidate);
    struct err err;
    uint64_t job = 0;

    if (submit(client, search, key, &spec, more, &job, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return job;
}

static int refused(struct daemon_client *client, const char *search, const char *key,
                   const struct submit *more, struct err *err)
{
    struct job_spec spec = daemon_client_spec(client, "int refused;\n");

    return submit(client, search, key, &spec, more, NULL, err);
}

static struct submit plain(void)
{
    struct submit more;

    message_init(&submit_message, &more);
    return more;
}

// Sets and shows; the row of the search (or of the tenant) "local".
static struct share_info budget(struct daemon_client *client, const struct budget_request *request,
                                const char *search)
{
    struct budget_list list;
    struct err err = ERR_INIT;

    if (daemon_client_call(client, OP_BUDGET, &budget_request_message, request,
                           &budget_list_message, &list, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct share_info found = {0};
    for (size_t i = 0; i < list.accounts_count; i++) {
        const struct share_info *row = &list.accounts[i];

        if (strcmp(row->tenant, "local") == 0 &&
            (search ? row->search && strcmp(row->search, search) == 0 : !row->search)) {
            found = *row;
            found.tenant = found.search = NULL; // numbers only
        }
    }
    message_clear(&budget_list_message, &list);
    return found;
}

static struct share_info set(struct daemon_client *client, const char *search, double weight,
                             double seconds, double per_hour)
{
    struct budget_request request;

    message_init(&budget_request_message, &request);
    request.tenant = (char *)(uintptr_t) "local";
    request.search = (char *)(uintptr_t)search;
    request.weight = weight;
    request.budget_seconds = seconds;
    request.hour_seconds = per_hour;
    return budget(client, &request, search);
}

static struct share_info show(struct daemon_client *client, const char *search)
{
    struct budget_request request;

    message_init(&budget_request_message, &request);
    return budget(client, &request, search);
}

static void expect_over_budget(struct daemon_client *client, uint64_t job, const char *whose)
{
    struct job_info info;

    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_int_equal(info.cause, JOB_CAUSE_BUDGET);
    assert_int_equal(strncmp(info.reason, "BUDGET: ", 8), 0);
    assert_non_null(strstr(info.reason, whose));
    message_clear(&job_info_message, &info);
}

static void expect_done(struct daemon_client *client, uint64_t job)
{
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
}

static void kill_and_restart(struct daemon_client *client)
{
    (void)program_kill(&client->program);
    daemon_client_disconnect(client);
    (void)program_wait(&client->program);
    assert_true(daemon_client_start(client));
}

static void what_runs_is_finished_and_what_waits_ends_over_budget(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct submit more = plain();

    more.budget_seconds = LITTLE_S;
    uint64_t running = accepted(client, "small", "a", candidate, &more);
    (void)daemon_client_gate_wait(gate);
    uint64_t waiting = accepted(client, "small", "b", "int b;\n", &more);
    daemon_client_gate_open(gate);
    expect_done(client, running);
    expect_over_budget(client, waiting, "search small");
    struct share_info row = show(client, "small");
    assert_true(row.used_seconds > LITTLE_S); // it was charged
    struct err err;
    assert_int_equal(refused(client, "small", "c", &more, &err), ERR_BUDGET);
    assert_non_null(strstr(err.text, "kcast budget set local/small"));
    expect_done(client, accepted(client, "other", "c", "int c;\n",
                                 &(struct submit){.weight = NAN,
                                                  .budget_seconds = NAN})); // somebody else goes on

    // A SUBMIT does not raise it, an administrator does.
    more.budget_seconds = 1000;
    assert_int_equal(refused(client, "small", "d", &more, &err), ERR_BUDGET);
    (void)set(client, "small", NAN, 1000, NAN);
    expect_done(client, accepted(client, "small", "d", "int d;\n", &more));
    free(candidate);
    free(gate);
}

static void a_budget_and_its_use_survive_sigkill(void **state)
{
    struct daemon_client *client = *state;
    struct submit more = plain();

    more.budget_seconds = 1000;
    more.weight = 3;
    expect_done(client, accepted(client, "kept", "a", "int a;\n", &more));
    (void)set(client, NULL, 5, NAN, 3600);
    expect_done(client, accepted(client, "kept", "b", "int b;\n", &more));
    struct share_info before = show(client, "kept");
    assert_true(before.used_seconds > 0);
    kill_and_restart(client);
    struct share_info after = show(client, "kept");
    assert_true(fabs(after.used_seconds - before.used_seconds) < 1e-9);
    assert_true(fabs(after.budget_seconds - 1000) < 1e-9);
    assert_true(fabs(after.weight - 3) < 1e-9);
    assert_true(fabs(after.tenant_weight - 5) < 1e-9);
    assert_true(fabs(show(client, NULL).hour_seconds - 3600) < 1e-9);
    assert_true(show(client, NULL).left_seconds > 0);

    // Used up, and killed again: still used up, for what waited as well.
    (void)set(client, "kept", NAN, LITTLE_S, NAN);
    kill_and_restart(client);
    struct err err;
    assert_int_equal(refused(client, "kept", "e", &more, &err), ERR_BUDGET);
    assert_non_null(strstr(err.text, "search kept"));
}

// What was used when the daemon is killed in the middle of a run is known to a second or so.
static void a_run_is_charged_while_it_goes_on(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct submit more = plain();

    more.budget_seconds = 1000;
    (void)accepted(client, "long", "a", candidate, &more);
    (void)daemon_client_gate_wait(gate);
    double used = 0;
    while (used <= 0) {
        used = show(client, "long").used_seconds; // follows from the tick of each second
    }
    double shown;
    // The ledger has what another second's tick finds changed; the next one shows that it did.
    do {
        shown = show(client, "long").used_seconds;
    } while (shown <= used);
    do {
        shown = show(client, "long").used_seconds;
    } while (shown <= used + 1);
    // The ledger writes in the order in which it is asked, however slow the disk is, and a SUBMIT
    // is answered when it has been written.
    (void)accepted(client, "other", "b", "int b;\n", &more);
    kill_and_restart(client);
    assert_true(show(client, "long").used_seconds >= used);
    (void)daemon_client_gate_wait(gate); // begins again
    daemon_client_gate_open(gate);
    free(candidate);
    free(gate);
}

static void a_tenants_budget_ends_all_its_searches(void **state)
{
    struct daemon_client *client = *state;
    struct submit more = plain();

    expect_done(client, accepted(client, "a", "a", "int a;\n", &more));
    (void)set(client, NULL, NAN, LITTLE_S, NAN);
    struct err err;
    assert_int_equal(refused(client, "a", "b", &more, &err), ERR_BUDGET);
    assert_non_null(strstr(err.text, "tenant local"));
    assert_int_equal(refused(client, "new", "b", &more, &err), ERR_BUDGET);
    (void)set(client, NULL, NAN, INFINITY, NAN);
    assert_true(isnan(show(client, NULL).budget_seconds));
    expect_done(client, accepted(client, "a", "b", "int b;\n", &more));
}

static void a_budget_per_hour_makes_wait(void **state)
{
    struct daemon_client *client = *state;
    struct submit more = plain();

    expect_done(client, accepted(client, "hourly", "a", "int a;\n", &more));
    (void)set(client, "hourly", NAN, NAN, 0);
    uint64_t job = accepted(client, "hourly", "b", "int b;\n", &more);
    daemon_client_until(client, job, JOB_READY);
    expect_done(client, accepted(client, "other", "c", "int c;\n", &more)); // goes past it
    daemon_client_until(client, job, JOB_READY);
    (void)set(client, "hourly", NAN, NAN, 3600);
    expect_done(client, job);
}

// Who asks about some jobs, and not about all, gets no searches and no shares.
static void expect_jobs(struct daemon_client *client, struct status_request *request, size_t count)
{
    struct status status;
    struct err err = ERR_INIT;

    assert_int_equal(daemon_client_call(client, OP_STATUS, &status_request_message, request,
                                        &status_message, &status, &err),
                     0);
    assert_int_equal(status.jobs_count, count);
    assert_int_equal(status.searches_count, request->all ? 2 : 0);
    assert_int_equal(status.shares_count, request->all ? 2 : 0);
    assert_int_equal(status.devices_count, 1);
    message_clear(&status_message, &status);
}

// Rows of STATUS for searches that hold or wait.
static void status_shows_shares_and_interactive_goes_first(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    char *looked_at = xasprintf("//! gate %s\n//\n", gate);
    struct submit normal = plain();
    struct submit interactive = plain();

    normal.weight = 4;
    interactive.queue_class = QUEUE_INTERACTIVE;
    uint64_t job[3];
    job[0] = accepted(client, "many", "a", candidate, &normal);
    (void)daemon_client_gate_wait(gate);
    job[1] = accepted(client, "many", "b", "int b;\n", &normal);
    daemon_client_until(client, job[1], JOB_READY);
    job[2] = accepted(client, "one", "c", looked_at, &interactive);
    daemon_client_until(client, job[2], JOB_READY);

    struct status status;
    daemon_client_status(client, &status);
    assert_int_equal(status.shares_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct share_info *row = &status.shares[i];
        bool many = strcmp(row->search, "many") == 0;

        assert_string_equal(row->queue_class, many ? "normal" : "interactive");
        assert_true(fabs(row->weight - (many ? 4 : 1)) < 1e-9);
        assert_int_equal(row->held, many ? 1 : 0);
        assert_int_equal(row->waiting, 1);
        assert_true(fabs(row->share - 1) < 1e-9); // each is alone in its class
    }
    message_clear(&status_message, &status);
    expect_jobs(client, &(struct status_request){.jobs = job, .jobs_count = 2}, 2);
    expect_jobs(client, &(struct status_request){.search = (char *)(uintptr_t) "one"}, 1);
    expect_jobs(client, &(struct status_request){.jobs = job, .jobs_count = 2, .all = true}, 2 + 3);

    daemon_client_gate_open(gate);
    (void)daemon_client_gate_wait(gate); // the interactive one runs, and the older one waits
    daemon_client_until(client, job[1], JOB_READY);
    daemon_client_gate_open(gate);
    for (size_t i = 0; i < 3; i++) {
        expect_done(client, job[i]);
    }
    free(looked_at);
    free(candidate);
    free(gate);
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct daemon_client *client = *state;
    struct submit more = plain();

    more.weight = 0;
    struct err err = ERR_INIT;
    assert_int_equal(refused(client, "s", "a", &more, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "between 0.01 and 100"));
    more = plain();
    more.budget_seconds = -1;
    assert_int_equal(refused(client, "s", "a", &more, &err), ERR_INVALID);
    more = plain();
    more.queue_class = QUEUE_CLASS_COUNT;
    assert_int_equal(refused(client, "s", "a", &more, &err), ERR_INVALID);
    struct budget_request request;
    message_init(&budget_request_message, &request);
    request.tenant = (char *)(uintptr_t) "a/b";
    request.weight = 1;
    err = (struct err)ERR_INIT;
    struct budget_list list;
    assert_int_equal(daemon_client_call(client, OP_BUDGET, &budget_request_message, &request,
                                        &budget_list_message, &list, &err),
                     ERR_INVALID);
    request.tenant = (char *)(uintptr_t) "team";
    request.search = (char *)(uintptr_t) "a\xc2\x9b";
    err = (struct err)ERR_INIT;
    assert_int_equal(daemon_client_call(client, OP_BUDGET, &budget_request_message, &request,
                                        &budget_list_message, &list, &err),
                     ERR_INVALID);
    assert_non_null(strstr(err.text, "the name of a search, \"a\\xc2\\x9b\""));
}

#define WITH_DAEMON(test)                                                                          \
    cmocka_unit_test_setup_teardown(test, daemon_client_set_up_started, daemon_client_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DAEMON(what_runs_is_finished_and_what_waits_ends_over_budget),
        WITH_DAEMON(a_budget_and_its_use_survive_sigkill),
        WITH_DAEMON(a_run_is_charged_while_it_goes_on),
        WITH_DAEMON(a_tenants_budget_ends_all_its_searches),
        WITH_DAEMON(a_budget_per_hour_makes_wait),
        WITH_DAEMON(status_shows_shares_and_interactive_goes_first),
        WITH_DAEMON(what_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
