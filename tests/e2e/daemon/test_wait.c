// WAIT and ACK: parked callers, results in several replies, results that are acknowledged.
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// --- WAIT

static void unknown_jobs_are_told_at_once(void **state)
{
    struct daemon_client *client = *state;
    const uint64_t jobs[] = {12345, 12346};
    struct waited waited;

    daemon_client_wait_once(client, jobs, 2, 20000, &waited);
    assert_int_equal(waited.unknown_count, 2);
    assert_int_equal(waited.unknown[1], 12346);
    assert_int_equal(waited.jobs_count, 0);
    message_clear(&waited_message, &waited);
}

static void a_wait_ends_empty_when_its_time_is_over(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);

    (void)daemon_client_gate_wait(gate);
    struct waited waited;
    daemon_client_wait_once(client, &job, 1, 20, &waited);
    assert_int_equal(waited.jobs_count, 0);
    assert_int_equal(waited.unknown_count, 0);
    message_clear(&waited_message, &waited);
    daemon_client_wait_once(client, &job, 1, 0, &waited); // a question, no wait
    assert_int_equal(waited.jobs_count, 0);
    message_clear(&waited_message, &waited);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, 0);
    free(candidate);
    free(gate);
}

static void a_parked_wait_is_answered_when_any_of_its_jobs_ends(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t jobs[3];

    jobs[0] = daemon_client_accepted(client, "a", candidate);
    jobs[1] = daemon_client_accepted(client, "b", "int b;\n");
    jobs[2] = jobs[1]; // asked for twice
    (void)daemon_client_gate_wait(gate);
    struct long_poll poll[2] = {0};
    daemon_client_park(client, jobs, 3, 20000, &poll[0]);
    daemon_client_park(client, jobs, 1, 20000, &poll[1]);
    struct status status = {0};
    do {
        message_clear(&status_message, &status);
        daemon_client_status(client, &status);
    } while (status.waits < 2);
    message_clear(&status_message, &status);
    struct job_info info;
    daemon_client_cancel(client, jobs[1], &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_int_equal(info.cause, JOB_CAUSE_CLIENT);
    message_clear(&job_info_message, &info);
    while (poll[0].answers == 0) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    assert_int_equal(poll[0].first, jobs[1]);
    assert_int_equal(poll[1].answers, 0);
    daemon_client_gate_open(gate);
    while (poll[1].answers == 0) {
        (void)uv_run(&client->loop, UV_RUN_ONCE);
    }
    assert_int_equal(poll[1].first, jobs[0]);
    free(candidate);
    free(gate);
}

static void many_results_come_in_several_answers(void **state)
{
    struct daemon_client *client = *state;
    uint64_t jobs[100];

    for (int i = 0; i < 100; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        jobs[i] = daemon_client_accepted(client, key, "//! compile-error\n");
    }
    struct waited waited;
    size_t left = 100;
    while (left > 0) {
        daemon_client_wait_once(client, jobs, left, 20000, &waited);
        assert_in_range(waited.jobs_count, 1, 64);
        for (size_t i = 0; i < waited.jobs_count; i++) {
            for (size_t k = 0; k < left; k++) {
                if (jobs[k] == waited.jobs[i].job) {
                    jobs[k] = jobs[--left];
                    break;
                }
            }
        }
        message_clear(&waited_message, &waited);
    }
}

// --- ACK

static void an_acknowledged_result_is_gone_but_not_forgotten(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    uint64_t job = daemon_client_submit_ok(client, "test", "k", &spec).job;

    daemon_client_ack(client, job); // not finished (or just): only a finished one is forgotten
    struct submitted again = daemon_client_submit_ok(client, "test", "k", &spec);
    daemon_client_expect(client, again.job, JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, again.job, JOB_DONE,
                         VERDICT_FASTER); // until the ACK as often as one likes
    daemon_client_ack(client, again.job);
    daemon_client_ack(client, again.job); // twice is fine
    struct waited waited;
    daemon_client_wait_once(client, &again.job, 1, 20000, &waited);
    assert_int_equal(waited.unknown_count, 1);
    message_clear(&waited_message, &waited);
    again = daemon_client_submit_ok(client, "test", "k", &spec);
    assert_int_not_equal(again.job, job);
    assert_true(again.cached);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(unknown_jobs_are_told_at_once),
        TEST(a_wait_ends_empty_when_its_time_is_over),
        TEST(a_parked_wait_is_answered_when_any_of_its_jobs_ends),
        TEST(many_results_come_in_several_answers),
        TEST(an_acknowledged_result_is_gone_but_not_forgotten),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
