#include "tests/support/daemon/ledger_fixture.h"
#include "common/database/row_digest.h"
#include "common/file.h"
#include "daemon/store/ledger.h"
#include "proto/verdict.h"
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void fixture_open_ledger(struct ledger_fixture *fixture)
{
    struct err err = ERR_INIT;

    if (ledger_open(&fixture->ledger, fixture->path, fixture->pages, &err) != 0) {
        fail_msg("%s", err.text);
    }
    ledger_limit(fixture->ledger, fixture->entries);
    if (ledger_start(fixture->ledger, &fixture->loop, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

void fixture_close_ledger(struct ledger_fixture *fixture)
{
    ledger_close(fixture->ledger);
    fixture->ledger = NULL;
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
}

int fixture_set_up(void **state)
{
    struct ledger_fixture *fixture = xcalloc(1, sizeof(*fixture));

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_int_equal(file_make_temp_dir(&fixture->dir, "kcast-ledger", NULL), 0);
    fixture->path = xasprintf("%s/ledger.db", fixture->dir);
    *state = fixture;
    return 0;
}

int fixture_tear_down(void **state)
{
    struct ledger_fixture *fixture = *state;

    ledger_close(fixture->ledger);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    assert_int_equal(file_remove_tree(fixture->dir, NULL), 0);
    bytes_clear(&fixture->answer);
    free(fixture->path);
    free(fixture->dir);
    free(fixture);
    return 0;
}

void fixture_on_done(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct ledger_fixture *fixture = owner;

    fixture->calls++;
    fixture->failures += error ? 1 : 0;
    fixture->last_error = error ? error->code : ERR_NONE;
    fixture->answer_count = count;
    bytes_clear(&fixture->answer);
    if (count > 0) {
        fixture->answer = answer[0];
        answer[0] = (struct bytes){0};
    }
}

int fixture_on_row(void *owner, const struct ledger_job *job, struct err *err)
{
    struct ledger_fixture *fixture = owner;
    size_t i = fixture->loaded++;

    (void)err;
    if (i >= 8) {
        return 0;
    }
    fixture->state[i] = job->state;
    fixture->attempt[i] = job->attempt;
    fixture->wanted_class = i == 0 ? job->wanted_class : fixture->wanted_class;
    (void)snprintf(fixture->key[i], sizeof(fixture->key[i]), "%s/%s", job->search, job->key);
    (void)snprintf(fixture->tenant[i], sizeof(fixture->tenant[i]), "%s", job->tenant);
    fixture->cause[i] = job->cause;
    if (job->reason) {
        (void)snprintf(fixture->reason, sizeof(fixture->reason), "%s", job->reason);
    }
    assert_int_equal(job->spec.len, 4);
    return 0;
}

void fixture_reload(struct ledger_fixture *fixture)
{
    fixture->loaded = 0;
    struct ledger *ledger;
    assert_int_equal(ledger_open(&ledger, fixture->path, 0, NULL), 0);
    assert_int_equal(ledger_load(ledger, fixture_on_row, fixture, NULL), 0);
    ledger_close(ledger);
}

void fixture_submit(struct ledger_fixture *fixture, uint64_t id, const char *key, const char *cache,
                    ledger_adopt *adopt)
{
    struct digest digest = cache ? digest_of(cache, strlen(cache)) : (struct digest){0};
    struct ledger_job job = {
        .id = id,
        .tenant = "local",
        .search = "s",
        .key = key,
        .spec = {.data = (unsigned char *)(uintptr_t) "spec", .len = 4},
        .priority = UINT64_MAX,
        .state = JOB_QUEUED,
        .wanted_class = 2,
    };

    ledger_submit(fixture->ledger, &job, cache ? &digest : NULL, adopt, fixture_on_done, fixture);
}

void fixture_finish(struct ledger_fixture *fixture, uint64_t id, uint64_t job_state,
                    const char *result, const char *cache, const char *reason)
{
    struct digest digest = cache ? digest_of(cache, strlen(cache)) : (struct digest){0};
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t)result,
                          .len = result ? strlen(result) : 0};
    struct ledger_end end = {
        .job = id,
        .state = job_state,
        .attempt = 1,
        .reason = reason,
        .result = result ? &bytes : NULL,
        .cache_key = cache ? &digest : NULL,
        .cap_s = 30,
    };

    ledger_finish(fixture->ledger, &end, fixture_on_done, fixture);
}

void fixture_change_file(struct ledger_fixture *fixture, const char *sql)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(fixture->path, &db), SQLITE_OK);
    assert_int_equal(row_digest_register(db, NULL), 0);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

bool fixture_accept_and_change(const struct bytes *spec, double cap, struct bytes *result)
{
    return spec->len == 4 && cap > 29 && result->len == 6;
}

bool fixture_accept_nothing(const struct bytes *spec, double cap, struct bytes *result)
{
    (void)spec;
    (void)cap;
    (void)result;
    return false;
}
