// Write-ahead logs as SQLite writes them, changed at every byte: what SQLite then leaves out is
// told, and what is not told is harmless.
#include "common/file.h"
#include "common/mem.h"
#include "common/wal.h"
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 512
#define FRAME (24 + PAGE)

struct fixture {
    char *dir;
    char *path;        // of the database
    char *log;         // of its log
    struct bytes file; // of both, as a killed program left them
    struct bytes wal;
};

static void run(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
}

static sqlite3 *begin(const char *path, int application)
{
    char *sql = xasprintf("PRAGMA page_size = %d; PRAGMA application_id = %d;"
                          "PRAGMA journal_mode = WAL; CREATE TABLE t (x INTEGER, y BLOB);",
                          PAGE, application);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    run(db, sql);
    free(sql);
    return db;
}

static void add(sqlite3 *db, int rows)
{
    run(db, "BEGIN");
    for (int i = 0; i < rows; i++) {
        run(db, "INSERT INTO t VALUES (1, randomblob(200))");
    }
    run(db, "COMMIT");
}

static void read_files(struct fixture *f)
{
    bytes_clear(&f->file);
    bytes_clear(&f->wal);
    assert_int_equal(file_read(&f->file, f->path, 1 << 20, NULL), 0);
    assert_int_equal(file_read(&f->wal, f->log, 1 << 20, NULL), 0);
}

static void write_file(const char *path, const struct bytes *bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, bytes->data, bytes->len), bytes->len);
    assert_int_equal(close(fd), 0);
}

static void write_files(const struct fixture *f)
{
    char *shm = xasprintf("%s-shm", f->path);

    (void)unlink(shm);
    free(shm);
    write_file(f->path, &f->file);
    write_file(f->log, &f->wal);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-wal", NULL), 0);
    f->path = xasprintf("%s/db", f->dir);
    f->log = xasprintf("%s-wal", f->path);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    bytes_clear(&f->file);
    bytes_clear(&f->wal);
    free(f->dir);
    free(f->path);
    free(f->log);
    free(f);
    return 0;
}

// Leaves a database with a log of several transactions. again: the log was begun anew once, so that
// frames of before are behind the newest ones.
static void leave_log(struct fixture *f, bool again)
{
    sqlite3 *db = begin(f->path, 77);

    if (again) {
        add(db, 20);
        run(db, "PRAGMA wal_checkpoint(FULL)");
    }
    for (int i = 0; i < 4; i++) {
        add(db, 1);
    }
    read_files(f);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    write_files(f);
}

static struct wal_report examine_bytes(const struct fixture *f)
{
    const struct wal_bytes bytes = {f->file.data, f->file.len, f->wal.data, f->wal.len};
    struct wal_report report;

    wal_examine_bytes(&report, f->path, &bytes);
    return report;
}

static struct wal_report examine(const struct fixture *f)
{
    struct wal_report report, same = examine_bytes(f);

    assert_int_equal(wal_examine(&report, f->path, NULL), 0);
    assert_memory_equal(&same, &report, sizeof(same));
    return report;
}

static int rows_of(const struct fixture *f)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    int rows = -1;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, "SELECT count(*), sum(x) FROM t", -1, &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW &&
        sqlite3_column_int(row, 0) == sqlite3_column_int(row, 1)) {
        rows = sqlite3_column_int(row, 0);
    }
    (void)sqlite3_finalize(row);
    (void)sqlite3_close(db);
    return rows;
}

static void no_log_and_an_empty_one_are_fine(void **state)
{
    struct fixture *f = *state;
    struct wal_report report;
    const struct bytes nothing = {0};

    assert_int_equal(wal_examine(&report, f->path, NULL), 0);
    assert_int_equal(report.state, WAL_NONE);
    write_file(f->log, &nothing);
    assert_int_equal(wal_examine(&report, f->path, NULL), 0);
    assert_int_equal(report.state, WAL_NONE);
    assert_string_equal(report.text, "");
}

static void what_sqlite_uses_is_counted(void **state)
{
    struct fixture *f = *state;

    for (int again = 0; again < 2; again++) {
        leave_log(f, again);
        struct wal_report report = examine(f);
        assert_int_equal(report.state, WAL_WHOLE);
        assert_int_equal(report.commits, again ? 4 : 5); // one is the table's
        assert_int_equal(report.used, report.frames);
        assert_int_equal(report.lost_commits, 0);
        if (again) { // frames of before are behind them
            assert_true(report.frames < (f->wal.len - 32) / FRAME);
        }
        assert_int_equal(rows_of(f), again ? 24 : 4);
        assert_int_equal(unlink(f->path), 0);
    }
}

static void change_every_byte(struct fixture *f, int rows)
{
    size_t told = 0, len = 32 + examine(f).frames * FRAME;

    for (size_t at = 0; at < len; at++) {
        unsigned char mask = (unsigned char)(1U << (at + at / FRAME) % 8);

        f->wal.data[at] ^= mask;
        struct wal_report report = examine_bytes(f);
        bool is_told = report.state == WAL_DAMAGED || report.state == WAL_FOREIGN;
        assert_int_equal(is_told, report.text[0] != '\0');
        told += is_told;
        if (!is_told) {
            write_files(f);
            if (rows_of(f) != rows) {
                fail_msg("byte %zu of the log, changed by %u, is not told", at, mask);
            }
        }
        f->wal.data[at] ^= mask;
    }
    assert_true(told > len - 32); // hardly a byte has no checksum
}

static void every_changed_byte_of_a_log_is_told_or_harmless(void **state)
{
    struct fixture *f = *state;

    leave_log(f, false);
    change_every_byte(f, 4);
}

static void every_changed_byte_before_older_frames_is_told_or_harmless(void **state)
{
    struct fixture *f = *state;

    leave_log(f, true);
    change_every_byte(f, 24);
}

// What was being written when the program was killed was promised to nobody.
static void a_log_that_ends_within_a_frame_is_whole(void **state)
{
    struct fixture *f = *state;

    leave_log(f, false);
    size_t whole = f->wal.len;
    uint64_t used = examine(f).used;
    f->wal.data = xrealloc(f->wal.data, whole + FRAME, 1);
    memcpy(f->wal.data + whole, f->wal.data + whole - FRAME, FRAME);
    for (size_t more = 0; more < FRAME; more += 8) {
        f->wal.len = whole + more;
        write_file(f->log, &f->wal);
        struct wal_report report = examine(f);
        assert_int_equal(report.state, WAL_WHOLE);
        assert_int_equal(report.used, used);
    }
    for (size_t len = 0; len < 32; len++) {
        f->wal.len = len;
        write_file(f->log, &f->wal);
        assert_int_equal(examine(f).state, WAL_NONE);
    }
}

static void the_log_of_another_database_is_told(void **state)
{
    struct fixture *f = *state;
    char *other = xasprintf("%s/other", f->dir);
    sqlite3 *db = begin(other, 78);

    leave_log(f, false);
    bytes_clear(&f->file);
    run(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(file_read(&f->file, other, 1 << 20, NULL), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    write_files(f);
    struct wal_report report = examine(f);
    assert_int_equal(report.state, WAL_FOREIGN);
    assert_non_null(strstr(report.text, "the write-ahead log of another database"));
    f->file.data[16] = 0x10; // pages of 4096 bytes
    f->file.data[71] = 77;
    write_files(f);
    assert_int_equal(examine(f).state, WAL_FOREIGN);
    f->file.len = 0;
    write_files(f);
    report = examine(f);
    assert_int_equal(report.state, WAL_FOREIGN);
    assert_non_null(strstr(report.text, "is empty or not there, but"));
    assert_non_null(strstr(report.text, "5 of its transactions"));
    free(other);
}

static void a_sentence_says_what_may_be_missing(void **state)
{
    struct fixture *f = *state;

    leave_log(f, false);
    uint64_t frames = examine(f).frames;
    f->wal.data[32 + (frames - 1) * FRAME + 100] ^= 1; // in the last transaction
    write_files(f);
    struct wal_report report = examine(f);
    assert_int_equal(report.state, WAL_DAMAGED);
    assert_int_equal(report.lost_commits, 1);
    assert_int_equal(report.commits, 4);
    assert_non_null(strstr(report.text, f->log));
    assert_non_null(strstr(report.text, "the last 1 transaction may be missing"));
    assert_int_equal(rows_of(f), 3);
    write_files(f);
    f->wal.data[20] ^= 1; // a salt of the header
    write_files(f);
    report = examine(f);
    assert_int_equal(report.state, WAL_DAMAGED);
    assert_int_equal(report.lost_commits, 5);
    assert_non_null(strstr(report.text, "the header of the write-ahead log is damaged"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_log_and_an_empty_one_are_fine),
        TEST(what_sqlite_uses_is_counted),
        TEST(every_changed_byte_of_a_log_is_told_or_harmless),
        TEST(every_changed_byte_before_older_frames_is_told_or_harmless),
        TEST(a_log_that_ends_within_a_frame_is_whole),
        TEST(the_log_of_another_database_is_told),
        TEST(a_sentence_says_what_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
