// The ledger: what was committed is there after reopening, what failed leaves the rest alone, what
// is damaged is refused.
#include "common/file.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger.h"
#include "daemon/store/ledger_schema.h"
#include "proto/verdict.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    char *dir;
    char *path;
    struct ledger *ledger;
    uint64_t pages;
    uint64_t entries; // of each cache; 0: no limit
    // What the callbacks saw:
    int calls;
    int failures;
    enum err_code last_error;
    struct bytes answer;
    size_t answer_count;
    // What load visited:
    size_t loaded;
    uint64_t state[8];
    uint64_t attempt[8];
    char key[8][32];
    char tenant[8][32];
    char reason[64];
    uint64_t cause[8];
    uint64_t wanted_class; // of the first one
};

static void open_ledger(struct fixture *fixture)
{
    struct err err = ERR_INIT;

    if (ledger_open(&fixture->ledger, fixture->path, fixture->pages, &err) != 0) {
        fail_msg("%s", err.text);
    }
    ledger_limit(fixture->ledger, fixture->entries);
    if (ledger_start(fixture->ledger, &fixture->loop, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

// Everything posted has been carried out when this returns.
static void close_ledger(struct fixture *fixture)
{
    ledger_close(fixture->ledger);
    fixture->ledger = NULL;
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
}

static int set_up(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(file_make_temp_dir(&fixture->dir, "kcast-ledger", NULL), 0);
    fixture->path = xasprintf("%s/ledger.db", fixture->dir);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    ledger_close(fixture->ledger);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    assert_int_equal(file_remove_tree(fixture->dir, NULL), 0);
    bytes_clear(&fixture->answer);
    free(fixture->path);
    free(fixture->dir);
    free(fixture);
    return 0;
}

static void on_done(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct fixture *fixture = owner;

    fixture->calls++;
    fixture->failures += error ? 1 : 0;
    fixture->last_error = error ? error->code : ERR_NONE;
    fixture->answer_count = count;
    bytes_clear(&fixture->answer);
    if (count > 0) {
        fixture->answer = answer[0];
        answer[0] = (struct bytes){0};
    }
}

static int on_row(void *owner, const struct ledger_job *job, struct err *err)
{
    struct fixture *fixture = owner;
    size_t i = fixture->loaded++;

    (void)err;
    if (i >= 8) {
        return 0;
    }
    fixture->state[i] = job->state;
    fixture->attempt[i] = job->attempt;
    fixture->wanted_class = i == 0 ? job->wanted_class : fixture->wanted_class;
    (void)snprintf(fixture->key[i], sizeof(fixture->key[i]), "%s/%s", job->search, job->key);
    (void)snprintf(fixture->tenant[i], sizeof(fixture->tenant[i]), "%s", job->tenant);
    fixture->cause[i] = job->cause;
    if (job->reason) {
        (void)snprintf(fixture->reason, sizeof(fixture->reason), "%s", job->reason);
    }
    assert_int_equal(job->spec.len, 4);
    return 0;
}

// What a restart would see.
static void reload(struct fixture *fixture)
{
    fixture->loaded = 0;
    struct ledger *ledger;
    assert_int_equal(ledger_open(&ledger, fixture->path, 0, NULL), 0);
    assert_int_equal(ledger_load(ledger, on_row, fixture, NULL), 0);
    ledger_close(ledger);
}

static void submit(struct fixture *fixture, uint64_t id, const char *key, const char *cache,
                   ledger_adopt *adopt)
{
    struct digest digest = cache ? digest_of(cache, strlen(cache)) : (struct digest){0};
    struct ledger_job job = {
        .id = id,
        .tenant = "local",
        .search = "s",
        .key = key,
        .spec = {.data = (unsigned char *)(uintptr_t) "spec", .len = 4},
        .priority = UINT64_MAX,
        .state = JOB_QUEUED,
        .wanted_class = 2,
    };

    ledger_submit(fixture->ledger, &job, cache ? &digest : NULL, adopt, on_done, fixture);
}

static void finish(struct fixture *fixture, uint64_t id, uint64_t job_state, const char *result,
                   const char *cache, const char *reason)
{
    struct digest digest = cache ? digest_of(cache, strlen(cache)) : (struct digest){0};
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t)result,
                          .len = result ? strlen(result) : 0};
    struct ledger_end end = {
        .job = id,
        .state = job_state,
        .attempt = 1,
        .reason = reason,
        .result = result ? &bytes : NULL,
        .cache_key = cache ? &digest : NULL,
        .cap_s = 30,
    };

    ledger_finish(fixture->ledger, &end, on_done, fixture);
}

static void a_submitted_job_survives_reopening(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    assert_int_equal(ledger_next_job(fixture->ledger), 1);
    submit(fixture, 1, "a", NULL, NULL);
    submit(fixture, 2, "b", NULL, NULL);
    ledger_move(fixture->ledger, 2, JOB_RUNNING, 3, on_done, fixture);
    close_ledger(fixture);
    assert_int_equal(fixture->calls, 3);
    assert_int_equal(fixture->failures, 0);
    reload(fixture);
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

static void load_accounts(struct fixture *fixture)
{
    rows = 0;
    struct ledger *ledger;
    assert_int_equal(ledger_open(&ledger, fixture->path, 0, NULL), 0);
    assert_int_equal(ledger_load_accounts(ledger, on_account, NULL, NULL), 0);
    ledger_close(ledger);
}

static void accounts_are_kept_as_they_are_now(void **state)
{
    struct fixture *fixture = *state;
    struct account_table *accounts = accounts_create();
    struct account *search = accounts_search(accounts, "t", "s/with a slash");

    open_ledger(fixture);
    account_set(search, 2, 100, NAN, 0);
    account_set(search->tenant, NAN, INFINITY, 3600, 0);
    ledger_keep_account(fixture->ledger, search, on_done, fixture);
    search->used_s = 7.25;
    ledger_keep_account(fixture->ledger, search, on_done, fixture);
    ledger_keep_account(fixture->ledger, search->tenant, on_done, fixture);
    close_ledger(fixture);
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

static void change_file(struct fixture *fixture, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void accounts_of_searches_are_forgotten_when_they_are_old(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    close_ledger(fixture);
    change_file(fixture, "INSERT INTO account VALUES ('t','',1,NULL,NULL,1,0,1000000),"
                         " ('t','old',1,NULL,NULL,1,0,1000000),"
                         " ('t','new',1,NULL,NULL,1,0,99000000000)");
    load_accounts(fixture);
    assert_int_equal(rows, 2);
    assert_string_equal(row_name[0], "t/-");
    assert_string_equal(row_name[1], "t/new");
}

static void a_ledger_without_accounts_gets_them(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    close_ledger(fixture);
    change_file(fixture, "DROP INDEX result_used; ALTER TABLE result DROP COLUMN used;"
                         " DROP INDEX compiled_used; ALTER TABLE compiled DROP COLUMN used;"
                         " DROP TABLE device_order; DROP TABLE account;"
                         " ALTER TABLE job DROP COLUMN class;"
                         " ALTER TABLE job DROP COLUMN cause; PRAGMA user_version = 2");
    load_accounts(fixture);
    assert_int_equal(rows, 0);
    reload(fixture);
    assert_int_equal(fixture->loaded, 1);
    assert_int_equal(fixture->wanted_class, 0);
}

static void callbacks_come_in_order_and_from_the_loop_only(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    for (uint64_t i = 1; i <= 100; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        submit(fixture, i, key, NULL, NULL);
        assert_int_equal(fixture->calls, 0);
    }
    ledger_barrier(fixture->ledger, on_done, fixture);
    while (fixture->calls < 101) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(fixture->failures, 0);
    assert_int_equal(fixture->answer_count, 0); // the barrier was the last
}

static void results_are_read_back_and_cached(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    finish(fixture, 1, JOB_DONE, "result", "cache-key", NULL);
    const uint64_t ids[] = {1, 77};
    ledger_read_results(fixture->ledger, ids, 2, on_done, fixture);
    close_ledger(fixture);
    assert_int_equal(fixture->answer_count, 2);
    assert_int_equal(fixture->answer.len, 6);
    assert_memory_equal(fixture->answer.data, "result", 6);
    open_ledger(fixture);
    assert_int_equal(ledger_results(fixture->ledger), 1);
}

static bool accept_and_change(const struct bytes *spec, double cap, struct bytes *result)
{
    return spec->len == 4 && cap > 29 && result->len == 6;
}

static bool accept_nothing(const struct bytes *spec, double cap, struct bytes *result)
{
    (void)spec;
    (void)cap;
    (void)result;
    return false;
}

static void a_cached_result_finishes_a_new_job_at_once(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", "cache-key", accept_and_change);
    finish(fixture, 1, JOB_DONE, "result", "cache-key", NULL);
    submit(fixture, 2, "b", "cache-key", accept_nothing);
    submit(fixture, 3, "c", "cache-key", accept_and_change);
    close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 6);
    reload(fixture);
    assert_int_equal(fixture->state[1], JOB_QUEUED);
    assert_int_equal(fixture->state[2], JOB_DONE);
}

static void what_has_ended_stays_as_it_ended(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    finish(fixture, 1, JOB_CANCELLED, NULL, NULL, "cancelled by its client");
    finish(fixture, 1, JOB_DONE, "late", NULL, NULL);
    ledger_move(fixture->ledger, 1, JOB_RUNNING, 9, NULL, NULL);
    close_ledger(fixture);
    reload(fixture);
    assert_int_equal(fixture->state[0], JOB_CANCELLED);
    assert_string_equal(fixture->reason, "cancelled by its client");
}

static void forgotten_jobs_go_and_their_numbers_do_not_come_back(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    submit(fixture, 2, "b", NULL, NULL);
    finish(fixture, 1, JOB_DONE, "result", "cache-key", NULL);
    const uint64_t ids[] = {1, 2};
    ledger_forget(fixture->ledger, ids, 2, on_done, fixture);
    submit(fixture, 3, "a", NULL, NULL); // the key is free again, in the same batch
    close_ledger(fixture);
    assert_int_equal(fixture->failures, 0);
    open_ledger(fixture);
    assert_int_equal(ledger_next_job(fixture->ledger), 4);
    assert_int_equal(ledger_results(fixture->ledger), 1); // the cache stays
    close_ledger(fixture);
    reload(fixture);
    assert_int_equal(fixture->loaded, 1);
}

static void compilations_are_kept_replaced_and_dropped(void **state)
{
    struct fixture *fixture = *state;
    struct digest key = digest_of("key", 3);

    open_ledger(fixture);
    struct bytes one = {.data = (unsigned char *)(uintptr_t) "one", .len = 3};
    ledger_keep_compiled(fixture->ledger, &key, &one, on_done, fixture);
    struct bytes other = {.data = (unsigned char *)(uintptr_t) "other", .len = 5};
    ledger_keep_compiled(fixture->ledger, &key, &other, on_done, fixture);
    ledger_read_compiled(fixture->ledger, &key, on_done, fixture);
    close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 5);
    open_ledger(fixture);
    ledger_drop_compiled(fixture->ledger, &key);
    ledger_read_compiled(fixture->ledger, &key, on_done, fixture);
    close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 0);
    assert_int_equal(fixture->failures, 0);
}

// Jobs come, end and are acknowledged; what they leave behind is used again.
static void ten_thousand_forgotten_jobs_take_no_room(void **state)
{
    struct fixture *fixture = *state;
    char result[500];

    memset(result, 'r', sizeof(result) - 1);
    result[sizeof(result) - 1] = '\0';
    off_t early = 0;
    struct stat info;
    for (uint64_t round = 0; round < 10; round++) {
        open_ledger(fixture);
        uint64_t ids[1000];
        for (uint64_t i = 0; i < 1000; i++) {
            ids[i] = 1000 * round + i + 1;
            char key[16];
            (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)ids[i]);
            submit(fixture, ids[i], key, NULL, NULL);
            finish(fixture, ids[i], JOB_DONE, result, NULL, NULL);
        }
        ledger_forget(fixture->ledger, ids, 1000, on_done, fixture);
        close_ledger(fixture);
        assert_int_equal(stat(fixture->path, &info), 0);
        early = round == 1 ? info.st_size : early;
    }
    assert_int_equal(fixture->calls, 20010);
    assert_int_equal(fixture->failures, 0);
    assert_true(info.st_size <= 2 * early);
    reload(fixture);
    assert_int_equal(fixture->loaded, 0);
}

static struct digest numbered(int number)
{
    return digest_of(&number, sizeof(number));
}

static void caches_keep_the_newest_entries(void **state)
{
    struct fixture *fixture = *state;

    fixture->entries = 10;
    open_ledger(fixture);
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t) "bytes", .len = 5};
    struct digest key;
    for (int i = 0; i < 25; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "k%d", i);
        submit(fixture, (uint64_t)i + 1, text, NULL, NULL);
        finish(fixture, (uint64_t)i + 1, JOB_DONE, "result", text, NULL);
        key = numbered(i);
        ledger_keep_compiled(fixture->ledger, &key, &bytes, on_done, fixture);
    }
    finish(fixture, 25, JOB_DONE, "again", "k24", NULL); // replaces, and pushes nothing out
    ledger_barrier(fixture->ledger, on_done, fixture);
    while (fixture->calls < 77) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(ledger_results(fixture->ledger), 10);
    for (int i = 0; i < 25; i++) {
        key = numbered(i);
        fixture->calls = 0;
        ledger_read_compiled(fixture->ledger, &key, on_done, fixture);
        while (fixture->calls < 1) {
            (void)uv_run(&fixture->loop, UV_RUN_ONCE);
        }
        assert_int_equal(fixture->answer.len, i < 15 ? 0 : 5);
    }
    submit(fixture, 100, "old", "k14", accept_and_change);
    close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 0);
    open_ledger(fixture);
    assert_int_equal(ledger_results(fixture->ledger), 10);
    submit(fixture, 101, "new", "k15", accept_and_change);
    close_ledger(fixture);
    assert_int_not_equal(fixture->answer.len, 0);
    assert_int_equal(fixture->failures, 0);
}

static void wait_calls(struct fixture *fixture, int calls)
{
    while (fixture->calls < calls) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
}

static void keep_compiled(struct fixture *fixture, int from, int to)
{
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t) "bytes", .len = 5};

    for (int i = from; i < to; i++) {
        struct digest key = numbered(i);

        ledger_keep_compiled(fixture->ledger, &key, &bytes, on_done, fixture);
    }
}

struct found {
    bool told;
    bool is_there;
};

static void on_found(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct found *found = owner;

    assert_null(error);
    found->told = true;
    found->is_there = count > 0 && answer[0].len > 0;
}

static bool until_found(struct fixture *fixture, const struct found *found)
{
    while (!found->told) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    return found->is_there;
}

static bool has_compiled(struct fixture *fixture, int number)
{
    struct digest key = numbered(number);
    struct found found = {.told = false};

    ledger_read_compiled(fixture->ledger, &key, on_found, &found);
    return until_found(fixture, &found);
}

// Jobs with the numbers from + 1 to `to`, each with a cached result under "k" and its number.
static void keep_results(struct fixture *fixture, int from, int to)
{
    for (int i = from; i < to; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        submit(fixture, (uint64_t)i + 1, key, NULL, NULL);
        finish(fixture, (uint64_t)i + 1, JOB_DONE, "result", key, NULL);
    }
}

static bool has_result(struct fixture *fixture, const char *name)
{
    struct digest key = digest_of(name, strlen(name));
    struct bytes spec = {.data = (unsigned char *)(uintptr_t) "spec", .len = 4};
    struct found found = {.told = false};

    ledger_read_cached(fixture->ledger, &key, &spec, accept_and_change, on_found, &found);
    return until_found(fixture, &found);
}

static void what_was_dropped_makes_a_cache_no_smaller(void **state)
{
    struct fixture *fixture = *state;

    fixture->entries = 10;
    open_ledger(fixture);
    keep_compiled(fixture, 0, 10);
    for (int i = 3; i < 8; i++) {
        struct digest key = numbered(i);

        ledger_drop_compiled(fixture->ledger, &key);
    }
    keep_compiled(fixture, 10, 15);
    for (int i = 0; i < 15; i++) {
        assert_int_equal(has_compiled(fixture, i), i < 3 || i >= 8);
    }
    keep_compiled(fixture, 15, 16);
    assert_false(has_compiled(fixture, 0));
    assert_true(has_compiled(fixture, 1));
    assert_int_equal(fixture->failures, 0);
}

static void a_refreshed_result_does_not_go_first(void **state)
{
    struct fixture *fixture = *state;

    fixture->entries = 10;
    open_ledger(fixture);
    keep_results(fixture, 0, 11); // k0 has gone
    submit(fixture, 50, "again", NULL, NULL);
    finish(fixture, 50, JOB_DONE, "result", "k1", NULL);
    keep_results(fixture, 11, 12);
    wait_calls(fixture, 26);
    assert_int_equal(ledger_results(fixture->ledger), 10);
    assert_false(has_result(fixture, "k2"));
    assert_true(has_result(fixture, "k1"));
    assert_int_equal(fixture->failures, 0);
}

static void what_is_used_stays_and_what_is_refused_is_not_used(void **state)
{
    struct fixture *fixture = *state;

    fixture->entries = 3;
    open_ledger(fixture);
    keep_results(fixture, 0, 3);
    keep_compiled(fixture, 0, 3);
    assert_true(has_compiled(fixture, 0)); // in a batch that writes nothing
    submit(fixture, 50, "refused", "k0", accept_nothing);
    submit(fixture, 51, "answered", "k1", accept_and_change);
    keep_results(fixture, 3, 5);
    keep_compiled(fixture, 3, 5);
    assert_true(has_compiled(fixture, 0));
    assert_false(has_compiled(fixture, 1));
    assert_false(has_compiled(fixture, 2));
    assert_false(has_result(fixture, "k0"));
    assert_true(has_result(fixture, "k1"));
    assert_false(has_result(fixture, "k2"));
    assert_int_equal(fixture->failures, 0);
}

// Entries of before have no time of use: they go in the order in which they came.
static void caches_of_a_ledger_of_before_are_trimmed_oldest_first(void **state)
{
    struct fixture *fixture = *state;
    char *mark = xasprintf("PRAGMA application_id = %d", LEDGER_APPLICATION_ID);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, mark, NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sqlite3_exec(db, ledger_migration[i], NULL, NULL, NULL), SQLITE_OK);
    }
    for (int i = 0; i < 5; i++) {
        struct digest key = numbered(i);
        char hex[DIGEST_HEX_LEN + 1];

        digest_hex(&key, hex);
        char *insert =
            xasprintf("INSERT INTO compiled (key, created_at, compiled) VALUES (x'%s', 1,"
                      " x'0102')",
                      hex);
        assert_int_equal(sqlite3_exec(db, insert, NULL, NULL, NULL), SQLITE_OK);
        free(insert);
    }
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 4", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(mark);
    fixture->entries = 4;
    open_ledger(fixture);
    keep_compiled(fixture, 5, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(has_compiled(fixture, i), i >= 2);
    }
    assert_int_equal(fixture->failures, 0);
}

static void the_cause_of_an_end_is_kept(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    submit(fixture, 2, "b", NULL, NULL);
    struct ledger_end end = {
        .job = 1, .state = JOB_CANCELLED, .reason = "in whatever words", .cause = JOB_CAUSE_BUDGET};
    ledger_finish(fixture->ledger, &end, on_done, fixture);
    close_ledger(fixture);
    reload(fixture);
    assert_int_equal(fixture->cause[0], JOB_CAUSE_BUDGET);
    assert_int_equal(fixture->cause[1], JOB_CAUSE_NONE);
}

// What was said in sentences alone.
static void a_ledger_without_causes_gets_them(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    for (uint64_t i = 1; i <= 4; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        submit(fixture, i, key, NULL, NULL);
    }
    finish(fixture, 1, JOB_CANCELLED, NULL, NULL, "BUDGET: search s has used its 1 device-seconds");
    finish(fixture, 2, JOB_CANCELLED, NULL, NULL, "cancelled by its client");
    finish(fixture, 3, JOB_BURIED, NULL, NULL, "its executor was lost 2 times");
    close_ledger(fixture);
    change_file(fixture, "ALTER TABLE job DROP COLUMN cause; PRAGMA user_version = 5");
    reload(fixture);
    assert_int_equal(fixture->loaded, 4);
    assert_int_equal(fixture->cause[0], JOB_CAUSE_BUDGET);
    assert_int_equal(fixture->cause[1], JOB_CAUSE_CLIENT);
    assert_int_equal(fixture->cause[2], JOB_CAUSE_NONE);
    assert_int_equal(fixture->cause[3], JOB_CAUSE_NONE);
}

// A limit that was lowered does not hold up everybody: the rest goes with the next entries.
static void a_lowered_limit_is_reached_step_by_step(void **state)
{
    const size_t left[] = {1100, 101, 10};
    struct fixture *fixture = *state;
    uint64_t job = 0;

    for (size_t i = 0; i < 3; i++) {
        uint64_t last = i == 0 ? 1100 : job + 1;

        fixture->entries = i == 0 ? 0 : 10;
        open_ledger(fixture);
        while (job < last) {
            char key[16];

            (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)++job);
            submit(fixture, job, key, NULL, NULL);
            finish(fixture, job, JOB_DONE, "result", key, NULL);
        }
        close_ledger(fixture);
        open_ledger(fixture);
        assert_int_equal(ledger_results(fixture->ledger), left[i]);
        close_ledger(fixture);
    }
    assert_int_equal(fixture->failures, 0);
}

static void one_bad_operation_does_not_spoil_the_batch(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    submit(fixture, 1, "b", NULL, NULL); // the number is taken
    submit(fixture, 2, "c", NULL, NULL);
    close_ledger(fixture);
    assert_int_equal(fixture->calls, 3);
    assert_int_equal(fixture->failures, 1);
    reload(fixture);
    assert_int_equal(fixture->loaded, 2);
    assert_string_equal(fixture->key[1], "s/c");
}

// Fills the file until it is full; returns how many jobs went in.
static uint64_t fill(struct fixture *fixture)
{
    uint64_t id = 0;
    char key[512];

    while (fixture->failures == 0 && id < 10000) {
        int before = fixture->calls;

        id++;
        (void)snprintf(key, sizeof(key), "%0400d", (int)id);
        submit(fixture, id, key, NULL, NULL);
        while (fixture->calls == before) {
            (void)uv_run(&fixture->loop, UV_RUN_ONCE);
        }
    }
    return id - 1;
}

static void a_full_disk_refuses_inserts_and_lets_deletes_pass(void **state)
{
    struct fixture *fixture = *state;

    fixture->pages = 40;
    open_ledger(fixture);
    uint64_t in = fill(fixture);
    assert_int_equal(fixture->last_error, ERR_NO_SPACE);
    assert_in_range(in, 65, 9999);
    uint64_t ids[64];
    for (uint64_t i = 0; i < 64; i++) {
        ids[i] = i + 1;
    }
    fixture->failures = 0;
    // Together with an insert that fails: tried one by one.
    submit(fixture, 20000, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL,
           NULL);
    ledger_forget(fixture->ledger, ids, 64, on_done, fixture);
    submit(fixture, 20001, "there is room again", NULL, NULL);
    close_ledger(fixture);
    assert_int_equal(fixture->last_error, ERR_NONE);
    assert_in_range(fixture->failures, 0, 1);
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_file_that_is_no_database_is_refused_and_kept(void **state)
{
    struct fixture *fixture = *state;
    const char *text =
        "This is somebody's diary, not a database. It is long enough to be looked at.";

    write_file(fixture->path, text);
    struct err err = ERR_INIT;
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "ledger.db"));
    struct bytes after = {0};
    assert_int_equal(file_read(&after, fixture->path, 1000, NULL), 0);
    assert_string_equal((char *)after.data, text);
    bytes_clear(&after);
}

static void damaged_pages_are_found(void **state)
{
    struct fixture *fixture = *state;
    char junk[8 * 4096]; // some of these pages are in use
    int fd;

    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    close_ledger(fixture);
    memset(junk, 0x5a, sizeof(junk));
    fd = open(fixture->path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
    assert_int_equal(close(fd), 0);
    struct err err = ERR_INIT;
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_CORRUPT);
}

// Before there were tenants: jobs are "local", and no number is used again.
static void a_ledger_of_the_first_version_is_brought_up(void **state)
{
    static const char content[] =
        "INSERT INTO job (id, search, key, spec, priority, state, attempt, submitted_at) VALUES"
        " (7, 's', 'a', x'01020304', 3, 0, 2, 1), (9, 's', 'b', x'01020304', 3, 0, 2, 1);"
        "DELETE FROM job WHERE id = 9;"
        "PRAGMA user_version = 1;";
    struct fixture *fixture = *state;
    char *mark = xasprintf("PRAGMA application_id = %d", LEDGER_APPLICATION_ID);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, mark, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, ledger_migration[0], NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, content, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(mark);
    reload(fixture);
    assert_int_equal(fixture->loaded, 1);
    assert_string_equal(fixture->tenant[0], "local");
    assert_string_equal(fixture->key[0], "s/a");
    assert_int_equal(fixture->attempt[0], 2);
    open_ledger(fixture);
    assert_int_equal(ledger_next_job(fixture->ledger), 10);
    submit(fixture, 10, "b", NULL, NULL);
    close_ledger(fixture);
    assert_int_equal(fixture->failures, 0);
}

// What a later kcastd would leave: the schema's number is at offset 60 of the file, big-endian.
static void a_ledger_of_the_future_is_refused(void **state)
{
    struct fixture *fixture = *state;
    const unsigned char version[4] = {0, 0, 0, (unsigned char)(ledger_migration_count + 1)};

    open_ledger(fixture);
    close_ledger(fixture);
    int fd = open(fixture->path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, version, 4, 60), 4);
    assert_int_equal(close(fd), 0);
    struct err err = ERR_INIT;
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_VERSION);
    assert_non_null(strstr(err.text, "newer"));
}

static void somebody_elses_database_is_refused(void **state)
{
    struct fixture *fixture = *state;

    open_ledger(fixture);
    close_ledger(fixture);
    int fd = open(fixture->path, O_WRONLY | O_CLOEXEC);
    const unsigned char application[4] = {1, 2, 3, 4};
    assert_int_equal(pwrite(fd, application, 4, 68), 4);
    assert_int_equal(close(fd), 0);
    struct err err = ERR_INIT;
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "not a ledger"));
}

static void an_empty_file_becomes_a_ledger(void **state)
{
    struct fixture *fixture = *state;

    write_file(fixture->path, "");
    open_ledger(fixture);
    submit(fixture, 1, "a", NULL, NULL);
    close_ledger(fixture);
    assert_int_equal(fixture->failures, 0);
}

// Dies in a process of its own at one commit; afterwards the ledger has what it had before it or
// after it.
static size_t jobs_after_death(struct fixture *fixture, const char *when)
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
            submit(fixture, i, key, NULL, NULL);
            while (fixture->calls == before) {
                (void)uv_run(&loop, UV_RUN_ONCE);
            }
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    reload(fixture);
    return fixture->loaded;
}

static void a_kill_before_a_commit_loses_it_and_after_it_does_not(void **state)
{
#ifdef KCAST_FAULTS
    assert_int_equal(jobs_after_death(*state, "before:2"), 1);
    assert_int_equal(file_remove_tree(((struct fixture *)*state)->path, NULL), 0);
    assert_int_equal(jobs_after_death(*state, "after:2"), 2);
#else
    (void)state;
    (void)jobs_after_death;
    skip();
#endif
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_kill_before_a_commit_loses_it_and_after_it_does_not), // first: it forks
        TEST(a_submitted_job_survives_reopening),
        TEST(accounts_are_kept_as_they_are_now),
        TEST(accounts_of_searches_are_forgotten_when_they_are_old),
        TEST(a_ledger_without_accounts_gets_them),
        TEST(callbacks_come_in_order_and_from_the_loop_only),
        TEST(results_are_read_back_and_cached),
        TEST(a_cached_result_finishes_a_new_job_at_once),
        TEST(what_has_ended_stays_as_it_ended),
        TEST(forgotten_jobs_go_and_their_numbers_do_not_come_back),
        TEST(compilations_are_kept_replaced_and_dropped),
        TEST(ten_thousand_forgotten_jobs_take_no_room),
        TEST(caches_keep_the_newest_entries),
        TEST(what_was_dropped_makes_a_cache_no_smaller),
        TEST(a_refreshed_result_does_not_go_first),
        TEST(what_is_used_stays_and_what_is_refused_is_not_used),
        TEST(caches_of_a_ledger_of_before_are_trimmed_oldest_first),
        TEST(a_lowered_limit_is_reached_step_by_step),
        TEST(the_cause_of_an_end_is_kept),
        TEST(a_ledger_without_causes_gets_them),
        TEST(one_bad_operation_does_not_spoil_the_batch),
        TEST(a_full_disk_refuses_inserts_and_lets_deletes_pass),
        TEST(a_file_that_is_no_database_is_refused_and_kept),
        TEST(damaged_pages_are_found),
        TEST(a_ledger_of_the_first_version_is_brought_up),
        TEST(a_ledger_of_the_future_is_refused),
        TEST(somebody_elses_database_is_refused),
        TEST(an_empty_file_becomes_a_ledger),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
