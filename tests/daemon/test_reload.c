// A restart: what the ledger has becomes jobs again, and what cannot begin is buried with its
// reason.
#include "daemon/jobs/completion.h"
#include "daemon/jobs/submission.h"
#include "daemon/reload.h"
#include "daemon/state/job_table.h"
#include "daemon/store/ledger.h"
#include "proto/verdict.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct workshop w;
    struct bytes spec; // packed, that can be carried out
    char *path;
};

static struct bytes pack_spec(struct workshop *w)
{
    struct submit body = workshop_submit_body(w, JOB_MEASURE, "k", "candidate");
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(&job_spec_message, body.spec, &packed, NULL), 0);
    message_clear(&submit_message, &body);
    return strbuf_detach_bytes(&packed);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    workshop_open(&f->w, 1);
    f->spec = pack_spec(&f->w);
    f->path = xasprintf("%s/ledger.db", f->w.dir);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    workshop_close(&f->w);
    bytes_clear(&f->spec);
    free(f->path);
    free(f);
    return 0;
}

static struct ledger_job row_of(const struct fixture *f, const char *key, uint64_t state)
{
    return (struct ledger_job){.id = ledger_next_job(f->w.parts.ledger),
                               .tenant = "t",
                               .search = "s",
                               .key = key,
                               .spec = f->spec,
                               .state = state};
}

static void write_row(struct fixture *f, const struct ledger_job *row)
{
    ledger_submit(f->w.parts.ledger, row, NULL, NULL, NULL, NULL);
}

static void reopen(struct fixture *f)
{
    ledger_close(f->w.parts.ledger);
    (void)uv_run(&f->w.loop, UV_RUN_NOWAIT);
    assert_int_equal(ledger_open(&f->w.parts.ledger, f->path, 0, NULL), 0);
}

static void start(struct fixture *f)
{
    assert_int_equal(ledger_start(f->w.parts.ledger, &f->w.loop, NULL), 0);
}

// The daemon goes down and comes up again.
static void restart(struct fixture *f)
{
    struct err err = ERR_INIT;

    reopen(f);
    if (reload_jobs(&f->w.parts, &err) != 0) {
        fail_msg("%s", err.text);
    }
    start(f);
    reload_requeue(&f->w.parts);
}

static struct job *find(struct fixture *f, const char *key)
{
    struct job *job = job_table_find_key(f->w.parts.jobs, "t", "s", key);

    assert_non_null(job);
    return job;
}

static void what_waited_begins_anew_and_loses_no_attempt(void **state)
{
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "k", JOB_QUEUED);

    row.priority = 4;
    row.attempt = 1;
    row.wanted_class = QUEUE_SCAVENGE;
    write_row(f, &row);
    restart(f);
    struct job *job = find(f, "k");
    assert_int_equal(job->id, row.id);
    assert_int_equal(job->state, JOB_QUEUED);
    assert_int_equal(job->attempt, 1);
    assert_int_equal(job->priority, 4);
    assert_int_equal(job->wanted_class, QUEUE_SCAVENGE);
    assert_true(job->journalled);
    assert_false(job->features_only || job->no_machine_code); // as an older daemon wrote it
    workshop_compile_until(&f->w, job, JOB_RUNNING);
}

static void how_much_is_to_be_compiled_is_known_again_and_makes_no_other_job(void **state)
{
    struct fixture *f = *state;
    struct submit body = workshop_submit_body(&f->w, JOB_COMPILE, "k", "candidate");
    struct digest plain = submission_spec_digest(body.spec);
    struct strbuf packed = STRBUF_INIT;
    struct ledger_job row = row_of(f, "k", JOB_QUEUED);

    body.spec->features_only = body.spec->no_machine_code = true;
    assert_int_equal(message_pack(&job_spec_message, body.spec, &packed, NULL), 0);
    row.spec = (struct bytes){.data = (unsigned char *)packed.data, .len = packed.len};
    write_row(f, &row);
    restart(f);
    const struct job *job = find(f, "k");
    assert_true(job->features_only && job->no_machine_code);
    assert_true(digest_equal(&job->spec, &plain));
    strbuf_release(&packed);
    message_clear(&submit_message, &body);
}

struct seen {
    uint64_t job, state, attempt;
};

static int see_row(void *owner, const struct ledger_job *row, struct err *err)
{
    struct seen *seen = owner;

    (void)err;
    assert_int_equal(row->id, seen->job);
    seen->state = row->state;
    seen->attempt = row->attempt;
    return 0;
}

static void what_ran_has_lost_an_attempt_also_in_the_ledger(void **state)
{
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "k", JOB_RUNNING);

    write_row(f, &row);
    restart(f);
    assert_int_equal(find(f, "k")->attempt, 1);
    assert_false(find(f, "k")->unsaved);
    struct seen seen = {.job = row.id};
    struct ledger *second; // somebody else who reads the file
    workshop_settle(&f->w);
    assert_int_equal(ledger_open(&second, f->path, 0, NULL), 0);
    assert_int_equal(ledger_load(second, see_row, &seen, NULL), 0);
    ledger_close(second);
    assert_int_equal(seen.state, JOB_QUEUED);
    assert_int_equal(seen.attempt, 1);
}

static void a_job_that_took_the_daemon_down_too_often_is_buried(void **state)
{
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "last", JOB_RUNNING);

    row.attempt = JOB_RESTART_LOST_MAX - 1;
    write_row(f, &row);
    row = row_of(f, "one more", JOB_RUNNING);
    row.attempt = JOB_RESTART_LOST_MAX - 2;
    write_row(f, &row);
    restart(f);
    struct job *job = find(f, "last");
    workshop_until_state(&f->w, job, JOB_BURIED);
    assert_int_equal(job->cause, JOB_CAUSE_LOST_DAEMON);
    assert_non_null(strstr(job->reason, "went down"));
    workshop_compile_until(&f->w, find(f, "one more"), JOB_RUNNING);
}

static void a_spec_that_cannot_be_read_buries_its_job_alone(void **state)
{
    static unsigned char junk[] = {0xc1, 0xff, 0};
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "junk", JOB_QUEUED);

    row.spec = (struct bytes){.data = junk, .len = sizeof(junk)};
    write_row(f, &row);
    row = row_of(f, "cut", JOB_RUNNING);
    row.spec.len /= 2;
    write_row(f, &row);
    row = row_of(f, "good", JOB_QUEUED);
    write_row(f, &row);
    restart(f);
    static const char *const bad[] = {"junk", "cut"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct job *job = find(f, bad[i]);

        workshop_until_state(&f->w, job, JOB_BURIED);
        assert_int_equal(job->cause, JOB_CAUSE_UNREADABLE);
        assert_true(strlen(job->reason) > 0);
    }
    workshop_compile_until(&f->w, find(f, "good"), JOB_RUNNING);
}

static void what_has_ended_stays_as_it_ended(void **state)
{
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "k", JOB_QUEUED);
    const struct ledger_end end = {.job = row.id,
                                   .state = JOB_CANCELLED,
                                   .attempt = 1,
                                   .reason = "not wanted",
                                   .cause = JOB_CAUSE_CLIENT};

    write_row(f, &row);
    ledger_finish(f->w.parts.ledger, &end, NULL, NULL);
    restart(f);
    struct job *job = find(f, "k");
    assert_int_equal(job->state, JOB_CANCELLED);
    assert_int_equal(job->cause, JOB_CAUSE_CLIENT);
    assert_string_equal(job->reason, "not wanted");
    assert_true(job->finished_s > 0);
    assert_int_equal(completions_pending(f->w.parts.completions), 0);
    assert_int_equal(f->w.begun, 0);
}

static void numbers_beyond_their_field_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "k", JOB_QUEUED);

    row.attempt = 1000;
    row.wanted_class = 77;
    row.cause = 200;
    write_row(f, &row);
    restart(f);
    struct job *job = find(f, "k");
    assert_int_equal(job->attempt, UINT8_MAX);
    assert_int_equal(job->wanted_class, 0);
    workshop_until_state(&f->w, job, JOB_BURIED); // it was lost far too often
    assert_int_equal(job->cause, JOB_CAUSE_LOST_DAEMON);
}

static void a_state_that_nobody_knows_stops_the_start(void **state)
{
    struct fixture *f = *state;
    struct ledger_job row = row_of(f, "k", JOB_STATE_COUNT);
    struct err err = ERR_INIT;

    f->w.parts.state_dir = "/the/state";
    write_row(f, &row);
    reopen(f);
    assert_int_equal(reload_jobs(&f->w.parts, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "/the/state"));
    assert_non_null(strstr(err.text, "in no known state"));
    assert_int_equal(job_table_count(f->w.parts.jobs), 0);
    start(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_waited_begins_anew_and_loses_no_attempt),
        TEST(how_much_is_to_be_compiled_is_known_again_and_makes_no_other_job),
        TEST(what_ran_has_lost_an_attempt_also_in_the_ledger),
        TEST(a_job_that_took_the_daemon_down_too_often_is_buried),
        TEST(a_spec_that_cannot_be_read_buries_its_job_alone),
        TEST(what_has_ended_stays_as_it_ended),
        TEST(numbers_beyond_their_field_are_bounded),
        TEST(a_state_that_nobody_knows_stops_the_start),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
