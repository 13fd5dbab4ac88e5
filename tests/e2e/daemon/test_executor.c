// kcastd and an executor that crashes, hangs, floods, lies or leaves processes behind: the daemon
// is unhurt, the job ends with a reason, the next one runs.
#include "common/file.h"
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

// Seconds that a measurement may time. They decide when its executor's deadline is over: soon, or
// so late that this machine's speed decides nothing.
#define BRIEF_S 0.1
#define PATIENT_S 100.0

static int set_up_impatient(void **state)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = "--exec-slack=400ms";
    client->option[1] = "--exec-grace=100ms";
    return daemon_client_start(client) ? 0 : -1;
}

static uint64_t submit_within(struct daemon_client *client, const char *key, const char *candidate,
                              double max_seconds)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.max_seconds = max_seconds;
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_submit(client, "test", daemon_client_key_of(key), &spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply.job;
}

static uint64_t submit(struct daemon_client *client, const char *key, const char *candidate)
{
    return submit_within(client, key, candidate, PATIENT_S);
}

static void until_gone(pid_t pid)
{
    while (program_alive(pid)) {
        sched_yield();
    }
}

// A job with this candidate is buried for a reason that contains text; a good job then still works.
static void expect_buried_within(struct daemon_client *client, const char *candidate,
                                 const char *text, double max_seconds)
{
    struct job_info info;
    char *good = xasprintf("int after_%zu;\n", strlen(candidate));

    daemon_client_wait(client, submit_within(client, candidate, candidate, max_seconds), &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_int_equal(info.cause, JOB_CAUSE_LOST_EXECUTOR);
    if (!strstr(info.reason, text)) {
        fail_msg("%s", info.reason);
    }
    assert_null(info.result);
    message_clear(&job_info_message, &info);
    daemon_client_expect(client, submit(client, good, good), JOB_DONE, VERDICT_FASTER);
    free(good);
}

static void expect_buried(struct daemon_client *client, const char *candidate, const char *text)
{
    expect_buried_within(client, candidate, text, PATIENT_S);
}

static void a_crash_is_tried_twice_and_buried(void **state)
{
    struct daemon_client *client = *state;

    expect_buried(client, "//! run-crash\n", "signal 11");
    assert_int_equal(daemon_client_runs(client, "measure", "//! run-crash\n"), 2);
}

static void one_crash_is_forgiven(void **state)
{
    struct daemon_client *client = *state;
    char *candidate = xasprintf("//! crash-once %s/crashed\n", client->program.dir);
    struct job_info info;

    daemon_client_wait(client, submit(client, "k", candidate), &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.attempt, 1);
    assert_int_equal(info.result->attempt, 1);
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    message_clear(&job_info_message, &info);
    free(candidate);
}

static void an_exit_code_is_told_with_the_last_line_of_stderr(void **state)
{
    expect_buried(*state, "//! run-exit 9\n", "exit code 9: the reason is on the last line");
}

static void a_hanging_executor_is_ended_at_its_deadline(void **state)
{
    expect_buried_within(*state, "//! run-hang\n", "deadline", BRIEF_S);
}

static void one_that_ignores_sigterm_is_killed(void **state)
{
    expect_buried_within(*state, "//! run-deaf\n", "deadline", BRIEF_S);
}

// As by the kernel when the machine has no memory left.
static void one_that_is_killed_is_told_with_its_signal(void **state)
{
    expect_buried(*state, "//! run-kill\n", "signal 9");
}

static void one_that_closes_its_output_is_ended_at_its_deadline(void **state)
{
    expect_buried_within(*state, "//! run-close\n", "deadline", BRIEF_S);
}

static void garbage_is_no_report(void **state)
{
    expect_buried(*state, "//! run-garbage\n", "kcast-exec measure");
}

static void an_empty_report_is_none(void **state)
{
    expect_buried(*state, "//! run-empty\n", "kcast-exec measure");
}

// Bytes of memory that the daemon holds.
static size_t resident(const struct daemon_client *client)
{
    char *path = xasprintf("/proc/%d/statm", (int)client->program.pid);
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    size_t pages = 0;
    assert_int_equal(fscanf(file, "%*u %zu", &pages), 1);
    assert_int_equal(fclose(file), 0);
    free(path);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void a_gigabyte_is_cut_off(void **state)
{
    const struct daemon_client *client = *state;
    size_t before = resident(client);

    expect_buried(*state, "//! run-flood\n", "bytes an outcome may have");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_in_range(resident(client), 0,
                    before + ((size_t)8 << 20)); // half of what an outcome may have
#else
    (void)before;
#endif
}

static void lies_are_found_out(void **state)
{
    expect_buried(*state, "//! lie-verdict\n", "verdict 999");
    expect_buried(*state, "//! lie-nan\n", "estimate");
    expect_buried(*state, "//! lie-digest\n", "another candidate");
    expect_buried(*state, "//! lie-interval\n", "interval");
    expect_buried(*state, "//! lie-sandbox\n", "sandbox was off");
}

static void a_lost_compiler_is_tried_twice_and_buried(void **state)
{
    struct daemon_client *client = *state;

    expect_buried(client, "//! compile-crash\n", "signal 6");
    assert_int_equal(daemon_client_runs(client, "compile", "//! compile-crash\n"), 2);
    expect_buried(client, "//! compile-garbage\n", "kcast-exec compile");
    expect_buried(client, "//! compile-lie\n", "another object");
}

static void three_different_jobs_in_a_row_take_the_device_out(void **state)
{
    struct daemon_client *client = *state;
    const char *bad[] = {"//! run-exit 1\n", "//! run-exit 2\n", "//! run-exit 3\n"};
    uint64_t job;

    for (size_t i = 0; i < 3; i++) {
        job = submit(client, bad[i], bad[i]);
        if (i < 2) {
            daemon_client_expect(client, job, JOB_BURIED, 0);
        }
    }
    struct status status;
    do {
        daemon_client_status(client, &status);
        if (strcmp(status.devices[0].state, "quarantined") == 0) {
            break;
        }
        message_clear(&status_message, &status);
    } while (true);
    assert_non_null(strstr(status.devices[0].reason, "in a row"));
    assert_non_null(strstr(status.devices[0].reason, "exit code 3"));
    message_clear(&status_message, &status);
    job = submit(client, "waits", "int waits;\n"); // is kept for when the device is back
    daemon_client_until(client, job, JOB_READY);
}

static void what_an_executor_leaves_behind_is_killed(void **state)
{
    struct daemon_client *client = *state;
    char *path = xasprintf("%s/orphan", client->program.dir);
    char *candidate = xasprintf("//! orphans %s\n", path);

    daemon_client_expect(client, submit(client, "k", candidate), JOB_DONE, VERDICT_FASTER);
    struct bytes text = {0};
    assert_int_equal(file_read(&text, path, 64, NULL), 0);
    until_gone((pid_t)strtol((char *)text.data, NULL, 10));
    bytes_clear(&text);
    free(candidate);
    free(path);
}

static void an_executor_inherits_three_descriptors(void **state)
{
    struct daemon_client *client = *state;
    struct job_info info;

    daemon_client_wait(client, submit(client, "k", "//! fds\n"), &info);
    assert_string_equal(info.result->reason, "descriptors: ");
    message_clear(&job_info_message, &info);
}

// A daemon that has begun anew has no blob in memory.
static void a_damaged_object_is_compiled_again(void **state)
{
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "int x;\n");
    struct digest object = digest_of("OBJint x;\n", 10);
    struct submitted reply;

    assert_int_equal(daemon_client_submit(client, "test", "a", &spec, &reply, NULL), 0);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&object, hex);
    char *path = xasprintf("%s/blobs/%.2s/%s", client->state, hex, hex + 2);
    assert_true(file_exists(path));
    assert_int_equal(file_replace(path, "junk", 4, false, NULL), 0);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    assert_true(daemon_client_start(client));
    spec.repeat = 1;
    assert_int_equal(daemon_client_submit(client, "test", "b", &spec, &reply, NULL), 0);
    daemon_client_expect(client, reply.job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "compile", "int x;\n"), 2);
    free(path);
}

// SIGTERM while things run: everything is gone, and the job runs again without having lost an
// attempt.
static void sigterm_leaves_no_process_and_costs_no_attempt(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = submit(client, "k", candidate);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_RUNNING);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    assert_false(program_alive(pid));
    assert_true(daemon_client_start(client));
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.attempt, 0);
    message_clear(&job_info_message, &info);
    free(candidate);
    free(gate);
}

static void a_killed_daemon_takes_its_executor_along(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    uint64_t job = submit(client, "k", candidate);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_RUNNING);
    daemon_client_disconnect(client);
    assert_int_equal(program_kill(&client->program), -9);
    until_gone(pid);
    assert_true(daemon_client_start(client));
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_int_equal(info.attempt, 1); // nobody knows whether the job was to blame
    message_clear(&job_info_message, &info);
    free(candidate);
    free(gate);
}

// The daemon's kcast-exec is a link that the test can take away; so does a host without
// descriptors, processes or memory let nothing begin.
static int set_up_removable(void **state)
{
    static char option[512];
    char *target = program_support_path("fake_exec");

    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    char *link = xasprintf("%s/exec", client->program.dir);
    (void)snprintf(option, sizeof(option), "--exec=%s", link);
    assert_int_equal(symlink(target, link), 0);
    client->option[0] = option;
    free(link);
    free(target);
    return daemon_client_start(client) ? 0 : -1;
}

static void take_away(struct daemon_client *client, bool away)
{
    char *here = xasprintf("%s/exec", client->program.dir);
    char *gone = xasprintf("%s/gone", client->program.dir);

    assert_int_equal(away ? rename(here, gone) : rename(gone, here), 0);
    free(gone);
    free(here);
}

static void until_logged(struct daemon_client *client, const char *text)
{
    bool is = false;

    while (!is) { // until the runner's limit
        struct waited waited;
        char *log = program_log(&client->program);

        is = strstr(log, text);
        free(log);
        uint64_t none = 0;
        daemon_client_wait_once(client, &none, 0, 2, &waited);
        message_clear(&waited_message, &waited);
    }
}

static void expect_unhurt(struct daemon_client *client, uint64_t job)
{
    struct job_info info;

    daemon_client_wait(client, job, &info);
    if (info.state != JOB_DONE) {
        fail_msg("%s: %s", job_state_name(info.state), info.reason);
    }
    assert_int_equal(info.attempt, 0);
    message_clear(&job_info_message, &info);
    struct status status;
    daemon_client_status(client, &status);
    assert_string_equal(status.devices[0].state, "ready");
    assert_null(status.devices[0].reason);
    message_clear(&status_message, &status);
}

static void a_host_that_starts_no_compiler_is_waited_for(void **state)
{
    struct daemon_client *client = *state;

    take_away(client, true);
    uint64_t job = submit(client, "k", "int compiled_late;\n");
    until_logged(client, "compile-waits name=");
    take_away(client, false);
    expect_unhurt(client, job);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
}

static void a_host_that_starts_no_measurement_is_waited_for(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! compile-gate %s\n", gate);

    daemon_client_expect(client, submit(client, "first", "int first;\n"), JOB_DONE, 0);
    uint64_t job = submit(client, "k", candidate);
    (void)daemon_client_gate_wait(gate);
    take_away(client, true);
    daemon_client_gate_open(gate);
    until_logged(client, "job-waits job=");
    take_away(client, false);
    expect_unhurt(client, job);
    assert_int_equal(daemon_client_runs(client, "measure", candidate), 1);
    free(candidate);
    free(gate);
}

static void what_waits_for_the_host_can_be_cancelled(void **state)
{
    struct daemon_client *client = *state;

    take_away(client, true);
    uint64_t job = submit(client, "k", "int never;\n");
    until_logged(client, "compile-waits name=");
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    take_away(client, false);
    expect_unhurt(client, submit(client, "next", "int next;\n"));
}

static void a_plan_that_is_too_large_is_the_jobs_own_fault(void **state)
{
    static const char padded[] = "//! pad 22\n";
    struct daemon_client *client = *state;
    struct job_spec spec = daemon_client_spec(client, "//! pad 22\nint candidate;\n");

    spec.reference = daemon_client_put(client, padded, strlen(padded));
    spec.baseline = spec.reference;
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "large", &spec, &reply, &err), 0);
    struct job_info info;
    daemon_client_wait(client, reply.job, &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_int_equal(info.cause, JOB_CAUSE_TOO_LARGE);
    assert_string_equal(info.reason, "problem and objects are too large to be sent to an executor");
    assert_int_equal(info.attempt, 0);
    message_clear(&job_info_message, &info);
    expect_unhurt(client, submit(client, "next", "int next;\n"));
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)
#define IMPATIENT(name)                                                                            \
    cmocka_unit_test_setup_teardown(name, set_up_impatient, daemon_client_tear_down)
#define REMOVABLE(name)                                                                            \
    cmocka_unit_test_setup_teardown(name, set_up_removable, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_crash_is_tried_twice_and_buried),
        TEST(one_crash_is_forgiven),
        TEST(an_exit_code_is_told_with_the_last_line_of_stderr),
        IMPATIENT(a_hanging_executor_is_ended_at_its_deadline),
        IMPATIENT(one_that_ignores_sigterm_is_killed),
        TEST(one_that_is_killed_is_told_with_its_signal),
        IMPATIENT(one_that_closes_its_output_is_ended_at_its_deadline),
        TEST(garbage_is_no_report),
        TEST(an_empty_report_is_none),
        TEST(a_gigabyte_is_cut_off),
        TEST(lies_are_found_out),
        TEST(a_lost_compiler_is_tried_twice_and_buried),
        TEST(three_different_jobs_in_a_row_take_the_device_out),
        TEST(what_an_executor_leaves_behind_is_killed),
        TEST(an_executor_inherits_three_descriptors),
        TEST(a_damaged_object_is_compiled_again),
        TEST(sigterm_leaves_no_process_and_costs_no_attempt),
        TEST(a_killed_daemon_takes_its_executor_along),
        REMOVABLE(a_host_that_starts_no_compiler_is_waited_for),
        REMOVABLE(a_host_that_starts_no_measurement_is_waited_for),
        REMOVABLE(what_waits_for_the_host_can_be_cancelled),
        TEST(a_plan_that_is_too_large_is_the_jobs_own_fault),
    };
#undef TEST
#undef IMPATIENT
#undef REMOVABLE

    return cmocka_run_group_tests(tests, NULL, NULL);
}
