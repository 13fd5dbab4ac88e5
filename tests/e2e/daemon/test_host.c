// kcastd on a host whose disk is full for a while, whose wall clock is set and whose blobs are old
// (tests/support/fake_host).
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/until.h"
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_S 3600
#define DAY_S (24 * HOUR_S)

static void set_host(struct daemon_client *client, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", client->program.dir, name);

    if (text) {
        assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
    } else {
        (void)unlink(path);
    }
    free(path);
}

static void set_wall(struct daemon_client *client, long ahead_s)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%ld\n", ahead_s);
    set_host(client, "wall", text);
}

static char *preload;
static char *host;

static int set_up(void **state)
{
    char *library = program_support_path("../fake/libhost.so");

    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    preload = xasprintf("LD_PRELOAD=%s", library);
    host = xasprintf("KCAST_FAKE_HOST=%s", client->program.dir);
    client->option[0] = "--devices=cpu:1";
    client->variable[0] = preload;
    client->variable[1] = host;
    free(library);
    return daemon_client_start(client) ? 0 : -1;
}

static int tear_down(void **state)
{
    int code = daemon_client_tear_down(state);

    free(preload);
    free(host);
    return code;
}

static void restart(struct daemon_client *client)
{
    daemon_client_disconnect(client);
    (void)program_kill(&client->program);
    assert_true(daemon_client_start(client));
}

static int submit_code(struct daemon_client *client, const char *key, const struct job_spec *spec,
                       uint64_t *ret)
{
    struct submitted reply;
    struct err err = ERR_INIT;
    int rc = daemon_client_submit(client, "test", key, spec, &reply, &err);

    if (rc == 0) {
        *ret = reply.job;
    }
    return rc;
}

static bool log_has(const struct daemon_client *client, const char *text)
{
    char *log = program_log(&client->program);
    bool has = strstr(log, text);

    free(log);
    return has;
}

// --- a full disk

static void expect_no_room(struct daemon_client *client, const struct job_spec *spec)
{
    static const char text[] = "int another;\n";
    uint64_t job;

    assert_int_equal(submit_code(client, "refused", spec, &job), ERR_NO_SPACE);
    struct blob_put body;
    message_init(&blob_put_message, &body);
    body.digest = digest_of(text, strlen(text));
    body.data = (struct bytes){.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
    struct empty reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_call(client, OP_BLOB_PUT, &blob_put_message, &body,
                                        &empty_message, &reply, &err),
                     ERR_NO_SPACE);
    assert_non_null(strstr(err.text, client->state));
    assert_non_null(strstr(err.text, "://")); // the path is the daemon's, whose address comes first
}

static int count_of(sqlite3_stmt *row)
{
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    int count = sqlite3_column_int(row, 0);
    (void)sqlite3_reset(row);
    return count;
}

// Until the ledger has the end of every job.
static void until_saved(const struct daemon_client *client)
{
    static const char sql[] = "SELECT count(*) FROM job WHERE finished_at = 0";
    char *path = xasprintf("%s/ledger.db", client->state);
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
    UNTIL(count_of(row) == 0);
    (void)sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    free(path);
}

// One job is measured and one is compiled when the disk is full: the first one's result is
// delivered, the second one goes on when there is room again, and then all of it is in the ledger.
static void a_full_disk_ends_no_job(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *compile_gate = daemon_client_gate(client, "compile");
    char *measured = xasprintf("//! gate %s\n", gate);
    char *compiled = xasprintf("//! compile-gate %s\n", compile_gate);
    struct job_spec spec = daemon_client_spec(client, "int refused;\n");
    uint64_t job[2];

    job[0] = daemon_client_accepted(client, "measured", measured);
    (void)daemon_client_gate_wait(gate);
    job[1] = daemon_client_accepted(client, "compiled", compiled);
    (void)daemon_client_gate_wait(compile_gate);
    daemon_client_until(client, job[0], JOB_RUNNING);
    set_host(client, "full", client->state);
    expect_no_room(client, &spec);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job[0], JOB_DONE, VERDICT_FASTER); // from memory
    daemon_client_gate_open(compile_gate);
    while (!log_has(client, "compile-held")) {
        daemon_client_until(client, job[1], JOB_COMPILING); // and not buried
    }
    set_host(client, "full", NULL);
    (void)daemon_client_gate_wait(compile_gate); // again, since its object was not kept
    daemon_client_gate_open(compile_gate);
    daemon_client_expect(client, job[1], JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "measure", measured), 1);
    assert_int_equal(submit_code(client, "refused", &spec, &job[1]), 0);
    daemon_client_expect(client, job[1], JOB_DONE, VERDICT_FASTER);
    until_saved(client);
    restart(client);
    daemon_client_expect(client, job[0], JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, job[1], JOB_DONE, VERDICT_FASTER);
    free(compiled);
    free(measured);
    free(compile_gate);
    free(gate);
}

// --- the wall clock

static void set_hours_budget(struct daemon_client *client, const char *search, double seconds)
{
    struct budget_request request;

    message_init(&budget_request_message, &request);
    request.tenant = (char *)(uintptr_t) "local";
    request.search = (char *)(uintptr_t)search;
    request.hour_seconds = seconds;
    struct budget_list list;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_call(client, OP_BUDGET, &budget_request_message, &request,
                                        &budget_list_message, &list, &err),
                     0);
    message_clear(&budget_list_message, &list);
}

static void park(struct daemon_client *client, uint64_t *job, struct long_poll *poll)
{
    daemon_client_park(client, job, 1, 50000, poll);
    struct status status = {0};
    do {
        message_clear(&status_message, &status);
        daemon_client_status(client, &status);
    } while (status.waits < 1);
    message_clear(&status_message, &status);
}

// An hour forward, then two back, while a result waits for its acknowledgement, a job runs, a
// caller waits for it and a budget of an hour's device time is used up. Nothing ends early, nothing
// is free early, nothing is killed.
static void a_step_of_the_wall_clock_changes_nothing(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t done = daemon_client_accepted(client, "done", "int done;\n");
    struct job_spec spec = daemon_client_spec(client, "int later;\n");

    daemon_client_expect(client, done, JOB_DONE, VERDICT_FASTER);
    set_hours_budget(client, "poor", 0);
    struct submitted later;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "poor", "k", &spec, &later, &err), 0);
    daemon_client_until(client, later.job, JOB_READY);
    const long step_s[] = {HOUR_S, -HOUR_S};
    for (size_t i = 0; i < 2; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%zu", i);
        spec = daemon_client_spec(client, candidate);
        spec.repeat = i + 1;
        uint64_t job;
        assert_int_equal(submit_code(client, key, &spec, &job), 0);
        (void)daemon_client_gate_wait(gate);
        struct long_poll poll = {0};
        park(client, &job, &poll);
        set_wall(client, step_s[i]);
        daemon_client_expect(client, done, JOB_DONE, VERDICT_FASTER);
        daemon_client_until(client, later.job, JOB_READY);
        assert_int_equal(poll.answers, 0);
        daemon_client_gate_open(gate);
        while (poll.answers == 0) {
            (void)uv_run(&client->loop, UV_RUN_ONCE);
        }
        assert_int_equal(poll.jobs, 1);
        daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
        daemon_client_until(client, later.job, JOB_READY);
        assert_int_equal(daemon_client_runs(client, "measure", candidate), i + 1);
    }
    restart(client); // two hours earlier than some of its rows
    daemon_client_expect(client, done, JOB_DONE, VERDICT_FASTER);
    daemon_client_until(client, later.job, JOB_READY);
    set_hours_budget(client, "poor", HOUR_S);
    daemon_client_expect(client, later.job, JOB_DONE, VERDICT_FASTER);
    free(candidate);
    free(gate);
}

static bool is_unknown(struct daemon_client *client, uint64_t job)
{
    struct waited waited;

    daemon_client_wait_once(client, &job, 1, 0, &waited);
    bool unknown = waited.unknown_count > 0;
    message_clear(&waited_message, &waited);
    return unknown;
}

// The one thing that a date decides: a result that nobody has fetched for a week.
static void a_result_is_kept_for_a_week(void **state)
{
    struct daemon_client *client = *state;
    uint64_t job = daemon_client_accepted(client, "k", "int x;\n");

    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    set_wall(client, 6 * DAY_S);
    restart(client);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    set_wall(client, 8 * DAY_S);
    restart(client);
    UNTIL(is_unknown(client, job));
    assert_true(log_has(client, "results-expired jobs=1"));
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

// --- blobs

static int make_old(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)where;
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    return type == FTW_F ? utimensat(AT_FDCWD, path, times, 0) : 0;
}

static bool is_missing(struct daemon_client *client, const struct digest *digest)
{
    struct digest asked = *digest;
    struct blob_have have;

    message_init(&blob_have_message, &have);
    have.digests = &asked;
    have.digests_count = 1;
    struct blob_missing missing;
    assert_int_equal(daemon_client_call(client, OP_BLOB_HAVE, &blob_have_message, &have,
                                        &blob_missing_message, &missing, NULL),
                     0);
    size_t count = missing.digests_count;
    message_clear(&blob_missing_message, &missing);
    return count > 0;
}

// Everything was used long ago when the daemon starts with too much on its disk, and one job is not
// done: what it needs stays, and whoever wants the rest sends it again.
static void old_blobs_make_room(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    char *blobs = xasprintf("%s/blobs", client->state);
    const size_t len = (size_t)2 << 20;
    char *large = xcalloc(1, len);

    struct digest digest = daemon_client_put(client, large, len);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    (void)daemon_client_gate_wait(gate);
    daemon_client_disconnect(client);
    (void)program_kill(&client->program);
    assert_int_equal(nftw(blobs, make_old, 8, FTW_PHYS), 0);
    client->option[1] = "--blobs-max=1M";
    assert_true(daemon_client_start(client));
    (void)daemon_client_gate_wait(gate);
    UNTIL(log_has(client, "blobs-swept"));
    assert_true(is_missing(client, &digest));
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    // The problem is still there.
    daemon_client_expect(client, daemon_client_accepted(client, "l", "int l;\n"), JOB_DONE,
                         VERDICT_FASTER);
    free(large);
    free(blobs);
    free(candidate);
    free(gate);
}

// There are fewer than --blobs-max, and there is no room for an object: what was used long ago goes
// at once, and meanwhile the daemon says what is wrong.
static void a_full_disk_has_old_blobs_swept(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);
    char *blobs = xasprintf("%s/blobs", client->state);
    const size_t len = (size_t)2 << 20;
    char *large = xcalloc(1, len);
    struct digest digest = daemon_client_put(client, large, len);
    uint64_t job = daemon_client_accepted(client, "k", candidate);

    (void)daemon_client_gate_wait(gate);
    assert_int_equal(nftw(blobs, make_old, 8, FTW_PHYS), 0);
    set_host(client, "full", blobs);
    daemon_client_gate_open(gate);
    UNTIL(log_has(client, "compile-held"));
    struct status status;
    daemon_client_status(client, &status);
    assert_non_null(status.illness);
    assert_non_null(strstr(status.illness, "compilations wait"));
    message_clear(&status_message, &status);
    UNTIL(log_has(client, "blobs-swept"));
    assert_true(is_missing(client, &digest));
    set_host(client, "full", NULL);
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    daemon_client_status(client, &status);
    assert_null(status.illness);
    message_clear(&status_message, &status);
    free(large);
    free(blobs);
    free(candidate);
    free(gate);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_full_disk_ends_no_job),         TEST(a_step_of_the_wall_clock_changes_nothing),
        TEST(a_result_is_kept_for_a_week),     TEST(old_blobs_make_room),
        TEST(a_full_disk_has_old_blobs_swept),
    };
#undef TEST
    const char *options = getenv("ASAN_OPTIONS");
    char *asan = xasprintf("%s:verify_asan_link_order=0", options ? options : "");

    (void)setenv("ASAN_OPTIONS", asan, 1); // another library is loaded before the sanitizer's
    free(asan);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
