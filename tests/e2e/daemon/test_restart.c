// kcastd and its ledger: killed at every commit, restarted, damaged, full, locked. What was
// promised is kept, and nothing happens twice in effect.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char candidate[] = "int x;\n";

// Submits, if the daemon lives that long; the job's number, 0 when there was no answer.
static uint64_t try_submit(struct daemon_client *client, const struct job_spec *spec)
{
    struct submitted reply;
    struct err err = ERR_INIT;

    return daemon_client_submit(client, "test", "k", spec, &reply, &err) == 0 ? reply.job : 0;
}

static void restart(struct daemon_client *client)
{
    daemon_client_disconnect(client);
    (void)program_wait(&client->program);
    client->variable[0] = NULL;
    assert_true(daemon_client_start(client));
}

// The daemon dies at one commit on the way of one job. True when it lived through all of them.
static bool die_at(struct daemon_client *client, const char *when, int commit)
{
    char *fault = xasprintf("KCASTD_DIE_AT=%s:%d", when, commit);

    assert_int_equal(file_remove_tree(client->state, NULL), 0);
    (void)unlink(client->log);
    client->variable[0] = fault;
    assert_true(daemon_client_start(client));
    struct job_spec spec = daemon_client_spec(client, candidate);
    uint64_t promised = try_submit(client, &spec);
    bool survived = false;
    if (promised != 0) {
        struct wait body;

        message_init(&wait_message, &body);
        body.jobs = &promised;
        body.jobs_count = 1;
        body.max_ms = 20000;
        struct waited reply;
        struct err err = ERR_INIT;
        survived = daemon_client_call(client, OP_WAIT, &wait_message, &body, &waited_message,
                                      &reply, &err) == 0;
        if (survived) {
            message_clear(&waited_message, &reply);
            (void)program_kill(&client->program);
        }
    }
    restart(client);
    uint64_t job = try_submit(client, &spec);
    assert_true(job != 0);
    if (promised != 0) {
        assert_int_equal(job, promised); // what was promised is there
    }
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    size_t runs = daemon_client_runs(client, "measure", NULL);
    assert_in_range(runs, 1, 2); // a lost measurement is done again, a committed one is not
    if (survived) {
        assert_int_equal(runs, 1);
    }
    daemon_client_ack(client, job);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    free(fault);
    return survived;
}

static void a_kill_at_any_commit_loses_nothing(void **state)
{
#ifndef KCAST_FAULTS
    skip();
#endif
    const char *when[] = {"before", "after"};
    for (size_t i = 0; i < 2; i++) {
        int commit = 1;

        while (!die_at(*state, when[i], commit)) {
            commit++;
            assert_in_range(commit, 1, 30);
        }
        assert_in_range(commit, 4, 30); // submit, compilations, running, done
    }
}

static void results_wait_for_their_ack_across_restarts(void **state)
{
    struct daemon_client *client = *state;

    assert_true(daemon_client_start(client));
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    (void)program_kill(&client->program);
    restart(client);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    daemon_client_ack(client, job);
    (void)program_kill(&client->program);
    restart(client);
    struct waited waited;
    daemon_client_wait_once(client, &job, 1, 0, &waited);
    assert_int_equal(waited.unknown_count, 1);
    message_clear(&waited_message, &waited);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

// A daemon does not know when jobs of before its start reached their states.
static void forget_ages(struct job_info *info)
{
    if (info->ages) {
        message_clear(&job_ages_message, info->ages);
        free(info->ages);
        info->ages = NULL;
    }
}

// Compares everything but the age of the job, which is no part of its result.
static void expect_the_same_after_a_restart(struct daemon_client *client, uint64_t job, bool cached)
{
    struct job_info before;

    daemon_client_wait(client, job, &before);
    assert_int_equal(before.cached, cached);
    (void)program_kill(&client->program);
    restart(client);
    struct job_info after;
    daemon_client_wait(client, job, &after);
    forget_ages(&before);
    forget_ages(&after);
    after.age_seconds = before.age_seconds;
    after.compile_seconds = before.compile_seconds;
    assert_true(message_equal(&job_info_message, &before, &after));
    message_clear(&job_info_message, &before);
    message_clear(&job_info_message, &after);
}

static void a_result_says_the_same_after_a_restart(void **state)
{
    struct daemon_client *client = *state;

    assert_true(daemon_client_start(client));
    expect_the_same_after_a_restart(client, daemon_client_accepted(client, "k", candidate), false);
    expect_the_same_after_a_restart(client, daemon_client_accepted(client, "again", candidate),
                                    true);
    expect_the_same_after_a_restart(
        client, daemon_client_accepted(client, "no", "//! compile-error\n"), false);
    struct job_spec spec = daemon_client_spec(client, candidate);
    spec.kind = JOB_COMPILE;
    struct submitted compile;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "compile", &spec, &compile, &err), 0);
    daemon_client_expect(client, compile.job, JOB_DONE, 0);
    (void)program_kill(&client->program);
    restart(client);
    expect_the_same_after_a_restart(client, compile.job, true);
}

static void cancelled_and_buried_jobs_stay_so(void **state)
{
    struct daemon_client *client = *state;

    assert_true(daemon_client_start(client));
    uint64_t buried = daemon_client_accepted(client, "k", "//! run-crash\n");
    daemon_client_expect(client, buried, JOB_BURIED, 0);
    (void)program_kill(&client->program);
    restart(client);
    struct job_info info;
    daemon_client_wait(client, buried, &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_int_equal(info.cause, JOB_CAUSE_LOST_EXECUTOR);
    assert_non_null(strstr(info.reason, "signal 11"));
    message_clear(&job_info_message, &info);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 2);
}

static void many_queued_jobs_are_queued_again(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *blocker = xasprintf("//! gate %s\n", gate);

    assert_true(daemon_client_start(client));
    (void)daemon_client_accepted(client, "blocker", blocker);
    (void)daemon_client_gate_wait(gate);
    uint64_t job[50];
    for (int i = 0; i < 50; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        char source[32];
        (void)snprintf(source, sizeof(source), "int x%d;\n", i);
        job[i] = daemon_client_accepted(client, key, source);
    }
    (void)program_kill(&client->program);
    restart(client);
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    for (int i = 0; i < 50; i++) {
        daemon_client_expect(client, job[i], JOB_DONE, VERDICT_FASTER);
    }
    assert_int_equal(daemon_client_runs(client, "measure-end", NULL), 51);
    free(blocker);
    free(gate);
}

static void a_problem_that_has_gone_buries_the_job(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *blocker = xasprintf("//! compile-gate %s\n", gate);
    char *blobs = xasprintf("%s/blobs", client->state);

    assert_true(daemon_client_start(client));
    uint64_t job = daemon_client_accepted(client, "k", blocker);
    (void)daemon_client_gate_wait(gate);
    (void)program_kill(&client->program);
    assert_int_equal(file_remove_tree(blobs, NULL), 0);
    restart(client);
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_int_equal(info.cause, JOB_CAUSE_MISSING_BLOB);
    assert_non_null(strstr(info.reason, "blobs/"));
    message_clear(&job_info_message, &info);
    free(blobs);
    free(blocker);
    free(gate);
}

static void a_full_disk_refuses_jobs_and_delivers_results(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *blocker = xasprintf("//! gate %s\n", gate);

#ifndef KCAST_FAULTS
    skip();
#endif
    client->variable[0] = "KCASTD_LEDGER_PAGES=30";
    assert_true(daemon_client_start(client));
    uint64_t job = daemon_client_accepted(client, "blocker", blocker);
    (void)daemon_client_gate_wait(gate);
    struct job_spec spec = daemon_client_spec(client, candidate);
    struct submitted reply;
    struct err err = ERR_INIT;
    int count = 0;
    while (err.code == ERR_NONE && count < 2000) {
        char key[128];

        (void)snprintf(key, sizeof(key), "%0100d", ++count);
        spec.repeat = (uint64_t)count;
        (void)!daemon_client_submit(client, "test", key, &spec, &reply, &err);
    }
    assert_int_equal(err.code, ERR_NO_SPACE);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER); // from memory
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(program_stop(&client->program), 0);
    free(blocker);
    free(gate);
}

// --- a state directory that cannot be used

static void expect_refusal(struct daemon_client *client, int code, const char *text)
{
    assert_false(daemon_client_start(client));
    assert_int_equal(program_wait(&client->program), code);
    char *log = program_log(&client->program);
    if (!strstr(log, text)) {
        fail_msg("%s", log);
    }
    free(log);
}

static void make_ledger(struct daemon_client *client)
{
    assert_true(daemon_client_start(client));
    daemon_client_expect(client, daemon_client_accepted(client, "k", candidate), JOB_DONE, 0);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
}

static void a_damaged_ledger_is_refused_and_kept(void **state)
{
    struct daemon_client *client = *state;
    char *path = xasprintf("%s/ledger.db", client->state);

    make_ledger(client);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "not a database any more", 23, 0), 23);
    assert_int_equal(close(fd), 0);
    struct bytes before = {0};
    assert_int_equal(file_read(&before, path, 1 << 24, NULL), 0);
    expect_refusal(client, EXIT_INVALID, "ledger.db");
    struct bytes after = {0};
    assert_int_equal(file_read(&after, path, 1 << 24, NULL), 0);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    bytes_clear(&before);
    bytes_clear(&after);
    free(path);
}

static void a_ledger_of_the_future_is_refused(void **state)
{
    struct daemon_client *client = *state;
    char *path = xasprintf("%s/ledger.db", client->state);

    make_ledger(client);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    const unsigned char version[4] = {0, 0, 1, 0};
    assert_int_equal(pwrite(fd, version, 4, 60), 4);
    assert_int_equal(close(fd), 0);
    expect_refusal(client, EXIT_VERSION, "newer kcastd");
    free(path);
}

static void a_second_daemon_on_the_same_state_is_refused(void **state)
{
    struct daemon_client *client = *state;

    assert_true(daemon_client_start(client));
    struct daemon_client second;
    daemon_client_init(&second);
    free(second.state);
    second.state = xstrdup(client->state);
    expect_refusal(&second, EXIT_BUSY, "another kcastd");
    daemon_client_release(&second);
    daemon_client_expect(client, daemon_client_accepted(client, "k", candidate), JOB_DONE, 0);
}

static void an_impossible_state_directory_is_refused(void **state)
{
    struct daemon_client *client = *state;

    free(client->state);
    client->state = xstrdup("/dev/null/state");
    expect_refusal(client, EXIT_SYSTEM, "/dev/null");
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_kill_at_any_commit_loses_nothing),
        TEST(results_wait_for_their_ack_across_restarts),
        TEST(a_result_says_the_same_after_a_restart),
        TEST(cancelled_and_buried_jobs_stay_so),
        TEST(many_queued_jobs_are_queued_again),
        TEST(a_problem_that_has_gone_buries_the_job),
        TEST(a_full_disk_refuses_jobs_and_delivers_results),
        TEST(a_damaged_ledger_is_refused_and_kept),
        TEST(a_ledger_of_the_future_is_refused),
        TEST(a_second_daemon_on_the_same_state_is_refused),
        TEST(an_impossible_state_directory_is_refused),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
