// SUBMIT: keys, blobs, refusals and limits.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up_small(void **state)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = "--queue-max=2";
    client->option[1] = "--jobs-max=4";
    return daemon_client_start(client) ? 0 : -1;
}

static int submit_code(struct daemon_client *client, const char *key, const struct job_spec *spec,
                       struct err *err)
{
    *err = (struct err)ERR_INIT;
    struct submitted reply;
    return daemon_client_submit(client, "test", key, spec, &reply, err);
}

static void the_same_submit_twice_is_one_job(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct submitted first = daemon_client_submit_ok(client, "test", "k", &spec);
    struct submitted second = daemon_client_submit_ok(client, "test", "k", &spec);

    assert_int_equal(first.job, second.job);
    assert_false(first.duplicate);
    assert_true(second.duplicate);
    daemon_client_expect(client, first.job, JOB_DONE, VERDICT_FASTER);
    second = daemon_client_submit_ok(client, "test", "k", &spec);
    assert_int_equal(first.job, second.job);
    assert_int_equal(second.state, JOB_DONE);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

struct race {
    uint64_t job[16];
    size_t answers;
    size_t new_ones;
};

static void on_submitted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct race *race = owner;
    const struct submitted *submitted = reply;

    (void)retry_after_ms;
    if (error) {
        fail_msg("%s", error->text);
    }
    race->new_ones += !submitted->duplicate;
    race->job[race->answers++] = submitted->job;
}

static void sixteen_equal_submits_at_once_by_two_clients_are_one_job(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct remote *other = NULL;

    assert_int_equal(remote_create(&other, &client->loop, client->program.url, NULL), 0);
    struct submit body;
    message_init(&submit_message, &body);
    body.search = (char *)(uintptr_t) "test";
    body.key = (char *)(uintptr_t) "k";
    body.spec = &spec;
    struct race race = {0};
    for (int i = 0; i < 16; i++) {
        remote_call(i % 2 ? other : client->remote, OP_SUBMIT, &submit_message, &body,
                    &submitted_message, PROGRAM_LIMIT_MS, on_submitted, &race);
    }
    while (race.answers < 16) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    for (int i = 1; i < 16; i++) {
        assert_int_equal(race.job[i], race.job[0]);
    }
    assert_int_equal(race.new_ones, 1);
    daemon_client_expect(client, race.job[0], JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    remote_close(other);
}

static void the_same_key_for_something_else_is_a_conflict(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct job_spec other = daemon_client_spec(client, "int y;\n");

    (void)daemon_client_submit_ok(client, "test", "k", &spec);
    struct err err;
    assert_int_equal(submit_code(client, "k", &other, &err), ERR_CONFLICT);
    other = spec;
    other.max_seconds = 3;
    assert_int_equal(submit_code(client, "k", &other, &err), ERR_CONFLICT);
    (void)daemon_client_submit_ok(client, "another search", "k", &other);
}

static void a_missing_blob_is_named(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");

    spec.candidate = digest_of("never sent", 10);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&spec.candidate, hex);
    struct err err;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_NEED_BLOB);
    assert_non_null(strstr(err.text, hex));
    struct blob_have have;
    message_init(&blob_have_message, &have);
    have.digests = (struct digest[]){spec.problem, spec.candidate};
    have.digests_count = 2;
    struct blob_missing missing;
    assert_int_equal(daemon_client_call(client, OP_BLOB_HAVE, &blob_have_message, &have,
                                        &blob_missing_message, &missing, &err),
                     0);
    assert_int_equal(missing.digests_count, 1);
    assert_true(digest_equal(&missing.digests[0], &spec.candidate));
    message_clear(&blob_missing_message, &missing);
}

static void what_cannot_be_a_job_is_refused_with_its_reason(void **state)
{
    struct daemon_client *client = *state;
    const struct job_spec good = daemon_client_spec(client, "int x;\n");
    struct job_spec spec = good;

    spec.kind = 9;
    struct err err;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    spec.reference = (struct digest){0};
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    spec.max_seconds = -1;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    spec.anchor_log2 = (double)INFINITY;
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    spec = good;
    assert_int_equal(submit_code(client, "", &spec, &err), ERR_INVALID);
    spec.device_class = (char *)(uintptr_t) "gpu";
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "fake-cpu"));
    spec = good;
    spec.problem = daemon_client_put(client, "{\"name\": 1}", 11);
    assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "problem.json"));
    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "k", &good).job, JOB_DONE,
                         0);
}

// Names are shown, logged and kept: a terminal must not obey them.
static void names_that_cannot_be_shown_are_refused(void **state)
{
    static const char *const hostile[] = {"a\nb",     "a\x1b[2J",     "\x7f",
                                          "\xc2\x9b", "\xe2\x80\xae", "\xe2\x81\xa6"};
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct submitted reply;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
        assert_int_equal(submit_code(client, hostile[i], &spec, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "the key of a job, \""));
        err = (struct err)ERR_INIT;
        assert_int_equal(daemon_client_submit(client, hostile[i], "k", &spec, &reply, &err),
                         ERR_INVALID);
        assert_non_null(strstr(err.text, "the name of a search, \""));
    }
    // The refusals are in the log, each in one line that can be shown.
    char *log = program_log(&client->program);
    assert_non_null(strstr(log, "submit-refused"));
    for (const char *c = log; *c != '\0'; c++) {
        assert_true(*c == '\n' || ((unsigned char)*c >= ' ' && (unsigned char)*c < 0x7f));
    }
    assert_null(strstr(log, "\nb"));
    free(log);
    daemon_client_expect(client,
                         daemon_client_submit_ok(client, "\xc3\xa4", "\xe2\x82\xac", &spec).job,
                         JOB_DONE, 0);
}

static void limits_are_busy_and_not_forever(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);
    uint64_t job[2];

    job[0] = daemon_client_submit_ok(client, "test", "a", &spec).job;
    spec.repeat = 1;
    job[1] = daemon_client_submit_ok(client, "test", "b", &spec).job;
    spec.repeat = 2;
    struct err err;
    assert_int_equal(submit_code(client, "c", &spec, &err), ERR_BUSY); // two of this search
    spec.repeat = 1;
    (void)daemon_client_submit_ok(client, "test", "b", &spec); // a known key is always answered
    spec.repeat = 2;
    (void)daemon_client_submit_ok(client, "other", "c", &spec);
    for (int i = 0; i < 3; i++) {
        (void)daemon_client_gate_wait(gate);
        daemon_client_gate_open(gate);
    }
    daemon_client_expect(client, job[0], JOB_DONE, 0);
    daemon_client_expect(client, job[1], JOB_DONE, 0);
    (void)daemon_client_submit_ok(client, "test", "d", &spec); // the search's place is free again
    spec.repeat = 3;
    assert_int_equal(submit_code(client, "e", &spec, &err), ERR_BUSY); // four jobs altogether
    daemon_client_ack(client, job[0]);
    spec.repeat = 2;
    (void)daemon_client_submit_ok(client, "test", "e", &spec);
    free(candidate);
    free(gate);
}

static void a_flood_of_refusals_does_not_fill_the_log(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    size_t refusals = 200, lines = 0;

    spec.kind = 9;
    struct err err;
    for (size_t i = 0; i < refusals; i++) {
        assert_int_equal(submit_code(client, "k", &spec, &err), ERR_INVALID);
    }
    char *log = program_log(&client->program);
    for (const char *at = log; (at = strstr(at, "submit-refused")); at++) {
        lines++;
    }
    assert_in_range(lines, 1, refusals / 2);
    assert_non_null(strstr(log, "code=invalid"));
    free(log);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_same_submit_twice_is_one_job),
        TEST(sixteen_equal_submits_at_once_by_two_clients_are_one_job),
        TEST(the_same_key_for_something_else_is_a_conflict),
        TEST(a_missing_blob_is_named),
        TEST(what_cannot_be_a_job_is_refused_with_its_reason),
        TEST(names_that_cannot_be_shown_are_refused),
        TEST(a_flood_of_refusals_does_not_fill_the_log),
        cmocka_unit_test_setup_teardown(limits_are_busy_and_not_forever, set_up_small,
                                        daemon_client_tear_down),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
