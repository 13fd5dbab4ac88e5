// The outcome store: outcomes are kept once each and survive reopening. Damaged, foreign and newer
// files are refused and left as they are.
#include "worker/outcomes/outcome_store.h"

#include "common/file.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    char *dir, *path;
    struct outcome_store *store;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-store", NULL), 0);
    f->path = xasprintf("%s/worker.db", f->dir);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    outcome_store_close(f->store);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

static void reopen(struct fixture *f)
{
    outcome_store_close(f->store);
    f->store = NULL;
    struct err err = ERR_INIT;
    if (outcome_store_open(&f->store, f->path, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static int64_t group_of(struct fixture *f, const char *identity)
{
    int64_t group = 0;
    assert_int_equal(outcome_store_group(f->store, identity, "sgemm", "cpu x", &group, NULL), 0);
    return group;
}

// Adds one outcome with this key (may be NULL) and value. Returns whether it was new.
static bool add(struct fixture *f, int64_t group, const char *key, double log2)
{
    struct fact param[] = {{(char *)"MB", 32}};
    struct candidate_facts candidate = {.params = param, .params_count = 1};
    struct outcome outcome;
    bool take = true, added = false;
    message_init(&outcome_message, &outcome);
    struct observe observe;
    message_init(&observe_message, &observe);
    unsigned char source[] = "int x;";
    candidate.source = (struct bytes){source, sizeof(source)};
    outcome.candidate = &candidate;
    outcome.verdict = VERDICT_FASTER;
    outcome.log2 = log2;
    outcome.key = (char *)key;
    observe.problem = (char *)"sgemm";
    observe.device_class = (char *)"cpu x";
    observe.outcomes = &outcome;
    observe.outcomes_count = 1;
    assert_int_equal(outcome_store_add(f->store, group, &observe, &take, &added, NULL), 0);
    return added;
}

struct seen {
    size_t count;
    double log2[16];
    size_t source_len;
};

static void on_outcome(void *owner, const struct observe *observe)
{
    struct seen *seen = owner;
    assert_int_equal(observe->outcomes_count, 1);
    assert_string_equal(observe->device_class, "cpu x");
    assert_string_equal(observe->outcomes[0].candidate->params[0].name, "MB");
    seen->source_len += observe->outcomes[0].candidate->source.len;
    seen->log2[seen->count++] = observe->outcomes[0].log2;
}

static void outcomes_are_there_after_reopening_in_their_order(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    int64_t group = group_of(f, "a");
    for (int i = 0; i < 5; i++) {
        char key[2] = {(char)('e' - i), 0};
        assert_true(add(f, group, key, i));
    }
    reopen(f);
    assert_int_equal(group_of(f, "a"), group);
    struct seen seen = {0};
    assert_int_equal(outcome_store_each_outcome(f->store, group, 3, on_outcome, &seen, NULL), 0);
    assert_int_equal(seen.count, 3);
    assert_true(seen.log2[0] == 2 && seen.log2[2] == 4); // the newest, oldest first
    assert_int_equal(seen.source_len, 0);                // sources are not kept
    uint64_t count = 0;
    assert_int_equal(outcome_store_count(f->store, group, &count, NULL), 0);
    assert_int_equal(count, 5);
}

static void all_groups_are_read_in_the_order_of_telling(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    for (int i = 0; i < 8; i++) {
        char key[2] = {(char)('a' + i), 0};
        assert_true(add(f, group_of(f, i % 2 == 0 || i > 5 ? "a" : "b"), key, i));
    }
    struct seen seen = {0};
    assert_int_equal(outcome_store_each(f->store, 3, on_outcome, &seen, NULL), 0);
    static const double newest[] = {1, 3, 4, 5, 6, 7}; // three of each group
    assert_int_equal(seen.count, ARRAY_LEN(newest));
    assert_memory_equal(seen.log2, newest, sizeof(newest));
}

static void an_outcome_told_twice_counts_once(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    int64_t group = group_of(f, "a");
    assert_true(add(f, group, "s/c1", 1));
    assert_false(add(f, group, "s/c1", 2));
    assert_true(add(f, group_of(f, "b"), "s/c1", 3)); // keys are per group
    struct seen seen = {0};
    assert_int_equal(outcome_store_each_outcome(f->store, group, 10, on_outcome, &seen, NULL), 0);
    assert_int_equal(seen.count, 1);
    assert_true(seen.log2[0] == 1);
}

static void without_a_key_the_content_is_the_key(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    int64_t group = group_of(f, "a");
    assert_true(add(f, group, NULL, 1));
    assert_false(add(f, group, NULL, 1));
    assert_true(add(f, group, NULL, 2));
}

static int count_groups(void *owner, int64_t group, const char *identity, const char *problem,
                        const char *device_class, struct err *err)
{
    (void)group, (void)problem, (void)device_class;
    if (strcmp(identity, "stop") == 0) {
        return err_set(err, ERR_INVALID, "enough");
    }
    ++*(int *)owner;
    return 0;
}

static void groups_are_listed_until_a_visit_objects(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    group_of(f, "a");
    group_of(f, "b");
    group_of(f, "a");
    int count = 0;
    assert_int_equal(outcome_store_each_group(f->store, count_groups, &count, NULL), 0);
    assert_int_equal(count, 2);
    group_of(f, "stop");
    struct err err = ERR_INIT;
    assert_int_equal(outcome_store_each_group(f->store, count_groups, &count, &err), ERR_INVALID);
    assert_string_equal(err.text, "enough");
}

static void refused_and_left_alone(struct fixture *f, int code, const char *sentence)
{
    struct bytes before, after;
    assert_int_equal(file_read(&before, f->path, 1 << 24, NULL), 0);
    struct err err = ERR_INIT;
    struct outcome_store *store = NULL;
    assert_int_equal(outcome_store_open(&store, f->path, &err), code);
    assert_null(store);
    assert_non_null(strstr(err.text, sentence));
    assert_null(strchr(err.text, '\n'));
    assert_int_equal(file_read(&after, f->path, 1 << 24, NULL), 0);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    bytes_clear(&before);
    bytes_clear(&after);
}

static void garbage_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    char junk[4096];
    memset(junk, 'j', sizeof(junk));
    assert_int_equal(file_replace(f->path, junk, sizeof(junk), false, NULL), 0);
    refused_and_left_alone(f, ERR_CORRUPT, "is damaged");
}

static void a_damaged_page_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    int64_t group = group_of(f, "a");
    for (int i = 0; i < 200; i++) {
        add(f, group, NULL, i);
    }
    outcome_store_close(f->store);
    f->store = NULL;
    struct bytes file;
    assert_int_equal(file_read(&file, f->path, 1 << 24, NULL), 0);
    memset(file.data + 2 * 4096, 0x5a, file.len - 3 * 4096);
    assert_int_equal(file_replace(f->path, file.data, file.len, false, NULL), 0);
    bytes_clear(&file);
    refused_and_left_alone(f, ERR_CORRUPT, "is damaged");
}

static void run_sql(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void another_programs_file_is_refused(void **state)
{
    struct fixture *f = *state;
    run_sql(f, "CREATE TABLE recipe (name TEXT)");
    refused_and_left_alone(f, ERR_CORRUPT, "is not a kcast-worker's file");
}

static void a_newer_version_is_refused(void **state)
{
    struct fixture *f = *state;
    reopen(f);
    outcome_store_close(f->store);
    f->store = NULL;
    run_sql(f, "PRAGMA user_version = 99");
    refused_and_left_alone(f, ERR_VERSION, "newer kcast-worker");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(outcomes_are_there_after_reopening_in_their_order),
        TEST(all_groups_are_read_in_the_order_of_telling),
        TEST(an_outcome_told_twice_counts_once),
        TEST(without_a_key_the_content_is_the_key),
        TEST(groups_are_listed_until_a_visit_objects),
        TEST(garbage_is_refused_and_left_alone),
        TEST(a_damaged_page_is_refused_and_left_alone),
        TEST(another_programs_file_is_refused),
        TEST(a_newer_version_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
