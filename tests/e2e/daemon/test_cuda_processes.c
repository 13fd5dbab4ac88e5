// Processes that measure on GPUs: who shares one, when the daemon and its GPUs are ready, what a
// crash takes along. The executor is a fake one that only says it has GPUs.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/until.h"
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int set_up(void **state, const char *gpus, const char *devices)
{
    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    client->option[0] = devices;
    client->option[1] = "--exec-grace=100ms";
    client->variable[0] = gpus;
    return daemon_client_start(client) ? 0 : -1;
}

static int set_up_one(void **state)
{
    return set_up(state, "KCAST_FAKE_GPUS=1", "--devices=cpu:1+cuda");
}

static struct job_spec spec_of(struct daemon_client *client, const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.problem =
        daemon_client_put(client, daemon_client_cuda_problem, strlen(daemon_client_cuda_problem));
    return spec;
}

static uint64_t submit(struct daemon_client *client, const char *search, const char *key,
                       const struct job_spec *spec)
{
    struct submitted reply;
    struct err err = ERR_INIT;

    if (daemon_client_submit(client, search, daemon_client_key_of(key), spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply.job;
}

// pid and number of earlier answers of the process that measured.
static int teller(struct daemon_client *client, const char *search, const char *key, bool fresh,
                  unsigned *ret_answered)
{
    struct job_spec spec = spec_of(client, "//! tell\n");

    spec.fresh = fresh;
    spec.repeat = fresh ? 0 : strtoull(key, NULL, 10);
    struct job_info info;
    daemon_client_wait(client, submit(client, search, key, &spec), &info);
    assert_non_null(info.result);
    int pid = 0;
    assert_int_equal(
        sscanf(info.result->reason, "uuid=GPU-fake-0 pid=%d answered=%u", &pid, ret_answered), 2);
    message_clear(&job_info_message, &info);
    return pid;
}

static void searches_of_a_tenant_share_a_process(void **state)
{
    struct daemon_client *client = *state;
    unsigned answered;
    int pid = teller(client, "one", "1", false, &answered);

    assert_int_equal(answered, 0);
    assert_int_equal(teller(client, "one", "2", false, &answered), pid);
    assert_int_equal(teller(client, "two", "3", false, &answered), pid);
    assert_int_equal(answered, 2);
    int other = teller(client, "one", "5", true, &answered);
    assert_int_not_equal(other, pid);
    assert_int_equal(answered, 0);
    assert_int_equal(teller(client, "two", "6", false, &answered), other);
}

static void a_search_keeps_its_process_where_they_are_not_shared(void **state)
{
    struct daemon_client *client = *state;
    unsigned answered;

    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    client->option[2] = "--share-processes=search";
    assert_true(daemon_client_start(client));
    int pid = teller(client, "one", "1", false, &answered);
    assert_int_equal(teller(client, "one", "2", false, &answered), pid);
    assert_int_equal(answered, 1);
    int other = teller(client, "two", "3", false, &answered);
    assert_int_not_equal(other, pid);
    assert_int_equal(answered, 0);
    assert_int_equal(teller(client, "one", "4", false, &answered), pid);
    assert_int_not_equal(teller(client, "one", "5", true, &answered), pid);
    assert_int_equal(answered, 0);
}

static const char *state_of(struct daemon_client *client, size_t device)
{
    static char name[32];
    struct status status;

    daemon_client_status(client, &status);
    assert_in_range(device, 0, status.devices_count - 1);
    (void)snprintf(name, sizeof(name), "%s", status.devices[device].state);
    message_clear(&status_message, &status);
    return name;
}

static void the_daemon_is_ready_when_its_first_gpu_is(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "start");
    char *start = xasprintf("KCAST_FAKE_START=gate GPU-fake-0 %s", gate);

    client->option[0] = "--devices=cuda";
    client->variable[0] = "KCAST_FAKE_GPUS=1";
    client->variable[1] = start;
    client->no_wait = true;
    assert_true(daemon_client_start(client));
    (void)daemon_client_gate_wait(gate);
    char *log = program_log(&client->program);
    assert_null(strstr(log, " ready url="));
    free(log);
    daemon_client_gate_open(gate);
    assert_true(program_wait_ready(&client->program));
    free(start);
    free(gate);
}

static void a_gpu_that_starts_later_gets_what_waits_at_once(void **state)
{
    struct daemon_client *client = *state;
    char *start_gate = daemon_client_gate(client, "start");
    char *gate = daemon_client_gate(client, "gate");
    char *start = xasprintf("KCAST_FAKE_START=gate GPU-fake-1 %s", start_gate);
    char *candidate = xasprintf("//! gate %s\n", gate);

    client->option[0] = "--devices=cuda";
    client->variable[0] = "KCAST_FAKE_GPUS=2";
    client->variable[1] = start;
    assert_true(daemon_client_start(client));
    assert_string_equal(state_of(client, 1), "starting");
    struct job_spec spec = spec_of(client, candidate);
    (void)submit(client, "one", "long", &spec);
    (void)daemon_client_gate_wait(gate);
    spec = spec_of(client, "//! tell\n");
    uint64_t job = submit(client, "two", "k", &spec);
    daemon_client_until(client, job, JOB_READY);
    (void)daemon_client_gate_wait(start_gate);
    daemon_client_gate_open(start_gate);
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_string_equal(info.result->device, "cuda1");
    message_clear(&job_info_message, &info);
    daemon_client_gate_open(gate);
    free(candidate);
    free(start);
    free(gate);
    free(start_gate);
}

// The GPU does not stand still for a process that is being started while others can use it.
static void who_needs_an_unused_process_lets_others_past_until_there_is_one(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "start");
    char *start = xasprintf("KCAST_FAKE_START=gate GPU-fake-0 %s", gate);
    unsigned answered;

    client->option[0] = "--devices=cuda";
    client->variable[0] = "KCAST_FAKE_GPUS=1";
    client->variable[1] = start;
    client->no_wait = true;
    assert_true(daemon_client_start(client));
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    assert_true(program_wait_ready(&client->program));
    daemon_client_connect(client);
    (void)daemon_client_gate_wait(gate); // the second one starts
    int pid = teller(client, "one", "1", false, &answered);

    struct job_spec spec = spec_of(client, "//! tell\n");
    spec.fresh = true;
    uint64_t fresh = submit(client, "one", "fresh", &spec);
    daemon_client_until(client, fresh, JOB_READY);
    assert_int_equal(teller(client, "one", "2", false, &answered), pid);
    assert_int_equal(teller(client, "two", "3", false, &answered), pid);
    daemon_client_until(client, fresh, JOB_READY); // still

    daemon_client_gate_open(gate);
    struct job_info info;
    daemon_client_wait(client, fresh, &info);
    int other = 0;
    assert_int_equal(
        sscanf(info.result->reason, "uuid=GPU-fake-0 pid=%d answered=%u", &other, &answered), 2);
    assert_int_not_equal(other, pid);
    assert_int_equal(answered, 0);
    message_clear(&job_info_message, &info);
    free(start);
    free(gate);
}

// What runs is counted, what is prepared to run next is not.
static void a_crash_is_an_attempt_of_what_runs_alone(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = spec_of(client, candidate);
    uint64_t runs = submit(client, "one", "runs", &spec);

    (void)daemon_client_gate_wait(gate);
    spec = spec_of(client, "//! tell\n");
    uint64_t next = submit(client, "one", "next", &spec); // and the ledger has what runs
    daemon_client_until(client, next, JOB_READY);
    (void)spec_of(client, "//! tell again\n");
    daemon_client_disconnect(client);
    assert_int_equal(program_kill(&client->program), -9);
    assert_true(daemon_client_start(client));
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    struct job_info info;
    daemon_client_wait(client, runs, &info);
    assert_int_equal(info.attempt, 1);
    message_clear(&job_info_message, &info);
    daemon_client_wait(client, next, &info);
    assert_int_equal(info.attempt, 0);
    message_clear(&job_info_message, &info);
    free(candidate);
    free(gate);
}

static void a_gpu_that_does_not_start_is_the_devices_fault(void **state)
{
    struct daemon_client *client = *state;

    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    client->variable[1] = "KCAST_FAKE_START=crash";
    assert_true(daemon_client_start(client));
    struct job_spec spec = spec_of(client, "int x;\n");
    struct job_info info;
    daemon_client_wait(client, submit(client, "test", "a", &spec), &info);
    assert_int_equal(info.state, JOB_BURIED);
    assert_non_null(strstr(info.reason, "it does not start"));
    message_clear(&job_info_message, &info);
}

static void a_lost_or_retired_process_is_replaced(void **state)
{
    struct daemon_client *client = *state;
    const char *bad[] = {"//! run-crash\n", "//! lie-nan\n", "//! run-garbage\n"};
    unsigned answered;
    struct job_spec spec;

    for (size_t i = 0; i < 2; i++) { // a third one would take the device out
        spec = spec_of(client, bad[i]);
        daemon_client_expect(client, submit(client, "one", bad[i], &spec), JOB_BURIED, 0);
        (void)teller(client, "one", i == 0 ? "10" : "11", false, &answered);
        assert_int_equal(answered, 0);
    }
    spec = spec_of(client, "//! retire\n");
    daemon_client_expect(client, submit(client, "one", "r", &spec), JOB_DONE, VERDICT_FASTER);
    (void)teller(client, "one", "12", false, &answered);
    assert_int_equal(answered, 0);
}

static void cancelling_ends_the_process(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = spec_of(client, candidate);
    uint64_t job = submit(client, "one", "k", &spec);
    pid_t pid = daemon_client_gate_wait(gate);

    daemon_client_until(client, job, JOB_RUNNING);
    struct job_info info;
    daemon_client_cancel(client, job, &info);
    assert_int_equal(info.state, JOB_CANCELLED);
    message_clear(&job_info_message, &info);
    unsigned answered;
    (void)teller(client, "one", "2", false, &answered);
    assert_int_equal(answered, 0);
    assert_false(program_alive(pid));
    free(candidate);
    free(gate);
}

// Idle ones, spares and one at work.
static void no_process_outlives_the_daemon(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = spec_of(client, candidate);
    pid_t pid[16];
    size_t count;
    unsigned answered;

    for (int killed = 0; killed < 2; killed++) {
        (void)teller(client, "idle", killed ? "1" : "2", false, &answered);
        (void)submit(client, "work", killed ? "a" : "b", &spec);
        (void)daemon_client_gate_wait(gate);
        UNTIL((count = program_children(client->program.pid, pid, 16)) >= 3);
        daemon_client_disconnect(client);
        if (killed) {
            assert_int_equal(program_kill(&client->program), -9);
        } else {
            assert_int_equal(program_stop(&client->program), 0);
        }
        for (size_t i = 0; i < count; i++) {
            while (program_alive(pid[i])) {
                sched_yield();
            }
        }
        assert_true(daemon_client_start(client));
        (void)daemon_client_gate_wait(gate);
        daemon_client_gate_open(gate);
        spec.repeat++;
    }
    free(candidate);
    free(gate);
}

int main(void)
{
#define TEST(name, set_up) cmocka_unit_test_setup_teardown(name, set_up, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(searches_of_a_tenant_share_a_process, set_up_one),
        TEST(a_search_keeps_its_process_where_they_are_not_shared, set_up_one),
        TEST(the_daemon_is_ready_when_its_first_gpu_is, daemon_client_set_up),
        TEST(a_gpu_that_starts_later_gets_what_waits_at_once, daemon_client_set_up),
        TEST(who_needs_an_unused_process_lets_others_past_until_there_is_one, daemon_client_set_up),
        TEST(a_crash_is_an_attempt_of_what_runs_alone, set_up_one),
        TEST(a_gpu_that_does_not_start_is_the_devices_fault, set_up_one),
        TEST(a_lost_or_retired_process_is_replaced, set_up_one),
        TEST(cancelling_ends_the_process, set_up_one),
        TEST(no_process_outlives_the_daemon, set_up_one),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
