#include "common/file.h"
#include "common/mem.h"
#include "worker/llm/answer_cache.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four headers above.
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    char *dir, *path;
    struct answer_cache *cache;
};

static void open_cache(struct fixture *f)
{
    struct err err = ERR_INIT;

    if (answer_cache_open(&f->cache, f->path, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-cache", NULL), 0);
    f->path = xasprintf("%s/answers.db", f->dir);
    open_cache(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    answer_cache_close(f->cache);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

static void add(struct fixture *f, const char *question, const char *model)
{
    struct digest digest = digest_of(question, strlen(question));
    struct propose_reply reply;

    message_init(&propose_reply_message, &reply);
    reply.model = xstrdup(model);
    answer_cache_add(f->cache, &digest, &propose_reply_message, &reply);
    message_clear(&propose_reply_message, &reply);
}

// The model of the cached answer; "" when there is none.
static const char *find(struct fixture *f, const char *question)
{
    static char model[64];
    struct digest digest = digest_of(question, strlen(question));

    model[0] = '\0';
    struct propose_reply reply;
    if (answer_cache_find(f->cache, &digest, &propose_reply_message, &reply)) {
        (void)snprintf(model, sizeof(model), "%s", reply.model);
        message_clear(&propose_reply_message, &reply);
    }
    return model;
}

static void what_is_added_is_found_and_stays(void **state)
{
    struct fixture *f = *state;

    assert_string_equal(find(f, "one"), "");
    add(f, "one", "m1");
    add(f, "two", "m2");
    add(f, "one", "other"); // the first answer stays
    assert_string_equal(find(f, "one"), "m1");
    assert_string_equal(find(f, "two"), "m2");
    answer_cache_close(f->cache);
    open_cache(f);
    assert_string_equal(find(f, "one"), "m1");
}

static void a_file_that_is_none_is_made_anew(void **state)
{
    struct fixture *f = *state;

    add(f, "one", "m1");
    answer_cache_close(f->cache);
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++) {
        assert_true(fputs("this is no database\n", file) >= 0);
    }
    assert_int_equal(fclose(file), 0);
    open_cache(f);
    assert_string_equal(find(f, "one"), "");
    add(f, "one", "m3");
    assert_string_equal(find(f, "one"), "m3");
}

static void a_place_that_does_not_exist_is_an_error(void **state)
{
    struct fixture *f = *state;

    (void)f;
    struct answer_cache *cache = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(answer_cache_open(&cache, "/nowhere/at/all/answers.db", &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "/nowhere/at/all/answers.db cannot be made"));
    assert_null(cache);
}

static int64_t count(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t ret = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return ret;
}

// Answers are counted, not the numbers that they have: numbers between may be missing.
static void the_newest_answers_are_kept_as_many_as_there_may_be(void **state)
{
    struct fixture *f = *state;
    char sql[256];
    sqlite3 *db;

    add(f, "first", "m1"); // number 1
    for (int more = 0; more <= 1; more++) {
        answer_cache_close(f->cache);
        assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
        // Every other number, until there are as many as there may be, and then one more.
        (void)snprintf(
            sql, sizeof(sql),
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
            " INSERT OR IGNORE INTO answer SELECT 1 + 2 * i, CAST(i AS BLOB), x'00' FROM n",
            ANSWER_CACHE_ENTRIES_MAX - 1 + more);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(count(db, "SELECT count(*) FROM answer"), ANSWER_CACHE_ENTRIES_MAX + more);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        open_cache(f);
        assert_string_equal(find(f, "first"), more ? "" : "m1");
    }
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(count(db, "SELECT count(*) FROM answer"), ANSWER_CACHE_ENTRIES_MAX);
    assert_int_equal(count(db, "SELECT min(id) FROM answer"), 3);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_added_is_found_and_stays),
        TEST(the_newest_answers_are_kept_as_many_as_there_may_be),
        TEST(a_file_that_is_none_is_made_anew),
        TEST(a_place_that_does_not_exist_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
