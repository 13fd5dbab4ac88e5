// The run file keeps what is appended, and refuses files that are something else without changing
// them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/run/run.h"
#include "common/file.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    char *folder;
    char *path; // path of a run file that does not exist yet
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    *state = f;
    struct err err = ERR_INIT;
    if (file_make_temp_dir(&f->folder, "kcast-test", &err) != 0) {
        return -1;
    }
    f->path = xasprintf("%s/a.run", f->folder);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    int rc = file_remove_tree(f->folder, &err);
    free(f->folder);
    free(f->path);
    free(f);
    return rc;
}

static struct run *create(const char *path)
{
    struct run *run = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(run_create(&run, path, &err), 0);
    return run;
}

static struct run *open_run(const char *path)
{
    struct run *run = NULL;
    struct err err = ERR_INIT;
    if (run_open(&run, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return run;
}

static void append(struct run *run, const char *reason)
{
    struct err err = ERR_INIT;
    struct run_finished event = {
        .reason = (char *)(uintptr_t)reason, .at = NAN, .wall_seconds = NAN};
    assert_int_equal(run_append(run, RUN_FINISHED, &event, NULL, &err), 0);
}

// Counts events and joins their reasons.
struct seen {
    size_t count;
    char text[256];
};

static int visit(void *owner, struct run_event *event, struct err *err)
{
    struct seen *seen = owner;
    (void)err;
    assert_int_equal(event->kind, RUN_FINISHED);
    assert_true(event->at > 1e9);
    seen->count++;
    size_t len = strlen(seen->text);
    snprintf(seen->text + len, sizeof(seen->text) - len, "%s ",
             ((struct run_finished *)event->body)->reason);
    return 0;
}

static struct seen replay(struct run *run, uint64_t after)
{
    struct seen seen = {0};
    struct err err = ERR_INIT;
    assert_int_equal(run_replay(run, after, visit, &seen, &err), 0);
    return seen;
}

static int open_code(const char *path)
{
    struct run *run = NULL;
    struct err err = ERR_INIT;
    int rc = run_open(&run, path, &err);
    if (rc == 0) {
        run_close(run);
    } else {
        assert_non_null(strstr(err.text, path)); // every sentence names the file
    }
    return rc;
}

// The same for reading all events.
static int read_code(const char *path)
{
    struct run *run = NULL;
    struct err err = ERR_INIT;
    struct seen seen = {0};
    int rc = run_open_read(&run, path, &err);
    if (rc == 0) {
        rc = run_replay(run, 0, visit, &seen, &err);
        run_close(run);
    }
    return rc;
}

static void write_file(const char *path, const void *data, size_t len)
{
    struct err err = ERR_INIT;
    assert_int_equal(file_replace(path, data, len, false, &err), 0);
}

static struct bytes read_bytes(const char *path)
{
    struct bytes bytes;
    struct err err = ERR_INIT;
    assert_int_equal(file_read(&bytes, path, 1 << 24, &err), 0);
    return bytes;
}

// ---- tests ----

static void events_are_replayed_in_order(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    append(run, "one");
    append(run, "two");
    append(run, "three");
    assert_string_equal(replay(run, 0).text, "one two three ");
    assert_string_equal(replay(run, 2).text, "three ");
    run_close(run);
    run = open_run(f->path);
    append(run, "four");
    assert_string_equal(replay(run, 0).text, "one two three four ");
    run_close(run);
}

static void closing_leaves_one_file(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    append(run, "one");
    run_close(run);
    char *wal = xasprintf("%s-wal", f->path);
    assert_false(file_exists(wal));
    free(wal);
    assert_int_equal(read_code(f->path), 0);
}

static void transaction_is_all_or_nothing(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    append(run, "one");
    struct err err = ERR_INIT;
    assert_int_equal(run_begin(run, &err), 0);
    append(run, "lost");
    run_rollback(run);
    assert_int_equal(run_begin(run, &err), 0);
    append(run, "two");
    append(run, "three");
    assert_int_equal(run_commit(run, &err), 0);
    assert_string_equal(replay(run, 0).text, "one two three ");
    run_close(run);
}

static void blobs_are_kept_by_content(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct digest digest, again, other = digest_of("other", 5);
    struct run *run = create(f->path);
    assert_int_equal(run_put_blob(run, "source", 6, &digest, &err), 0);
    assert_int_equal(run_put_blob(run, "source", 6, &again, &err), 0);
    assert_true(digest_equal(&digest, &again));
    struct bytes bytes;
    assert_int_equal(run_get_blob(run, &digest, &bytes, &err), 0);
    assert_int_equal(bytes.len, 6);
    assert_memory_equal(bytes.data, "source", 6);
    bytes_clear(&bytes);
    assert_int_equal(run_get_blob(run, &other, &bytes, &err), ERR_NOT_FOUND);
    run_close(run);
}

static void existing_file_is_not_created_again(void **state)
{
    struct fixture *f = *state;
    write_file(f->path, "x", 1);
    struct run *run = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(run_create(&run, f->path, &err), ERR_CONFLICT);
    struct bytes bytes = read_bytes(f->path);
    assert_int_equal(bytes.len, 1);
    bytes_clear(&bytes);
}

static void what_is_no_run_is_refused_and_not_touched(void **state)
{
    struct fixture *f = *state;
    char garbage[5000];
    memset(garbage, 'g', sizeof(garbage));
    char *missing = xasprintf("%s/missing.run", f->folder);
    assert_int_equal(open_code(missing), ERR_NOT_FOUND);
    assert_false(file_exists(missing));
    assert_int_equal(open_code(f->folder), ERR_INVALID);
    write_file(f->path, "", 0);
    assert_int_equal(open_code(f->path), ERR_CORRUPT);
    write_file(f->path, garbage, sizeof(garbage));
    assert_int_equal(open_code(f->path), ERR_CORRUPT);
    struct bytes bytes = read_bytes(f->path);
    assert_int_equal(bytes.len, sizeof(garbage));
    assert_memory_equal(bytes.data, garbage, sizeof(garbage));
    bytes_clear(&bytes);
    free(missing);
}

static void other_version_is_refused_and_not_touched(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    append(run, "one");
    run_close(run);
    struct bytes bytes = read_bytes(f->path);
    bytes.data[63] = RUN_FORMAT + 1; // user_version, big-endian, at byte 60
    write_file(f->path, bytes.data, bytes.len);
    assert_int_equal(open_code(f->path), ERR_VERSION);
    assert_int_equal(read_code(f->path), ERR_VERSION);
    struct bytes after = read_bytes(f->path);
    assert_int_equal(after.len, bytes.len);
    assert_memory_equal(after.data, bytes.data, bytes.len);
    bytes_clear(&bytes);
    bytes_clear(&after);
}

static void truncated_file_is_an_error_at_every_page(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    for (size_t i = 0; i < 400; i++) {
        append(run,
               "a reason that is long enough to fill some pages of the database after a while");
    }
    run_close(run);
    struct bytes bytes = read_bytes(f->path);
    assert_true(bytes.len > 6 * 4096);
    for (size_t len = 0; len < bytes.len; len += 4096) {
        write_file(f->path, bytes.data, len);
        assert_int_equal(read_code(f->path), ERR_CORRUPT);
    }
    bytes_clear(&bytes);
}

static void event_that_cannot_be_read_is_named(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    append(run, "findme");
    run_close(run);
    struct bytes bytes = read_bytes(f->path);
    unsigned char *at = memmem(bytes.data, bytes.len, "findme", 6);
    assert_non_null(at);
    at[-1] = 0xc1; // a byte that msgpack never uses
    write_file(f->path, bytes.data, bytes.len);
    bytes_clear(&bytes);
    struct err err = ERR_INIT;
    assert_int_equal(run_open_read(&run, f->path, &err), 0);
    struct seen seen = {0};
    assert_int_equal(run_replay(run, 0, visit, &seen, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "event 1"));
    run_close(run);
}

static void second_driver_is_busy_and_readers_are_not(void **state)
{
    struct fixture *f = *state;
    struct run *run = create(f->path);
    append(run, "one");
    assert_int_equal(read_code(f->path), 0);
    pid_t pid = fork(); // a second process, since a lock is held by a process
    if (pid == 0) {
        struct run *other = NULL;
        struct err err = ERR_INIT;
        _exit(run_open(&other, f->path, &err) == ERR_BUSY ? 0 : 1);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    append(run, "two");
    assert_string_equal(replay(run, 0).text, "one two ");
    run_close(run);
    assert_int_equal(open_code(f->path), 0);
}

// Leaves the file as a killed client does, with a WAL.
static void leave_wal(const char *path, size_t events)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct run *run = NULL;
        struct err err = ERR_INIT;
        if (run_create(&run, path, &err) != 0) {
            _exit(1);
        }
        struct run_finished event = {
            .reason = (char *)(uintptr_t) "x", .at = NAN, .wall_seconds = NAN};
        for (size_t i = 0; i < events; i++) {
            if (run_append(run, RUN_FINISHED, &event, NULL, &err) != 0) {
                _exit(1);
            }
        }
        _exit(0); // without closing anything
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static void torn_wal_loses_only_its_end(void **state)
{
    struct fixture *f = *state;
    char *wal = xasprintf("%s-wal", f->path), *copy = xasprintf("%s/copy.run", f->folder);
    char *copy_wal = xasprintf("%s-wal", copy);
    leave_wal(f->path, 20);
    struct bytes data = read_bytes(f->path), log = read_bytes(wal);
    assert_true(log.len > 20 * 4096);
    size_t last = 0;
    for (size_t len = 0; len <= log.len; len += 1777) {
        write_file(copy, data.data, data.len);
        write_file(copy_wal, log.data, len);
        struct run *run = open_run(copy);
        size_t count = replay(run, 0).count;
        assert_true(count >= last); // a longer WAL never has fewer events
        last = count;
        append(run, "goes on");
        assert_int_equal(replay(run, 0).count, count + 1);
        run_close(run);
        (void)unlink(copy);
        (void)unlink(copy_wal);
    }
    assert_true(last >= 18);
    bytes_clear(&data);
    bytes_clear(&log);
    free(wal);
    free(copy);
    free(copy_wal);
}

struct jobs {
    uint64_t measured;
    uint64_t largest; // largest number of a job
    bool named;       // an event names a daemon
};

static int note_job(void *owner, struct run_event *event, struct err *err)
{
    struct jobs *jobs = owner;
    const struct run_measured *measured = event->body;
    (void)err;
    if (event->kind == RUN_MEASURED) {
        jobs->measured++;
        jobs->largest = measured->job > jobs->largest ? measured->job : jobs->largest;
        jobs->named = jobs->named || measured->pool;
    }
    return 0;
}

// A file of an earlier client with one daemon, where jobs are the daemon's plain numbers.
static void file_of_an_earlier_client_is_read(void **state)
{
    struct fixture *f = *state;
    const char *root = getenv("KCAST_ROOT");
    char *archive = xasprintf("%s/docs/h200/runs.tar.xz", root ? root : ".");
    char *path = xasprintf("%s/scan.run", f->folder);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("tar", "tar", "-C", f->folder, "-xJf", archive, "./scan.run", NULL);
        _exit(127);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct err err = ERR_INIT;
    struct run *run = NULL;
    assert_int_equal(run_open_read(&run, path, &err), 0);
    struct jobs jobs = {0};
    assert_int_equal(run_replay(run, 0, note_job, &jobs, &err), 0);
    assert_true(jobs.measured > 50);
    assert_in_range(jobs.largest, jobs.measured, 1 << 20);
    assert_false(jobs.named);
    run_close(run);
    free(archive);
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(file_of_an_earlier_client_is_read),
        TEST(events_are_replayed_in_order),
        TEST(closing_leaves_one_file),
        TEST(transaction_is_all_or_nothing),
        TEST(blobs_are_kept_by_content),
        TEST(existing_file_is_not_created_again),
        TEST(what_is_no_run_is_refused_and_not_touched),
        TEST(other_version_is_refused_and_not_touched),
        TEST(truncated_file_is_an_error_at_every_page),
        TEST(event_that_cannot_be_read_is_named),
        TEST(second_driver_is_busy_and_readers_are_not),
        TEST(torn_wal_loses_only_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
