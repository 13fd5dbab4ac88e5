// kcastd with the real kcast-exec on a very small problem: verdicts, and that nothing of it is left
// when it is stopped. Skipped where the sandbox cannot be set up.
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DESCENDANTS_MAX 256

static const char right[] =
    "void copy(const float *A, float *B, int64_t N)\n"
    "{ for (int64_t i = 0; i < N; i++) B[i] = A[i]; }\n// another comment\n";
static const char wrong[] = "void copy(const float *A, float *B, int64_t N)\n"
                            "{ for (int64_t i = 0; i < N; i++) B[i] = A[i] + 1; }\n";
static const char endless[] =
    "void copy(const float *A, float *B, int64_t N)\n"
    "{ volatile int64_t i = 0; while (i < N + 1) i = A[0] > B[0] ? 0 : 0; }\n";

static int set_up(void **state)
{
    (void)daemon_client_set_up(state);
    ((struct daemon_client *)*state)->real_exec = true;
    return 0;
}

// Skips the test where the sandbox does not work.
static void start(struct daemon_client *client)
{
    if (!daemon_client_start(client)) {
        if (program_wait(&client->program) == EXIT_SANDBOX) {
            skip();
        }
        fail_msg("%s", program_log(&client->program));
    }
}

static uint64_t submit(struct daemon_client *client, const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.max_seconds = 1;
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_submit(client, "test", daemon_client_key_of(candidate), &spec, &reply,
                             &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply.job;
}

// All processes below pid.
static size_t descendants(pid_t pid, pid_t *pids, size_t max)
{
    size_t count = program_children(pid, pids, max);
    size_t all = count;

    for (size_t i = 0; i < count && all < max; i++) {
        all += descendants(pids[i], pids + all, max - all);
    }
    return all;
}

static void until_gone(const pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (program_alive(pids[i])) {
            sched_yield();
        }
    }
}

static void verdicts_come_from_what_the_candidate_does(void **state)
{
    struct daemon_client *client = *state;

    start(client);
    struct job_info info;
    daemon_client_wait(client, submit(client, right), &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_true(verdict_is_ratio(info.result->verdict));
    assert_true(fabs(info.result->speedup->log2) < 1);
    assert_non_null(info.result->control);
    assert_true(info.result->checks > 0);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, submit(client, wrong), JOB_DONE, VERDICT_WRONG);
    daemon_client_expect(client, submit(client, "int copy;\n"), JOB_DONE, VERDICT_COMPILE_ERROR);
}

static void a_cancelled_measurement_leaves_no_process(void **state)
{
    struct daemon_client *client = *state;

    start(client);
    uint64_t job = submit(client, endless);
    pid_t pids[DESCENDANTS_MAX];
    size_t count;
    do {
        daemon_client_until(client, job, JOB_RUNNING);
        count = descendants(client->program.pid, pids, DESCENDANTS_MAX);
    } while (count < 3); // kcast-exec and its sandboxed children
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    until_gone(pids, count);
    daemon_client_expect(client, submit(client, wrong), JOB_DONE, VERDICT_WRONG);
    assert_int_equal(descendants(client->program.pid, pids, DESCENDANTS_MAX), 0);
}

static void sigterm_leaves_no_process(void **state)
{
    struct daemon_client *client = *state;

    start(client);
    uint64_t job = submit(client, endless);
    pid_t pids[DESCENDANTS_MAX];
    size_t count;
    do {
        daemon_client_until(client, job, JOB_RUNNING);
        count = descendants(client->program.pid, pids, DESCENDANTS_MAX);
    } while (count < 3);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    until_gone(pids, count);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(verdicts_come_from_what_the_candidate_does),
        TEST(a_cancelled_measurement_leaves_no_process),
        TEST(sigterm_leaves_no_process),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
