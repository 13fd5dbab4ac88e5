// What operators want of devices: drains and quarantines outlive a restart, a probe waits for what
// runs, says what it found and brings a device back; and `kcast job` shows one job.
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect(struct daemon_client *client, const char *state, const char *why)
{
    struct status status;

    daemon_client_status(client, &status);
    assert_string_equal(status.devices[0].state, state);
    if (why) {
        assert_non_null(strstr(status.devices[0].reason, why));
    } else {
        assert_null(status.devices[0].reason);
    }
    message_clear(&status_message, &status);
}

static int drain(struct daemon_client *client, bool undrain)
{
    char *name[] = {"cpu0"};
    struct drain request = {
        .devices = name, .devices_count = 1, .undrain = undrain, .reason = "new fan"};
    struct empty reply;
    struct err err = ERR_INIT;

    return daemon_client_call(client, OP_DRAIN, &drain_message, &request, &empty_message, &reply,
                              &err);
}

static void a_reason_that_cannot_be_shown_is_refused(void **state)
{
    char *name[] = {"cpu0"};
    struct drain drained = {.devices = name, .devices_count = 1, .reason = "a\x1b[2J"};
    struct quarantine away = {.devices = name, .devices_count = 1, .reason = "a\nb"};
    struct empty reply;
    struct err err = ERR_INIT;

    assert_int_equal(daemon_client_call(*state, OP_DRAIN, &drain_message, &drained, &empty_message,
                                        &reply, &err),
                     ERR_INVALID);
    assert_non_null(strstr(err.text, "the reason, \"a\\x1b[2J\", has a control character"));
    err = (struct err)ERR_INIT;
    assert_int_equal(daemon_client_call(*state, OP_QUARANTINE, &quarantine_message, &away,
                                        &empty_message, &reply, &err),
                     ERR_INVALID);
    expect(*state, "ready", NULL);
}

static int quarantine(struct daemon_client *client, const char *device)
{
    char *name[] = {(char *)(uintptr_t)device};
    struct quarantine request = {.devices = name, .devices_count = 1, .reason = "smells"};
    struct empty reply;
    struct err err = ERR_INIT;

    return daemon_client_call(client, OP_QUARANTINE, &quarantine_message, &request, &empty_message,
                              &reply, &err);
}

static int probe(struct daemon_client *client, const char *device, struct probed *ret,
                 struct err *err)
{
    struct probe_request request = {.device = (char *)(uintptr_t)device};

    return daemon_client_call(client, OP_PROBE, &probe_request_message, &request, &probed_message,
                              ret, err);
}

static void restart(struct daemon_client *client, bool crash)
{
    daemon_client_disconnect(client);
    if (crash) {
        (void)program_kill(&client->program);
    } else {
        (void)program_stop(&client->program);
    }
    assert_true(daemon_client_start(client));
}

static void a_drain_outlives_restarts(void **state)
{
    struct daemon_client *client = *state;

    assert_int_equal(drain(client, false), 0);
    expect(client, "draining", "new fan");
    restart(client, true);
    expect(client, "draining", "new fan");
    assert_int_equal(drain(client, true), 0);
    expect(client, "ready", NULL);
    restart(client, true);
    expect(client, "ready", NULL);
}

// What runs goes on, nothing new begins, and what waits is kept.
static void a_drain_waits_for_what_runs(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);
    uint64_t running = daemon_client_accepted(client, "one", source);

    (void)daemon_client_gate_wait(gate);
    assert_int_equal(drain(client, false), 0);
    struct status status;
    daemon_client_status(client, &status);
    assert_string_equal(status.devices[0].state, "draining");
    assert_int_equal(status.devices[0].job, running);
    message_clear(&status_message, &status);
    uint64_t waiting = daemon_client_accepted(client, "two", "//! log2 2\n");
    daemon_client_until(client, waiting, JOB_READY);
    daemon_client_gate_open(gate);
    daemon_client_expect(client, running, JOB_DONE, VERDICT_FASTER);
    // The device is free, and a compilation that came later has been done: nobody wants it more.
    daemon_client_expect(client, daemon_client_accepted(client, "three", "//! compile-error\n"),
                         JOB_DONE, VERDICT_COMPILE_ERROR);
    daemon_client_status(client, &status);
    assert_string_equal(status.devices[0].state, "draining");
    assert_int_equal(status.devices[0].job, 0);
    assert_int_equal(status.states[JOB_READY], 1);
    message_clear(&status_message, &status);
    assert_int_equal(daemon_client_runs(client, "measure", NULL), 1);
    assert_int_equal(drain(client, true), 0);
    daemon_client_expect(client, waiting, JOB_DONE, VERDICT_FASTER);
    free(source);
    free(gate);
}

static void a_quarantine_ends_by_a_probe_alone(void **state)
{
    struct daemon_client *client = *state;

    assert_int_equal(quarantine(client, "cpu7"), ERR_NOT_FOUND);
    assert_int_equal(quarantine(client, "cpu0"), 0);
    expect(client, "quarantined", "smells");
    assert_int_equal(drain(client, false), 0);
    assert_int_equal(drain(client, true), 0);
    restart(client, true);
    expect(client, "quarantined", "smells");
    struct err err = ERR_INIT;
    struct probed probed;
    assert_int_equal(probe(client, "cpu0", &probed, &err), 0);
    assert_true(probed.passed);
    assert_string_equal(probed.state, "ready");
    message_clear(&probed_message, &probed);
    expect(client, "ready", NULL);
    restart(client, false);
    expect(client, "ready", NULL);
}

static void a_probe_waits_for_what_runs(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n//! log2 1\n", gate);
    char *kcast = program_path("kcast");
    uint64_t job, next;

    job = daemon_client_accepted(client, "one", source);
    (void)daemon_client_gate_wait(gate);
    struct status status;
    daemon_client_status(client, &status);
    message_clear(&status_message, &status);
    struct program prober;
    // Another caller asks, because this one's calls come one at a time.
    program_init(&prober);
    program_start(
        &prober,
        (const char *[]){kcast, "--pool", remote_url(client->remote), "probe", "cpu0", NULL}, NULL);
    bool seen = false;
    while (!seen) { // its question has arrived when the device counts as being probed
        daemon_client_status(client, &status);
        seen = strcmp(status.devices[0].state, "probing") == 0;
        message_clear(&status_message, &status);
    }
    next = daemon_client_accepted(client, "two", "//! log2 2\n");
    struct err err = ERR_INIT;
    struct probed probed;
    assert_int_equal(probe(client, "cpu0", &probed, &err), ERR_BUSY); // one at a time
    daemon_client_gate_open(gate);
    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(program_wait(&prober), 0);
    char *output = program_output(&prober);
    assert_non_null(strstr(output, "cpu0 works"));
    daemon_client_expect(client, next, JOB_DONE, VERDICT_FASTER);
    expect(client, "ready", NULL);
    free(output);
    program_release(&prober);
    free(kcast);
    free(source);
    free(gate);
}

static void a_device_that_fails_its_probe_rests(void **state)
{
    struct daemon_client *client = *state;
    char *path = xasprintf("%s/broken", client->program.dir);

    // The fake executor's probe goes wrong from now on.
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    struct err err = ERR_INIT;
    struct probed probed;
    assert_int_equal(probe(client, "cpu0", &probed, &err), 0);
    assert_false(probed.passed);
    assert_string_equal(probed.state, "quarantined");
    assert_true(probed.found && probed.found[0]);
    message_clear(&probed_message, &probed);
    expect(client, "quarantined", "");
    remove(path);
    assert_int_equal(probe(client, "cpu0", &probed, &err), 0);
    assert_true(probed.passed);
    message_clear(&probed_message, &probed);
    expect(client, "ready", NULL);
    free(path);
}

// What kcast prints for this job; its exit code must be `code`.
static char *show_job(struct daemon_client *client, const char *id, const char *option, int code)
{
    char *kcast = program_path("kcast");
    struct program program;

    program_init(&program);
    program_start(
        &program,
        (const char *[]){kcast, "--pool", remote_url(client->remote), "job", id, option, NULL},
        NULL);
    assert_int_equal(program_wait(&program), code);
    char *output = code == 0 ? program_output(&program) : program_log(&program);
    program_release(&program);
    free(kcast);
    return output;
}

static void one_job_in_full(void **state)
{
    struct daemon_client *client = *state;
    uint64_t job = daemon_client_accepted(client, "one", "//! log2 1\n");

    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    char id[32];
    snprintf(id, sizeof(id), "%llu", (unsigned long long)job);
    char *text = show_job(client, id, NULL, 0);
    assert_non_null(strstr(text, "key one: done"));
    assert_non_null(strstr(text, "verdict      faster"));
    assert_non_null(strstr(text, "measured on  cpu0"));
    free(text);
    text = show_job(client, id, "--json", 0); // looking took nothing away
    assert_non_null(strstr(text, "\"verdict\":\"faster\""));
    assert_non_null(strstr(text, "\"cause\":null"));
    free(text);
    job = daemon_client_accepted(client, "two", "//! run-crash\n");
    daemon_client_expect(client, job, JOB_BURIED, 0);
    snprintf(id, sizeof(id), "%llu", (unsigned long long)job);
    text = show_job(client, id, NULL, 0);
    assert_non_null(strstr(text, "cause        lost-executor"));
    free(text);
    text = show_job(client, id, "--json", 0);
    assert_non_null(strstr(text, "\"cause\":\"lost-executor\""));
    free(text);
    text = show_job(client, "999", NULL, 3);
    assert_non_null(strstr(text, "no job 999"));
    free(text);
}

static int set_up_probe(void **state)
{
    static char variable[4300];

    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    snprintf(variable, sizeof(variable), "KCAST_FAKE_PROBE=if %s/broken", client->program.dir);
    client->variable[0] = variable;
    return daemon_client_start(client) ? 0 : -1;
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reason_that_cannot_be_shown_is_refused),
        TEST(a_drain_outlives_restarts),
        TEST(a_drain_waits_for_what_runs),
        TEST(a_quarantine_ends_by_a_probe_alone),
        TEST(a_probe_waits_for_what_runs),
        cmocka_unit_test_setup_teardown(a_device_that_fails_its_probe_rests, set_up_probe,
                                        daemon_client_tear_down),
        TEST(one_job_in_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
