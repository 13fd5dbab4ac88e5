// The ledger: what was committed is there after reopening, and what failed leaves the rest alone.
#include "common/file.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger.h"
#include "daemon/store/ledger_schema.h"
#include "proto/verdict.h"
#include "tests/support/daemon/ledger_fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void a_submitted_job_survives_reopening(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    assert_int_equal(ledger_next_job(fixture->ledger), 1);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_submit(fixture, 2, "b", NULL, NULL);
    ledger_move(fixture->ledger, 2, JOB_RUNNING, 3, fixture_on_done, fixture);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->calls, 3);
    assert_int_equal(fixture->failures, 0);
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 2);
    assert_string_equal(fixture->key[0], "s/a");
    assert_int_equal(fixture->state[0], JOB_QUEUED);
    assert_int_equal(fixture->state[1], JOB_RUNNING);
    assert_int_equal(fixture->attempt[1], 3);
    assert_int_equal(fixture->wanted_class, 2);
}

static struct ledger_account row[3];

static char row_name[3][32];

static size_t rows;

static void on_account(void *owner, const struct ledger_account *account)
{
    (void)owner;
    assert_in_range(rows, 0, 2);
    row[rows] = *account;
    (void)snprintf(row_name[rows++], sizeof(row_name[0]), "%s/%s", account->tenant,
                   account->search ? account->search : "-");
}

static void load_accounts(struct ledger_fixture *fixture)
{
    rows = 0;
    struct ledger *ledger;
    assert_int_equal(ledger_open(&ledger, fixture->path, 0, NULL), 0);
    assert_int_equal(ledger_load_accounts(ledger, on_account, NULL, NULL), 0);
    ledger_close(ledger);
}

static void accounts_are_kept_as_they_are_now(void **state)
{
    struct ledger_fixture *fixture = *state;
    struct account_table *accounts = accounts_create();
    struct account *search = accounts_search(accounts, "t", "s/with a slash");

    fixture_open_ledger(fixture);
    account_set(search, 2, 100, NAN, 0);
    account_set(search->tenant, NAN, INFINITY, 3600, 0);
    ledger_keep_account(fixture->ledger, search, fixture_on_done, fixture);
    search->used_s = 7.25;
    ledger_keep_account(fixture->ledger, search, fixture_on_done, fixture);
    ledger_keep_account(fixture->ledger, search->tenant, fixture_on_done, fixture);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->calls, 3);
    assert_int_equal(fixture->failures, 0);
    load_accounts(fixture);
    assert_int_equal(rows, 2);
    assert_string_equal(row_name[0], "t/-");
    assert_true(isinf(row[0].limit_s));
    assert_true(fabs(row[0].per_hour_s - 3600) < 1e-9);
    assert_true(fabs(row[0].tokens_s - 3600) < 1e-9);
    assert_string_equal(row_name[1], "t/s/with a slash");
    assert_true(fabs(row[1].weight - 2) < 1e-9);
    assert_true(fabs(row[1].limit_s - 100) < 1e-9);
    assert_true(isnan(row[1].per_hour_s));
    assert_true(fabs(row[1].used_s - 7.25) < 1e-9);
    accounts_free(accounts);
}

static void accounts_of_searches_are_forgotten_when_they_are_old(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_close_ledger(fixture);
    fixture_change_file(fixture, "INSERT INTO account VALUES ('t','',1,NULL,NULL,1,0,1000000,NULL),"
                                 " ('t','old',1,NULL,NULL,1,0,1000000,NULL),"
                                 " ('t','new',1,NULL,NULL,1,0,99000000000,NULL)");
    fixture_change_file(fixture, ledger_fill_digests);
    load_accounts(fixture);
    assert_int_equal(rows, 2);
    assert_string_equal(row_name[0], "t/-");
    assert_string_equal(row_name[1], "t/new");
}

static void a_ledger_without_accounts_gets_them(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_close_ledger(fixture);
    fixture_change_file(fixture, FIXTURE_WITHOUT_DIGESTS
                        "DROP INDEX result_used; ALTER TABLE result DROP COLUMN used;"
                        " DROP INDEX compiled_used; ALTER TABLE compiled DROP COLUMN used;"
                        " DROP TABLE device_order; DROP TABLE account;"
                        " ALTER TABLE job DROP COLUMN class;"
                        " ALTER TABLE job DROP COLUMN cause; PRAGMA user_version = 2");
    load_accounts(fixture);
    assert_int_equal(rows, 0);
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 1);
    assert_int_equal(fixture->wanted_class, 0);
}

static void callbacks_come_in_order_and_from_the_loop_only(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    for (uint64_t i = 1; i <= 100; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        fixture_submit(fixture, i, key, NULL, NULL);
        assert_int_equal(fixture->calls, 0);
    }
    ledger_barrier(fixture->ledger, fixture_on_done, fixture);
    while (fixture->calls < 101) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(fixture->failures, 0);
    assert_int_equal(fixture->answer_count, 0); // because the barrier came last
}

static void results_are_read_back_and_cached(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_finish(fixture, 1, JOB_DONE, "result", "cache-key", NULL);
    const uint64_t ids[] = {1, 77};
    ledger_read_results(fixture->ledger, ids, 2, fixture_on_done, fixture);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->answer_count, 2);
    assert_int_equal(fixture->answer.len, 6);
    assert_memory_equal(fixture->answer.data, "result", 6);
    fixture_open_ledger(fixture);
    assert_int_equal(ledger_results(fixture->ledger), 1);
}

static void a_cached_result_finishes_a_new_job_at_once(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", "cache-key", fixture_accept_and_change);
    fixture_finish(fixture, 1, JOB_DONE, "result", "cache-key", NULL);
    fixture_submit(fixture, 2, "b", "cache-key", fixture_accept_nothing);
    fixture_submit(fixture, 3, "c", "cache-key", fixture_accept_and_change);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 6);
    fixture_reload(fixture);
    assert_int_equal(fixture->state[1], JOB_QUEUED);
    assert_int_equal(fixture->state[2], JOB_DONE);
}

static void what_has_ended_stays_as_it_ended(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_finish(fixture, 1, JOB_CANCELLED, NULL, NULL, "cancelled by its client");
    fixture_finish(fixture, 1, JOB_DONE, "late", NULL, NULL);
    ledger_move(fixture->ledger, 1, JOB_RUNNING, 9, NULL, NULL);
    fixture_close_ledger(fixture);
    fixture_reload(fixture);
    assert_int_equal(fixture->state[0], JOB_CANCELLED);
    assert_string_equal(fixture->reason, "cancelled by its client");
}

static void forgotten_jobs_go_and_their_numbers_do_not_come_back(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_submit(fixture, 2, "b", NULL, NULL);
    fixture_finish(fixture, 1, JOB_DONE, "result", "cache-key", NULL);
    const uint64_t ids[] = {1, 2};
    ledger_forget(fixture->ledger, ids, 2, fixture_on_done, fixture);
    fixture_submit(fixture, 3, "a", NULL, NULL); // the key is free again within the same batch
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->failures, 0);
    fixture_open_ledger(fixture);
    assert_int_equal(ledger_next_job(fixture->ledger), 4);
    assert_int_equal(ledger_results(fixture->ledger), 1); // the entry in the cache stays
    fixture_close_ledger(fixture);
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 1);
}

static void compilations_are_kept_replaced_and_dropped(void **state)
{
    struct ledger_fixture *fixture = *state;
    struct digest key = digest_of("key", 3);

    fixture_open_ledger(fixture);
    struct bytes one = {.data = (unsigned char *)(uintptr_t) "one", .len = 3};
    ledger_keep_compiled(fixture->ledger, &key, &one, fixture_on_done, fixture);
    struct bytes other = {.data = (unsigned char *)(uintptr_t) "other", .len = 5};
    ledger_keep_compiled(fixture->ledger, &key, &other, fixture_on_done, fixture);
    ledger_read_compiled(fixture->ledger, &key, fixture_on_done, fixture);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 5);
    fixture_open_ledger(fixture);
    ledger_drop_compiled(fixture->ledger, &key);
    ledger_read_compiled(fixture->ledger, &key, fixture_on_done, fixture);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 0);
    assert_int_equal(fixture->failures, 0);
}

// The room of jobs that have ended and were acknowledged is used again.
static void ten_thousand_forgotten_jobs_take_no_room(void **state)
{
    struct ledger_fixture *fixture = *state;
    char result[500];

    memset(result, 'r', sizeof(result) - 1);
    result[sizeof(result) - 1] = '\0';
    off_t early = 0;
    struct stat info;
    for (uint64_t round = 0; round < 10; round++) {
        fixture_open_ledger(fixture);
        uint64_t ids[1000];
        for (uint64_t i = 0; i < 1000; i++) {
            ids[i] = 1000 * round + i + 1;
            char key[16];
            (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)ids[i]);
            fixture_submit(fixture, ids[i], key, NULL, NULL);
            fixture_finish(fixture, ids[i], JOB_DONE, result, NULL, NULL);
        }
        ledger_forget(fixture->ledger, ids, 1000, fixture_on_done, fixture);
        fixture_close_ledger(fixture);
        assert_int_equal(stat(fixture->path, &info), 0);
        early = round == 1 ? info.st_size : early;
    }
    assert_int_equal(fixture->calls, 20010);
    assert_int_equal(fixture->failures, 0);
    assert_true(info.st_size <= 2 * early);
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 0);
}

static void the_cause_of_an_end_is_kept(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_submit(fixture, 2, "b", NULL, NULL);
    struct ledger_end end = {
        .job = 1, .state = JOB_CANCELLED, .reason = "in whatever words", .cause = JOB_CAUSE_BUDGET};
    ledger_finish(fixture->ledger, &end, fixture_on_done, fixture);
    fixture_close_ledger(fixture);
    fixture_reload(fixture);
    assert_int_equal(fixture->cause[0], JOB_CAUSE_BUDGET);
    assert_int_equal(fixture->cause[1], JOB_CAUSE_NONE);
}

static void one_bad_operation_does_not_spoil_the_batch(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_submit(fixture, 1, "b", NULL, NULL); // fails, because the number is taken
    fixture_submit(fixture, 2, "c", NULL, NULL);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->calls, 3);
    assert_int_equal(fixture->failures, 1);
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 2);
    assert_string_equal(fixture->key[1], "s/c");
}

// Fills the file until it is full; returns how many jobs went in.
static uint64_t fill(struct ledger_fixture *fixture)
{
    uint64_t id = 0;
    char key[512];

    while (fixture->failures == 0 && id < 10000) {
        int before = fixture->calls;

        id++;
        (void)snprintf(key, sizeof(key), "%0400d", (int)id);
        fixture_submit(fixture, id, key, NULL, NULL);
        while (fixture->calls == before) {
            (void)uv_run(&fixture->loop, UV_RUN_ONCE);
        }
    }
    return id - 1;
}

static void a_full_disk_refuses_inserts_and_lets_deletes_pass(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture->pages = 40;
    fixture_open_ledger(fixture);
    uint64_t in = fill(fixture);
    assert_int_equal(fixture->last_error, ERR_NO_SPACE);
    assert_in_range(in, 65, 9999);
    uint64_t ids[64];
    for (uint64_t i = 0; i < 64; i++) {
        ids[i] = i + 1;
    }
    fixture->failures = 0;
    // They are in one batch with an insert that fails, so they are tried one by one.
    fixture_submit(fixture, 20000,
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, NULL);
    ledger_forget(fixture->ledger, ids, 64, fixture_on_done, fixture);
    fixture_submit(fixture, 20001, "there is room again", NULL, NULL);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->last_error, ERR_NONE);
    assert_in_range(fixture->failures, 0, 1);
}

// Dies in a process of its own at one commit; afterwards the ledger has what it had before it or
// after it.
static size_t jobs_after_death(struct ledger_fixture *fixture, const char *when)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)setenv("KCASTD_DIE_AT", when, 1);
        uv_loop_t loop;
        (void)uv_loop_init(&loop);
        if (ledger_open(&fixture->ledger, fixture->path, 0, NULL) != 0 ||
            ledger_start(fixture->ledger, &loop, NULL) != 0) {
            _exit(1);
        }
        for (uint64_t i = 1; i <= 3; i++) {
            int before = fixture->calls;
            char key[8];

            (void)snprintf(key, sizeof(key), "k%d", (int)i);
            fixture_submit(fixture, i, key, NULL, NULL);
            while (fixture->calls == before) {
                (void)uv_run(&loop, UV_RUN_ONCE);
            }
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    fixture_reload(fixture);
    return fixture->loaded;
}

static void a_kill_before_a_commit_loses_it_and_after_it_does_not(void **state)
{
#ifdef KCAST_FAULTS
    assert_int_equal(jobs_after_death(*state, "before:2"), 1);
    assert_int_equal(file_remove_tree(((struct ledger_fixture *)*state)->path, NULL), 0);
    assert_int_equal(jobs_after_death(*state, "after:2"), 2);
#else
    (void)state;
    (void)jobs_after_death;
    skip();
#endif
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
    const struct CMUnitTest tests[] = {
        WITH(a_kill_before_a_commit_loses_it_and_after_it_does_not), // first, because it forks
        WITH(a_submitted_job_survives_reopening),
        WITH(accounts_are_kept_as_they_are_now),
        WITH(accounts_of_searches_are_forgotten_when_they_are_old),
        WITH(a_ledger_without_accounts_gets_them),
        WITH(callbacks_come_in_order_and_from_the_loop_only),
        WITH(results_are_read_back_and_cached),
        WITH(a_cached_result_finishes_a_new_job_at_once),
        WITH(what_has_ended_stays_as_it_ended),
        WITH(forgotten_jobs_go_and_their_numbers_do_not_come_back),
        WITH(compilations_are_kept_replaced_and_dropped),
        WITH(ten_thousand_forgotten_jobs_take_no_room),
        WITH(the_cause_of_an_end_is_kept),
        WITH(one_bad_operation_does_not_spoil_the_batch),
        WITH(a_full_disk_refuses_inserts_and_lets_deletes_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
