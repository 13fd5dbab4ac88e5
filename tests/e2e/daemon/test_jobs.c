// kcastd as a whole, over the wire, with an executor that does as its candidates say: what jobs
// give, and what the daemon says about itself.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// --- results of jobs

static void a_measured_job_gives_a_result(void **state)
{
    struct daemon_client *client = *state;
    const char *candidate = "//! log2 0.75\n";
    struct job_info info;
    uint64_t job = daemon_client_accepted(client, "k", candidate);
    struct digest digest = digest_of(candidate, strlen(candidate));

    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_string_equal(info.search, "test");
    assert_string_equal(info.key, "k");
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_float_equal(info.result->speedup->log2, 0.75, 1e-9);
    assert_non_null(info.result->control);
    assert_string_equal(info.result->device, "cpu0");
    assert_string_equal(info.result->device_class, "fake-cpu");
    assert_string_equal(info.result->sandbox, "on");
    assert_true(digest_equal(&info.result->candidate, &digest));
    assert_true(info.result->seed != 0);
    assert_true(info.result->measured_at > 1e9);
    assert_true(info.result->seconds->held > 0);
    assert_non_null(info.result->compiled);
    assert_int_equal(info.result->compiled->features_count, 1);
    assert_false(info.result->cached);
    message_clear(&job_info_message, &info);
}

static void a_compile_job_gives_object_and_features_and_is_cached(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");

    spec.kind = JOB_COMPILE;
    spec.reference = (struct digest){0};
    spec.baseline = (struct digest){0};
    struct job_info info;
    for (int i = 0; i < 2; i++) {
        daemon_client_wait(
            client, daemon_client_submit_ok(client, "test", i ? "b" : "a", &spec).job, &info);
        assert_int_equal(info.state, JOB_DONE);
        assert_int_equal(info.compiled->verdict, VERDICT_NONE);
        assert_int_equal(info.compiled->features_count, 1);
        assert_false(digest_is_zero(&info.compiled->object));
        assert_int_equal(info.compiled->cached, i == 1);
        message_clear(&job_info_message, &info);
    }
    assert_int_equal(daemon_client_runs(client, "compile", NULL), 1);
    spec.fresh = true;
    daemon_client_expect(client, daemon_client_submit_ok(client, "test", "c", &spec).job, JOB_DONE,
                         0);
    assert_int_equal(daemon_client_runs(client, "compile", NULL), 2);
}

static void a_candidate_that_does_not_compile_is_not_measured(void **state)
{
    struct daemon_client *client = *state;
    struct job_info info;
    uint64_t job = daemon_client_accepted(client, "k", "//! compile-error\n");

    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.result->verdict, VERDICT_COMPILE_ERROR);
    assert_non_null(strstr(info.result->reason, "candidate.c"));
    assert_non_null(info.result->compiled->log);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, daemon_client_accepted(client, "l", "//! compile-error\n"),
                         JOB_DONE, VERDICT_COMPILE_ERROR);
    assert_int_equal(daemon_client_runs(client, "compile", "//! compile-error\n"), 1);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 0);
}

static void a_reference_that_does_not_compile_is_the_problems_fault(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");

    spec.reference = daemon_client_put(client, "//! compile-error\n", 18);
    struct job_info info;
    for (int i = 0; i < 2; i++) {
        daemon_client_wait(
            client, daemon_client_submit_ok(client, "test", i ? "a" : "b", &spec).job, &info);
        assert_int_equal(info.result->verdict, VERDICT_COMPILE_ERROR);
        assert_non_null(strstr(info.result->reason, "reference.c of problem copy"));
        assert_null(info.result->compiled);
        assert_false(info.result->cached);
        message_clear(&job_info_message, &info);
    }
}

// --- several jobs and requests

// Submits a candidate that waits at the gate when it is measured.
static uint64_t submit_gated(struct daemon_client *client, const char *search, const char *gate,
                             enum job_kind kind)
{
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.kind = kind;
    if (kind == JOB_COMPILE) {
        spec.reference = (struct digest){0};
        spec.baseline = (struct digest){0};
    }
    uint64_t job = daemon_client_submit_ok(client, search, "k", &spec).job;
    free(candidate);
    return job;
}

// The device is held until all have been submitted, and by the newcomer while the flood is counted.
// The newcomer is compiled before, since nothing may be compiled while the device of a machine with
// one core is busy.
static void a_newcomer_overtakes_a_flood(void **state)
{
    struct daemon_client *client = *state;
    char *held = daemon_client_gate(client, "held");
    char *newcomer = daemon_client_gate(client, "newcomer");
    const char *flood = "int flood;\n";
    struct job_spec spec = daemon_client_spec(client, flood);

    daemon_client_expect(client, submit_gated(client, "before", newcomer, JOB_COMPILE), JOB_DONE,
                         0);
    (void)submit_gated(client, "holds", held, JOB_MEASURE);
    (void)daemon_client_gate_wait(held);
    for (uint64_t i = 0; i < 200; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", (int)i);
        spec.repeat = i + 1;
        (void)daemon_client_submit_ok(client, "flood", key, &spec);
    }
    uint64_t one = submit_gated(client, "one", newcomer, JOB_MEASURE);
    daemon_client_until(client, one, JOB_READY);
    daemon_client_gate_open(held);
    (void)daemon_client_gate_wait(newcomer);
    assert_true(daemon_client_runs(client, "measure", flood) < 20);
    daemon_client_gate_open(newcomer);
    daemon_client_expect(client, one, JOB_DONE, VERDICT_FASTER);
    free(held);
    free(newcomer);
}

static void status_tells_about_devices_and_jobs(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    uint64_t job = submit_gated(client, "test", gate, JOB_MEASURE);

    (void)daemon_client_gate_wait(gate);
    daemon_client_until(client, job, JOB_RUNNING);
    struct status status;
    daemon_client_status(client, &status);
    assert_true(status.devices_count >= 1);
    assert_string_equal(status.devices[0].device_class, "fake-cpu");
    assert_string_equal(status.devices[0].state, "busy");
    assert_int_equal(status.devices[0].job, job);
    assert_int_equal(status.jobs_count, 1);
    assert_string_equal(status.jobs[0].device, "cpu0");
    assert_int_equal(status.states[JOB_RUNNING], 1);
    assert_string_equal(status.sandbox, "on");
    assert_string_equal(status.state_dir, client->state);
    assert_true(status.compile_slots >= 1);
    assert_true(status.requests > 1);
    message_clear(&status_message, &status);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, 0);
    daemon_client_status(client, &status);
    assert_int_equal(status.results_cached, 1);
    assert_int_equal(status.devices[0].jobs_done, 1);
    assert_non_null(status.devices[0].control);
    message_clear(&status_message, &status);
    free(gate);
}

// Where devices own every core, nothing is compiled while something is measured.
static void compilations_and_measurements_take_turns_when_they_share_cores(void **state)
{
    struct daemon_client *client = *state;
    char *devices = xasprintf("--devices=cpu:%ld", sysconf(_SC_NPROCESSORS_ONLN));

    client->option[0] = devices;
    assert_true(daemon_client_start(client));
    uint64_t job[8];
    for (int i = 0; i < 8; i++) {
        char candidate[32];

        (void)snprintf(candidate, sizeof(candidate), "int x%d;\n", i);
        job[i] = daemon_client_accepted(client, candidate, candidate);
    }
    for (int i = 0; i < 8; i++) {
        daemon_client_expect(client, job[i], JOB_DONE, VERDICT_FASTER);
    }
    struct bytes log = {0};
    assert_int_equal(file_read(&log, client->log, 1 << 20, NULL), 0);
    int compiling = 0;
    int measuring = 0;
    for (const char *line = (char *)log.data; *line; line = strchr(line, '\n') + 1) {
        compiling += strncmp(line, "compile ", 8) == 0;
        compiling -= strncmp(line, "compile-end ", 12) == 0;
        measuring += strncmp(line, "measure ", 8) == 0;
        measuring -= strncmp(line, "measure-end ", 12) == 0;
        assert_false(compiling > 0 && measuring > 0);
    }
    assert_int_equal(compiling + measuring, 0);
    bytes_clear(&log);
    free(devices);
}

static void an_operation_of_the_future_is_unsupported(void **state)
{
    struct daemon_client *client = *state;
    struct empty body;

    message_init(&empty_message, &body);
    struct empty reply;
    assert_int_equal(daemon_client_call(client, (enum op)31, &empty_message, &body, &empty_message,
                                        &reply, NULL),
                     ERR_UNSUPPORTED);
    assert_int_equal(daemon_client_call(client, OP_FORECAST, &empty_message, &body, &empty_message,
                                        &reply, NULL),
                     ERR_UNSUPPORTED);
}

static void hello_says_who_it_is(void **state)
{
    struct daemon_client *client = *state;
    struct hello_reply reply;
    struct err err = ERR_INIT;

    assert_int_equal(remote_hello_sync(client->remote, "kcastd", &reply, &err), 0);
    assert_string_equal(reply.program, "kcastd");
    assert_int_equal(reply.pid, client->program.pid);
    assert_true(reply.message_max >= (1U << 20));
    message_clear(&hello_reply_message, &reply);
    assert_int_not_equal(remote_hello_sync(client->remote, "kcast-worker", &reply, &err), 0);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_measured_job_gives_a_result),
        TEST(a_compile_job_gives_object_and_features_and_is_cached),
        TEST(a_candidate_that_does_not_compile_is_not_measured),
        TEST(a_reference_that_does_not_compile_is_the_problems_fault),
        TEST(a_newcomer_overtakes_a_flood),
        TEST(status_tells_about_devices_and_jobs),
        cmocka_unit_test_setup_teardown(
            compilations_and_measurements_take_turns_when_they_share_cores, daemon_client_set_up,
            daemon_client_tear_down),
        TEST(an_operation_of_the_future_is_unsupported),
        TEST(hello_says_who_it_is),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
