// What becomes of a SUBMIT: a new job, the known job of its key, a cached result, or a refusal.
#include "daemon/jobs/submission.h"
#include "daemon/jobs/wait.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/store/ledger.h"
#include "net/rpc/service_state.h"
#include "proto/verdict.h"
#include "tests/daemon/served_workshop.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// How one SUBMIT ended.
struct told {
    unsigned ends;
    uint64_t job;
    bool duplicate;
    uint64_t state;
    struct err error;
    uint64_t retry_after_ms;
};

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

static void on_end(void *owner, const struct submission_end *end)
{
    struct told *outcome = owner;

    assert_true((!end->job) != (!end->error));
    outcome->ends++;
    outcome->duplicate = end->duplicate;
    outcome->retry_after_ms = end->retry_after_ms;
    if (end->job) {
        outcome->job = end->job->id;
        outcome->state = end->job->state;
    } else {
        outcome->error = *end->error;
    }
}

static void start(struct workshop *w, struct submit *body, struct told *outcome)
{
    *outcome = (struct told){.error = ERR_INIT};
    submission_start(w->parts.submissions, "t", body, on_end, outcome);
}

static struct told submit(struct workshop *w, struct submit *body)
{
    struct told outcome;

    start(w, body, &outcome);
    while (outcome.ends == 0) {
        workshop_turn(w);
    }
    assert_int_equal(outcome.ends, 1);
    return outcome;
}

static void assert_refused(struct workshop *w, struct submit *body, enum err_code code)
{
    struct told outcome = submit(w, body);

    assert_int_equal(outcome.error.code, code);
    assert_int_equal(job_table_count(w->parts.jobs), 0);
}

static void the_same_key_gives_the_same_job(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told first = submit(w, &body);

    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told second = submit(w, &body);
    assert_false(first.duplicate);
    assert_true(second.duplicate);
    assert_int_equal(second.job, first.job);
    assert_int_equal(job_table_count(w->parts.jobs), 1);
}

// A search that goes on after a restart may need more or less of a compilation than before.
static void how_much_is_to_be_compiled_makes_no_other_job(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_COMPILE, "k", "source");
    struct told first = submit(w, &body);
    const struct job *job = job_table_find(w->parts.jobs, first.job);
    assert_false(job->features_only || job->no_machine_code);

    body = workshop_submit_body(w, JOB_COMPILE, "k", "source");
    body.spec->features_only = body.spec->no_machine_code = true;
    struct told second = submit(w, &body);
    assert_true(second.duplicate);
    assert_int_equal(second.job, first.job);
    body = workshop_submit_body(w, JOB_COMPILE, "another", "source");
    body.spec->features_only = body.spec->no_machine_code = true;
    struct told third = submit(w, &body);
    job = job_table_find(w->parts.jobs, third.job);
    assert_true(job->features_only && job->no_machine_code);
}

static void the_same_key_for_something_else_is_a_conflict(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told outcome = submit(w, &body);

    body = workshop_submit_body(w, JOB_MEASURE, "k", "another source");
    outcome = submit(w, &body);
    assert_int_equal(outcome.error.code, ERR_CONFLICT);
    assert_int_equal(outcome.retry_after_ms, 0);
}

// What may run unsealed is another job than what may not, and a daemon can refuse it.
static void running_unsealed_is_asked_for_and_may_be_forbidden(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "source");

    w->parts.limits.no_unsealed = true;
    body.spec->unsealed = true;
    assert_refused(w, &body, ERR_DENIED);
    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told told = submit(w, &body);
    assert_int_equal(told.error.code, ERR_NONE);
    assert_false(job_table_find(w->parts.jobs, told.job)->unsealed);
    w->parts.limits.no_unsealed = false;
    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    body.spec->unsealed = true;
    assert_int_equal(submit(w, &body).error.code, ERR_CONFLICT);
    body = workshop_submit_body(w, JOB_MEASURE, "another", "source");
    body.spec->unsealed = true;
    told = submit(w, &body);
    assert_true(job_table_find(w->parts.jobs, told.job)->unsealed);
}

static void equal_submits_at_the_same_time_become_one_job(void **state)
{
    struct workshop *w = *state;
    struct submit one = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct submit two = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told first;

    start(w, &one, &first);
    struct told second;
    start(w, &two, &second);
    while (first.ends == 0 || second.ends == 0) {
        workshop_turn(w);
    }
    assert_int_equal(first.error.code, ERR_NONE);
    assert_int_equal(second.error.code, ERR_NONE);
    assert_int_equal(first.job, second.job);
    assert_int_equal(first.duplicate + second.duplicate, 1);
    assert_int_equal(job_table_count(w->parts.jobs), 1);
}

static void missing_blobs_are_named(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_COMPILE, "k", "source");

    body.spec->candidate = digest_of("never sent", 10);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&body.spec->candidate, hex);
    struct told outcome = submit(w, &body);
    assert_int_equal(outcome.error.code, ERR_NEED_BLOB);
    assert_non_null(strstr(outcome.error.text, hex));
}

static void what_makes_no_sense_is_refused(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "", "source");

    assert_refused(w, &body, ERR_INVALID); // no key
    body = workshop_submit_body(w, 9, "k", "source");
    assert_refused(w, &body, ERR_INVALID); // no such kind
    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    body.spec->baseline = (struct digest){0};
    assert_refused(w, &body, ERR_INVALID); // nothing to measure against
    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    body.spec->max_seconds = 1e9;
    assert_refused(w, &body, ERR_INVALID);
    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    body.queue_class = QUEUE_CLASS_COUNT;
    assert_refused(w, &body, ERR_INVALID);
    body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    body.spec->device_class = xstrdup("abacus");
    assert_refused(w, &body, ERR_NOT_FOUND); // and the sentence says which there are
}

static void a_problem_that_is_none_is_refused_with_its_defect(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_COMPILE, "k", "source");

    body.spec->problem = workshop_put(w, "{\"name\": 1}");
    struct told outcome = submit(w, &body);
    assert_int_equal(outcome.error.code, ERR_INVALID);
    assert_non_null(strstr(outcome.error.text, "problem.json"));
    assert_int_equal(job_table_count(w->parts.jobs), 0);
}

static void a_problem_that_no_device_runs_is_refused(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_COMPILE, "k", "source");

    body.spec->problem = workshop_put(w, daemon_client_cuda_problem);
    assert_refused(w, &body, ERR_NOT_FOUND);
}

static void a_full_search_is_told_to_come_back(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k1", "one");
    struct told outcome = submit(w, &body);

    w->parts.limits.queue_max = 1; // as after a reload of the configuration
    body = workshop_submit_body(w, JOB_MEASURE, "k2", "two");
    outcome = submit(w, &body);
    assert_int_equal(outcome.error.code, ERR_BUSY);
    assert_true(outcome.retry_after_ms > 0);
    body = workshop_submit_body(w, JOB_MEASURE, "k1", "one");
    assert_true(submit(w, &body).duplicate); // a known key is answered whatever the limits are
}

static void a_spent_budget_refuses_measurements_alone(void **state)
{
    struct workshop *w = *state;
    struct account *tenant = accounts_tenant(w->parts.accounts, "t");
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k1", "one");

    account_set(tenant, NAN, 0, NAN, 1000);
    struct told outcome = submit(w, &body);
    assert_int_equal(outcome.error.code, ERR_BUDGET);
    body = workshop_submit_body(w, JOB_COMPILE, "k2", "one");
    outcome = submit(w, &body);
    assert_int_equal(outcome.error.code, ERR_NONE);
}

static void a_result_that_is_known_answers_at_once(void **state)
{
    struct workshop *w = *state;
    struct job *measured = workshop_submit(w, JOB_MEASURE, "k1", "same", NULL);

    workshop_compile_until(w, measured, JOB_RUNNING);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, measured, JOB_DONE);
    size_t begun = w->begun;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k2", "same");
    struct told outcome = submit(w, &body);
    assert_int_equal(outcome.state, JOB_DONE);
    assert_int_equal(w->begun, begun);
    body = workshop_submit_body(w, JOB_MEASURE, "k3", "same");
    body.spec->fresh = true;
    outcome = submit(w, &body);
    assert_int_not_equal(outcome.state, JOB_DONE);
}

static void a_cancelled_search_has_the_submissions_that_are_being_checked(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told outcome;

    start(w, &body, &outcome);
    assert_int_equal(job_table_count(w->parts.jobs), 0); // its blobs are being looked for
    submissions_cancel(w->parts.submissions, "t", "s");
    while (outcome.ends == 0) {
        workshop_turn(w);
    }
    struct job *job = job_table_find(w->parts.jobs, outcome.job);
    workshop_until_state(w, job, JOB_CANCELLED);
    assert_int_equal(job->cause, JOB_CAUSE_CLIENT);
    struct submit other = workshop_submit_body(w, JOB_COMPILE, "k2", "source");
    start(w, &other, &outcome);
    submissions_cancel(w->parts.submissions, "t", "another");
    submissions_cancel(w->parts.submissions, "another", "s");
    while (outcome.ends == 0) {
        workshop_turn(w);
    }
    job = job_table_find(w->parts.jobs, outcome.job);
    workshop_compile_until(w, job, JOB_DONE);
}

// --- a job that the ledger does not take

static void on_due(void *owner, struct exchange *exchange, const uint64_t *jobs, size_t count)
{
    struct waited reply;

    message_init(&waited_message, &reply);
    reply.unknown = (uint64_t *)(uintptr_t)jobs;
    reply.unknown_count = count;
    exchange_reply(exchange, &waited_message, &reply);
    ++*(unsigned *)owner;
}

// A request whose caller has gone.
static struct exchange *exchange_of_nobody(struct service *service)
{
    static const unsigned char header[FRAMES_WORD_LEN] = {0x80, 0, 0, 1};
    const struct frames_view frame = {.header = header, .header_len = sizeof(header)};
    struct connection connection = {.service = service, .party = party_of_tenant(service, "t")};
    struct exchange *exchange = exchange_create(&connection, &frame);

    exchange->connection = NULL;
    return exchange;
}

// Keeps a job in the ledger alone, so that the ledger does not take another one of its key.
static void use_up_key(struct workshop *w, const char *key)
{
    const struct ledger_job row = {.id = ledger_next_job(w->parts.ledger),
                                   .tenant = "t",
                                   .search = "s",
                                   .key = key,
                                   .spec = {.data = (unsigned char *)(uintptr_t) "x", .len = 1}};

    ledger_submit(w->parts.ledger, &row, NULL, NULL, NULL, NULL);
}

// Locks the ledger's file, so that its thread waits until the file is released.
static sqlite3 *hold_ledger(const struct workshop *w)
{
    char *path = xasprintf("%s/ledger.db", w->dir);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    free(path);
    return db;
}

static void a_job_cancelled_before_the_ledger_has_it_ends_as_soon_as_it_does(void **state)
{
    struct workshop *w = *state;
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    struct told outcome;

    workshop_settle(w);
    sqlite3 *held = hold_ledger(w);
    start(w, &body, &outcome);
    struct job *job;
    while (!(job = job_table_find_key(w->parts.jobs, "t", "s", "k"))) {
        workshop_turn(w);
    }
    assert_false(job->journalled);
    job->cancel_requested = true;
    assert_int_equal(sqlite3_close(held), SQLITE_OK);
    workshop_until_state(w, job, JOB_CANCELLED);
    assert_int_equal(outcome.job, job->id);
    assert_int_equal(w->begun, 0);
}

static void who_waits_for_a_job_that_the_ledger_does_not_take_is_answered(void **state)
{
    struct workshop *w = served_open(1);
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "source");
    unsigned due = 0;

    (void)state;
    waits_close(w->parts.waits);
    w->parts.waits = waits_create(&w->loop, on_due, &due);
    use_up_key(w, "k");
    workshop_settle(w);
    sqlite3 *held = hold_ledger(w);
    struct told outcome;
    start(w, &body, &outcome);
    struct job *job;
    while (!(job = job_table_find_key(w->parts.jobs, "t", "s", "k"))) {
        workshop_turn(w);
    }
    struct exchange *exchange = exchange_of_nobody(w->parts.service);
    assert_true(waits_park(w->parts.waits, exchange, &job->id, 1, &job, 1, 1000000));
    assert_int_equal(sqlite3_close(held), SQLITE_OK);
    while (outcome.ends == 0 || due == 0) {
        workshop_turn(w);
    }
    assert_int_equal(outcome.error.code, ERR_SYSTEM);
    assert_int_equal(job_table_count(w->parts.jobs), 0);
    assert_int_equal(due, 1);
    served_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_key_gives_the_same_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(how_much_is_to_be_compiled_makes_no_other_job, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(running_unsealed_is_asked_for_and_may_be_forbidden, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_same_key_for_something_else_is_a_conflict, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(equal_submits_at_the_same_time_become_one_job, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(missing_blobs_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_problem_that_is_none_is_refused_with_its_defect, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_problem_that_no_device_runs_is_refused, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_full_search_is_told_to_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_spent_budget_refuses_measurements_alone, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_result_that_is_known_answers_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_job_cancelled_before_the_ledger_has_it_ends_as_soon_as_it_does, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            a_cancelled_search_has_the_submissions_that_are_being_checked, set_up, tear_down),
        cmocka_unit_test(who_waits_for_a_job_that_the_ledger_does_not_take_is_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
