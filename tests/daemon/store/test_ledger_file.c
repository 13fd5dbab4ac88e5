// The ledger's file: ledgers of older versions are brought up, and what is damaged is refused.
#include "common/file.h"
#include "daemon/store/ledger.h"
#include "daemon/store/ledger_schema.h"
#include "proto/verdict.h"
#include "tests/support/daemon/ledger_fixture.h"
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// Causes are read from the sentences of older ledgers.
static void a_ledger_without_causes_gets_them(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    for (uint64_t i = 1; i <= 4; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        fixture_submit(fixture, i, key, NULL, NULL);
    }
    fixture_finish(fixture, 1, JOB_CANCELLED, NULL, NULL,
                   "BUDGET: search s has used its 1 device-seconds");
    fixture_finish(fixture, 2, JOB_CANCELLED, NULL, NULL, "cancelled by its client");
    fixture_finish(fixture, 3, JOB_BURIED, NULL, NULL, "its executor was lost 2 times");
    fixture_close_ledger(fixture);
    fixture_change_file(fixture, FIXTURE_WITHOUT_DIGESTS
                        "ALTER TABLE job DROP COLUMN cause; PRAGMA user_version = 5");
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 4);
    assert_int_equal(fixture->cause[0], JOB_CAUSE_BUDGET);
    assert_int_equal(fixture->cause[1], JOB_CAUSE_CLIENT);
    assert_int_equal(fixture->cause[2], JOB_CAUSE_NONE);
    assert_int_equal(fixture->cause[3], JOB_CAUSE_NONE);
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
    struct ledger_fixture *fixture = *state;
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
    struct ledger_fixture *fixture = *state;
    char junk[8 * 4096]; // some of these pages are in use
    int fd;

    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_close_ledger(fixture);
    memset(junk, 0x5a, sizeof(junk));
    fd = open(fixture->path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, junk, sizeof(junk), 4096), sizeof(junk));
    assert_int_equal(close(fd), 0);
    struct err err = ERR_INIT;
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_CORRUPT);
}

// The first version had no tenants: its jobs become those of "local", and no number is used again.
static void a_ledger_of_the_first_version_is_brought_up(void **state)
{
    static const char content[] =
        "INSERT INTO job (id, search, key, spec, priority, state, attempt, submitted_at) VALUES"
        " (7, 's', 'a', x'01020304', 3, 0, 2, 1), (9, 's', 'b', x'01020304', 3, 0, 2, 1);"
        "DELETE FROM job WHERE id = 9;"
        "PRAGMA user_version = 1;";
    struct ledger_fixture *fixture = *state;
    char *mark = xasprintf("PRAGMA application_id = %d", LEDGER_APPLICATION_ID);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, mark, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, ledger_migration[0], NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, content, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(mark);
    fixture_reload(fixture);
    assert_int_equal(fixture->loaded, 1);
    assert_string_equal(fixture->tenant[0], "local");
    assert_string_equal(fixture->key[0], "s/a");
    assert_int_equal(fixture->attempt[0], 2);
    fixture_open_ledger(fixture);
    assert_int_equal(ledger_next_job(fixture->ledger), 10);
    fixture_submit(fixture, 10, "b", NULL, NULL);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->failures, 0);
}

// A newer kcastd would leave a higher schema version, at offset 60 of the file, big-endian.
static void a_ledger_of_the_future_is_refused(void **state)
{
    struct ledger_fixture *fixture = *state;
    const unsigned char version[4] = {0, 0, 0, (unsigned char)(ledger_migration_count + 1)};

    fixture_open_ledger(fixture);
    fixture_close_ledger(fixture);
    int fd = open(fixture->path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, version, 4, 60), 4);
    assert_int_equal(close(fd), 0);
    struct err err = ERR_INIT;
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_VERSION);
    assert_non_null(strstr(err.text, "newer"));
}

static void somebody_elses_database_is_refused(void **state)
{
    struct ledger_fixture *fixture = *state;

    fixture_open_ledger(fixture);
    fixture_close_ledger(fixture);
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
    struct ledger_fixture *fixture = *state;

    write_file(fixture->path, "");
    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    fixture_close_ledger(fixture);
    assert_int_equal(fixture->failures, 0);
}

// Leaves a ledger of two jobs as a killed daemon does: with everything in its write-ahead log.
static void leave_log(struct ledger_fixture *fixture, struct bytes *ret_log)
{
    char *log = xasprintf("%s-wal", fixture->path);
    struct bytes file = {0};

    fixture_open_ledger(fixture);
    fixture_close_ledger(fixture);
    fixture_open_ledger(fixture);
    fixture_submit(fixture, 1, "a", NULL, NULL);
    while (fixture->calls < 1) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    fixture_submit(fixture, 2, "b", NULL, NULL);
    while (fixture->calls < 2) {
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(file_read(&file, fixture->path, 1 << 20, NULL), 0);
    assert_int_equal(file_read(ret_log, log, 1 << 20, NULL), 0);
    fixture_close_ledger(fixture);
    assert_int_equal(file_replace(fixture->path, file.data, file.len, false, NULL), 0);
    assert_int_equal(file_replace(log, ret_log->data, ret_log->len, false, NULL), 0);
    bytes_clear(&file);
    free(log);
}

// Reloads the ledger and returns what was logged meanwhile; the caller frees it.
static char *log_of_reload(struct ledger_fixture *fixture)
{
    char *path = xasprintf("%s/log", fixture->dir);
    int saved = dup(STDERR_FILENO);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct bytes text = {0};

    assert_true(saved >= 0 && fd >= 0);
    assert_true(dup2(fd, STDERR_FILENO) >= 0);
    fixture_reload(fixture);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    (void)close(fd);
    assert_int_equal(file_read(&text, path, 1 << 20, NULL), 0);
    char *ret = xstrndup((const char *)text.data, text.len);
    bytes_clear(&text);
    free(path);
    return ret;
}

static void what_a_damaged_log_loses_is_told(void **state)
{
    struct ledger_fixture *fixture = *state;
    char *name = xasprintf("%s-wal", fixture->path);
    struct bytes log = {0};

    for (int damaged = 0; damaged < 2; damaged++) {
        (void)unlink(fixture->path);
        (void)unlink(name);
        fixture->calls = 0;
        bytes_clear(&log);
        leave_log(fixture, &log);
        log.data[log.len - 100] ^= (unsigned char)damaged; // in what the second job has written
        assert_int_equal(file_replace(name, log.data, log.len, false, NULL), 0);
        char *told = log_of_reload(fixture);
        assert_int_equal(fixture->loaded, damaged ? 1 : 2);
        assert_int_equal(!strstr(told, "ledger-log-damaged"), !damaged);
        assert_int_equal(!strstr(told, "the last 1 transaction may be missing"), !damaged);
        free(told);
    }
    bytes_clear(&log);
    free(name);
}

static void a_log_without_its_ledger_is_refused_and_kept(void **state)
{
    struct ledger_fixture *fixture = *state;
    char *name = xasprintf("%s-wal", fixture->path);
    struct bytes log = {0}, after = {0};
    struct err err = ERR_INIT;

    leave_log(fixture, &log);
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(ledger_open(&fixture->ledger, fixture->path, 0, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "is empty or not there, but"));
    assert_int_equal(file_read(&after, name, 1 << 20, NULL), 0);
    assert_int_equal(after.len, log.len);
    assert_memory_equal(after.data, log.data, log.len);
    assert_int_equal(unlink(name), 0);
    fixture_open_ledger(fixture); // an operator who moves it away can go on
    fixture_close_ledger(fixture);
    bytes_clear(&log);
    bytes_clear(&after);
    free(name);
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)
    const struct CMUnitTest tests[] = {
        WITH(a_ledger_without_causes_gets_them),
        WITH(a_file_that_is_no_database_is_refused_and_kept),
        WITH(damaged_pages_are_found),
        WITH(a_ledger_of_the_first_version_is_brought_up),
        WITH(a_ledger_of_the_future_is_refused),
        WITH(somebody_elses_database_is_refused),
        WITH(an_empty_file_becomes_a_ledger),
        WITH(what_a_damaged_log_loses_is_told),
        WITH(a_log_without_its_ledger_is_refused_and_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
