// What the worker keeps of its endpoints, over openings of the file. How it is charged when the
// worker is killed is in tests/worker/llm/test_spend.c.
#include "common/file.h"
#include "common/mem.h"
#include "worker/endpoint/endpoint_store.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    char *dir, *path;
    struct endpoint_store *store;
};

static void open_store(struct fixture *f)
{
    struct err err = ERR_INIT;

    if (endpoint_store_open(&f->store, f->path, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-store", NULL), 0);
    f->path = xasprintf("%s/endpoints.db", f->dir);
    open_store(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    endpoint_store_close(f->store);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f->path);
    free(f);
    return 0;
}

static void how_an_endpoint_is_asked_stays(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = STRBUF_INIT;

    assert_false(endpoint_store_style(f->store, "key", &text));
    endpoint_store_set_style(f->store, "key", "one");
    endpoint_store_set_style(f->store, "key", "two");
    endpoint_store_close(f->store);
    open_store(f);
    assert_true(endpoint_store_style(f->store, "key", &text));
    assert_string_equal(strbuf_text(&text), "two");
    strbuf_release(&text);
}

// Spends one token under each name.
static void spend(struct fixture *f, const char *names)
{
    struct endpoint_amount one = {.tokens = 1, .cost = 0.5};
    int64_t reservation = endpoint_store_reserve(f->store, names, one);

    assert_true(reservation > 0);
    endpoint_store_settle(f->store, reservation, names, one);
}

static double spent(struct fixture *f, const char *name)
{
    return endpoint_store_spent(f->store, name).tokens;
}

// Searches are counted, not the numbers of their rows: days and the worker have rows as well, and
// numbers between may be missing. Only searches are forgotten.
static void the_newest_searches_are_kept_as_many_as_there_may_be(void **state)
{
    struct fixture *f = *state;
    char sql[256];
    sqlite3 *db;

    spend(f, "s:first\nworker");
    for (int more = 0; more <= 1; more++) {
        endpoint_store_close(f->store);
        assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
        (void)snprintf(
            sql, sizeof(sql),
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
            " INSERT OR IGNORE INTO spent (rowid, name, tokens, cost)"
            " SELECT 10 + 3 * i, 's:' || i, 1, 1 FROM n",
            ENDPOINT_STORE_SEARCHES_MAX - 1 + more);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        open_store(f);
        assert_true(spent(f, "s:first") == (more ? 0 : 1));
        assert_true(spent(f, "s:1") == 1);
        assert_true(spent(f, "worker") == 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(how_an_endpoint_is_asked_stays),
        TEST(the_newest_searches_are_kept_as_many_as_there_may_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
