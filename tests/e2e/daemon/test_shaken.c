// kcastd, GPUs that an executor only says it has, and the NVML that is not there: something
// disturbs a measurement that is under way.
#include "common/clock.h"
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/gpu.h"
#include "tests/support/until.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define UNTIL_NS (PROGRAM_LIMIT_MS * NS_PER_MS)

static char *nvml;      // "NAME=value"
static char *libraries; // the same

static void write_state(const char *text)
{
    assert_int_equal(file_replace(strchr(nvml, '=') + 1, text, strlen(text), false, NULL), 0);
}

static int set_up(void **state)
{
    char *folder = gpu_fake_folder();

    (void)daemon_client_set_up(state);
    struct daemon_client *client = *state;
    nvml = xasprintf("KCAST_FAKE_NVML=%s/nvml", client->program.dir);
    libraries = xasprintf("LD_LIBRARY_PATH=%s", folder);
    free(folder);
    write_state("count=1\n");
    client->option[0] = "--devices=cuda";
    client->variable[0] = nvml;
    client->variable[1] = libraries;
    client->variable[2] = "KCAST_FAKE_GPUS=1";
    return daemon_client_start(client) ? 0 : -1;
}

static int tear_down(void **state)
{
    int code = daemon_client_tear_down(state);

    free(nvml);
    free(libraries);
    return code;
}

// Until the GPU is in this state for a reason that has this in it.
static void until(struct daemon_client *client, const char *state, const char *why)
{
    uint64_t started_ns = clock_now_ns(&clock_system);
    struct until again = {0};
    bool found = false;

    while (!found) {
        struct status status;

        daemon_client_status(client, &status);
        const struct device_info *device = &status.devices[0];
        found = strcmp(device->state, state) == 0 && device->readings_count > 0 &&
                (!why || (device->reason && strstr(device->reason, why)));
        if (!found && clock_now_ns(&clock_system) - started_ns > UNTIL_NS) {
            fail_msg("it stays %s (%s)", device->state, device->reason ? device->reason : "");
        }
        message_clear(&status_message, &status);
        if (!found) {
            until_look_again(&again, "its state", __FILE__, __LINE__);
        }
    }
}

static struct submitted submit(struct daemon_client *client, const char *key, const char *candidate)
{
    struct job_spec spec = daemon_client_spec(client, candidate);

    spec.problem =
        daemon_client_put(client, daemon_client_cuda_problem, strlen(daemon_client_cuda_problem));
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_submit(client, "test", key, &spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return reply;
}

static double condition(const struct result *result, const char *name)
{
    for (size_t i = 0; i < result->conditions_count; i++) {
        if (strcmp(result->conditions[i].name, name) == 0) {
            return result->conditions[i].value;
        }
    }
    return NAN;
}

// As soon as the job is being measured: the GPU's state, why it is then suspect; then the
// measurement ends.
static void shake(struct daemon_client *client, const char *gate, const char *state_then,
                  const char *why)
{
    (void)daemon_client_gate_wait(gate);
    write_state(state_then);
    until(client, "suspect", why);
    daemon_client_gate_open(gate);
}

// Disturbed once, a job is measured again when the disturbance has gone.
static void disturb_once(struct daemon_client *client, const char *state_then, const char *why)
{
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);

    until(client, "ready", NULL);
    uint64_t job = submit(client, "a", candidate).job;
    shake(client, gate, state_then, why);
    daemon_client_until(client, job, JOB_READY);
    write_state("count=1\n");
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_true(isnan(condition(info.result, "disturbed")));
    assert_int_equal(info.attempt, 0); // nobody's executor was lost
    message_clear(&job_info_message, &info);
    assert_int_equal(daemon_client_runs(client, "cuda-measure", candidate), 2);
    struct status status;
    daemon_client_status(client, &status);
    assert_int_equal(status.devices[0].jobs_done, 2);
    message_clear(&status_message, &status);
    assert_true(submit(client, "b", candidate).cached);
    free(candidate);
    free(gate);
}

static void what_heat_disturbs_is_measured_again(void **state)
{
    disturb_once(*state, "GPU0.throttle=0x40\nGPU0.temperature=95\n", "too hot");
}

static void what_another_program_disturbs_is_measured_again(void **state)
{
    struct daemon_client *client = *state;
    char *text = xasprintf("GPU0.process=%d:1024\n", (int)getpid()); // which is not the daemon's
    char *log;

    until(client, "ready", NULL); // it has been read
    log = program_log(&client->program);
    bool unknown = strstr(log, "gpu-health state=on processes=unknown");
    free(log);
    if (unknown) {
        free(text);
        printf("skipped because in this container process numbers mean nothing to a GPU\n");
        skip();
    }
    disturb_once(client, text, "which is not ours");
    free(text);
}

static void what_is_disturbed_again_and_again_is_given_with_a_mark_and_not_kept(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);

    until(client, "ready", NULL);
    uint64_t job = submit(client, "a", candidate).job;
    for (int i = 0; i < 3; i++) {
        shake(client, gate, "GPU0.throttle=0x40\nGPU0.temperature=95\n", "too hot");
        if (i < 2) {
            daemon_client_until(client, job, JOB_READY);
            write_state("count=1\n");
        }
    }
    struct job_info info;
    daemon_client_wait(client, job, &info);
    assert_int_equal(info.result->verdict, VERDICT_FASTER); // whoever asked gets it, with this
    assert_float_equal(condition(info.result, "disturbed"), 1, 0);
    assert_float_equal(condition(info.result, "temperature_c"), 95, 0);
    message_clear(&job_info_message, &info);

    job = submit(client, "b", candidate).job; // and nobody else: it is measured again
    daemon_client_until(client, job, JOB_READY);
    write_state("count=1\n");
    (void)daemon_client_gate_wait(gate);
    daemon_client_gate_open(gate);
    daemon_client_wait(client, job, &info);
    assert_true(isnan(condition(info.result, "disturbed")));
    assert_false(info.result->cached);
    message_clear(&job_info_message, &info);
    free(candidate);
    free(gate);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_heat_disturbs_is_measured_again),
        TEST(what_another_program_disturbs_is_measured_again),
        TEST(what_is_disturbed_again_and_again_is_given_with_a_mark_and_not_kept),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
