// How jobs end: in the ledger first, once, and also when the ledger cannot take it.
#include "common/clock.h"
#include "common/file.h"
#include "daemon/jobs/completion.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "proto/verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WEEK_S ((int64_t)7 * 86400)

struct fixture {
    uv_loop_t loop;
    char *dir;
    char *path;
    struct ledger *ledger;
    struct account_table *accounts;
    struct job_table *jobs;
    struct waits *waits;
    struct completions *completions;
    struct counters counters;
    struct daemon_parts parts;
    struct setup setup;
    struct device_class device_class;
    int journalling;
    // What the ledger has of the last job:
    uint64_t state, cause;
    char reason[128];
    size_t loaded;
};

static void on_due(void *owner, struct exchange *exchange, const uint64_t *jobs, size_t count)
{
    (void)owner;
    (void)exchange;
    (void)jobs;
    (void)count;
    fail_msg("nobody waits here");
}

static void open_ledger(struct fixture *f, uint64_t pages)
{
    assert_int_equal(ledger_open(&f->ledger, f->path, pages, NULL), 0);
    assert_int_equal(ledger_start(f->ledger, &f->loop, NULL), 0);
    f->parts.ledger = f->ledger;
    f->completions = completions_create(&f->parts);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-ending", NULL), 0);
    f->path = xasprintf("%s/ledger.db", f->dir);
    f->accounts = accounts_create();
    f->jobs = job_table_create((size_t)1 << 20, f->accounts);
    f->waits = waits_create(&f->loop, on_due, f);
    f->parts = (struct daemon_parts){
        .clock = &clock_system, .jobs = f->jobs, .waits = f->waits, .counters = &f->counters};
    f->setup.users = 100; // it is nobody's to free
    f->setup.problem = digest_of("problem", 7);
    f->device_class.name = (char *)(uintptr_t) "class";
    *state = f;
    return 0;
}

static void run_until_settled(struct fixture *f)
{
    while (completions_pending(f->completions) > 0 || f->journalling > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void close_ledger(struct fixture *f)
{
    ledger_close(f->ledger);
    f->ledger = NULL;
    completions_free(f->completions);
    f->completions = NULL;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    close_ledger(f);
    waits_close(f->waits);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    job_table_free(f->jobs);
    accounts_free(f->accounts);
    counters_release(&f->counters);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->path);
    free(f->dir);
    free(f);
    return 0;
}

static void on_journalled(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    (void)answer;
    (void)count;
    assert_null(error);
    ((struct fixture *)owner)->journalling--;
}

// A job that the ledger has and that was moved along these states.
static struct job *new_job(struct fixture *f, const char *key, const enum job_state *states,
                           size_t count)
{
    struct ledger_job row = {
        .id = ledger_next_job(f->ledger),
        .tenant = "local",
        .search = "s",
        .key = key,
        .spec = {.data = (unsigned char *)(uintptr_t) "spec", .len = 4},
        .state = JOB_QUEUED,
    };
    struct job *job = job_table_add(f->jobs, row.id, "local", "s", key, JOB_QUEUED);

    job->kind = JOB_MEASURE;
    job->setup = &f->setup;
    job->device_class = &f->device_class;
    job->journalled = true;
    f->journalling++;
    ledger_submit(f->ledger, &row, NULL, NULL, on_journalled, f);
    run_until_settled(f);
    for (size_t i = 0; i < count; i++) {
        job_set_state(job, states[i]);
    }
    return job;
}

static const enum job_state running[] = {JOB_COMPILING, JOB_READY, JOB_RUNNING};

static struct job *new_running(struct fixture *f, const char *key)
{
    return new_job(f, key, running, ARRAY_LEN(running));
}

static int on_row(void *owner, const struct ledger_job *row, struct err *err)
{
    struct fixture *f = owner;

    (void)err;
    f->loaded++;
    f->state = row->state;
    f->cause = row->cause;
    (void)snprintf(f->reason, sizeof(f->reason), "%s", row->reason ? row->reason : "");
    return 0;
}

static void load(struct fixture *f)
{
    close_ledger(f);
    f->loaded = 0;
    struct ledger *ledger;
    assert_int_equal(ledger_open(&ledger, f->path, 0, NULL), 0);
    assert_int_equal(ledger_load(ledger, on_row, f, NULL), 0);
    ledger_close(ledger);
}

static void an_end_is_told_when_the_ledger_has_it(void **state)
{
    struct fixture *f = *state;

    open_ledger(f, 0);
    struct job *job = new_job(f, "a", NULL, 0);
    end_cancelled(f->completions, job, JOB_CAUSE_CLIENT, "it is no longer wanted");
    assert_true(job->settling);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(completions_pending(f->completions), 1);
    run_until_settled(f);
    assert_false(job->settling);
    assert_int_equal(job->state, JOB_CANCELLED);
    assert_int_equal(job->cause, JOB_CAUSE_CLIENT);
    assert_string_equal(job->reason, "it is no longer wanted");
    assert_true(job->finished_s > 0);
    assert_int_equal(f->counters.ended[JOB_CANCELLED], 1);
    load(f);
    assert_int_equal(f->state, JOB_CANCELLED);
    assert_int_equal(f->cause, JOB_CAUSE_CLIENT);
    assert_string_equal(f->reason, "it is no longer wanted");
}

static void a_buried_job_keeps_its_cause(void **state)
{
    struct fixture *f = *state;

    open_ledger(f, 0);
    end_buried(f->completions, new_running(f, "a"), JOB_CAUSE_LOST_EXECUTOR, "lost");
    run_until_settled(f);
    assert_int_equal(f->counters.ended[JOB_BURIED], 1);
    load(f);
    assert_int_equal(f->state, JOB_BURIED);
    assert_int_equal(f->cause, JOB_CAUSE_LOST_EXECUTOR);
}

static void end_as(struct fixture *f, struct job *job, uint64_t verdict, bool cacheable)
{
    struct result result;

    message_init(&result_message, &result);
    result.verdict = verdict;
    end_measured(f->completions, job, &result, cacheable);
    run_until_settled(f);
    message_clear(&result_message, &result);
}

static void only_what_may_answer_others_is_cached(void **state)
{
    struct fixture *f = *state;

    open_ledger(f, 0);
    struct job *job = new_running(f, "a");
    end_as(f, job, VERDICT_WRONG, false);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(job->cause, JOB_CAUSE_NONE);
    assert_true(job->result.len > 0);
    assert_int_equal(ledger_results(f->ledger), 0);
    end_as(f, new_running(f, "b"), VERDICT_FASTER, true);
    assert_int_equal(ledger_results(f->ledger), 1);
    assert_int_equal(f->counters.verdict[VERDICT_WRONG], 1);
    assert_int_equal(f->counters.verdict[VERDICT_FASTER], 1);
    assert_int_equal(f->counters.cached, 0);
}

static void a_cached_answer_counts_as_no_measurement(void **state)
{
    struct fixture *f = *state;
    struct bytes result = bytes_copy("packed", 6);

    open_ledger(f, 0);
    struct job *job = new_job(f, "a", NULL, 0);
    end_cached(f->completions, job, &result);
    assert_null(result.data);
    run_until_settled(f);
    assert_int_equal(job->state, JOB_DONE);
    assert_true(job->cached);
    assert_int_equal(f->counters.cached, 1);
    for (size_t i = 0; i < COUNTERS_VERDICTS; i++) {
        assert_int_equal(f->counters.verdict[i], 0);
    }
}

static void what_does_not_compile_is_done_without_a_device(void **state)
{
    struct fixture *f = *state;

    open_ledger(f, 0);
    struct compiled compiled;
    message_init(&compiled_message, &compiled);
    compiled.verdict = VERDICT_COMPILE_ERROR;
    struct job *job = new_job(f, "a", running, 1);
    end_unmeasured(f->completions, job, VERDICT_COMPILE_ERROR, "line 1", &compiled);
    run_until_settled(f);
    assert_int_equal(job->state, JOB_DONE);
    assert_int_equal(ledger_results(f->ledger), 1); // equal sources do not compile either
    f->setup.problem = digest_of("another", 7);
    end_unmeasured(f->completions, new_job(f, "b", running, 1), VERDICT_COMPILE_ERROR,
                   "the baseline does not compile", NULL);
    run_until_settled(f);
    assert_int_equal(ledger_results(f->ledger), 1); // the problem may be repaired
    assert_int_equal(f->counters.verdict[VERDICT_COMPILE_ERROR], 2);
}

// The result stays in memory and is offered again; forgetting the job ends that.
static void a_full_ledger_keeps_no_job_from_completion(void **state)
{
    struct fixture *f = *state;
    struct bytes large = {.data = xcalloc(1, (size_t)4 << 20), .len = (size_t)4 << 20};

    open_ledger(f, 64);
    struct job *job = new_running(f, "a");
    end_cached(f->completions, job, &large);
    run_until_settled(f);
    assert_int_equal(job->state, JOB_DONE);
    assert_true(job->unsaved);
    assert_int_equal(completions_unsaved(f->completions), 1);
    assert_int_equal(job->result.len, (size_t)4 << 20);
    for (int i = 0; i < 9; i++) {
        completions_tick(f->completions);
        assert_int_equal(completions_pending(f->completions), 0);
    }
    completions_tick(f->completions);
    assert_int_equal(completions_pending(f->completions), 1);
    run_until_settled(f);
    assert_int_equal(completions_unsaved(f->completions), 1);
    assert_int_equal(f->counters.ended[JOB_DONE], 1); // it ended once
    f->journalling++;
    completions_forget(f->completions, &job, 1, on_journalled, f);
    assert_int_equal(completions_unsaved(f->completions), 0);
    run_until_settled(f);
    assert_int_equal(job_table_count(f->jobs), 0);
}

static void what_nobody_fetches_is_forgotten_after_a_week(void **state)
{
    struct fixture *f = *state;

    open_ledger(f, 0);
    struct job *young = new_running(f, "young");
    struct job *old = new_running(f, "old");
    end_as(f, young, VERDICT_WRONG, false);
    end_as(f, old, VERDICT_WRONG, false);
    young->finished_s -= WEEK_S - 3600;
    old->finished_s -= WEEK_S + 1;
    completions_tick(f->completions);
    assert_int_equal(job_table_count(f->jobs), 1);
    assert_ptr_equal(job_table_first(f->jobs), young);
    load(f);
    assert_int_equal(f->loaded, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(an_end_is_told_when_the_ledger_has_it),
        TEST(a_buried_job_keeps_its_cause),
        TEST(only_what_may_answer_others_is_cached),
        TEST(a_cached_answer_counts_as_no_measurement),
        TEST(what_does_not_compile_is_done_without_a_device),
        TEST(a_full_ledger_keeps_no_job_from_completion),
        TEST(what_nobody_fetches_is_forgotten_after_a_week),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
