// The two caches in the ledger: which entries stay when there are too many.
#include "daemon/store/ledger.h"
#include "daemon/store/ledger_schema.h"
#include "proto/verdict.h"
#include "tests/support/daemon/ledger_fixture.h"
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct digest numbered(int number)
{
    return digest_of(&number, sizeof(number));
}

static void caches_keep_the_newest_entries(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture->entries = 10;
    fixture_open_ledger(fixture);
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t) "bytes", .len = 5};
    struct digest key;
    for (int i = 0; i < 25; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "k%d", i);
        fixture_submit(fixture, (uint64_t)i + 1, text, NULL, NULL);
        fixture_finish(fixture, (uint64_t)i + 1, JOB_DONE, "result", text, NULL);
        key = numbered(i);
        ledger_keep_compiled(fixture->ledger, &key, &bytes, fixture_on_done, fixture);
    }
    fixture_finish(fixture, 25, JOB_DONE, "again", "k24",
                   NULL); // replaces an entry and pushes none out
    ledger_barrier(fixture->ledger, fixture_on_done, fixture);
    while (fixture->calls < 77) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(ledger_results(fixture->ledger), 10);
    for (int i = 0; i < 25; i++) {
        key = numbered(i);
        fixture->calls = 0;
        ledger_read_compiled(fixture->ledger, &key, fixture_on_done, fixture);
        while (fixture->calls < 1) {
            (void)uv_run(&fixture->loop, UV_RUN_ONCE);
        }
        assert_int_equal(fixture->answer.len, i < 15 ? 0 : 5);
    }
    fixture_submit(fixture, 100, "old", "k14", fixture_accept_and_change);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->answer.len, 0);
    fixture_open_ledger(fixture);
    assert_int_equal(ledger_results(fixture->ledger), 10);
    fixture_submit(fixture, 101, "new", "k15", fixture_accept_and_change);
    fixture_close_ledger(fixture);
    assert_int_not_equal(fixture->answer.len, 0);
    assert_int_equal(fixture->failures, 0);
}

static void wait_calls(struct ledger_fixture *fixture, int calls)
{
    while (fixture->calls < calls) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
}

static void keep_compiled(struct ledger_fixture *fixture, int from, int to)
{
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t) "bytes", .len = 5};

    for (int i = from; i < to; i++) {
        struct digest key = numbered(i);

        ledger_keep_compiled(fixture->ledger, &key, &bytes, fixture_on_done, fixture);
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

static bool until_found(struct ledger_fixture *fixture, const struct found *found)
{
    while (!found->told) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    return found->is_there;
}

static bool has_compiled(struct ledger_fixture *fixture, int number)
{
    struct digest key = numbered(number);
    struct found found = {.told = false};

    ledger_read_compiled(fixture->ledger, &key, on_found, &found);
    return until_found(fixture, &found);
}

// Jobs with the numbers from + 1 to `to`, each with a cached result under "k" and its number.
static void keep_results(struct ledger_fixture *fixture, int from, int to)
{
    for (int i = from; i < to; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        fixture_submit(fixture, (uint64_t)i + 1, key, NULL, NULL);
        fixture_finish(fixture, (uint64_t)i + 1, JOB_DONE, "result", key, NULL);
    }
}

static bool has_result(struct ledger_fixture *fixture, const char *name)
{
    struct digest key = digest_of(name, strlen(name));
    struct bytes spec = {.data = (unsigned char *)(uintptr_t) "spec", .len = 4};
    struct found found = {.told = false};

    ledger_read_cached(fixture->ledger, &key, &spec, fixture_accept_and_change, on_found, &found);
    return until_found(fixture, &found);
}

static void what_was_dropped_makes_a_cache_no_smaller(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture->entries = 10;
    fixture_open_ledger(fixture);
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
    struct ledger_fixture *fixture = *state;

    fixture->entries = 10;
    fixture_open_ledger(fixture);
    keep_results(fixture, 0, 11); // k0 has been pushed out
    fixture_submit(fixture, 50, "again", NULL, NULL);
    fixture_finish(fixture, 50, JOB_DONE, "result", "k1", NULL);
    keep_results(fixture, 11, 12);
    wait_calls(fixture, 26);
    assert_int_equal(ledger_results(fixture->ledger), 10);
    assert_false(has_result(fixture, "k2"));
    assert_true(has_result(fixture, "k1"));
    assert_int_equal(fixture->failures, 0);
}

static void what_is_used_stays_and_what_is_refused_is_not_used(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture->entries = 3;
    fixture_open_ledger(fixture);
    keep_results(fixture, 0, 3);
    keep_compiled(fixture, 0, 3);
    assert_true(has_compiled(fixture, 0)); // a use in a batch that does not write
    fixture_submit(fixture, 50, "refused", "k0", fixture_accept_nothing);
    fixture_submit(fixture, 51, "answered", "k1", fixture_accept_and_change);
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

// Entries of older ledgers have no number of use. They are deleted in the order in which they came.
static void caches_of_a_ledger_of_before_are_trimmed_oldest_first(void **state)
{
    struct ledger_fixture *fixture = *state;
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
    fixture_open_ledger(fixture);
    keep_compiled(fixture, 5, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(has_compiled(fixture, i), i >= 2);
    }
    assert_int_equal(fixture->failures, 0);
}

// A lowered limit is not reached in one long transaction; the rest goes with the next entries.
static void a_lowered_limit_is_reached_step_by_step(void **state)
{
    const size_t left[] = {1100, 101, 10};
    struct ledger_fixture *fixture = *state;
    uint64_t job = 0;

    for (size_t i = 0; i < 3; i++) {
        uint64_t last = i == 0 ? 1100 : job + 1;

        fixture->entries = i == 0 ? 0 : 10;
        fixture_open_ledger(fixture);
        while (job < last) {
            char key[16];

            (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)++job);
            fixture_submit(fixture, job, key, NULL, NULL);
            fixture_finish(fixture, job, JOB_DONE, "result", key, NULL);
        }
        fixture_close_ledger(fixture);
        fixture_open_ledger(fixture);
        assert_int_equal(ledger_results(fixture->ledger), left[i]);
        fixture_close_ledger(fixture);
    }
    assert_int_equal(fixture->failures, 0);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
    const struct CMUnitTest tests[] = {
        WITH(caches_keep_the_newest_entries),
        WITH(what_was_dropped_makes_a_cache_no_smaller),
        WITH(a_refreshed_result_does_not_go_first),
        WITH(what_is_used_stays_and_what_is_refused_is_not_used),
        WITH(caches_of_a_ledger_of_before_are_trimmed_oldest_first),
        WITH(a_lowered_limit_is_reached_step_by_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
