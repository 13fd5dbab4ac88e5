// Ledgers of every version are brought to the newest one, and a step that fails changes nothing.
#include "common/strbuf.h"
#include "daemon/sched/queue.h"
#include "daemon/store/ledger.h"
#include "daemon/store/ledger_db.h"
#include "daemon/store/ledger_schema.h"
#include "proto/verdict.h"
#include "tests/support/daemon/ledger_fixture.h"
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Makes a ledger as kcastd wrote it when it knew so many migrations.
static void make_version(struct ledger_fixture *fixture, size_t version, const char *content)
{
    struct strbuf sql = STRBUF_INIT;

    for (size_t i = 0; i < version; i++) {
        strbuf_adds(&sql, ledger_migration[i]);
    }
    strbuf_addf(&sql, "PRAGMA application_id = %d; PRAGMA user_version = %zu;",
                LEDGER_APPLICATION_ID, version);
    strbuf_adds(&sql, content);
    if (version == ledger_migration_count) { // which writes the digests of its rows itself
        strbuf_adds(&sql, ledger_fill_digests);
    }
    fixture_change_file(fixture, strbuf_text(&sql));
    strbuf_release(&sql);
}

static int64_t number(struct ledger_fixture *fixture, const char *sql)
{
    sqlite3 *db = NULL;
    int64_t value = -1;

    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(ledger_db_number(db, sql, &value, NULL), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return value;
}

// A job that has been cancelled, one that waits, and a result and a compilation in the caches.
static char *content_of(size_t version)
{
    const char *tenant = version > 1 ? "tenant, " : "";
    const char *value = version > 1 ? "'local', " : "";

    return xasprintf(
        "INSERT INTO job (id, %ssearch, key, spec, priority, state, attempt, reason, submitted_at)"
        " VALUES (7, %s's', 'old', x'73706563', 3, 5, 1, 'cancelled by its client', 100);"
        "INSERT INTO job (id, %ssearch, key, spec, priority, state, attempt, submitted_at)"
        " VALUES (9, %s's', 'new', x'73706563', 0, 0, 0, 101);"
        "UPDATE sqlite_sequence SET seq = 12 WHERE name = 'job';"
        "INSERT INTO result (key, created_at, cap_s, result) VALUES (x'aa', 1, 30, x'bb');"
        "INSERT INTO compiled (key, created_at, compiled) VALUES (x'cc', 1, x'dd');",
        tenant, value, tenant, value);
}

static void a_ledger_of_each_version_keeps_its_jobs_and_caches(void **state)
{
    (void)state;
    for (size_t version = 1; version <= ledger_migration_count; version++) {
        struct ledger_fixture *fixture;
        char *content = content_of(version);

        assert_int_equal(fixture_set_up((void **)&fixture), 0);
        make_version(fixture, version, content);
        free(content);
        fixture_reload(fixture);
        assert_int_equal(fixture->loaded, 2);
        assert_string_equal(fixture->key[0], "s/old");
        assert_string_equal(fixture->key[1], "s/new");
        assert_string_equal(fixture->tenant[0], "local");
        assert_int_equal(fixture->state[0], JOB_CANCELLED);
        assert_int_equal(fixture->attempt[0], 1);
        // Version 6 writes causes itself, so that its rows are left as they are.
        assert_int_equal(fixture->cause[0], version < 6 ? JOB_CAUSE_CLIENT : JOB_CAUSE_NONE);
        assert_int_equal(fixture->state[1], JOB_QUEUED);
        assert_int_equal(fixture->wanted_class, QUEUE_NORMAL);
        fixture_close_ledger(fixture);
        assert_int_equal(number(fixture, "PRAGMA user_version"), (int64_t)ledger_migration_count);
        assert_int_equal(number(fixture, "SELECT count(*) FROM result WHERE used = 0"), 1);
        assert_int_equal(number(fixture, "SELECT count(*) FROM compiled WHERE used = 0"), 1);
        assert_int_equal(number(fixture, "SELECT seq FROM sqlite_sequence WHERE name = 'job'"), 12);
        assert_int_equal(number(fixture, "SELECT priority FROM job WHERE id = 7"), 3);
        assert_int_equal(fixture_tear_down((void **)&fixture), 0);
    }
}

static void opening_twice_migrates_once(void **state)
{
    struct ledger_fixture *fixture = *state;
    char *content = content_of(2);

    make_version(fixture, 2, content);
    free(content);
    fixture_reload(fixture);
    fixture_close_ledger(fixture);
    int64_t before = number(fixture, "PRAGMA schema_version");
    fixture->loaded = 0;
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 2);
    fixture_close_ledger(fixture);
    assert_int_equal(number(fixture, "PRAGMA schema_version"), before);
}

// Each step is a transaction of its own: those before the one that fails are kept.
static void a_step_that_fails_leaves_the_version_before_it(void **state)
{
    static const struct {
        size_t from, fails; // versions: of the file, and of the step that fails
        const char *obstacle;
    } cases[] = {
        {1, 2, "CREATE TABLE job_1 (x INTEGER);"},
        {1, 4, "CREATE TABLE device_order (x INTEGER);"},
        {2, 3, "CREATE TABLE account (x INTEGER);"},
        {3, 5, "CREATE INDEX compiled_used ON compiled (created_at);"},
        {5, 6, "ALTER TABLE job ADD COLUMN cause TEXT;"},
        {6, 7, "ALTER TABLE device_order ADD COLUMN digest TEXT;"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ledger_fixture *fixture;
        struct err err = ERR_INIT;

        assert_int_equal(fixture_set_up((void **)&fixture), 0);
        char *content = content_of(cases[i].from);
        make_version(fixture, cases[i].from, content);
        free(content);
        fixture_change_file(fixture, cases[i].obstacle);
        assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_SYSTEM);
        assert_null(fixture->ledger);
        char *says = xasprintf("migration %zu", cases[i].fails);
        assert_non_null(strstr(err.text, says));
        free(says);
        assert_int_equal(number(fixture, "PRAGMA user_version"), (int64_t)cases[i].fails - 1);
        assert_int_equal(number(fixture, "SELECT count(*) FROM job"), 2);
        if (cases[i].fails == 5) { // what the step had done before it failed is undone
            assert_int_equal(
                number(fixture,
                       "SELECT count(*) FROM pragma_table_info('result') WHERE name = 'used'"),
                0);
        }
        assert_int_equal(fixture_tear_down((void **)&fixture), 0);
    }
}

static void only_what_says_why_it_was_cancelled_gets_a_cause(void **state)
{
    struct ledger_fixture *fixture = *state;

    make_version(
        fixture, 5,
        "INSERT INTO job (tenant, search, key, spec, priority, state, attempt, reason,"
        " submitted_at) VALUES"
        " ('t', 's', '1', x'73706563', 0, 5, 0, 'BUDGET: search s', 1),"
        " ('t', 's', '2', x'73706563', 0, 5, 0, 'over BUDGET: no', 1),"  // it only mentions it
        " ('t', 's', '3', x'73706563', 0, 6, 0, 'BUDGET: search s', 1)," // buried, not cancelled
        " ('t', 's', '4', x'73706563', 0, 5, 0, 'cancelled by its client.', 1),"
        " ('t', 's', '5', x'73706563', 0, 5, 0, NULL, 1);");
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 5);
    assert_int_equal(fixture->cause[0], JOB_CAUSE_BUDGET);
    for (size_t i = 1; i < 5; i++) {
        assert_int_equal(fixture->cause[i], JOB_CAUSE_NONE);
    }
}

static void tables_refuse_what_no_kcastd_writes(void **state)
{
    static const char *const wrong[] = {
        "INSERT INTO result (key, created_at, cap_s, result) VALUES (x'01', 'now', 1, x'')",
        "INSERT INTO result (key, created_at, cap_s, result) VALUES (x'01', 1, 1, NULL)",
        "INSERT INTO device_order (device, kind, created_at) VALUES (NULL, 1, 1)",
        ("INSERT INTO account (tenant, search, weight, used_s, tokens_s, at)"
         " VALUES ('t', NULL, 1, 0, 0, 0)"),
        "UPDATE job SET key = 'old'", // two of one search
    };
    struct ledger_fixture *fixture = *state;
    char *content = content_of(ledger_migration_count);
    sqlite3 *db = NULL;

    make_version(fixture, ledger_migration_count, content);
    free(content);
    assert_int_equal(ledger_db_open(&db, fixture->path, 0, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_int_equal(sqlite3_exec(db, wrong[i], NULL, NULL, NULL), SQLITE_CONSTRAINT);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ledger_of_each_version_keeps_its_jobs_and_caches),
        TEST(opening_twice_migrates_once),
        cmocka_unit_test(a_step_that_fails_leaves_the_version_before_it),
        TEST(only_what_says_why_it_was_cancelled_gets_a_cause),
        TEST(tables_refuse_what_no_kcastd_writes),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
