// Damage of run files that SQLite does not see: what is read is what was written, or nothing, and
// it is told.
#include "client/run/run.h"
#include "client/run/run_file_private.h"
#include "common/database/row_digest.h"
#include "common/file.h"
#include "common/mem.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096
#define EVENTS 3
#define SOURCE "void f(void) { /* the source of a candidate */ }"

struct fixture {
    char *folder;
    char *path;
    struct bytes bytes; // of the file as it was written
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->folder, "kcast-run-damage", NULL), 0);
    f->path = xasprintf("%s/a.run", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(file_remove_tree(f->folder, NULL), 0);
    bytes_clear(&f->bytes);
    free(f->path);
    free(f->folder);
    free(f);
    return 0;
}

static void append(struct run *run, const char *reason)
{
    struct run_finished event = {
        .reason = (char *)(uintptr_t)reason, .at = NAN, .wall_seconds = NAN};

    assert_int_equal(run_append(run, RUN_FINISHED, &event, NULL, NULL), 0);
}

static const char *const reasons[EVENTS] = {"the first", "the second", "the third"};

// Writes a run of three events and a source.
static void write_run(struct fixture *f)
{
    struct run *run = NULL;

    assert_int_equal(run_create(&run, f->path, NULL), 0);
    for (size_t i = 0; i < EVENTS; i++) {
        append(run, reasons[i]);
    }
    assert_int_equal(run_put_blob(run, SOURCE, strlen(SOURCE), NULL, NULL), 0);
    run_close(run);
    assert_int_equal(file_read(&f->bytes, f->path, 1 << 20, NULL), 0);
}

static void write_bytes(const struct fixture *f)
{
    int fd = open(f->path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    assert_int_equal(write(fd, f->bytes.data, f->bytes.len), f->bytes.len);
    assert_int_equal(close(fd), 0);
}

static void change_file(const struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(row_digest_register(db, NULL), 0);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static size_t page_of(const struct fixture *f, const char *table)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;

    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_master WHERE name = ?", -1, &row, NULL),
        SQLITE_OK);
    (void)sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    size_t page = (size_t)sqlite3_column_int(row, 0);
    (void)sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return page;
}

struct seen {
    size_t count;
    double last_at;
    bool false_one;
};

static double first_at; // of the events as they were written

static int on_event(void *owner, struct run_event *event, struct err *err)
{
    struct seen *seen = owner;
    const struct run_finished *body = event->body;

    (void)err;
    seen->count++;
    seen->false_one = seen->false_one || event->kind != RUN_FINISHED || event->sequence > EVENTS ||
                      strcmp(body->reason, reasons[event->sequence - 1]) != 0 ||
                      event->at < first_at || event->at > first_at + 3600;
    seen->last_at = event->at;
    return 0;
}

// Reads the whole run. Returns the first error; err says what it is.
static int read_run(const struct fixture *f, struct seen *seen, struct err *err)
{
    const struct digest source = digest_of(SOURCE, strlen(SOURCE));
    struct run *run = NULL;
    struct bytes blob = {0};

    *seen = (struct seen){0};
    *err = (struct err)ERR_INIT;
    int rc = run_open_read(&run, f->path, err);
    rc = rc == 0 ? run_replay(run, 0, on_event, seen, err) : rc;
    rc = rc == 0 ? run_get_blob(run, &source, &blob, err) : rc;
    seen->false_one =
        seen->false_one ||
        (rc == 0 && (blob.len != strlen(SOURCE) || memcmp(blob.data, SOURCE, blob.len) != 0));
    bytes_clear(&blob);
    run_close(run);
    return rc;
}

static void change_every_byte(struct fixture *f, const char *table)
{
    struct seen seen;
    struct err err;
    size_t found = 0;

    write_run(f);
    first_at = 0;
    assert_int_equal(read_run(f, &seen, &err), 0);
    assert_int_equal(seen.count, EVENTS);
    first_at = seen.last_at - 1800;
    size_t page = (page_of(f, table) - 1) * PAGE;
    size_t content = (size_t)f->bytes.data[page + 5] << 8 | f->bytes.data[page + 6];
    assert_in_range(content, 100, PAGE - 1);
    for (size_t at = page + content; at < page + PAGE; at++) {
        unsigned char mask = (unsigned char)(1U << at % 8);

        f->bytes.data[at] ^= mask;
        write_bytes(f);
        f->bytes.data[at] ^= mask;
        int rc = read_run(f, &seen, &err);
        if (seen.false_one || (rc == 0 && seen.count != EVENTS) ||
            (rc != 0 && (rc != ERR_CORRUPT || !strstr(err.text, f->path)))) {
            fail_msg("%s: byte %zu with mask %u: code %d %s", table, at, mask, rc, err.text);
        }
        found += rc != 0;
    }
    assert_true(found > 10);
}

static void every_changed_byte_of_an_event_is_told(void **state)
{
    change_every_byte(*state, "event");
}

static void every_changed_byte_of_a_source_is_told(void **state)
{
    change_every_byte(*state, "blob");
}

static void a_damaged_event_is_named_and_the_others_are_read(void **state)
{
    struct fixture *f = *state;
    struct seen seen;
    struct err err;

    write_run(f);
    change_file(f, "UPDATE event SET at = at + 1 WHERE sequence = 2");
    assert_int_equal(read_run(f, &seen, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "event 2 is damaged"));
    assert_int_equal(seen.count, 1);
    struct run *run = NULL;
    assert_int_equal(run_open_read(&run, f->path, NULL), 0);
    assert_int_equal(run_last(run), EVENTS);
    assert_int_equal(run_replay(run, 2, on_event, &seen, NULL), 0);
    assert_int_equal(seen.count, 2);
    run_close(run);
}

// A row in another one's place is damaged, however whole it is.
static void events_in_another_order_are_told(void **state)
{
    struct fixture *f = *state;
    struct seen seen;
    struct err err;

    write_run(f);
    change_file(f, "UPDATE event SET sequence = 9 WHERE sequence = 1;"
                   "UPDATE event SET sequence = 1 WHERE sequence = 3;"
                   "UPDATE event SET sequence = 3 WHERE sequence = 9");
    assert_int_equal(read_run(f, &seen, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "event 1 is damaged"));
}

static void a_table_that_is_not_there_is_told(void **state)
{
    struct fixture *f = *state;
    struct seen seen;
    struct err err;

    write_run(f);
    change_file(f, "DROP TABLE event");
    assert_int_equal(read_run(f, &seen, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "no such table: event"));
}

static void a_damaged_source_is_made_whole_by_the_next_one(void **state)
{
    struct fixture *f = *state;
    struct seen seen;
    struct err err;
    struct run *run = NULL;

    write_run(f);
    change_file(f, "UPDATE blob SET data = x'00'");
    assert_int_equal(read_run(f, &seen, &err), ERR_CORRUPT);
    assert_int_equal(run_open(&run, f->path, NULL), 0);
    assert_int_equal(run_put_blob(run, SOURCE, strlen(SOURCE), NULL, NULL), 0);
    run_close(run);
    assert_int_equal(read_run(f, &seen, &err), 0);
}

static void a_run_of_before_is_read_and_gets_digests_when_it_goes_on(void **state)
{
    struct fixture *f = *state;
    struct seen seen;
    struct err err;
    struct run *run = NULL;

    write_run(f);
    change_file(f, "ALTER TABLE event DROP COLUMN digest; PRAGMA user_version = 1");
    assert_int_equal(read_run(f, &seen, &err), 0);
    assert_int_equal(seen.count, EVENTS);
    assert_int_equal(run_open(&run, f->path, NULL), 0);
    assert_int_equal(run_replay(run, 0, on_event, &seen, NULL), 0);
    run_close(run);
    change_file(f, "UPDATE event SET kind = 2 WHERE sequence = 3");
    assert_int_equal(read_run(f, &seen, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "event 3 is damaged"));
}

// Copies a run with its log, as a killed client would have left them.
static void leave_log(struct fixture *f, struct bytes *ret_log)
{
    struct run *run = NULL;
    char *log = xasprintf("%s-wal", f->path);

    assert_int_equal(run_create(&run, f->path, NULL), 0);
    for (size_t i = 0; i < EVENTS; i++) {
        append(run, reasons[i]);
    }
    assert_int_equal(file_read(&f->bytes, f->path, 1 << 20, NULL), 0);
    assert_int_equal(file_read(ret_log, log, 1 << 20, NULL), 0);
    run_close(run);
    write_bytes(f);
    free(log);
}

static void write_log(const struct fixture *f, const struct bytes *log)
{
    char *path = xasprintf("%s-wal", f->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, log->data, log->len), log->len);
    assert_int_equal(close(fd), 0);
    free(path);
}

static void what_a_damaged_log_loses_is_told(void **state)
{
    struct fixture *f = *state;
    struct bytes log = {0};
    struct run *run = NULL;

    leave_log(f, &log);
    write_log(f, &log);
    assert_int_equal(run_open_read(&run, f->path, NULL), 0);
    assert_null(run_warning(run));
    assert_int_equal(run_last(run), EVENTS);
    run_close(run);
    log.data[log.len - 100] ^= 1; // in the frame of the last event
    write_log(f, &log);
    assert_int_equal(run_open(&run, f->path, NULL), 0);
    assert_int_equal(run_last(run), EVENTS - 1);
    assert_non_null(run_warning(run));
    assert_non_null(strstr(run_warning(run), "the last 1 transaction may be missing"));
    first_at = 0;
    assert_int_equal(run_replay(run, 0, on_event, &(struct seen){0}, NULL), 0);
    run_close(run);
    bytes_clear(&log);
}

static void the_log_of_another_run_file_is_refused(void **state)
{
    struct fixture *f = *state;
    struct bytes log = {0};
    struct run *run = NULL;
    struct err err = ERR_INIT;

    leave_log(f, &log);
    write_log(f, &log);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(run_create(&run, f->path, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "-wal has 4 of its transactions"));
    assert_false(file_exists(f->path)); // and nothing was begun
    bytes_clear(&log);
}

static void assert_unchanged(const struct fixture *f)
{
    struct bytes now = {0};

    assert_int_equal(file_read(&now, f->path, 1 << 20, NULL), 0);
    assert_int_equal(now.len, f->bytes.len);
    assert_memory_equal(now.data, f->bytes.data, now.len);
    bytes_clear(&now);
}

// A killed search has left its log beside a name that a whole run was copied to.
static void the_log_of_another_run_is_not_applied(void **state)
{
    struct fixture *f = *state;
    struct bytes log = {0};
    struct run *run = NULL;
    struct err err = ERR_INIT;

    leave_log(f, &log);
    assert_int_equal(unlink(f->path), 0);
    bytes_clear(&f->bytes);
    write_run(f);
    write_log(f, &log);
    assert_int_equal(run_open_read(&run, f->path, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "the write-ahead log of another database"));
    assert_int_equal(run_open(&run, f->path, NULL), ERR_CORRUPT);
    assert_unchanged(f);
    bytes_clear(&log);
}

static void a_damaged_run_is_not_gone_on_with(void **state)
{
    struct fixture *f = *state;
    struct run *run = NULL;
    struct err err = ERR_INIT;

    write_run(f);
    change_file(f, "UPDATE event SET at = at + 1 WHERE sequence = 2");
    bytes_clear(&f->bytes);
    assert_int_equal(file_read(&f->bytes, f->path, 1 << 20, NULL), 0);
    assert_int_equal(run_open(&run, f->path, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "event 2 is damaged"));
    assert_unchanged(f);
}

// What a copy without the log has of a search that was killed.
static void a_run_without_its_log_says_so(void **state)
{
    struct fixture *f = *state;
    struct bytes log = {0};
    struct run *run = NULL;
    struct err err = ERR_INIT;

    leave_log(f, &log);
    assert_int_equal(run_open_read(&run, f->path, NULL), 0);
    assert_int_equal(run_need_events(run, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "a.run-wal as well"));
    run_close(run);
    bytes_clear(&log);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_changed_byte_of_an_event_is_told),
        TEST(every_changed_byte_of_a_source_is_told),
        TEST(a_damaged_event_is_named_and_the_others_are_read),
        TEST(events_in_another_order_are_told),
        TEST(a_damaged_source_is_made_whole_by_the_next_one),
        TEST(a_run_of_before_is_read_and_gets_digests_when_it_goes_on),
        TEST(a_table_that_is_not_there_is_told),
        TEST(what_a_damaged_log_loses_is_told),
        TEST(the_log_of_another_run_file_is_refused),
        TEST(the_log_of_another_run_is_not_applied),
        TEST(a_damaged_run_is_not_gone_on_with),
        TEST(a_run_without_its_log_says_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
