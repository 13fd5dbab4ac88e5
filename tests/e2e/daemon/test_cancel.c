// CANCEL of a job in every state, and of a whole search.
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void a_queued_job_is_cancelled_at_once(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t busy = daemon_client_accepted(client, "busy", candidate);

    (void)daemon_client_gate_wait(gate);
    uint64_t job = daemon_client_accepted(client, "k", "int waiting;\n");
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) { // with one, it waits for the compiler
        daemon_client_until(client, job, JOB_READY);
    }
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    assert_non_null(info.reason);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, job, JOB_CANCELLED, 0);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, busy, JOB_DONE, 0);
    assert_int_equal(daemon_client_runs(client, "measure", "int waiting;\n"), 0);
    free(candidate);
    free(gate);
}

// Until a process is gone; its end is the event, seen by asking the kernel.
static void until_gone(pid_t pid)
{
    while (program_alive(pid)) {
        sched_yield();
    }
}

static void a_compiling_job_is_cancelled_and_its_compiler_killed(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_COMPILING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    until_gone(pid);
    daemon_client_expect(client, daemon_client_accepted(client, "l", "int x;\n"), JOB_DONE, 0);
    free(candidate);
    free(gate);
}

static void a_compilation_that_another_job_wants_goes_on(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    uint64_t other = daemon_client_accepted(client, "l", candidate);

    (void)daemon_client_gate_wait(gate);
    daemon_client_until(client, other, JOB_COMPILING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, other, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "compile", candidate), 1);
    free(candidate);
    free(gate);
}

static void a_running_job_is_cancelled_and_its_executor_killed(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_RUNNING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, daemon_client_accepted(client, "l", "int next;\n"), JOB_DONE,
                         VERDICT_FASTER);
    assert_false(program_alive(pid)); // before the next job had the device
    daemon_client_expect(client, job, JOB_CANCELLED, 0);
    free(candidate);
    free(gate);
}

static void a_finished_job_stays_as_it_is(void **state)
{
    struct daemon_client *client = *state;
    uint64_t job = daemon_client_accepted(client, "k", "int x;\n");

    daemon_client_expect(client, job, JOB_DONE, 0);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
}

static void a_search_is_cancelled_as_a_whole_and_others_are_not(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);

    for (uint64_t i = 0; i < 20; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        spec.repeat = i;
        (void)daemon_client_submit_ok(client, "doomed", key, &spec);
    }
    spec.candidate = daemon_client_put(client, "int x;\n", 7);
    uint64_t other = daemon_client_submit_ok(client, "other", "k", &spec).job;
    (void)daemon_client_gate_wait(gate);
    struct job_ids ids;
    message_init(&job_ids_message, &ids);
    ids.search = (char *)(uintptr_t) "doomed";
    struct job_infos infos;
    assert_int_equal(daemon_client_call(client, OP_CANCEL, &job_ids_message, &ids,
                                        &job_infos_message, &infos, NULL),
                     0);
    assert_int_equal(infos.jobs_count, 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(infos.jobs[i].state, JOB_CANCELLED);
    }
    message_clear(&job_infos_message, &infos);
    daemon_client_expect(client, other, JOB_DONE, VERDICT_FASTER);
    free(candidate);
    free(gate);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_queued_job_is_cancelled_at_once),
        TEST(a_compiling_job_is_cancelled_and_its_compiler_killed),
        TEST(a_compilation_that_another_job_wants_goes_on),
        TEST(a_running_job_is_cancelled_and_its_executor_killed),
        TEST(a_finished_job_stays_as_it_is),
        TEST(a_search_is_cancelled_as_a_whole_and_others_are_not),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
