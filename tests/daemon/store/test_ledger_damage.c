// Damage that SQLite does not see: bytes of rows are changed one after the other, and whatever the
// ledger then gives is what was written, or nothing.
#include "common/file.h"
#include "common/log.h"
#include "daemon/store/ledger_sql.h"
#include "proto/verdict.h"
#include "tests/support/daemon/ledger_fixture.h"
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096
#define LARGE                                                                                      \
    ((off_t)17 << 20) // bytes from which on a ledger is not looked through when it is opened
#define SPEC "the spec of a job"
#define RESULT "the result of a measurement"
#define COMPILED "the outcome of a compilation"
#define REASON "cancelled by its client"

static const struct ledger_job written[] = {
    {.id = 1, .tenant = "ann", .search = "s1", .key = "waits", .state = JOB_QUEUED, .priority = 3},
    {.id = 2, .tenant = "ann", .search = "s1", .key = "done", .state = JOB_DONE, .attempt = 1},
    {.id = 3,
     .tenant = "bob",
     .search = "s2",
     .key = "over",
     .state = JOB_CANCELLED,
     .attempt = 1,
     .reason = REASON,
     .cause = JOB_CAUSE_CLIENT,
     .wanted_class = 2},
};

static const struct ledger_account account = {.tenant = "ann",
                                              .search = "s1",
                                              .weight = 2,
                                              .limit_s = 1000,
                                              .per_hour_s = 60.5,
                                              .used_s = 12.25,
                                              .tokens_s = 3,
                                              .at_s = 99000000000};

static struct digest key_of(const char *word)
{
    return digest_of(word, strlen(word));
}

static bool accept_all(const struct bytes *spec, double cap, struct bytes *result)
{
    (void)spec;
    (void)result;
    return fabs(cap - 30) < 1e-9;
}

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
}

static void run(struct ledger_sql *sql, struct ledger_op *op)
{
    ledger_sql_run(sql, op);
    if (op->error) {
        fail_msg("%s", op->error->text);
    }
    ledger_op_reset(op);
}

static void write_job(struct ledger_sql *sql, const struct ledger_job *job)
{
    struct ledger_op submit = {.kind = LEDGER_SUBMIT,
                               .now_s = 1000,
                               .id = job->id,
                               .tenant = (char *)(uintptr_t)job->tenant,
                               .search = (char *)(uintptr_t)job->search,
                               .key = (char *)(uintptr_t)job->key,
                               .priority = job->priority,
                               .wanted_class = job->wanted_class,
                               .bytes = bytes_of(SPEC)};
    struct ledger_op move = {.kind = LEDGER_MOVE, .id = job->id, .state = JOB_RUNNING};
    struct ledger_op finish = {.kind = LEDGER_FINISH,
                               .now_s = 2000,
                               .id = job->id,
                               .state = job->state,
                               .attempt = job->attempt,
                               .reason = (char *)(uintptr_t)job->reason,
                               .cause = job->cause};

    run(sql, &submit);
    if (job->state == JOB_QUEUED) {
        return;
    }
    run(sql, &move);
    if (job->state == JOB_DONE) {
        finish.bytes = bytes_of(RESULT);
        finish.digest = key_of("measured");
        finish.cap_s = 30;
    }
    run(sql, &finish);
}

// Writes a ledger with rows in every table.
static void write_ledger(const char *path)
{
    struct ledger_sql *sql;
    struct ledger_op compiled = {
        .kind = LEDGER_KEEP_COMPILED, .digest = key_of("source"), .bytes = bytes_of(COMPILED)};
    struct ledger_op keep = {.kind = LEDGER_KEEP_ACCOUNT, .account = account};
    struct ledger_op order = {.kind = LEDGER_ORDER,
                              .key = (char *)(uintptr_t) "cpu0",
                              .state = LEDGER_QUARANTINE,
                              .reason = (char *)(uintptr_t) "it is noisy",
                              .now_s = 3000};

    assert_int_equal(ledger_sql_open(&sql, path, 0, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        write_job(sql, &written[i]);
    }
    run(sql, &compiled);
    run(sql, &keep);
    run(sql, &order);
    ledger_sql_close(sql);
}

// What a ledger gave, of how much it was the truth.
struct seen {
    size_t jobs, results, cached, compiled, accounts, orders, drains;
    bool false_one; // something else than what was written
};

static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static int on_job(void *owner, const struct ledger_job *job, struct err *err)
{
    struct seen *seen = owner;
    const struct ledger_job *was = job->id >= 1 && job->id <= 3 ? &written[job->id - 1] : NULL;

    (void)err;
    seen->jobs++;
    seen->false_one = seen->false_one || !was || !same(job->tenant, was->tenant) ||
                      !same(job->search, was->search) || !same(job->key, was->key) ||
                      job->spec.len != strlen(SPEC) ||
                      memcmp(job->spec.data, SPEC, strlen(SPEC)) != 0 ||
                      job->priority != was->priority || job->state != was->state ||
                      job->attempt != was->attempt || job->wanted_class != was->wanted_class ||
                      !same(job->reason, was->reason) || job->cause != was->cause ||
                      job->finished_s != (was->state == JOB_QUEUED ? 0 : 2000);
    return 0;
}

static void on_account(void *owner, const struct ledger_account *row)
{
    struct seen *seen = owner;

    seen->accounts++;
    seen->false_one = seen->false_one || !same(row->tenant, account.tenant) ||
                      !same(row->search, account.search) ||
                      memcmp(&row->weight, &account.weight,
                             sizeof(account) - offsetof(struct ledger_account, weight)) != 0;
}

static void on_order(void *owner, const char *device, uint64_t kind, const char *reason)
{
    struct seen *seen = owner;

    if (kind == LEDGER_DRAIN && strstr(reason, "was damaged")) {
        seen->drains++; // in the place of an order that cannot be read, for whatever it names
        return;
    }
    seen->orders++;
    seen->false_one = seen->false_one || !same(device, "cpu0") || kind != LEDGER_QUARANTINE ||
                      !same(reason, "it is noisy");
}

// Returns whether the operation's answer is there. Another one than `text` is false.
static bool read_one(struct ledger_sql *sql, struct ledger_op *op, const char *text,
                     struct seen *seen)
{
    ledger_sql_run(sql, op);
    bool there = !op->error && op->answer_count > 0 && op->answer[0].data;
    seen->false_one =
        seen->false_one || (there && (op->answer[0].len != strlen(text) ||
                                      memcmp(op->answer[0].data, text, strlen(text)) != 0));
    ledger_op_reset(op);
    return there;
}

// Reads everything that a daemon reads. Returns what opening and loading say.
static int read_ledger(const char *path, struct seen *seen)
{
    struct ledger_sql *sql = NULL;
    uint64_t id = 2, next;
    struct ledger_op result = {.kind = LEDGER_READ_RESULTS, .ids = &id, .id_count = 1};
    struct ledger_op cached = {.kind = LEDGER_READ_CACHED,
                               .digest = key_of("measured"),
                               .bytes = bytes_of(SPEC),
                               .adopt = accept_all};
    struct ledger_op compiled = {.kind = LEDGER_READ_COMPILED, .digest = key_of("source")};
    int rc = ledger_sql_open(&sql, path, 0, NULL);

    *seen = (struct seen){0};
    if (rc != 0) {
        return rc;
    }
    rc = ledger_sql_next_job(sql, &next, NULL);
    rc = rc == 0 ? ledger_sql_load(sql, on_job, seen, NULL) : rc;
    rc = rc == 0 ? ledger_sql_load_accounts(sql, 0, on_account, seen, NULL) : rc;
    rc = rc == 0 ? ledger_sql_load_orders(sql, on_order, seen, NULL) : rc;
    seen->results = read_one(sql, &result, RESULT, seen);
    seen->cached = read_one(sql, &cached, RESULT, seen);
    seen->compiled = read_one(sql, &compiled, COMPILED, seen);
    ledger_sql_close(sql);
    return rc;
}

static bool is_whole(const struct seen *seen)
{
    return seen->jobs == 3 && seen->results == 1 && seen->cached == 1 && seen->compiled == 1 &&
           seen->accounts == 1 && seen->orders == 1 && seen->drains == 0;
}

// The file as it was written, in memory.
struct original {
    struct bytes bytes;
    const char *path;
};

static void put_back(const struct original *original, size_t changed, unsigned char mask)
{
    char *side[] = {xasprintf("%s-wal", original->path), xasprintf("%s-shm", original->path)};
    unsigned char byte = original->bytes.data[changed] ^ mask;

    for (size_t i = 0; i < ARRAY_LEN(side); i++) {
        (void)unlink(side[i]);
        free(side[i]);
    }
    int fd = open(original->path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(pwrite(fd, original->bytes.data, original->bytes.len, 0), original->bytes.len);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)changed), 1);
    assert_int_equal(ftruncate(fd, LARGE), 0); // so that nothing but the digests looks at the rows
    assert_int_equal(close(fd), 0);
}

// The page of the b-tree of a table or index with so few rows.
static size_t page_of(const char *path, const char *name)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT rootpage FROM sqlite_master WHERE name = ?", -1, &row, NULL),
        SQLITE_OK);
    (void)sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    size_t page = (size_t)sqlite3_column_int(row, 0);
    (void)sqlite3_finalize(row);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return page;
}

static void what_every_byte_changes_is_seen_in(const char *name, void **state)
{
    struct ledger_fixture *fixture = *state;
    struct original original = {.path = fixture->path};
    struct seen seen;
    size_t found = 0;

    write_ledger(fixture->path);
    assert_int_equal(file_read(&original.bytes, fixture->path, 1 << 20, NULL), 0);
    size_t page = (page_of(fixture->path, name) - 1) * PAGE;
    const unsigned char *head = original.bytes.data + page;
    size_t content = (size_t)head[5] << 8 | head[6]; // where the page's rows begin
    assert_in_range(content, 100, PAGE - 1);
    put_back(&original, page, 0);
    assert_int_equal(read_ledger(fixture->path, &seen), 0);
    assert_true(is_whole(&seen) && !seen.false_one);
    for (size_t at = content; at < PAGE; at++) {
        unsigned char mask = (unsigned char)(1U << at % 8);

        put_back(&original, page + at, mask);
        int rc = read_ledger(fixture->path, &seen);
        if (seen.false_one || (rc != 0 && rc != ERR_CORRUPT && rc != ERR_SYSTEM)) {
            fail_msg("%s: byte %zu of the page with mask %u: code %d", name, at, mask, rc);
        }
        found += rc != 0 || !is_whole(&seen);
    }
    assert_true(found > 0 || strstr(name, "_used")); // which says only what is deleted first
    bytes_clear(&original.bytes);
}

static void a_changed_byte_of_job_is_seen(void **state)
{
    what_every_byte_changes_is_seen_in("job", state);
}

static void a_changed_byte_of_result_is_seen(void **state)
{
    what_every_byte_changes_is_seen_in("result", state);
}

static void a_changed_byte_of_compiled_is_seen(void **state)
{
    what_every_byte_changes_is_seen_in("compiled", state);
}

static void a_changed_byte_of_account_is_seen(void **state)
{
    what_every_byte_changes_is_seen_in("account", state);
}

static void a_changed_byte_of_device_order_is_seen(void **state)
{
    what_every_byte_changes_is_seen_in("device_order", state);
}

static void a_changed_byte_of_the_index_of_results_is_seen(void **state)
{
    what_every_byte_changes_is_seen_in("sqlite_autoindex_result_1", state);
}

static void a_changed_byte_of_the_index_of_uses_is_harmless(void **state)
{
    what_every_byte_changes_is_seen_in("result_used", state);
}

// A row that is whole, under another row's key.
static void a_row_under_another_key_is_damaged(void **state)
{
    struct ledger_fixture *fixture = *state;
    struct seen seen;

    write_ledger(fixture->path);
    fixture_change_file(fixture, "UPDATE job SET id = 4 WHERE id = 2; UPDATE job SET id = 2 WHERE "
                                 "id = 3; UPDATE account SET search = 's2';"
                                 "UPDATE compiled SET key = x'00';"
                                 "UPDATE device_order SET device = 'cpu1'");
    assert_int_equal(read_ledger(fixture->path, &seen), 0);
    assert_false(seen.false_one);
    assert_int_equal(seen.jobs, 1);
    assert_int_equal(seen.results, 0);
    assert_int_equal(seen.accounts, 0);
    assert_int_equal(seen.orders, 0);
    assert_int_equal(seen.drains, 1); // of cpu1
}

// What was damaged is gone at the next start, and new rows take its place.
static void damage_is_told_once_and_made_good(void **state)
{
    struct ledger_fixture *fixture = *state;
    struct ledger_sql *sql;
    struct seen seen;

    write_ledger(fixture->path);
    fixture_change_file(fixture,
                        "UPDATE job SET spec = x'00' WHERE id = 1; UPDATE account SET used_s = 0;"
                        "UPDATE result SET cap_s = 31; UPDATE compiled SET created_at = 9;"
                        "UPDATE device_order SET reason = NULL");
    assert_int_equal(read_ledger(fixture->path, &seen), 0);
    assert_int_equal(seen.jobs, 2);
    assert_int_equal(seen.accounts + seen.cached + seen.compiled + seen.orders, 0);
    assert_int_equal(ledger_sql_open(&sql, fixture->path, 0, NULL), 0);
    assert_int_equal(ledger_sql_load(sql, on_job, &seen, NULL), 0);
    assert_int_equal(ledger_sql_load_accounts(sql, 0, on_account, &seen, NULL), 0);
    assert_int_equal(ledger_sql_load_orders(sql, on_order, &seen, NULL), 0);
    assert_int_equal(seen.drains, 2); // as before
    assert_int_equal(ledger_sql_damaged(sql), 0);
    assert_int_equal(ledger_sql_results(sql), 0);
    write_job(sql, &written[0]);
    ledger_sql_close(sql);
    assert_int_equal(read_ledger(fixture->path, &seen), 0);
    assert_int_equal(seen.jobs, 3);
}

// A step of a job does not make a damaged row look whole.
static void a_damaged_job_stays_damaged_when_it_goes_on(void **state)
{
    struct ledger_fixture *fixture = *state;
    struct ledger_sql *sql;
    struct ledger_op move = {.kind = LEDGER_MOVE, .id = 1, .state = JOB_RUNNING};
    struct seen seen;

    write_ledger(fixture->path);
    fixture_change_file(fixture, "UPDATE job SET priority = 4 WHERE id = 1");
    assert_int_equal(ledger_sql_open(&sql, fixture->path, 0, NULL), 0);
    run(sql, &move);
    ledger_sql_close(sql);
    assert_int_equal(read_ledger(fixture->path, &seen), 0);
    assert_int_equal(seen.jobs, 2);
}

static int quiet_set_up(void **state)
{
    log_init("test", LOG_ERROR - 1); // hundreds of damaged rows are told here
    return fixture_set_up(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, quiet_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_changed_byte_of_job_is_seen),
        TEST(a_changed_byte_of_result_is_seen),
        TEST(a_changed_byte_of_compiled_is_seen),
        TEST(a_changed_byte_of_account_is_seen),
        TEST(a_changed_byte_of_device_order_is_seen),
        TEST(a_changed_byte_of_the_index_of_results_is_seen),
        TEST(a_changed_byte_of_the_index_of_uses_is_harmless),
        TEST(a_row_under_another_key_is_damaged),
        TEST(damage_is_told_once_and_made_good),
        TEST(a_damaged_job_stays_damaged_when_it_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
